"""Builds a model with TensorRT, or runs it with ONNX Runtime, as its recipe says, on the engine's public API alone.

In the folder of the model: `python3 repro.py RECIPE.json`, with the recipe's engine, and NumPy for drawn inputs. If a
version lacks an API the program ends at its name, as the cell does, and in the same order.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

Asked = Dict[str, Any]

PARENTS = {"entropy": "IInt8EntropyCalibrator2", "minmax": "IInt8MinMaxCalibrator"}
SCALES = (1.0, 0.5, 0.75, 0.25)


def build(asked: Asked, module: str) -> None:
    """Build the model with TensorRT, or with TensorRT for RTX, which needs no GPU, and print the layers."""
    trt = __import__(module)
    recipe, full = asked["recipe"], module == "tensorrt"
    # Whether builder flags may decide precision.
    weak = hasattr(trt.BuilderFlag, "INT8") and hasattr(trt.IBuilderConfig, "int8_calibrator")
    for library in asked["libraries"] if full else ():
        ctypes.CDLL(library)
    logger = trt.Logger() if full else logger_with_layers(trt)
    if full:
        trt.init_libnvinfer_plugins(logger, "")
    builder = trt.Builder(logger)
    flags = trt.NetworkDefinitionCreationFlag
    flag = 1 << int(flags.EXPLICIT_BATCH) if hasattr(flags, "EXPLICIT_BATCH") else 0
    if recipe["typing"] == "strong" or (recipe["typing"] == "graph" and not weak):
        flag |= 1 << int(flags.STRONGLY_TYPED)
    network, config = builder.create_network(flag), builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    configure(config, asked, trt, weak=weak)
    if recipe["calibrator"]:
        # The config keeps no reference. A version without calibrators ends here.
        kept = calibrator(asked, trt) if weak else None
        config.int8_calibrator = kept
    parser = trt.OnnxParser(network, logger)
    for name, on in recipe["parser_flags"]:
        (parser.set_flag if on else parser.clear_flag)(getattr(trt.OnnxParserFlag, name))
    if not parser.parse_from_file(asked["model"]):
        sys.exit("not parsed: " + parser.get_error(0).desc())
    shape(builder, network, config, recipe)
    plan = builder.build_serialized_network(network, config)
    if not plan:
        sys.exit("no engine was built")
    if full:
        engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
        inspector = engine.create_engine_inspector()
        print(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    else:
        print("an engine of", len(bytes(plan)), "bytes")


def logger_with_layers(trt: Any) -> Any:
    """Return a logger that keeps the layers: without a GPU the log of TensorRT for RTX alone tells them."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def log(self, severity: Any, text: str) -> None:
            if severity.name not in ("VERBOSE", "INFO") or text.startswith("Layers:"):
                print(f"[{severity.name}] {text}")

    return Logger()


def configure(config: Any, asked: Asked, trt: Any, *, weak: bool) -> None:
    """Set flags, workspace and the GPU generation to build for."""
    recipe = asked["recipe"]
    by_flags = recipe["typing"] == "weak" or (recipe["typing"] == "graph" and weak)
    for name in ["DISABLE_TIMING_CACHE", *(recipe["flags"] if by_flags else [])]:
        config.set_flag(getattr(trt.BuilderFlag, name))
    if recipe["workspace_mib"] is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, recipe["workspace_mib"] << 20)
    if asked["compute_capability"]:
        number = asked["compute_capability"].replace(".", "")
        config.num_compute_capabilities = 1
        config.set_compute_capability(getattr(trt.ComputeCapability, "SM" + number), 0)


def shape(builder: Any, network: Any, config: Any, recipe: Asked) -> None:
    """Mark outputs and add the optimisation profile."""
    layers = [network.get_layer(i) for i in range(network.num_layers)] if recipe["mark_outputs"] else []
    for layer in layers:
        for tensor in map(layer.get_output, range(layer.num_outputs)):
            if tensor.name in recipe["mark_outputs"]:
                network.mark_output(tensor)
    if recipe["profiles"]:
        profile = builder.create_optimization_profile()
        for one in recipe["profiles"]:
            profile.set_shape(one["input"], one["minimum"], one["optimum"], one["maximum"])
        config.add_optimization_profile(profile)
        if recipe["calibrator"]:
            config.set_calibration_profile(profile)


def calibrator(asked: Asked, trt: Any) -> Any:
    """Return the recipe's calibrator, wrong if the recipe wants a wrong one."""
    wish = asked["recipe"]["calibrator"]
    left = iter(batches(asked, wish))
    handed = on_host() if wish["fault"] == "host_pointer" else on_device()

    class Calibrator(getattr(trt, PARENTS[wish["kind"]])):  # type: ignore[misc]
        def get_batch_size(self) -> int:
            return 1

        def get_batch(self, names: List[str], *_: Any) -> Any:
            return next(([handed(batch[name]) for name in names] for batch in left), None)

        def read_calibration_cache(self, *_: Any) -> None:
            return None

        def write_calibration_cache(self, *_: Any) -> None:
            return None

    return Calibrator()


def batches(asked: Asked, wish: Asked) -> List[Dict[str, Any]]:
    """Return made-up batches."""
    drawn = {one["name"]: (unit(one) * 2 - 1).astype("float32") for one in asked["inputs"]}
    scales = (SCALES[index % len(SCALES)] for index in range(wish["batches"]))
    return [
        {name: spoilt(values * scale, wish["fault"]) for name, values in drawn.items()} for scale in scales
    ]


def spoilt(values: Any, fault: Optional[str]) -> Any:
    """Return values as a wrong calibrator hands them over."""
    values = values.astype("float32")
    if fault == "float64":
        return values.astype("float64")
    return values.ravel()[::2] if fault == "non_contiguous" else values


def on_host() -> Callable[[Any], int]:
    """Return a function that gives the address of values in the host's memory."""
    kept = []

    def handed(values: Any) -> int:
        kept.append(values)
        return int(values.ctypes.data)

    return handed


def on_device() -> Callable[[Any], int]:
    """Return a function that copies values to the GPU and gives their address, by the driver's own library."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)

    def handed(values: Any) -> int:
        address, size = ctypes.c_void_p(), ctypes.c_size_t(values.nbytes)
        cuda.cuMemAlloc_v2(ctypes.byref(address), size)
        cuda.cuMemcpyHtoD_v2(address, values.tobytes(), size)
        return address.value or 0

    return handed


def run(asked: Asked) -> None:
    """Run the model with ONNX Runtime and print the first values of each output."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    provider: Any = "CPUExecutionProvider"
    if asked["provider"] == "cuda":
        ort.preload_dlls()  # CUDA and cuDNN from their own packages
        provider = ("CUDAExecutionProvider", {"use_tf32": "0"})
    session = ort.InferenceSession(asked["model"], options, providers=[provider], enable_fallback=0)
    print(ort.__version__, session.get_providers())
    values = session.run(None, fed(asked))
    for entry, output in zip(session.get_outputs(), values):
        print(entry.name, output.dtype, output.shape, output.ravel()[:4])


def fed(asked: Asked) -> Asked:
    """Return the harness's own values of the inputs, in types that NumPy has."""
    made = {}
    for one in asked["inputs"]:
        if one["type"] == "bool":
            made[one["name"]] = unit(one) * 2 < 1
        else:
            drawn = unit(one) * 2 - 1 if "float" in one["type"] else (unit(one) * 8).astype("int64")
            made[one["name"]] = drawn.astype(one["type"])
    return made


def unit(one: Asked) -> Any:
    """Return an input's values in [0, 1), which depend on its name and shape alone."""
    import numpy as np

    seed = int.from_bytes(hashlib.sha256(("0:" + one["name"]).encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(seed)).random(one["shape"])


def main(path: str) -> None:
    """Do as the recipe says."""
    asked = json.loads(Path(path).read_text(encoding="utf-8"))
    if asked["module"] == "onnxruntime":
        run(asked)
    else:
        build(asked, asked["module"])


if __name__ == "__main__":
    main(sys.argv[1])

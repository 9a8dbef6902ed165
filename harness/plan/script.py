"""A Python file that builds a cell's engine as the cell does, on the engine's public API alone.

What the version lacks is named in it all the same: it ends there, as the cell does, and in the same order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import onnx
from packaging.version import Version

from harness.case.model import input_seed, network_inputs
from harness.plan.trtexec import PLUGIN
from harness.words import Typing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.case import Calibrator, Profile, Recipe
    from harness.case.model import NetworkInput
    from harness.matrix import Target
    from harness.plan.cells import Cell

#: The most lines of a file of today's cases, with the one that says what it needs.
MOST_LINES = 30
#: From where on the flag is gone that nothing but an implicit batch needs: in TensorRT, and for RTX.
_NO_EXPLICIT_BATCH = {True: Version("11.0"), False: Version("1.5")}
_NO_WEAK_TYPING = Version("11.0")
_PARENTS = {"entropy": "IInt8EntropyCalibrator2", "minmax": "IInt8MinMaxCalibrator"}
_SCALES = (1.0, 0.5, 0.75, 0.25)


def head_of(target: Target) -> str:
    """Return the file's first line: what it needs of this target."""
    name = f"# {target.traits.product} {target.version}"
    if target.traits.needs_gpu:
        return f"{name} with its Python bindings and numpy, and a GPU: {_where(target)}"
    machine = " on Linux for arm64" if target.docker_platform == "linux/arm64" else ""
    gpu = ", and an NVIDIA GPU" if target.provider == "cuda" else ""
    return f"{name}{machine}{gpu}: pip install {' '.join(target.packages)}"


def _where(target: Target) -> str:
    if target.build is not None and target.build.kind == "tarball":
        return dict(target.build.args).get("TENSORRT_URL", target.pull_reference)
    return target.pull_reference


def body_of(cell: Cell, model: str, data: bytes) -> str:
    """Return the rest of the file, the same for all targets on which the same has to be called.

    `model` is the name of the file that holds `data`; "" for an engine that no file is known for, and for a model with
    an input that is no tensor, which no engine takes.
    """
    known = _WRITTEN.get(cell.target.traits.adapter)
    if known is None:
        return ""
    does, make = known
    inputs = _inputs(data, cell.variant.recipe.profiles)
    if any(one.elem_type == onnx.TensorProto.UNDEFINED for one in inputs):
        return ""
    first = f"# {cell.case.name}.{cell.variant.name}: {does} {model}, which lies beside this file."
    return "\n".join([first, *make(cell, model, inputs)]) + "\n"


@lru_cache(maxsize=1)
def _inputs(data: bytes, profiles: tuple[Profile, ...]) -> tuple[NetworkInput, ...]:
    """Return a model's inputs; the cells of a variant ask for the same ones, one after the other."""
    return network_inputs(onnx.load_model_from_string(data), profiles)


def _tensorrt(cell: Cell, model: str, inputs: tuple[NetworkInput, ...]) -> list[str]:
    recipe, target = cell.variant.recipe, cell.target
    calibrator = recipe.calibrator
    full = _full(target)
    needed = {
        "ctypes": full and (calibrator or recipe.plugin or recipe.libraries),
        "sys": True,
        "numpy": calibrator and _weak(target),
    }
    modules = ", ".join(name for name, true in needed.items() if true)
    return [
        f"import {modules}, {target.module} as trt",
        *([f"ctypes.CDLL({PLUGIN!r})  # registers the plugin"] if full and recipe.plugin else []),
        *(f"ctypes.CDLL({'./' + each.name!r})  # registers its plugins" for each in recipe.libraries if full),
        *(["logger = trt.Logger()"] if full else _LOGGER_THAT_KEEPS_LAYERS),
        *(["trt.init_libnvinfer_plugins(logger, '')"] if full else []),
        "builder = trt.Builder(logger)",
        f"network = builder.create_network({_network_flags(recipe, target)})",
        "config = builder.create_builder_config()",
        "config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED",
        *_settings(recipe, target),
        *(_calibration(calibrator, inputs, target) if calibrator else []),
        "parser = trt.OnnxParser(network, logger)",
        *(
            f"parser.{'set' if on else 'clear'}_flag(trt.OnnxParserFlag.{name})"
            for name, on in recipe.parser_flags
        ),
        f"parser.parse_from_file({model!r}) or sys.exit('not parsed: ' + parser.get_error(0).desc())",
        *_marked(recipe),
        *_profile(recipe),
        "plan = builder.build_serialized_network(network, config) or sys.exit('no engine was built')",
        *(_INSPECTED if full else ["print('an engine of', len(bytes(plan)), 'bytes')"]),
    ]


#: TensorRT for RTX builds without a GPU, and then nothing but its log tells the layers.
_LOGGER_THAT_KEEPS_LAYERS = (
    "class Logger(trt.ILogger):",
    "    def log(self, severity, text):",
    "        if severity.name not in ('VERBOSE', 'INFO') or text.startswith('Layers:'):",
    "            print(f'[{severity.name}] {text}')",
    "logger = Logger()",
)
_INSPECTED = (
    "engine = trt.Runtime(logger).deserialize_cuda_engine(plan)",
    "print(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))",
)


def _full(target: Target) -> bool:
    """Tell TensorRT itself, which needs a GPU to build, from TensorRT for RTX."""
    return target.traits.needs_gpu


def _weak(target: Target) -> bool:
    """Tell whether builder flags may decide precision."""
    return _full(target) and Version(target.version) < _NO_WEAK_TYPING


def _network_flags(recipe: Recipe, target: Target) -> str:
    names = []
    if Version(target.version) < _NO_EXPLICIT_BATCH[_full(target)]:
        names.append("EXPLICIT_BATCH")
    if recipe.typing is Typing.STRONG or (recipe.typing is Typing.GRAPH and not _weak(target)):
        names.append("STRONGLY_TYPED")
    return " | ".join(f"1 << int(trt.NetworkDefinitionCreationFlag.{name})" for name in names) or "0"


def _settings(recipe: Recipe, target: Target) -> list[str]:
    flags = ["DISABLE_TIMING_CACHE"]
    if recipe.typing is Typing.WEAK or (recipe.typing is Typing.GRAPH and _weak(target)):
        flags += recipe.flags
    named = [f"trt.BuilderFlag.{name}" for name in flags]
    lines = [f"config.set_flag({named[0]})"]
    if len(named) > 1:
        lines = [f"for flag in ({', '.join(named)}): config.set_flag(flag)"]
    if recipe.workspace_mib is not None:
        lines.append(
            f"config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, {recipe.workspace_mib} << 20)"
        )
    if target.compute_capability:
        number = target.compute_capability.replace(".", "")
        lines.append("config.num_compute_capabilities = 1")
        lines.append(f"config.set_compute_capability(trt.ComputeCapability.SM{number}, 0)")
    return lines


def _unit(one: NetworkInput) -> str:
    """Return what draws an input's values in [0, 1), the harness's own."""
    return f"numpy.random.Generator(numpy.random.PCG64({input_seed(one.name)})).random({one.shape})"


def _calibration(calibrator: Calibrator, inputs: tuple[NetworkInput, ...], target: Target) -> list[str]:
    """Return a calibrator that hands over the cell's own batches, in device memory that the driver gives."""
    if not _weak(target):
        return ["config.int8_calibrator = None  # would be the calibrator, where this version had any"]
    scales = ", ".join(str(_SCALES[index % len(_SCALES)]) for index in range(calibrator.batches))
    if calibrator.data:
        return _own_batches(calibrator)
    spoilt = _SPOILT.get(calibrator.fault or "", "inputs[name] * scale")
    return [
        *_device(calibrator.fault),
        *_drawn(inputs),
        f"class Calibrator(trt.{_PARENTS[calibrator.kind]}):",
        "    def get_batch_size(self): return 1",
        f"    def get_batch(self, names, *_, scales=iter(({scales},))):",
        f"        for scale in scales: return [handed({spoilt}) for name in names]",
        "    read_calibration_cache = write_calibration_cache = lambda self, *_: None",
        "config.int8_calibrator = calibrator = Calibrator()",
    ]


def _own_batches(calibrator: Calibrator) -> list[str]:
    return [
        *_device(None),
        "batches = numpy.load('calibration.npz')  # the arrays that were given; the first axis are batches",
        f"class Calibrator(trt.{_PARENTS[calibrator.kind]}):",
        "    def get_batch_size(self): return 1",
        f"    def get_batch(self, names, *_, left=iter(range({calibrator.batches}))):",
        "        for index in left: return [handed(numpy.ascontiguousarray(batches[name][index])) for name in names]",
        "    read_calibration_cache = write_calibration_cache = lambda self, *_: None",
        "config.int8_calibrator = calibrator = Calibrator()",
    ]


#: What a wrong calibrator makes of its values.
_SPOILT = {
    "float64": "(inputs[name] * scale).astype('float64')",
    "non_contiguous": "(inputs[name] * scale).ravel()[::2]",
}


def _drawn(inputs: tuple[NetworkInput, ...]) -> list[str]:
    if len(inputs) == 1:
        return [f"inputs = {{{inputs[0].name!r}: ({_unit(inputs[0])} * 2 - 1).astype('float32')}}"]
    seeds = tuple((one.name, input_seed(one.name), one.shape) for one in inputs)
    return [
        "drawn = lambda seed, shape: numpy.random.Generator(numpy.random.PCG64(seed)).random(shape) * 2 - 1",
        f"inputs = {{name: drawn(seed, shape).astype('float32') for name, seed, shape in {seeds}}}",
    ]


def _device(fault: str | None) -> list[str]:
    """Return the lines of `handed`, which gives a batch's address, on the host where the recipe says so."""
    if fault == "host_pointer":
        return [
            "kept = []",
            "def handed(values): return kept.append(values) or values.ctypes.data",
        ]
    return [
        "cuda, context = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p()",
        "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)",
        "def handed(values):",
        "    address, size = ctypes.c_void_p(), ctypes.c_size_t(values.nbytes)",
        "    cuda.cuMemAlloc_v2(ctypes.byref(address), size), cuda.cuMemcpyHtoD_v2(address, values.tobytes(), size)",
        "    return address.value",
    ]


def _marked(recipe: Recipe) -> list[str]:
    if not recipe.mark_outputs:
        return []
    tensors = "for layer in layers for t in map(layer.get_output, range(layer.num_outputs))"
    return [
        "layers = [network.get_layer(i) for i in range(network.num_layers)]",
        f"[network.mark_output(t) {tensors} if t.name in {recipe.mark_outputs}]",
    ]


def _profile(recipe: Recipe) -> list[str]:
    if not recipe.profiles:
        return []
    return [
        "profile = builder.create_optimization_profile()",
        *(
            f"profile.set_shape({one.input!r}, {one.minimum}, {one.optimum}, {one.maximum})"
            for one in recipe.profiles
        ),
        "config.add_optimization_profile(profile)",
        *(["config.set_calibration_profile(profile)"] if recipe.calibrator else []),
    ]


def _onnxruntime(cell: Cell, model: str, inputs: tuple[NetworkInput, ...]) -> list[str]:
    cuda = cell.target.provider == "cuda"
    provider = "('CUDAExecutionProvider', {'use_tf32': '0'})" if cuda else "'CPUExecutionProvider'"
    return [
        "import numpy, onnxruntime as ort",
        *(["ort.preload_dlls()  # CUDA and cuDNN from their own packages"] if cuda else []),
        "options = ort.SessionOptions()",
        "options.intra_op_num_threads = options.inter_op_num_threads = 1",
        f"session = ort.InferenceSession({model!r}, options, providers=[{provider}], enable_fallback=0)",
        "print(ort.__version__, session.get_providers())",
        "inputs = {}",
        *(f"inputs[{one.name!r}] = {_as_fed(one)}" for one in inputs),
        "for entry, output in zip(session.get_outputs(), session.run(None, inputs)):",
        "    print(entry.name, output.dtype, output.shape, output.ravel()[:4])",
    ]


def _as_fed(one: NetworkInput) -> str:
    """Return what makes the harness's own values of an input, in a type that NumPy has."""
    kind = onnx.helper.tensor_dtype_to_np_dtype(one.elem_type).name
    if kind == "bool":
        return f"{_unit(one)} < 0.5"
    drawn = f"({_unit(one)} * 2 - 1)" if "float" in kind else f"numpy.floor({_unit(one)} * 8)"
    return f"{drawn}.astype({kind!r})"


#: What the file of each adapter's engines does, and what writes it.
_WRITTEN: Mapping[str, tuple[str, Callable[..., list[str]]]] = {
    "tensorrt": ("builds", _tensorrt),
    "onnxruntime": ("runs", _onnxruntime),
}

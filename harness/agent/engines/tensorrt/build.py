"""ONNX bytes and a recipe -> a serialised plan."""

import contextlib
import os
from typing import Any, Dict, Tuple

from harness.agent import gpu
from harness.agent.calibration import make_calibrator
from harness.agent.cuda import CudaDevice
from harness.agent.engines import Emit, Failed, MachineFault, phase, said
from harness.agent.engines.tensorrt import api, plugins
from harness.agent.protocol import BODIES_LIMIT, Message
from harness.agent.tensors import narrowed, read_shape


def build(job: Message, parts: Dict[str, bytes], emit: Emit) -> None:
    """Parse, configure and build; emits the plan as the body of a `plan` event."""
    recipe = job["recipe"]
    api.check_recipe(recipe)
    logger = api.logger_for(emit)
    plugins.load(recipe, logger, parts)
    with phase(emit, "parse"):
        builder, network, parser = make_parser(logger, recipe["typing"])
        _set_parser_flags(parser, recipe)
        _parse(parser, parts["model"], job["weights"], emit)
        _mark_outputs(network, recipe["mark_outputs"])
    with gpu.opened() if recipe["calibrator"] else contextlib.nullcontext() as device:
        with phase(emit, "build"):
            config = api.made(logger, "create_builder_config", builder.create_builder_config)
            _configure(config, job)
            profile = _add_profiles(builder, config, recipe)
            if device is not None:
                _calibrate(config, network, recipe, parts, device)
                if profile is not None:
                    config.set_calibration_profile(profile)
            plan = said(builder.build_serialized_network, network, config)
            if plan is None:
                raise Failed("build_serialized_network returned no engine")
            length = memoryview(plan).nbytes
            if job["plan"] and length > BODIES_LIMIT:
                raise MachineFault("an engine of %d MiB does not pass the stream" % (length >> 20))
            data = bytes(plan) if job["plan"] else b""
        emit("plan", data, bytes=length)
        if device is not None and config.int8_calibrator.cache:
            emit("calibration_cache", config.int8_calibrator.cache)


def make_parser(logger: Any, typing: str) -> Tuple[Any, Any, Any]:
    """Return a builder, an empty network of it and the parser that fills that; raises MachineFault."""
    trt = api.trt
    builder = api.builder_for(logger)
    network = api.made(logger, "create_network", builder.create_network, api.network_flags(typing))
    return builder, network, api.made(logger, "OnnxParser", trt.OnnxParser, network, logger)


def _set_parser_flags(parser: Any, recipe: Dict[str, Any]) -> None:
    for name, on in recipe["parser_flags"]:
        flag = api.need("OnnxParserFlag." + name)
        (parser.set_flag if on else parser.clear_flag)(flag)


def _parse(parser: Any, model: bytes, weights: str, emit: Emit) -> None:
    # External data are looked for in the folder of a path that need not exist.
    if said(parser.parse, model, *([os.path.join(weights, "model.onnx")] if weights else [])):
        return
    for index in range(parser.num_errors):
        error = parser.get_error(index)
        emit(
            "parser_error",
            text=error.desc(),
            code=str(error.code()).rsplit(".", 1)[-1],
            node=error.node_name() if hasattr(error, "node_name") else "",
            operator=error.node_operator() if hasattr(error, "node_operator") else "",
        )
    raise Failed("the ONNX parser refused the model")


def _mark_outputs(network: Any, names: Any) -> None:
    tensors = {}
    for index in range(network.num_layers if names else 0):
        layer = network.get_layer(index)
        for output in range(layer.num_outputs):
            tensor = layer.get_output(output)
            tensors[tensor.name] = tensor
    for name in names:
        if name not in tensors:
            raise Failed("no tensor called %r to mark as output" % name)
        network.mark_output(tensors[name])


def _configure(config: Any, job: Message) -> None:
    trt = api.trt
    recipe = job["recipe"]
    if recipe["workspace_mib"] is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, recipe["workspace_mib"] << 20)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    # A tactic remembered from another cell would make this one depend on the order of the run.
    config.set_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)
    _set_precision_flags(config, recipe)
    if job.get("compute_capability"):
        _set_compute_capability(config, job["compute_capability"])


def _calibrate(
    config: Any, network: Any, recipe: Dict[str, Any], parts: Dict[str, bytes], device: CudaDevice
) -> None:
    fed = [network.get_input(index) for index in range(network.num_inputs)]
    if recipe["calibrator"].get("data"):
        inputs = {tensor.name: _batches(tensor, parts) for tensor in fed}
    else:
        inputs = {tensor.name: parts[tensor.name] for tensor in fed}
    config.int8_calibrator = make_calibrator(api.trt, recipe["calibrator"], inputs, device)


def _batches(tensor: Any, parts: Dict[str, bytes]) -> bytes:
    """Return an input's own batches, one behind the other, in the element type that the network takes."""
    part = "calibration:" + tensor.name
    try:
        return narrowed(parts[part], read_shape(parts["shape:" + part]), api.datatype_name(tensor.dtype))
    except ValueError as error:
        raise Failed("calibration of input %s %s" % (tensor.name, error)) from error


def _set_precision_flags(config: Any, recipe: Dict[str, Any]) -> None:
    if recipe["typing"] == "weak" or (recipe["typing"] == "graph" and api.has_weak_typing()):
        for name in recipe["flags"]:
            config.set_flag(api.need("BuilderFlag." + name))


def _set_compute_capability(config: Any, capability: str) -> None:
    api.need("IBuilderConfig.set_compute_capability")
    wanted = api.need("ComputeCapability.SM" + capability.replace(".", ""))
    config.num_compute_capabilities = 1
    if not config.set_compute_capability(wanted, 0):
        raise Failed("the builder refused compute capability %s" % capability)


def _add_profiles(builder: Any, config: Any, recipe: Dict[str, Any]) -> Any:
    if not recipe["profiles"]:
        return None
    profile = builder.create_optimization_profile()
    for entry in recipe["profiles"]:
        profile.set_shape(entry["input"], entry["minimum"], entry["optimum"], entry["maximum"])
    config.add_optimization_profile(profile)
    return profile

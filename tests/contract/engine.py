"""The engine's answers and callbacks that `stub.c` cannot give: used by the probe, beside the bindings.

Each answer gets the bindings, what the stub answered, and the call's arguments.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.contract.trace import TRACE

Answer = Callable[..., Any]

#: Objects that TensorRT or the driver would own, and that so outlive the adapter's work: plugins and memory.
made: list[Any] = []
#: Loggers, profilers and calibrators that the adapter made in this scenario, which it has to keep itself.
derived: list[weakref.ref[Any]] = []
#: The classes of the bindings that the adapter derives those from.
DERIVED = ("ILogger", "IProfiler", "IInt8EntropyCalibrator2", "IInt8MinMaxCalibrator", "IOutputAllocator")

#: The stream on which TensorRT has a plugin work.
_STREAM = 77


def _living() -> list[Any]:
    return [item for reference in derived if (item := reference()) is not None]


def _build(trt: ModuleType, plan: Any, network: Any, config: Any) -> bytes:
    """Log and calibrate. The plan must have a buffer; what is in it is not in the stub's power."""
    memoryview(plan)
    for item in _living():
        if isinstance(item, trt.ILogger):
            item.log(trt.ILogger.Severity.INFO, "building")
        elif hasattr(item, "get_batch"):
            assert config.int8_calibrator is item
            _calibrate(item, network.get_input(0).name)
    return b"plan"


def _calibrate(calibrator: Any, tensor: str) -> None:
    """Call as the bindings do (python/src/infer/pyInt8.cpp of 8.5): names in, addresses or None out."""
    assert calibrator.get_batch_size() == 1
    calibrator.read_calibration_cache()
    while True:
        addresses = TRACE.call("get_batch", calibrator, lambda: calibrator.get_batch([tensor]), [tensor])
        if not addresses:
            break
        assert all(isinstance(address, int) for address in addresses), addresses
    calibrator.write_calibration_cache(memoryview(b"cache"))


def _execute(trt: ModuleType, done: bool, _stream: int) -> bool:
    for item in _living():
        if isinstance(item, trt.IProfiler):
            item.report_layer_time("layer", 0.5)
        elif isinstance(item, trt.IOutputAllocator):
            address = item.reallocate_output("y2", 0, 8, 256)
            assert item.reallocate_output("y2", address, 8, 256) == address
            item.notify_shape("y2", trt.Dims((1, 2)))
    return done


def _register(trt: ModuleType, done: bool, creator: Any, _namespace: str) -> bool:
    """Make a plugin through its creator and ask it what a builder asks."""
    formats = bytearray(b"int8_linear\0")
    fields = [trt.PluginField("formats", formats, trt.PluginFieldType.CHAR)]
    v3 = isinstance(creator, getattr(trt, "IPluginCreatorV3One", ()))
    plugin = creator.create_plugin("name", fields, *([trt.TensorRTPhase.BUILD] if v3 else []))
    # Up to 10.3 the bindings spoil the heap when Python frees an IPluginV3; TensorRT itself keeps those it is given.
    made.extend((plugin, plugin.clone()))
    plugin.configure_plugin([], [])
    shape = trt.DimsExprs([])
    tensors = [trt.DynamicPluginTensorDesc() if v3 else trt.PluginTensorDesc() for _ in range(3)]
    for tensor in tensors:
        described = tensor.desc if v3 else tensor
        described.type, described.format = trt.DataType.INT8, trt.TensorFormat.LINEAR
        described.dims = trt.Dims((1, 2))
    assert all(plugin.supports_format_combination(position, tensors, 2) for position in range(3))
    assert not plugin.supports_format_combination(0, tensors, 1)
    if v3:
        assert plugin.get_capability_interface(trt.PluginCapabilityType.CORE) is not None
        assert plugin.get_output_data_types([trt.DataType.INT8]) == [trt.DataType.INT8]
        assert len(plugin.get_output_shapes([shape], [], None)) == 1
        plugin.on_shape_change([], [])
        made.append(plugin.attach_to_context(None))
        assert plugin.get_fields_to_serialize() is not None
    else:
        assert plugin.get_output_datatype(0, [trt.DataType.INT8]) == trt.DataType.INT8
        plugin.get_output_dimensions(0, [shape], None)
        made.append(creator.deserialize_plugin("name", plugin.serialize().encode()))
    described = [tensor.desc if v3 else tensor for tensor in tensors]
    sides = [(ctypes.c_char * 64)(), (ctypes.c_char * 64)()]
    made.extend(sides)
    source, target = (ctypes.addressof(side) for side in sides)
    TRACE.name_block("plugin input", source, 64)
    TRACE.name_block("plugin output", target, 64)
    enqueue = functools.partial(plugin.enqueue, described[:1], described[1:2], [source], [target], 0, _STREAM)
    TRACE.call("enqueue", None, enqueue, [source], [target], _STREAM)
    with contextlib.suppress(ValueError):
        creator.create_plugin("name", [], *([trt.TensorRTPhase.BUILD] if v3 else []))
        raise AssertionError("a plugin without its attribute was made")
    return done


ANSWERS: dict[str, Answer] = {
    "Builder.build_serialized_network": _build,
    "OnnxParser.num_errors": lambda *_: 1,
    "INetworkDefinition.num_layers": lambda *_: 1,
    "INetworkDefinition.num_inputs": lambda *_: 1,
    "INetworkDefinition.num_outputs": lambda *_: 1,
    "ILayer.num_outputs": lambda *_: 1,
    "ITensor.name": lambda *_: "x",
    "ICudaEngine.num_io_tensors": lambda *_: 2,
    "ICudaEngine.get_tensor_name": lambda _trt, _name, index: ("x", "y", "x2", "y2")[index],
    "ICudaEngine.get_tensor_mode": lambda trt, _mode, name: (
        trt.TensorIOMode.INPUT if name.startswith("x") else trt.TensorIOMode.OUTPUT
    ),
    "ICudaEngine.get_tensor_dtype": lambda trt, *_: trt.DataType.FLOAT,
    "IExecutionContext.get_tensor_shape": lambda trt, _shape, name: trt.Dims((-1 if name == "y2" else 1, 2)),
    "IExecutionContext.execute_async_v3": _execute,
    "EngineInspector.get_engine_information": lambda *_: "{}",
    "IPluginRegistry.register_creator": _register,
}

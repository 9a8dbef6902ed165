"""The engine's answers and callbacks that `stub.c` cannot give: used by the probe, beside the bindings.

Each answer gets the bindings, what the stub answered, and the call's arguments.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.contract.trace import TRACE

Answer = Callable[..., Any]

#: Memory that the driver would own, and that so outlives the adapter's work.
made: list[Any] = []
#: Loggers, profilers and calibrators that the adapter made in this scenario, which it has to keep itself.
derived: list[weakref.ref[Any]] = []
#: The classes of the bindings that the adapter derives those from.
DERIVED = ("ILogger", "IProfiler", "IInt8EntropyCalibrator2", "IInt8MinMaxCalibrator", "IOutputAllocator")


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
}

"""Imported as `tensorrt` by an agent in the rig: the real bindings in the contract test's wrapper, and an engine.

The faults to make are in `rig.json` beside the driver, whose folder the loader's path begins with.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

from tests.contract import engine
from tests.contract.probe import Module, Probe, log_slot, note_instances, spoken

FOLDER = Path(os.environ["LD_LIBRARY_PATH"].partition(":")[0])
#: Addresses by tensor, as the adapter set them.
_addresses: dict[str, int] = {}
_LAYER = {
    "Name": "relu",
    "LayerType": "PointWiseV2",
    "Inputs": [{"Name": "x", "Dimensions": [1, 2], "Format/Datatype": "Row major linear FP32"}],
    "Outputs": [{"Name": "y", "Dimensions": [1, 2], "Format/Datatype": "Row major linear FP32"}],
    "Metadata": "[ONNX Layer: relu]",
}
#: Seconds that a build takes of the GPU.
_TUNES = 0.2


def _build(trt: Any, plan: Any, network: Any, config: Any) -> bytes:
    """Hold the GPU for a while, as a builder does that times its tactics there."""
    from harness.agent.cuda import CudaDevice

    with CudaDevice():
        time.sleep(_TUNES)
    return engine._build(trt, plan, network, config)


def _set_address(_trt: Any, done: bool, name: str, address: int) -> bool:
    _addresses[name] = address
    return done


def _execute(trt: Any, done: bool, stream: int) -> bool:
    values = struct.unpack("2f", ctypes.string_at(_addresses["x"], 8))
    ctypes.memmove(_addresses["y"], struct.pack("2f", *(max(0.0, value) for value in values)), 8)
    return engine._execute(trt, done, stream)


def _crash(*_: Any) -> None:
    ctypes.string_at(0)


ANSWERS: dict[str, engine.Answer] = {
    "ITensor.dtype": lambda trt, *_: trt.DataType.FLOAT,
    "Builder.build_serialized_network": _build,
    "IExecutionContext.set_tensor_address": _set_address,
    "IExecutionContext.execute_async_v3": _execute,
    "EngineInspector.get_engine_information": lambda *_: json.dumps({"Layers": [_LAYER]}),
}


def install(name: str) -> None:
    """Put the wrapped bindings in the place of the module that is being imported."""
    order = json.loads((FOLDER / "rig.json").read_text(encoding="utf-8"))
    real = importlib.import_module(f"{name}_bindings")
    probe = Probe(real, name, None, [])
    note_instances(real)
    engine.ANSWERS.update(ANSWERS)
    crashing = [path for path, value in order["answers"].items() if value == "crash"]
    engine.ANSWERS.update(dict.fromkeys(crashing, _crash))
    probe.answers = {
        path: spoken(real, value) for path, value in order["answers"].items() if path not in crashing
    }
    stub = ctypes.CDLL(str(FOLDER / "stub.so"))
    (ctypes.c_char * 64).in_dll(stub, "null_factory").value = order["null"].encode()
    ctypes.c_int.in_dll(stub, "log_slot").value = log_slot(name, real.__version__)
    assert isinstance(sys.modules[name], Module)

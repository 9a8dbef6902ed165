"""Folders of models with data in ONNX's own layout, as strangers have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.run.numbers.wire import Array


def model(op: str = "Relu", *, number: int = TensorProto.FLOAT, opset: int = 14) -> onnx.ModelProto:
    """Return a model of one node on two numbers."""
    value = helper.make_tensor_type_proto(number, [2])
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"])],
        "g",
        [onnx.ValueInfoProto(name="x", type=value)],
        [onnx.ValueInfoProto(name="y", type=value)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def write(
    folder: Path, graph: onnx.ModelProto, *, given: Array | None = None, wanted: Array | None = None
) -> Path:
    """Write a model, and what it is given and is to give."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    for kind, array in (("input", given), ("output", wanted)):
        if array is not None:
            (data / f"{kind}_0.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    return folder


def three(path: Path) -> Path:
    """Write a folder of a model that works, one whose data is wrong, and one of an operator that nobody knows."""
    numbers = np.array([-1, 2], np.float32)
    write(path / "Works", model(), given=numbers, wanted=np.array([0, 2], np.float32))
    write(path / "wrong", model(), given=numbers, wanted=np.array([7, 7], np.float32))
    write(path / "odd", model("Unheard"), given=numbers, wanted=numbers)
    return path

"""Variations of a case's model: the same trouble in another file, as a user would have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from harness.case.graph_reader import STANDARD, GraphReader, subgraphs
from harness.case.model import fed_inputs, network_inputs
from harness.run.numbers.inputs import make_inputs
from harness.run.numbers.reference import reference

#: Operators of float data alone, which a Relu may stand before.
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with other names of nodes and tensors, as another exporter gives them; the order stays."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _rename(made.graph, {}, "r")
    return made


def _rename(graph: onnx.GraphProto, names: dict[str, str], prefix: str) -> None:
    def new(name: str) -> str:
        return names.setdefault(name, f"{prefix}{len(names)}") if name else ""

    for value in graph.input:
        value.name = new(value.name)
    for tensor in graph.initializer:
        tensor.name = new(tensor.name)
    for at, node in enumerate(graph.node):
        node.name = f"{prefix}/{node.op_type.lower()}.{at}" if node.name else ""
        for tensors in (node.input, node.output):
            tensors[:] = [new(name) for name in tensors]
        for number, inner in enumerate(subgraphs(node)):
            _rename(inner, dict(names), f"{prefix}{at}_{number}_")
    for value in (*graph.output, *graph.value_info):
        value.name = new(value.name)


def batch(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return the model for a batch of two, or of twice as many."""
    return _resized(model, lambda shape: [2 * shape[0], *shape[1:]] if len(shape) > 1 else list(shape))


def spatial(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return the model for inputs that are half as large again in their last two axes, or the last one."""

    def larger(shape: tuple[int, ...]) -> list[int]:
        first = 2 if len(shape) > 3 else len(shape) - 1
        return [each if at < first or each == 1 else each * 3 // 2 for at, each in enumerate(shape)]

    return _resized(model, lambda shape: larger(shape) if len(shape) > 2 else list(shape))


def channels(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return the model with 32 channels more wherever the first input's number of channels stands."""
    shapes = [value.shape for value in network_inputs(model) if len(value.shape) > 2]
    if not shapes or shapes[0][1] < 2 or -1 in shapes[0]:
        return None
    old = shapes[0][1]
    new = old + 32
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        dims = tuple(tensor.dims)
        if len(dims) in (1, 3, 4, 5) and old in dims[:2]:
            array = numpy_helper.to_array(tensor)
            for axis in (at for at, size in enumerate(dims[:2]) if size == old):
                array = np.take(array, np.arange(new) % old, axis)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))
    for node in made.graph.node:
        for item in node.attribute:
            if item.name == "group" and item.i == old:
                item.i = new
    return _resized(
        made, lambda shape: [new if at == 1 and each == old else each for at, each in enumerate(shape)]
    )


def after_relu(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return the model with a Relu between each input of floats and what reads it."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    fed = [value for value in fed_inputs(made) if value.type.tensor_type.elem_type in _FLOATS]
    named = {value.name: f"{value.name}_relu" for value in fed}
    for node in made.graph.node:
        node.input[:] = [named.get(name, name) for name in node.input]
    before = [
        onnx.helper.make_node("Relu", [name], [new], name=f"relu_of_{name}") for name, new in named.items()
    ]
    nodes = [*before, *made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made if fed else None


KINDS: dict[str, Callable[[onnx.ModelProto], onnx.ModelProto | None]] = {
    "batch": batch,
    "spatial": spatial,
    "channels": channels,
    "relu": after_relu,
}


def variations(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield each kind of variation that ONNX's own rules and evaluator take."""
    for name, vary in KINDS.items():
        made = vary(model)
        if made is not None and made != model and _valid(made):
            yield name, made


def _resized(model: onnx.ModelProto, new: Callable[[tuple[int, ...]], list[int]]) -> onnx.ModelProto | None:
    """Return the model with other sizes of its inputs, those of its outputs left open; None if any is dynamic."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in fed_inputs(made):
        dims = value.type.tensor_type.shape.dim
        if not all(dim.HasField("dim_value") for dim in dims):
            return None
        for dim, size in zip(dims, new(tuple(int(dim.dim_value) for dim in dims)), strict=True):
            dim.dim_value = size
    del made.graph.value_info[:]
    for value in made.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    try:
        graph = onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True).graph
    except onnx.shape_inference.InferenceError:
        return None
    del made.graph.output[:]
    made.graph.output.extend(graph.output)
    return made


def _valid(model: onnx.ModelProto) -> bool:
    """Tell whether a model runs, where the evaluator knows all of its operators."""
    graph = GraphReader(model.graph)
    if any(node.domain not in STANDARD or not onnx.defs.has(node.op_type) for node in graph.nodes):
        return True
    try:
        onnx.checker.check_model(model, full_check=True)
        return reference(model, make_inputs(model, ())).outputs is not None
    except Exception:  # noqa: BLE001  (ONNX's checker raises errors of its own)
        return False

"""ONNX model -> the graph that the report draws: nodes, and tensors with their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from harness.case import effective_name
from harness.known.model import GraphView, NodeView
from harness.layers.asked import inferred

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A graph of more nodes is not listed.
MOST_NODES = 300


def graph_of(model: bytes) -> GraphView:
    """Return the graph of a serialised model, empty for one of more than `MOST_NODES` nodes."""
    try:
        plain = onnx.load_model_from_string(model)
        if len(plain.graph.node) > MOST_NODES:
            return GraphView()
    except DecodeError:
        return GraphView()
    graph = inferred(plain)
    constants = tuple(entry.name for entry in graph.initializer)
    nodes = tuple(
        NodeView(effective_name(node), node.op_type, tuple(node.input), tuple(node.output))
        for node in graph.node
    )
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    values = {info.name: _type(info.type) for info in (*graph.input, *graph.output, *graph.value_info)}
    values |= {entry.name: _said(entry.data_type, map(str, entry.dims)) for entry in graph.initializer}
    return GraphView(
        nodes,
        tuple(info.name for info in graph.input if info.name not in constants),
        tuple(info.name for info in graph.output),
        {name: values[name] for name in sorted(used & values.keys()) if values[name]},
    )


def _type(found: onnx.TypeProto) -> str:
    tensor = found.tensor_type
    sizes = (
        size.dim_param or (str(size.dim_value) if size.HasField("dim_value") else "?")
        for size in tensor.shape.dim
    )
    return _said(tensor.elem_type, sizes)


def _said(kind: int, sizes: Iterable[str]) -> str:
    if kind == TensorProto.UNDEFINED:
        return ""
    name = TensorProto.DataType.Name(kind).lower()
    return f"{'float32' if name == 'float' else name} {'x'.join(sizes) or 'scalar'}"

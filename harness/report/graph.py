"""ONNX model -> the graph that the report draws: nodes, tensors with their types, and where each node stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from harness.case import effective_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: A graph of more nodes is told, not drawn.
MOST_NODES = 300
_SWEEPS = 4


@dataclass(frozen=True)
class NodeView:
    """A node: the name that engines report it under, operator, and tensors in the operator's order ("" for none)."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class GraphView:
    """A model's graph; `types` are "float32 1x3x64x64" by tensor, of initialisers too, where they can be inferred."""

    nodes: tuple[NodeView, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()


def graph_of(model: bytes) -> GraphView:
    """Return the graph of a serialised model, empty for one of more than `MOST_NODES` nodes."""
    try:
        plain = onnx.load_model_from_string(model)
        if len(plain.graph.node) > MOST_NODES:
            return GraphView()
        graph = onnx.shape_inference.infer_shapes(plain).graph
    except (onnx.shape_inference.InferenceError, DecodeError):
        return GraphView()
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
        constants,
        tuple((name, values[name]) for name in sorted(used & values.keys()) if values[name]),
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


@dataclass(frozen=True)
class Place:
    """Where a node stands: `rank` from the top, `order` from the left in halves of a box's width."""

    rank: int
    order: int


def layout(graph: GraphView) -> tuple[Place, ...]:
    """Return each node's place, in the nodes' order: producers above consumers, few crossings, nothing random.

    Ranks are longest paths; a chain that starts from constants is pulled down to its consumer. Within a rank nodes
    are ordered by the barycentre of their neighbours, in a fixed number of sweeps with ties by the node's number.
    """
    made = {name: index for index, node in enumerate(graph.nodes) for name in node.outputs if name}
    above = [
        sorted({made[name] for name in node.inputs if name in made} - {index})
        for index, node in enumerate(graph.nodes)
    ]
    below: list[list[int]] = [[] for _ in graph.nodes]
    for index, sources in enumerate(above):
        for source in sources:
            below[source].append(index)
    ranks = _ranks(graph, above, below)
    rows: dict[int, list[int]] = {}
    for index, rank in enumerate(ranks):
        rows.setdefault(rank, []).append(index)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for rank in sorted(rows, reverse=not down):
            _sort(rows, rank, above if down else below)
    widest = max(map(len, rows.values()), default=0)
    order = {index: 2 * at + widest - len(row) for row in rows.values() for at, index in enumerate(row)}
    return tuple(Place(ranks[index], order[index]) for index in range(len(graph.nodes)))


def _ranks(graph: GraphView, above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[int]:
    """Return the ranks; nodes of a valid model come after those they read from, and what does not is put on top."""
    ranks = [0] * len(above)
    for index, sources in enumerate(above):
        ranks[index] = max((ranks[source] + 1 for source in sources if source < index), default=0)
    fed: list[bool] = []
    for index, node in enumerate(graph.nodes):
        fed.append(
            bool(set(node.inputs) & set(graph.inputs))
            or any(fed[source] for source in above[index] if source < index)
        )
    for index in reversed(range(len(above))):
        if not fed[index] and below[index]:
            ranks[index] = max(ranks[index], min(ranks[reader] for reader in below[index]) - 1)
    return ranks


def _sort(rows: Mapping[int, list[int]], rank: int, neighbours: Sequence[Sequence[int]]) -> None:
    at = {index: place for row in rows.values() for place, index in enumerate(row)}

    def weight(index: int) -> tuple[float, int]:
        near = [at[other] for other in neighbours[index]]
        return (sum(near) / len(near) if near else at[index], index)

    rows[rank].sort(key=weight)

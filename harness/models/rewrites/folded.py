"""The rewrite that takes a model's shapes as fixed: it takes branches of If, unrolls Loops, and computes constants."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
import onnx.compose
from onnx import helper, numpy_helper

from harness.case.graph_reader import GraphReader, attribute, name_at, reads
from harness.models.graphs import Cutter, assembled, copied, is_quantiser
from harness.models.rewrites.editor import rewrite

#: Rounds, each of which may decide an If that the one before laid open.
_MOST_ROUNDS = 10
#: Iterations of a Loop that is unrolled, and nodes that it may become.
_MOST_ITERATIONS, _MOST_NODES = 64, 4096


@rewrite
def fold(model: onnx.ModelProto, _: Collection[str] = ()) -> onnx.ModelProto | None:
    """Return a model with the branch taken of each If that is decided, Loops unrolled, and constants computed but Q/DQ.

    The more of its shapes are fixed, the more is decided.
    """
    made = model
    for _round in range(_MOST_ROUNDS):
        step = _decided(made)
        if step is None:
            break
        made = step
    made = _computed(made) or made
    return None if made is model else made


def _decided(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a model without the Ifs whose condition, and the Loops whose count is a constant, if there are any."""
    cutter, made = Cutter(model), copied(model)
    del made.graph.node[:]
    changed = False
    for index, node in enumerate(model.graph.node):
        prefix = f"{node.name or node.output[0]}/{index}/"
        first = cutter.constant(name_at(node.input, 0)) if node.op_type in ("If", "Loop") else None
        if first is not None and node.op_type == "If":
            taken = "then_branch" if numpy_helper.to_array(first).all() else "else_branch"
            _inline(attribute(node, taken), node, prefix, made.graph)
        elif first is None or not _unroll(
            node, int(numpy_helper.to_array(first).max()), cutter, prefix, made.graph
        ):
            made.graph.node.append(node)
            continue
        changed = True
    graph = made.graph
    return assembled(made, graph.node, graph.input, graph.output) if changed else None


def _inline(branch: onnx.GraphProto, node: onnx.NodeProto, prefix: str, graph: onnx.GraphProto) -> None:
    """Append the nodes and initialisers of a branch to a graph, under names of their own."""
    own = [each.name for each in branch.initializer]
    own += [name for inner in branch.node for name in inner.output if name]
    names = {name: f"{prefix}{name}" for name in own}
    renamed = onnx.compose.add_prefix_graph(branch, prefix, rename_outputs=False, name_map=names)
    graph.node.extend(renamed.node)
    for value, output in zip(renamed.output, node.output, strict=True):
        graph.node.append(helper.make_node("Identity", [value.name], [output], name=f"{output}/taken"))
    graph.initializer.extend(renamed.initializer)


def _unroll(node: onnx.NodeProto, count: int, cutter: Cutter, prefix: str, graph: onnx.GraphProto) -> bool:
    """Append the iterations of a Loop that ends by its count alone to a graph, if they are few; tell whether it was."""
    body = attribute(node, "body")
    few = 0 < count <= _MOST_ITERATIONS and count * len(body.node) <= _MOST_NODES
    if not (few and _begins(node, cutter) and _goes_on(body)):
        return False
    carried = list(node.input[2:])
    rows: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
    for at in range(count):
        ends = _iterate(body, carried, at, prefix, graph)
        carried, gathered = ends[: len(carried)], ends[len(carried) :]
        for row, name in zip(rows, gathered, strict=True):
            row.append(name)
    _give(node, prefix, carried, rows, graph)
    return True


def _iterate(
    body: onnx.GraphProto, carried: list[str], at: int, prefix: str, graph: onnx.GraphProto
) -> list[str]:
    """Append one iteration of a Loop to a graph, and return what it hands on and gathers."""
    own = [name for inner in body.node for name in inner.output if name]
    named = {name: f"{prefix}{at}/{name}" for name in (*own, *(each.name for each in body.initializer))}
    for value, array in zip(body.input[:2], (np.array(at), np.array(True)), strict=True):
        named[value.name] = f"{prefix}{at}/{value.name}"
        graph.initializer.append(numpy_helper.from_array(array, named[value.name]))
    named |= {value.name: name for value, name in zip(body.input[2:], carried, strict=True)}
    inside = onnx.compose.add_prefix_graph(
        body, f"{prefix}{at}/", rename_inputs=False, rename_outputs=False, name_map=dict(named)
    )
    graph.node.extend(inside.node)
    graph.initializer.extend(inside.initializer)
    return [named.get(value.name, value.name) for value in body.output[1:]]


def _begins(node: onnx.NodeProto, cutter: Cutter) -> bool:
    """Tell whether a Loop has no condition to begin, or one that is always true."""
    name = name_at(node.input, 1)
    begins = cutter.constant(name) if name else None
    return not name or (begins is not None and bool(numpy_helper.to_array(begins).all()))


def _goes_on(body: onnx.GraphProto) -> bool:
    """Tell whether a body hands its condition on, or says that it is always true."""
    reader, name = GraphReader(body), body.output[0].name
    while (maker := reader.producer(name)) is not None and maker.op_type in ("Identity", "Cast"):
        name = maker.input[0]
    held = reader.value(name)
    return name == body.input[1].name or (held is not None and bool(held.all()))


def _give(
    node: onnx.NodeProto, prefix: str, carried: list[str], rows: list[list[str]], graph: onnx.GraphProto
) -> None:
    """Append the nodes that give a Loop's outputs: the last of what is carried, and all rows of what is gathered."""
    zero = f"{prefix}zero"
    graph.initializer.append(numpy_helper.from_array(np.array([0]), zero))
    for name, output in zip((*carried, *rows), node.output, strict=False):
        if isinstance(name, str) and output:
            graph.node.append(helper.make_node("Identity", [name], [output], name=f"{output}/last"))
        elif output:
            parts = [f"{each}/row" for each in name]
            graph.node.extend(
                helper.make_node("Unsqueeze", [each, zero], [part], name=part)
                for each, part in zip(name, parts, strict=True)
            )
            graph.node.append(helper.make_node("Concat", parts, [output], name=f"{output}/rows", axis=0))


def _computed(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a model whose nodes take constants in place of tensors that can be computed, if there are any."""
    cutter, reader = Cutter(model), GraphReader(model.graph)
    found: dict[str, onnx.TensorProto] = {}
    for node in reader.nodes:
        if is_quantiser(node.op_type) or cutter.constant(node.output[0]) is None:
            for maker in map(reader.producer, reads(node)):
                found |= _results(maker, cutter)
    nodes = [node for node in reader.nodes if node.output[0] not in found]
    graph = model.graph
    return assembled(model, nodes, graph.input, graph.output, found.values()) if found else None


def _results(maker: onnx.NodeProto | None, cutter: Cutter) -> dict[str, onnx.TensorProto]:
    """Return the tensors that a node makes, if they are to be constants: all of them are known, and it is no Q/DQ."""
    if maker is None or maker.op_type == "Constant" or is_quantiser(maker.op_type):
        return {}
    made = [cutter.constant(name) for name in maker.output if name]
    known = {each.name: each for each in made if each is not None}
    return known if len(known) == len(made) else {}

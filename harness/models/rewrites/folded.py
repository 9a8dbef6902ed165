"""The rewrite that takes a model's shapes as fixed: it takes branches of If, and computes constants."""

from __future__ import annotations

from collections.abc import Collection

import onnx
import onnx.compose
from onnx import helper, numpy_helper

from harness.case.graph_reader import attribute, reads
from harness.layers.operators import dequantises, quantises
from harness.models.graphs import Cutter, assembled, copied

#: Rounds, each of which may decide an If that the one before laid open.
_MOST_ROUNDS = 10


def fold(model: onnx.ModelProto, _: Collection[str] = ()) -> onnx.ModelProto | None:
    """Return a model with the branch taken in place of each If that is decided, and constants computed but for Q/DQ.

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
    """Return a model without those of its Ifs whose condition is a constant, if there are any."""
    cutter, made = Cutter(model), copied(model)
    del made.graph.node[:]
    changed = False
    for index, node in enumerate(model.graph.node):
        condition = cutter.constant(node.input[0]) if node.op_type == "If" else None
        if condition is None:
            made.graph.node.append(node)
            continue
        taken = "then_branch" if numpy_helper.to_array(condition).all() else "else_branch"
        branch = attribute(node, taken)
        _inline(branch, node, f"{node.name or node.output[0]}/{index}/", made.graph)
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


def _computed(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a model whose nodes take constants in place of tensors that can be computed, if there are any."""
    cutter, graph = Cutter(model), model.graph
    makers = {name: node for node in graph.node for name in node.output if name}
    found: dict[str, onnx.TensorProto] = {}
    for node in graph.node:
        if not _is_quantiser(node) and cutter.constant(node.output[0]) is not None:
            continue
        for maker in [makers[name] for name in dict.fromkeys(reads(node)) if name in makers]:
            tensors = [cutter.constant(name) for name in maker.output if name]
            if maker.op_type != "Constant" and not _is_quantiser(maker) and None not in tensors:
                found |= {each.name: each for each in tensors if each is not None}
    nodes = [node for node in graph.node if node.output[0] not in found]
    return assembled(model, nodes, graph.input, graph.output, found.values()) if found else None


def _is_quantiser(node: onnx.NodeProto) -> bool:
    return bool(quantises(node.op_type) or dequantises(node.op_type))

"""Cuts nodes out of a graph: what is left is a model of its own; pure functions of the model.

What the nodes that stay take from the others becomes a network input of the shape and type that inference gives it, or
a constant where it depends on constants alone. Names stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from harness.models.tensors import inferred, is_stored, reads

#: Elements of a constant that is computed; a larger one becomes a network input.
_MOST_ELEMENTS = 1 << 22
_RANDOM = frozenset(
    ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"]
)
_STANDARD = ("", "ai.onnx")


class Cutter:
    """One model, to be cut in many ways; `nodes` are its nodes.

    `learned` are types of tensors, for those whose rank is not inferred.
    """

    def __init__(
        self, model: onnx.ModelProto, learned: Mapping[str, onnx.ValueInfoProto] | None = None
    ) -> None:
        self._model = model
        self._learned = learned or {}
        graph = model.graph
        self.nodes: Sequence[onnx.NodeProto] = list(graph.node)
        self._reads = [tuple(dict.fromkeys(reads(node))) for node in self.nodes]
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self._inputs = {value.name: value for value in graph.input}
        self._outputs = {value.name: value for value in graph.output}
        self._producers = {
            name: index for index, node in enumerate(self.nodes) for name in node.output if name
        }
        self._made: dict[str, onnx.TensorProto | None] = {}

    @cached_property
    def types(self) -> dict[str, onnx.ValueInfoProto]:
        """Return what is known of each tensor, declared or inferred."""
        graph = inferred(self._model).graph
        known = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
        ranked = {name: value for name, value in known.items() if has_rank(value)}
        return {**known, **self._learned, **ranked}

    @cached_property
    def neighbours(self) -> tuple[frozenset[int], ...]:
        """Return for each node those that it takes from and those that take from it."""
        found: list[set[int]] = [set() for _ in self.nodes]
        for index, names in enumerate(self._reads):
            for other in (self._producers[name] for name in names if name in self._producers):
                found[index].add(other)
                found[other].add(index)
        return tuple(map(frozenset, found))

    def cut(self, kept: Iterable[int]) -> onnx.ModelProto | None:
        """Return the model of these nodes alone, None where one would take what nobody knows the type of."""
        chosen = sorted(set(kept))
        if not chosen:
            return None
        nodes = [self.nodes[index] for index in chosen]
        made = {name for node in nodes for name in node.output if name}
        needed = dict.fromkeys(name for index in chosen for name in self._reads[index] if name not in made)
        constants, inputs = [], []
        for name in needed:
            tensor = self._initializers.get(name)
            if tensor is None and name not in self._inputs and name not in self._sparse:
                tensor = self._constant(name)
            if tensor is not None:
                constants.append(tensor)
            if name in self._inputs or (tensor is None and name not in self._sparse):
                inputs.append(self._inputs.get(name) or self.types.get(name))
        outputs = [self._outputs.get(name) or self.types.get(name) for name in self._ends(chosen, made)]
        fed = [value for value in inputs if value is not None and _typed(value) and has_rank(value)]
        given = [value for value in outputs if value is not None and _typed(value)]
        if len(fed) < len(inputs) or len(given) < len(outputs):
            return None
        sparse = [self._sparse[name] for name in needed if name in self._sparse]
        return self._built(nodes, fed, given, constants, sparse)

    def _ends(self, chosen: Sequence[int], made: set[str]) -> Iterator[str]:
        """Yield the outputs of a cut: those of the model, and of each node whose tensors nobody takes the first."""
        inside = {name for index in chosen for name in self._reads[index]}
        others = set(range(len(self.nodes))).difference(chosen)
        outside = {name for index in others for name in self._reads[index]}
        for name in self._outputs:
            if name in made:
                yield name
        for index in chosen:
            names = [name for name in self.nodes[index].output if name]
            if inside.isdisjoint(names) and self._outputs.keys().isdisjoint(names):
                yield from [name for name in names if name in outside] or names[:1]

    def _built(
        self,
        nodes: Sequence[onnx.NodeProto],
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        constants: Sequence[onnx.TensorProto],
        sparse: Sequence[onnx.SparseTensorProto],
    ) -> onnx.ModelProto:
        whole = self._model
        made = onnx.ModelProto(
            ir_version=whole.ir_version, producer_name=whole.producer_name, opset_import=whole.opset_import
        )
        made.graph.name = whole.graph.name
        made.graph.node.extend(nodes)
        made.graph.input.extend(inputs)
        made.graph.output.extend(outputs)
        made.graph.initializer.extend(constants)
        made.graph.sparse_initializer.extend(sparse)
        if any(node.domain not in _STANDARD for node in nodes):
            # Nobody can infer what an operator of another domain gives.
            there = {name for node in nodes for name in node.output}
            made.graph.value_info.extend(each for each in whole.graph.value_info if each.name in there)
            made.functions.extend(whole.functions)
        return made

    def _constant(self, name: str) -> onnx.TensorProto | None:
        """Return a tensor that depends on constants alone, None for any other."""
        if name not in self._made:
            self._made[name] = self._computed(name)
        return self._made[name]

    def _computed(self, name: str) -> onnx.TensorProto | None:
        needed = self._ancestry(name)
        extents = _extents(self.types.get(name))
        if needed is None or (extents is not None and math.prod(extents) > _MOST_ELEMENTS):
            return None
        nodes, leaves = needed
        graph = helper.make_graph(nodes, "constant", [], [onnx.ValueInfoProto(name=name)], leaves)
        model = helper.make_model(graph, opset_imports=self._model.opset_import)
        try:
            with np.errstate(all="ignore"):
                (value,) = ReferenceEvaluator(model).run(None, {})
            tensor = numpy_helper.from_array(np.asarray(value), name)
        except Exception:  # noqa: BLE001  (another project's operators raise anything)
            return None
        known = self.types.get(name)
        # The evaluator has types of its own for what NumPy has none.
        return tensor if known is None or known.type.tensor_type.elem_type == tensor.data_type else None

    def _ancestry(self, name: str) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]] | None:
        """Return the nodes and the constants that a tensor is made of.

        None where a network input is among them, or a constant that is not in the model.
        """
        indices: set[int] = set()
        leaves: dict[str, onnx.TensorProto] = {}
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if each in self._initializers and not is_stored(self._initializers[each]):
                return None
            if each in self._initializers and each not in self._inputs:
                leaves[each] = self._initializers[each]
            elif (shape := self._shape_of(each)) is not None:
                leaves[each] = shape
            elif each in self._producers and _is_plain(self.nodes[self._producers[each]]):
                if self._producers[each] not in indices:
                    indices.add(self._producers[each])
                    waiting += self._reads[self._producers[each]]
            else:
                return None
        return [self.nodes[index] for index in sorted(indices)], list(leaves.values())

    def _shape_of(self, name: str) -> onnx.TensorProto | None:
        """Return the value of a Shape of a tensor whose shape is known; None for any other tensor."""
        node = self.nodes[self._producers[name]] if name in self._producers else None
        if node is None or node.op_type != "Shape" or node.attribute:
            return None
        extents = _extents(self.types.get(node.input[0]))
        return None if extents is None else numpy_helper.from_array(np.array(extents, np.int64), name)


def bypassed(
    model: onnx.ModelProto, learned: Mapping[str, onnx.ValueInfoProto] | None = None
) -> Iterator[onnx.ModelProto]:
    """Yield the model without a node, or two in a row, what comes out taken to be what went in.

    A candidate for each such place where type and shape are the same before and after.
    """
    cutter = Cutter(model, learned)
    for index, node in enumerate(cutter.nodes):
        for output in filter(None, node.output):
            for name in _upstream(cutter, index):
                if _same(cutter.types.get(name), cutter.types.get(output)):
                    found = _without(model, index, output, name)
                    if found is not None:
                        yield found


def _upstream(cutter: Cutter, index: int) -> Iterator[str]:
    """Yield what a node takes, and what those take that it takes from; the farthest first."""
    near = list(filter(None, cutter.nodes[index].input))
    for other in sorted(cutter.neighbours[index]):
        if set(cutter.nodes[other].output) & set(near):
            yield from filter(None, cutter.nodes[other].input)
    yield from near


def _without(model: onnx.ModelProto, index: int, output: str, name: str) -> onnx.ModelProto | None:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    readers = [node for node in changed.graph.node if output in reads(node)]
    if any(output not in node.input for node in readers):
        return None
    for node in readers:
        node.input[:] = [name if each == output else each for each in node.input]
    wanted = {value.name for value in model.graph.output if value.name != output}
    rest = set(range(len(model.graph.node))) - {index}
    if not readers:
        # The output of the model is now what went in.
        wanted.add(name)
    while dead := {each for each in rest if _is_dead(changed.graph.node, each, rest, wanted)}:
        rest -= dead
    return Cutter(changed).cut(rest)


def _is_dead(nodes: Sequence[onnx.NodeProto], index: int, rest: set[int], wanted: set[str]) -> bool:
    outputs = set(nodes[index].output)
    return wanted.isdisjoint(outputs) and not any(
        outputs.intersection(reads(nodes[each])) for each in rest if each != index
    )


def _is_plain(node: onnx.NodeProto) -> bool:
    """Tell whether the reference evaluator can be trusted with a node: of ONNX itself, without subgraphs or chance."""
    subgraphs = any(each.HasField("g") or each.graphs for each in node.attribute)
    return node.domain in _STANDARD and node.op_type not in _RANDOM and not subgraphs


def _typed(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or value.type.tensor_type.elem_type != 0)


def has_rank(value: onnx.ValueInfoProto) -> bool:
    """Tell whether the rank of a tensor is known; what is no tensor has none to know."""
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or value.type.tensor_type.HasField("shape"))


def _extents(value: onnx.ValueInfoProto | None) -> tuple[int, ...] | None:
    """Return the shape of a tensor, None where an extent of it is not known."""
    if value is None or not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    return tuple(int(dim.dim_value) for dim in dims) if all(d.HasField("dim_value") for d in dims) else None


def _same(one: onnx.ValueInfoProto | None, other: onnx.ValueInfoProto | None) -> bool:
    if one is None or other is None or _extents(one) is None:
        return False
    types = one.type.tensor_type.elem_type, other.type.tensor_type.elem_type
    return types[0] == types[1] != 0 and _extents(one) == _extents(other)

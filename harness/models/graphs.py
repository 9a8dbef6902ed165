"""Cuts parts out of a graph; pure functions of the model.

`onnx.utils.Extractor` (1.23) does not do: it takes inputs and outputs by name, each of which has to be in the model's
value_info; a constant that is cut in its middle (the scale of a weight, the shape of a Reshape) becomes an input or is
missing; names that a subgraph takes from around it, it does not see; and a sparse initialiser it refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from harness.case import Profile, effective_name
from harness.case.graph_reader import (
    STANDARD,
    GraphReader,
    extents,
    inferred,
    is_stored,
    reads,
    static,
    subgraphs,
)
from harness.layers.operators import dequantises, quantises

#: Elements of a constant that is computed; a larger one becomes a network input.
_MOST_ELEMENTS = 1 << 22
#: Operators whose outputs are drawn at random: no two engines agree on them.
RANDOM = frozenset(
    ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"]
)


def is_quantiser(operator: str) -> bool:
    """Tell whether an operator quantises or dequantises."""
    return bool(quantises(operator) or dequantises(operator))


def outside(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Return the initialisers whose values are not in the model but in files."""
    return [each for each in model.graph.initializer if not is_stored(each)]


def values_of(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the type and shape of each tensor by name, declared or inferred, as far as they are known."""
    graph = inferred(model, data_prop=True)
    return {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}


def static_shape(value: onnx.ValueInfoProto | None) -> tuple[int, ...] | None:
    """Return the shape of a tensor, if its rank and all extents are known."""
    known = value is not None and value.type.tensor_type.HasField("shape")
    return static(extents(value)) if value is not None and known else None


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def valid(model: onnx.ModelProto) -> bool:
    """Tell whether onnx.checker takes a model."""
    try:
        onnx.checker.check_model(model)
    except Exception:  # noqa: BLE001  (another project's code, on any model)
        return False
    return True


def assembled(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    stored: Iterable[onnx.TensorProto] = (),
) -> onnx.ModelProto | None:
    """Return a model of those nodes, inputs and initialisers that its outputs need, if they need any node.

    `stored` are initialisers beside the model's own.
    """
    wanted = {value.name for value in outputs}
    live: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            live.append(node)
            wanted.update(reads(node))
    if not live:
        return None
    made = onnx.ModelProto(
        ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions
    )
    whole, graph = model.graph, made.graph
    graph.name, graph.doc_string = whole.name, whole.doc_string
    graph.node.extend(reversed(live))
    graph.initializer.extend(_named((*whole.initializer, *stored), wanted))
    graph.sparse_initializer.extend(each for each in whole.sparse_initializer if each.values.name in wanted)
    graph.input.extend(_named(inputs, wanted))
    graph.output.extend(outputs)
    ends = (value.name for value in (*graph.input, *graph.output))
    graph.value_info.extend(_named(whole.value_info, wanted.difference(ends)))
    return made


_Named = TypeVar("_Named", onnx.TensorProto, onnx.ValueInfoProto)


def _named(values: Iterable[_Named], names: Collection[str]) -> Iterator[_Named]:
    return (each for each in values if each.name in names)


@dataclass(frozen=True)
class ModelPart:
    """A model without some nodes; `profiles` are the usual shapes of its dynamic inputs.

    `behind` are nodes that had to go as well, for the shape of their inputs is unknown.
    """

    model: onnx.ModelProto
    profiles: tuple[Profile, ...] = ()
    behind: tuple[str, ...] = ()


class Cutter:
    """One model, to be cut in many ways; `nodes` are its nodes, `profiles` the shapes of its dynamic inputs.

    A tensor that the remaining nodes take from the others becomes a network input of the inferred type and shape, or a
    constant where it depends on constants alone. Names stay. `seen` are the types and shapes of tensors in a run, for
    those that inference does not know.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        profiles: Sequence[Profile] = (),
        seen: Callable[[], Mapping[str, onnx.ValueInfoProto]] = dict,
    ) -> None:
        self._model = model
        self._look = seen
        self._usual = {each.input: each.optimum for each in profiles}
        self._tensors = GraphReader(model.graph)
        self.nodes: Sequence[onnx.NodeProto] = self._tensors.nodes
        self._reads = [tuple(dict.fromkeys(reads(node))) for node in self.nodes]
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._inputs = {value.name: value for value in model.graph.input}
        self._outputs = {value.name: value for value in model.graph.output}
        self._makers = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        self._made: dict[str, onnx.TensorProto | None] = {}

    @cached_property
    def types(self) -> dict[str, onnx.ValueInfoProto]:
        """Return the type and shape of each tensor as far as they are declared or inferred."""
        return values_of(self._model)

    def cut(self, kept: Iterable[int], *, ones: bool = False) -> onnx.ModelProto | None:
        """Return the model of these nodes alone, if each takes tensors of known types.

        Constants are computed, or, with `ones`, are ones of their type and shape.
        """
        chosen = sorted(set(kept))
        nodes = [self.nodes[index] for index in chosen]
        made = set[str]().union(*(filter(None, node.output) for node in nodes))
        needed = dict.fromkeys(chain.from_iterable(self._reads[index] for index in chosen))
        given = self._given([name for name in needed if name not in made], ones=ones)
        ends = self._ends(chosen, made)
        outputs = [self._outputs.get(name) or self.types.get(name, onnx.ValueInfoProto()) for name in ends]
        if given is None or not all(map(_typed, outputs)):
            return None
        inputs, stored = given
        part = assembled(self._model, nodes, inputs, outputs, stored)
        if part is not None and all(node.domain in STANDARD for node in nodes):
            # The outputs of an operator of another domain cannot be inferred.
            del part.graph.value_info[:], part.functions[:]
        return part

    def _given(
        self, names: Iterable[str], *, ones: bool
    ) -> tuple[list[onnx.ValueInfoProto], list[onnx.TensorProto]] | None:
        """Return the inputs and the constants in place of tensors whose makers are not kept, if each can have one."""
        inputs, stored = [], []
        for name in names:
            value = self.types.get(name)
            if name in self._inputs:
                inputs.append(self._inputs[name])
            elif name not in self._makers:
                continue
            elif (tensor := self._ones(name) if ones else self.constant(name)) is not None:
                stored.append(tensor)
            elif value is not None and _typed(value) and _has_rank(value):
                inputs.append(value)
            else:
                return None
        return inputs, stored

    def without(self, names: Collection[str]) -> ModelPart | None:
        """Return the model without the nodes of these effective names, if the rest can be built.

        Constants become ones. A node that only led to those that go stays, and its output becomes the network's,
        unless it is Q/DQ, makes a constant, or is of unknown type.
        """
        gone = {index for index, node in enumerate(self.nodes) if effective_name(node) in names}
        behind = self._spread(gone)
        self._prune(gone)
        part = self.cut(set(range(len(self.nodes))) - gone, ones=True)
        if part is None or (valid(self._model) and not valid(part)):
            return None
        profiles = tuple(found for value in part.graph.input if (found := self._profile(value.name)))
        return ModelPart(part, profiles, tuple(effective_name(self.nodes[index]) for index in behind))

    def _spread(self, gone: set[int]) -> list[int]:
        """Add to the nodes that go those that read a tensor that no input can stand for; return these."""
        unknown = {name for index in gone for name in self.nodes[index].output if not self._can_be_fed(name)}
        behind = []
        for index, node in enumerate(self.nodes):
            if index not in gone and unknown.intersection(self._reads[index]):
                gone.add(index)
                behind.append(index)
            if index in gone:
                unknown.update(name for name in node.output if not self._can_be_fed(name))
        return behind

    def _prune(self, gone: set[int]) -> None:
        """Add to the nodes that go those that then lead nowhere and are no end for a network."""
        wanted = set(self._outputs)
        for index in reversed([each for each in range(len(self.nodes)) if each not in gone]):
            node, made = self.nodes[index], set(filter(None, self.nodes[index].output))
            moved = is_quantiser(node.op_type) or made <= self._tensors.constants
            typed = all(name in self.types and _typed(self.types[name]) for name in made)
            if made.isdisjoint(wanted) and (moved or not typed):
                gone.add(index)
            else:
                wanted.update(self._reads[index])

    def _can_be_fed(self, name: str) -> bool:
        """Tell whether a tensor can stand as a network input: its type is known, and its shape or its profile."""
        value = self.types.get(name)
        typed = value is not None and value.type.tensor_type.elem_type
        if value is not None and typed and (static_shape(value) is not None or self._has_profile(value)):
            return True
        if name in self._seen:
            self.types[name] = self._seen[name]
        return name in self._seen

    def _has_profile(self, value: onnx.ValueInfoProto) -> bool:
        return _has_rank(value) and self._profile(value.name) is not None

    @cached_property
    def _seen(self) -> Mapping[str, onnx.ValueInfoProto]:
        return self._look()

    def _profile(self, name: str) -> Profile | None:
        """Return the usual shape of a dynamic tensor, as far as it is known."""
        dynamic = static_shape(self.types.get(name)) is None
        shape = static_shape(self._sized.get(name)) if dynamic else None
        return None if shape is None else Profile(name, shape, shape, shape)

    @cached_property
    def _sized(self) -> dict[str, onnx.ValueInfoProto]:
        """Return all tensors at the usual shapes of the inputs, if there are profiles."""
        return values_of(with_shapes(self._model, self._usual)) if self._usual else {}

    def _ends(self, chosen: Sequence[int], made: set[str]) -> Iterator[str]:
        """Yield the outputs of a cut: those of the model, and of each node whose tensors no node takes the first."""
        inside = set(self._outputs).union(*(self._reads[index] for index in chosen))
        others = set(range(len(self.nodes))).difference(chosen)
        outer = set[str]().union(*(self._reads[index] for index in others))
        yield from filter(made.__contains__, self._outputs)
        for index in chosen:
            names = [*filter(None, self.nodes[index].output)]
            if inside.isdisjoint(names):
                yield from [*filter(outer.__contains__, names)] or names[:1]

    def _ones(self, name: str) -> onnx.TensorProto | None:
        """Return ones of a constant's type and shape: its reader may take no other tensor."""
        shape = static_shape(self.types.get(name))
        if name not in self._tensors.constants or shape is None:
            return None
        dtype = helper.tensor_dtype_to_np_dtype(self.types[name].type.tensor_type.elem_type)
        return numpy_helper.from_array(np.ones(shape, dtype), name)

    def constant(self, name: str) -> onnx.TensorProto | None:
        """Return a tensor that depends on constants alone."""
        if name not in self._made:
            self._made[name] = self._computed(name)
        return self._made[name]

    def _computed(self, name: str) -> onnx.TensorProto | None:
        needed, known = self._ancestry(name), self.types.get(name)
        if needed is None or math.prod(static_shape(known) or ()) > _MOST_ELEMENTS:
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
        # The evaluator has types of its own for those that NumPy lacks.
        return tensor if known is None or known.type.tensor_type.elem_type == tensor.data_type else None

    def _ancestry(self, name: str) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]] | None:
        """Return the nodes and the constants that a tensor is made of.

        They are unknown if a network input is among them, or a constant that is not in the model.
        """
        indices: set[int] = set()
        leaves: dict[str, onnx.TensorProto] = {}
        waiting = [name]
        while waiting:
            each = waiting.pop()
            leaf, maker = self._leaf(each), self._makers.get(each)
            if leaf is not None:
                leaves[each] = leaf
            elif maker is None or not _is_plain(self.nodes[maker]):
                return None
            elif maker not in indices:
                indices.add(maker)
                waiting += self._reads[maker]
        return [self.nodes[index] for index in sorted(indices)], list(leaves.values())

    def _leaf(self, name: str) -> onnx.TensorProto | None:
        stored = self._initializers.get(name)
        if stored is not None and is_stored(stored) and name not in self._inputs:
            return stored
        return self._shape_of(name)

    def _shape_of(self, name: str) -> onnx.TensorProto | None:
        """Return the value of the output of a Shape, if the shape of its input is known."""
        node = self.nodes[self._makers[name]] if name in self._makers else None
        if node is None or node.op_type != "Shape" or node.attribute:
            return None
        shape = static_shape(self.types.get(node.input[0]))
        return None if shape is None else numpy_helper.from_array(np.array(shape, np.int64), name)


def _is_plain(node: onnx.NodeProto) -> bool:
    """Tell whether the reference evaluator can be trusted with a node: of ONNX itself, without subgraphs or chance."""
    return node.domain in STANDARD and node.op_type not in RANDOM and not any(subgraphs(node))


def _typed(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or value.type.tensor_type.elem_type != 0)


def _has_rank(value: onnx.ValueInfoProto) -> bool:
    """Tell whether the rank of a tensor is known; a sequence or a map has no rank."""
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or value.type.tensor_type.HasField("shape"))


def with_shapes(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    """Return a model whose inputs have these shapes, and whose inner tensors declare no shape."""
    made = copied(model)
    del made.graph.value_info[:]
    for value in (*made.graph.input, *made.graph.output):
        tensor = value.type.tensor_type
        if value.name in shapes:
            tensor.ClearField("shape")
            for extent in shapes[value.name]:
                tensor.shape.dim.add().dim_value = extent
        elif value.type.HasField("tensor_type"):
            for dim in tensor.shape.dim:
                dim.ClearField("dim_param")
    return made

"""Finds the known patterns in a model: the graphs of the cases, by operators, types and how they join.

A pattern is a graph without its constants and the Q/DQ on them. A node of it is met by one of the same operator, with
the same precision asked of it, fed alike, and with the same attributes that change the numbers; sizes do not count
unless the case itself has the same pattern in two sizes that fare unlike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import onnx

from harness.case.graph_reader import (
    STANDARD,
    Extents,
    GraphReader,
    attribute,
    inferred,
    name_at,
    opsets,
    subgraphs,
)
from harness.case.model import effective_name
from harness.layers.asked import asked
from harness.layers.datatype import types_of
from harness.models.traits import NodeTraits
from harness.words import Precision

#: Nodes that carry a constant, or hand on a tensor as it is.
_NOTHING = frozenset({"Constant", "Identity", "Dropout"})
#: Attributes of degree: sizes of a window, axes that follow from the rank, small numbers.
_SIZES = frozenset(
    "kernel_shape pads strides output_padding output_shape epsilon alpha beta axis axes "  # noqa: SIM905
    "perm to group shape value hidden_size num_outputs keepdims block_size scale".split()
)
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})
#: Attributes that an inference has no use for, whatever they say.
_OF_TRAINING = {"BatchNormalization": frozenset({"momentum", "spatial"}), "Dropout": frozenset({"seed"})}
#: Inputs whose value tells one kind of an operator from another, by operator.
_DECIDING = {"TopK": 1}
#: A search that has gone this far has met a graph of one operator, and stops.
_MOST_STEPS = 20_000
_MOST_PLACES = 1000
#: Operators told apart by their rank, by the types of further inputs, and not by the number of outputs.
_RANKED = frozenset({"GridSample", "Attention"})
_TYPED = {"InstanceNormalization": 2}
_MANY = frozenset({"Split"})
#: What decides of a pattern: the place of a node, a trait, and the part of it.
Conditions = frozenset[tuple[int, str, object]]


@dataclass(frozen=True)
class _Node:
    name: str
    label: tuple[object, ...]
    traits: NodeTraits

    @property
    def operator(self) -> str:
        return str(self.label[1])


class Shape:
    """A model as a graph of labelled nodes: a pattern, or the place to look for it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._tensors = GraphReader(inferred(model))
        self._types = types_of(self._tensors)
        words = {node.name: node for node in asked(model)}
        self.nodes: list[_Node] = []
        made_by: dict[str, tuple[int, ...]] = {}
        self._opset = opsets(model).get("", 1)
        self.sources: list[tuple[int, ...]] = []
        #: The node of the pattern that each of the graph's nodes is, or whose constants it makes.
        self.place_of: dict[str, int] = {}
        unread: dict[str, list[str]] = {}
        for node in self._tensors.nodes:
            inputs = list(filter(None, node.input))
            through = tuple(dict.fromkeys(one for name in inputs for one in made_by.get(name, ())))
            behind = [each for name in inputs for each in unread.get(name, ())]
            if self._tensors.constants.issuperset(filter(None, node.output)):
                behind.append(effective_name(node))
                unread |= dict.fromkeys(node.output, behind)
                continue
            if node.op_type in _NOTHING:
                made_by.update(dict.fromkeys(node.output, through))
                continue
            known = words[effective_name(node)]
            made_by.update(dict.fromkeys(node.output, (len(self.nodes),)))
            self.nodes.append(
                _Node(
                    known.name,
                    self._label(node, known.precision, known.fed),
                    NodeTraits(node, self._tensors, self._types, self._opset),
                )
            )
            self.place_of |= dict.fromkeys((*behind, known.name), len(self.sources))
            self.sources.append(through)

    @cached_property
    def targets(self) -> list[list[int]]:
        """Return which nodes read each node."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for at, sources in enumerate(self.sources):
            for source in sources:
                found[source].append(at)
        return found

    @cached_property
    def by_label(self) -> Mapping[tuple[object, ...], list[int]]:
        """Return the nodes of each label, in the model's order."""
        found: dict[tuple[object, ...], list[int]] = {}
        for at, node in enumerate(self.nodes):
            found.setdefault(node.label, []).append(at)
        return found

    def _label(self, node: onnx.NodeProto, precision: str, fed: str) -> tuple[object, ...]:
        plain = [each for each in _telling(node, self._opset) if each[0] not in _SIZES]
        if node.op_type in _CONVOLUTIONS:
            dilated = set(attribute(node, "dilations", [])) - {1}
            plain = [each for each in plain if each[0] != "dilations"] + [("dilated", bool(dilated))]
            plain.append(("kind", self._kind(node)))
        kept = tuple(sorted((name, str(value)) for name, value in plain))
        value = None
        if node.op_type in _DECIDING:
            value = self._tensors.value(name_at(node.input, _DECIDING[node.op_type]))
        of = tuple(
            self._types.get(name, Precision.UNKNOWN) for name in node.input[: _TYPED.get(node.op_type, 1)]
        )
        rank = len(self._tensors.shapes.get(node.input[0]) or ()) if node.op_type in _RANKED else 0
        outputs = sum(map(bool, node.output)) if node.op_type not in _MANY else 0
        decided = "" if value is None else str(value.tolist())
        inner = tuple(sorted({each.op_type for graph in subgraphs(node) for each in graph.node}))
        return node.domain, node.op_type, precision, fed, kept, decided, of, rank, outputs, inner

    def _kind(self, node: onnx.NodeProto) -> str:
        group, dims = attribute(node, "group", 1), self._weight(node)
        rank = f"{max(len(dims) - 2, 0)}-D "
        if group == 1:
            return rank + "dense"
        channels = dims[0] if dims else 0
        return rank + ("depthwise" if group == channels else "grouped")

    def _weight(self, node: onnx.NodeProto) -> Extents:
        """Return the shape of the weight, or that of the constant which it is made of."""
        name = name_at(node.input, 3 if node.op_type == "QLinearConv" else 1)
        while (shape := self._tensors.shapes.get(name)) is None and name in self._tensors.constants:
            maker = self._tensors.producer(name)
            name = name_at(maker.input, 0) if maker is not None else ""
        return shape or () if name in self._tensors.constants else ()


def _telling(node: onnx.NodeProto, opset: int) -> Iterator[tuple[str, object]]:
    """Yield the attributes that make a node another one than the newest opset's own default, written out or not."""
    held = {item.name: item for item in node.attribute if item.name not in _OF_TRAINING.get(node.op_type, ())}
    newest: Mapping[str, onnx.defs.OpSchema.Attribute] = {}
    if node.domain in STANDARD and onnx.defs.has(node.op_type):
        newest = onnx.defs.get_schema(node.op_type).attributes
        for name, each in _schema(node.op_type, opset).items():
            if each.default_value.name and name not in _OF_TRAINING.get(node.op_type, ()):
                held.setdefault(name, each.default_value)
    for name, item in held.items():
        if item.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.TENSOR):
            continue
        value = onnx.helper.get_attribute_value(item)
        default = newest[name].default_value if name in newest else None
        if not (default and default.name) or onnx.helper.get_attribute_value(default) != value:
            yield name, value


def _schema(operator: str, opset: int) -> Mapping[str, onnx.defs.OpSchema.Attribute]:
    """Return the attributes of an operator at an opset, none if it came later."""
    try:
        return onnx.defs.get_schema(operator, opset).attributes
    except onnx.defs.SchemaError:
        return {}


def places(pattern: Shape, model: Shape, deciding: Conditions = frozenset()) -> Iterator[tuple[int, ...]]:
    """Yield the nodes of a model that meet those of a pattern, in the pattern's order, no node twice.

    They are alike in what decides, too.
    """
    if not pattern.nodes or any(node.label not in model.by_label for node in pattern.nodes):
        return
    rarest = min(range(len(pattern.nodes)), key=lambda at: len(model.by_label[pattern.nodes[at].label]))
    order = _order(pattern, rarest)
    taken: set[int] = set()
    for start in model.by_label[pattern.nodes[rarest].label][:_MOST_PLACES]:
        place = _Search(pattern, model, order, taken, deciding).place(start)
        if place is not None:
            taken.update(place)
            yield place


def _order(pattern: Shape, first: int) -> list[int]:
    """Return the nodes of a pattern, each after one that it is joined to, as far as they are joined."""
    order, left = [first], set(range(len(pattern.nodes))) - {first}
    while left:
        joined = [
            at for at in sorted(left)
            if any(at in pattern.targets[done] or at in pattern.sources[done] for done in order)
        ]  # fmt: skip
        following = joined[0] if joined else min(left)
        order.append(following)
        left.remove(following)
    return order


class _Search:
    """One search for a place: `met` are the model's nodes for those of the pattern, as far as it is."""

    def __init__(
        self, pattern: Shape, model: Shape, order: Sequence[int], taken: set[int], deciding: Conditions
    ) -> None:
        self._pattern, self._model, self._order = pattern, model, order
        self._taken, self._deciding = taken, deciding
        self._met: dict[int, int] = {}
        self._steps = 0

    def place(self, *start: int) -> tuple[int, ...] | None:
        """Return the place, if any, round a node, or round those that are met already."""
        if len(self._met) == len(self._order):
            return tuple(self._met[at] for at in range(len(self._order)))
        wanted = self._order[len(self._met)]
        for candidate in start or self._candidates(wanted):
            self._steps += 1
            if self._steps > _MOST_STEPS:
                return None
            if candidate not in self._met.values() and self._meets(wanted, candidate):
                self._met[wanted] = candidate
                found = self.place()
                if found is not None:
                    return found
                del self._met[wanted]
        return None

    def _candidates(self, wanted: int) -> Sequence[int]:
        for source in filter(self._met.__contains__, self._pattern.sources[wanted]):
            return self._model.targets[self._met[source]]
        for target in filter(self._met.__contains__, self._pattern.targets[wanted]):
            return self._model.sources[self._met[target]]
        return self._model.by_label.get(self._pattern.nodes[wanted].label, [])

    def _meets(self, wanted: int, candidate: int) -> bool:
        met, model = self._met, self._model
        mine, other = self._pattern.nodes[wanted], model.nodes[candidate]
        if mine.label != other.label or candidate in self._taken:
            return False
        if any(
            part in mine.traits.unlike(other.traits, trait)
            for at, trait, part in self._deciding
            if at == wanted
        ):
            return False
        sources = {met[each] for each in self._pattern.sources[wanted] if each in met}
        targets = (met[each] for each in self._pattern.targets[wanted] if each in met)
        return sources.issubset(model.sources[candidate]) and all(
            candidate in model.sources[each] for each in targets
        )

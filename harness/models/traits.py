"""The conditions of a node that may decide how an engine takes it, in the order in which one is tried before another.

A trait has the same value in a graph of other names, another batch or other sizes, but for the last ones, which tell
sizes themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from harness.case.graph_reader import STANDARD, Extents, GraphReader, attribute, name_at
from harness.words import Precision

#: Kernels are made for channels by these numbers; more are as good as this many.
_WIDEST = 32
#: The values of a trait, by input, attribute or other part.
Values = Mapping[object, object]


class NodeTraits:
    """One node with the graph round it: `of` gives a trait's values by input, attribute or part of it."""

    def __init__(
        self,
        node: onnx.NodeProto,
        tensors: GraphReader,
        types: Mapping[str, Precision],
        opset: int,
    ) -> None:
        self._node, self._tensors, self._types, self._opset = node, tensors, types, opset
        self._known: dict[str, Values] = {}
        self._data = [name for name in node.input if name and name not in tensors.constants]
        #: By place: a constant input, the operators and type that it is made of, and the tensor that is stored.
        self._constants = {
            at: (name, *self._made_of(name))
            for at, name in enumerate(node.input)
            if name in tensors.constants
        }

    def of(self, trait: str) -> Values:
        """Return the values of a trait."""
        if trait not in self._known:
            self._known[trait] = TRAITS[trait](self)
        return self._known[trait]

    def unlike(self, other: NodeTraits, trait: str) -> tuple[object, ...]:
        """Return the parts of a trait that the node of another graph has otherwise."""
        mine, its = self.of(trait), other.of(trait)
        return tuple(part for part in {**mine, **its} if mine.get(part) != its.get(part))

    def types(self) -> Values:
        """Return the element types of all data that it reads and makes."""
        return dict(
            enumerate(self._types.get(name) for name in (*self._data, *filter(None, self._node.output)))
        )

    def ranks(self) -> Values:
        """Return the rank of each data input."""
        shapes = enumerate(map(self._tensors.shapes.get, self._data))
        return {at: None if shape is None else len(shape) for at, shape in shapes}

    def opset(self) -> Values:
        """Return since which opset its operator is as the model has it."""
        if self._node.domain not in STANDARD or not onnx.defs.has(self._node.op_type):
            return {}
        try:
            return {"": onnx.defs.get_schema(self._node.op_type, self._opset).since_version}
        except onnx.defs.SchemaError:
            return {}

    def attributes(self) -> Values:
        """Return all attributes but graphs and tensors."""
        left_out = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.TENSOR)
        held = (item for item in self._node.attribute if item.type not in left_out)
        return {item.name: str(attribute(self._node, item.name)) for item in held}

    def stored(self) -> Values:
        """Return of each constant input its type, the operators that make it, and the type under them."""
        return {at: (self._types.get(name), *made) for at, (name, made, _) in self._constants.items()}

    def _made_of(self, name: str) -> tuple[tuple[object, ...], str]:
        """Return the operators that make a constant with the type that is stored, and that tensor."""
        operators: list[object] = []
        while (maker := self._tensors.producer(name)) is not None and maker.op_type != "Constant":
            operators.append(maker.op_type)
            name = name_at(maker.input, 0)
        return (*operators, self._types.get(name)), name

    def channels(self) -> Values:
        """Return the channels of a weight, as far as kernels tell them apart."""
        weights = (shape for _, shape in self._shapes() if len(shape) > 1)
        axes = [each for each in next(weights, ())[:2] if isinstance(each, int)]
        return {"": (attribute(self._node, "group", 1) > 1, *(math.gcd(each, _WIDEST) for each in axes))}

    def _shapes(self) -> list[tuple[int, Extents]]:
        return [(at, self._tensors.shapes.get(name) or ()) for at, (*_, name) in self._constants.items()]

    def spread(self) -> Values:
        """Return of each constant input how many axes it has, and whether all are one long."""
        return {at: (len(shape), set(shape) <= {1}) for at, shape in self._shapes()}

    def ends(self) -> Values:
        """Return whether it makes an output of the network, and which operators read it."""
        made = list(filter(None, self._node.output))
        readers = {each.op_type for name in made for each in self._tensors.readers(name)}
        return {"": (not self._tensors.outputs.isdisjoint(made), *sorted(readers))}

    def begins(self) -> Values:
        """Return the operator that makes each data input, "" for an input of the network."""
        makers = map(self._tensors.producer, self._data)
        return dict(enumerate(each.op_type if each else "" for each in makers))

    def values(self) -> Values:
        """Return of each constant input whether it has negative values, zeros alone, or very large ones."""
        return {at: _sort_of(self._tensors.value(name)) for at, (*_, name) in self._constants.items()}

    def ones(self) -> Values:
        """Return which axes of its data are one long, and which are open."""
        shapes = enumerate(self._tensors.shapes.get(name) or () for name in self._data)
        return {at: [each if each == 1 else isinstance(each, int) for each in shape] for at, shape in shapes}

    def weights(self) -> Values:
        """Return the shapes of its constants."""
        return dict(self._shapes())

    def sizes(self) -> Values:
        """Return the shapes of its data."""
        return dict(enumerate(map(self._tensors.shapes.get, self._data)))

    def numbers(self) -> Values:
        """Return its constants' values."""
        held = ((at, self._tensors.value(name)) for at, (*_, name) in self._constants.items())
        return {at: None if value is None else value.tobytes() for at, value in held}


#: In the order in which one is tried before another: those of sizes and single values come last.
TRAITS: Mapping[str, Callable[[NodeTraits], Values]] = {
    "element types": NodeTraits.types,
    "rank": NodeTraits.ranks,
    "opset": NodeTraits.opset,
    "constants": NodeTraits.stored,
    "channels": NodeTraits.channels,
    "attributes": NodeTraits.attributes,
    "spread": NodeTraits.spread,
    "readers": NodeTraits.ends,
    "makers": NodeTraits.begins,
    "values": NodeTraits.values,
    "axes of one": NodeTraits.ones,
    "weights": NodeTraits.weights,
    "sizes": NodeTraits.sizes,
    "numbers": NodeTraits.numbers,
}


def _sort_of(value: np.ndarray[Any, Any] | None) -> object:
    """Return whether values are negative, zero or beyond half of the range of FP16."""
    if value is None or value.dtype.kind not in "iuf":
        return None
    known = value.astype(np.float64)
    large = bool(known.size) and bool(np.abs(known).max() > np.finfo(np.float16).max / 2)
    return bool((known < 0).any()), bool((known == 0).all()), large

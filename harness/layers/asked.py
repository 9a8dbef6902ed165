"""The precision that an ONNX graph asks of its nodes, and the part of it that is wished of an engine.

The graph asks by its types. A node that multiplies and takes data and weights from DequantizeLinear is to multiply in
the type that these read; one whose weights alone are dequantised is to store them so and to compute in a float. Any
other node is to compute in the type of its tensors, if that is FP16 or BF16. A QuantizeLinear, DequantizeLinear or Cast
has the type that it brings into the graph, which the numbers go through; weights are not rounded again there.

Cast, Reshape and Transpose between a DequantizeLinear and the node that multiplies are looked through: this is how
PyTorch and NVIDIA's Model-Optimizer export a linear layer (the latter's modelopt/onnx/export/int4_exporter.py and
fp8_exporter.py take them out again, not from every graph). An Identity stands for a weight that is shared. A Concat of
dequantised data alone is taken for dequantised data: users quantise its inputs for the sake of the reader.

A node is fed in a special way if engines are known to stumble over the scales of its data.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from harness.case import Variant
from harness.case.graph_reader import GraphReader, attribute, inferred, name_at
from harness.case.model import effective_name
from harness.layers.datatype import (
    ASKED_FLOATS,
    FLOATS,
    NARROW,
    WEIGHTS,
    multiplied_in,
    precision_of,
    types_of,
)
from harness.layers.operators import MOVING, MULTIPLYING, dequantises, quantises
from harness.record.outcome import Node
from harness.words import Precision

#: Nodes that hand on one tensor's values: an operand is taken from before them.
_HANDING_ON = frozenset({"Identity", "Cast", "Reshape", "Transpose"})
#: The places of the operands among the inputs of a node that multiplies.
_OPERANDS = {"QLinearConv": (0, 3), "QLinearMatMul": (0, 3)}
#: ONNX takes one scale for a whole tensor as a scalar or as a vector of one element.
VECTOR_OF_ONE = "a scale in a vector of one element"
#: Concat joins data that were quantised by different scales.
UNLIKE_SCALES = "inputs of unlike scales"


def asked(model: onnx.ModelProto) -> tuple[Node, ...]:
    """Return a model's nodes, each with the precision that the graph asks of it, "" without a request."""
    graph = _Graph(model)
    return tuple(
        Node(effective_name(node), node.op_type, str(graph.asks(node) or ""), graph.fed(node))
        for node in model.graph.node
    )


def wished(variant: Variant, nodes: Sequence[Node]) -> tuple[tuple[str, Precision], ...]:
    """Return the nodes that are to run in a precision: those that the variant names, else its graph's.

    Only a node that multiplies is wished in a narrow type. If the graph quantises, only such a node is wished in a
    float either, for an engine may fuse any other into a kernel that computes in the narrow type. A record's nodes
    without precisions derive no wish.
    """
    if variant.precision is not None:
        return variant.precision
    quantised = any(quantises(node.op) and not node.precision.endswith("_weights") for node in nodes)
    return tuple({node.name: Precision(node.precision) for node in nodes if _wishes(node, quantised)}.items())


def _wishes(node: Node, quantised: bool) -> bool:  # noqa: FBT001
    if not node.precision or node.op in MULTIPLYING:
        return bool(node.precision)
    return Precision(node.precision) in ASKED_FLOATS and not quantised and node.op not in MOVING


class _Graph(GraphReader):
    """A model's tensors, with the precision of each."""

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__(inferred(model))
        self._precisions = types_of(self)
        for node in self.nodes:
            named = quantises(node.op_type)
            if named and named["type"]:
                self._precisions[name_at(node.output, 0)] = precision_of(named["type"])

    def asks(self, node: onnx.NodeProto) -> Precision | None:
        """Return the precision that the graph asks of a node; None for FP32 or no request."""
        if node.op_type in MULTIPLYING:
            found = self._multiplied(node)
        elif quantises(node.op_type):
            found = self._brought(node, self._type(name_at(node.output, 0)))
        elif dequantises(node.op_type):
            found = self._brought(node, self._read(node))
        elif node.op_type == "Cast":
            found = self._type(name_at(node.output, 0))
            return found if found in ASKED_FLOATS | {Precision.FP8, Precision.FP4} else None
        else:
            edges = {self._type(name) for name in (*node.input[:1], *node.output[:1])} & FLOATS
            found = edges.pop() if len(edges) == 1 else Precision.UNKNOWN
        return found if found in _ASKED else None

    def fed(self, node: onnx.NodeProto) -> str:
        """Return how quantised data come to a node that multiplies or joins; "" in the usual way."""
        # A weight may have a vector of one scale as it may have one for each channel.
        data = (self._source(name) for name in node.input if name not in self.constants)
        sources = list(filter(None, data))
        readers = [each for each in sources if dequantises(each.op_type) and len(each.input) > 1]
        if node.op_type == "Concat":
            return UNLIKE_SCALES if len({*map(self._scale, readers)} - {None}) > 1 else ""
        if node.op_type in MULTIPLYING:
            joined = (self.fed(each) for each in sources if each.op_type == "Concat")
            return (
                VECTOR_OF_ONE if any(map(self._is_vector_of_one, readers)) else next(filter(None, joined), "")
            )
        return ""

    def _is_vector_of_one(self, reader: onnx.NodeProto) -> bool:
        """Tell whether one scale is for the whole of a tensor that has more than one channel."""
        if self.shapes.get(reader.input[1]) != (1,):
            return False
        axis, shape = attribute(reader, "axis", 1), self.shapes.get(reader.input[0]) or ()
        return not -len(shape) <= axis < len(shape) or shape[axis] != 1

    def _scale(self, reader: onnx.NodeProto) -> bytes | None:
        """Return the bytes of a scale's values, None if it is no constant or lies in another file."""
        scale = self.value(reader.input[1])
        return None if scale is None else scale.tobytes()

    def _source(self, tensor: str) -> onnx.NodeProto | None:
        """Return the node that makes a tensor's values, before those that only hand them on."""
        while (producer := self.producer(tensor)) and producer.op_type in _HANDING_ON:
            tensor = name_at(producer.input, 0)
        return producer

    def _multiplied(self, node: onnx.NodeProto) -> Precision:
        data, weights = (name_at(node.input, index) for index in _OPERANDS.get(node.op_type, (0, 1)))
        if data in self.constants and weights not in self.constants:
            data, weights = weights, data
        found = multiplied_in(self._operand(data), self._operand(weights))
        # A narrow operand that is no constant is data.
        return self._operand(data) if found in _STORED and weights not in self.constants else found

    def _operand(self, tensor: str) -> Precision:
        """Return the type that an operand was stored in before it was dequantised, else its own."""
        producer = self._source(tensor)
        makers = [producer]
        if producer and producer.op_type == "Concat":
            makers = [self._source(name) for name in producer.input]
        read = {self._read(maker) if maker and dequantises(maker.op_type) else None for maker in makers}
        found = (read.pop() if len(read) == 1 else None) or self._type(tensor)
        # An unknown operator gives a float.
        return Precision.FP32 if found is Precision.UNKNOWN else found

    def _read(self, node: onnx.NodeProto) -> Precision:
        """Return the type that a node dequantises."""
        named = dequantises(node.op_type)
        return precision_of(named["type"]) if named and named["type"] else self._type(name_at(node.input, 0))

    def _brought(self, node: onnx.NodeProto, kind: Precision) -> Precision:
        stored = name_at(node.input, 0) in self.constants
        return (
            WEIGHTS.get(kind, Precision.UNKNOWN) if stored else kind if kind in NARROW else Precision.UNKNOWN
        )

    def _type(self, tensor: str) -> Precision:
        return self._precisions.get(tensor, Precision.UNKNOWN)


_STORED = frozenset(WEIGHTS.values())
_ASKED = ASKED_FLOATS | NARROW | _STORED

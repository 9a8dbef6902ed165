"""ONNX Runtime's optimised model (`optimized_model_filepath`) -> layers, one a node.

Names of the original survive only in part (measured on 1.17.3 and 1.31.1): a fused node keeps the first node's name and
the last one's output (`FusedConv`); a node in the blocked layout is called `<output tensor>_nchwc` and its tensors
`reorder_token_1`; `InsertedPrecisionFreeCast_` is put before tensors moved to FP32; a channels-last QLinearConv calls
its output tensor by the node's name and itself `QLinearConv` (1.17) or `<node>_token_8` (1.31); signed activations
become unsigned under `qdq_s8_to_u8_quant`; a fused activation is called `QuickGelu` (1.17) or after its last node,
`<node>/QuickGeluFusion/` (1.31).

So tensors are identified first, by name or through a neighbour whose tensor is known; an optimised node then stands for
every original node between its outputs and the outputs of other optimised nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import onnx
from google.protobuf.message import DecodeError

from harness.case.graph_reader import GraphReader, attribute
from harness.case.model import effective_name
from harness.layers.datatype import types_of
from harness.record.outcome import Layer, TensorUse
from harness.words import Precision

#: The type of MatMulNBits' weights, which it keeps packed in bytes, by its attribute.
_PACKED = {4: Precision.INT4, 8: Precision.INT8}


def read_ort(optimised: bytes, original: bytes) -> tuple[list[Layer], int]:
    """Return one layer for each node of the optimised model; bytes that are no model count as one unread."""
    if not optimised:
        return [], 0
    try:
        after, before = onnx.load_from_string(optimised), onnx.load_from_string(original)
        types = types_of(GraphReader(after.graph))
        sizes = {item.name: tuple(item.dims) for item in after.graph.initializer}
        origins = Origins(before.graph, after.graph)
        return [_layer(node, types, sizes, origins.of(node)) for node in after.graph.node], origins.given_up
    # Any bytes may come: a node without outputs, text that is no UTF-8.
    except (DecodeError, LookupError, ValueError, TypeError):
        return [], 1


def _layer(
    node: onnx.NodeProto,
    types: Mapping[str, Precision],
    sizes: Mapping[str, tuple[int, ...]],
    nodes: tuple[str, ...],
) -> Layer:
    if node.op_type == "MatMulNBits":
        packed = _PACKED.get(attribute(node, "bits", 4), Precision.UNKNOWN)
        types = {**types, node.input[1]: packed}

    def use(names: Iterable[str]) -> tuple[TensorUse, ...]:
        return tuple(
            TensorUse(_text(name), str(types.get(name, Precision.UNKNOWN)), sizes.get(name, ()))
            for name in names
            if name
        )

    return Layer(
        name=_text(effective_name(node)),
        type=f"{_text(node.domain)}.{_text(node.op_type)}" if node.domain else _text(node.op_type),
        precision="",
        inputs=use(name for name in node.input if name not in sizes),
        weights=use(name for name in node.input if name in sizes),
        outputs=use(node.output),
        onnx_nodes=nodes,
    )


def _text(text: str | bytes) -> str:
    """Return a text of a model; protobuf gives one that is no UTF-8 as bytes."""
    return text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")


_BLOCKED = "_nchwc"
_WIDENED = "InsertedPrecisionFreeCast_"
#: Nodes walked through in all: each node of the optimised model can ask for every one of the original.
_MOST_STEPS = 1_000_000
_SUFFIX = re.compile(r"_token_\d+$|/\w+Fusion/$")


class Origins:
    """The correspondence of one original and one optimised graph."""

    def __init__(self, before: onnx.GraphProto, after: onnx.GraphProto) -> None:
        self._producers = {output: node for node in before.node for output in node.output if output}
        self._by_name = {node.name: node for node in before.node if node.name}
        self._order = {effective_name(node): index for index, node in enumerate(before.node)}
        self._tensors = {item.name for item in before.input} | set(self._producers)
        self._renamed: dict[str, str] = {}
        self._left = _MOST_STEPS
        #: Nodes that were looked at no further, as the walks before them were too long.
        self.given_up = 0
        for node in after.node:
            self._follow(node)
        for node in reversed(after.node):
            self._trace_back(node)
        outputs = (self._original(tensor) for node in after.node for tensor in node.output)
        self._produced = set(filter(None, outputs))

    def of(self, node: onnx.NodeProto) -> tuple[str, ...]:
        """Return original node names in the model's order; () for an inserted node."""
        if self._is_inserted(node):
            return ()
        found: set[str] = set()
        pending = [tensor for tensor in map(self._original, node.output) if tensor]
        while pending:
            self._left -= 1
            if self._left < 0:
                self.given_up += 1
                return ()
            producer = self._producers.get(pending.pop())
            if producer is not None and effective_name(producer) not in found:
                found.add(effective_name(producer))
                pending += [tensor for tensor in producer.input if tensor not in self._produced]
        return tuple(sorted(found, key=self._order.__getitem__))

    def _original(self, tensor: str) -> str:
        """Return the original name of a tensor, "" for a new one."""
        tensor = self._renamed.get(tensor, tensor)
        return tensor if tensor in self._tensors else ""

    def _is_inserted(self, node: onnx.NodeProto) -> bool:
        """Tell whether a node only changes a tensor's layout or type and is not in the original."""
        if node.name in self._by_name:
            return False
        if node.op_type in ("Transpose", "Cast", "QuantizeLinear", "DequantizeLinear"):
            producer = self._producers.get(self._original(node.output[0]))
            return producer is None or producer.op_type != node.op_type
        return node.op_type in ("ReorderInput", "ReorderOutput")

    def _follow(self, node: onnx.NodeProto) -> None:
        """Identify a node's output by the output's name or the node's."""
        output = node.output[0]
        if output in self._tensors or node.op_type in ("ReorderInput", "ReorderOutput"):
            return
        if output.startswith(_WIDENED):
            self._renamed[output] = output.removeprefix(_WIDENED)
            return
        if node.name.endswith(_BLOCKED):
            self._renamed[output] = node.name.removesuffix(_BLOCKED).removeprefix(_WIDENED)
            return
        named = (node.name, _SUFFIX.sub("", node.name), _SUFFIX.sub("", output))
        origin = next((self._by_name[name] for name in named if name in self._by_name), None)
        if origin is not None:
            self._renamed[output] = origin.output[0]

    def _trace_back(self, node: onnx.NodeProto) -> None:
        """Identify a node's input by its output: of a node put in, of a DequantizeLinear."""
        after = self._original(node.output[0])
        if not after or not node.input or self._original(node.input[0]):
            return
        producer = self._producers.get(after)
        if self._is_inserted(node):
            self._renamed[node.input[0]] = after
        elif node.op_type == "DequantizeLinear" and producer and producer.op_type == "DequantizeLinear":
            self._renamed[node.input[0]] = producer.input[0]

"""ONNX's element types as words, and what each tensor of a graph is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import TensorProto

from harness.words import Precision

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

#: By the name in the protocol, for an older onnx lacks the newer ones. Four bits without a sign are as coarse as with.
_NAMED: Mapping[str, Precision] = {
    "FLOAT": Precision.FP32,
    "FLOAT16": Precision.FP16,
    "BFLOAT16": Precision.BF16,
    "FLOAT8E4M3FN": Precision.FP8,
    "FLOAT8E4M3FNUZ": Precision.FP8,
    "FLOAT8E5M2": Precision.FP8,
    "FLOAT8E5M2FNUZ": Precision.FP8,
    "FLOAT4E2M1": Precision.FP4,
    "INT8": Precision.INT8,
    "UINT8": Precision.UINT8,
    "INT4": Precision.INT4,
    "UINT4": Precision.INT4,
    "INT32": Precision.INT32,
    "INT64": Precision.INT64,
    "BOOL": Precision.BOOL,
}
ELEMENTS: Mapping[int, Precision] = {
    number: _NAMED[name] for name, number in TensorProto.DataType.items() if name in _NAMED
}
#: Input that fixes the type of the output, by operator; the first one for all others.
_TYPED_BY = {"QuantizeLinear": 2, "DequantizeLinear": 1, "MatMulIntegerToFloat": 2}


def types_of(graph: onnx.GraphProto) -> dict[str, Precision]:
    """Return each tensor's type: as the graph declares it, else after the input that fixes it; its nodes are sorted."""
    known = {item.name: ELEMENTS.get(item.data_type, Precision.UNKNOWN) for item in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        known[value.name] = ELEMENTS.get(value.type.tensor_type.elem_type, Precision.UNKNOWN)
    for node in graph.node:
        for output in node.output:
            known.setdefault(output, _output_type(node, known))
    return known


def _output_type(node: onnx.NodeProto, known: Mapping[str, Precision]) -> Precision:
    attributes = {item.name: item for item in node.attribute}
    if node.op_type == "Cast" and "to" in attributes:
        return ELEMENTS.get(attributes["to"].i, Precision.UNKNOWN)
    if node.op_type == "Constant" and "value" in attributes:
        return ELEMENTS.get(attributes["value"].t.data_type, Precision.UNKNOWN)
    index = _TYPED_BY.get(node.op_type, 0)
    name = node.input[index] if index < len(node.input) else ""
    return known.get(name, Precision.UNKNOWN)

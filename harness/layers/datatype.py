"""Data types: in every spelling that engines print, as ONNX's element types, and of each tensor of a graph."""

from __future__ import annotations

import re
from collections.abc import Mapping

from onnx import TensorProto

from harness.case.graph_reader import GraphReader, name_at
from harness.words import Precision

#: Searched in this order: "BFloat16" contains "Float", "UInt8" contains "Int8".
_SPELLINGS: tuple[tuple[str, Precision], ...] = (
    (r"bf16|bfloat16", Precision.BF16),
    (r"fp16|half|float16", Precision.FP16),
    (r"uint8", Precision.UINT8),
    (r"int8", Precision.INT8),
    (r"fp8(?:e\dm\d\w*)?|float8\w*|e4m3\w*|e5m2\w*", Precision.FP8),
    (r"fp4(?:e\dm\d\w*)?|float4\w*|e2m1\w*", Precision.FP4),
    (r"int4", Precision.INT4),
    (r"int64", Precision.INT64),
    (r"int32", Precision.INT32),
    (r"bool", Precision.BOOL),
    (r"tf32", Precision.TF32),
    (r"fp32|float32|float", Precision.FP32),
)
_PATTERNS = tuple(
    (re.compile(rf"(?<![a-z0-9])(?:{spelling})(?![a-z0-9])", re.IGNORECASE), precision)
    for spelling, precision in _SPELLINGS
)

FLOATS = frozenset({Precision.FP32, Precision.TF32, Precision.FP16, Precision.BF16})
#: Types that store data smaller; a kernel whose other operand is a float widens them first.
NARROW = frozenset({Precision.FP8, Precision.FP4, Precision.INT8, Precision.UINT8, Precision.INT4})
EIGHT_BIT = frozenset({Precision.INT8, Precision.UINT8})
#: The precision of a float times weights stored in a narrower type, by that type.
WEIGHTS: Mapping[Precision, Precision] = {
    Precision.INT8: Precision.INT8_WEIGHTS,
    Precision.UINT8: Precision.INT8_WEIGHTS,
    Precision.INT4: Precision.INT4_WEIGHTS,
    Precision.FP8: Precision.FP8_WEIGHTS,
    Precision.FP4: Precision.FP4_WEIGHTS,
}
#: The float types that an ONNX graph asks for by its tensors; FP32 is its type without a request.
ASKED_FLOATS = frozenset({Precision.FP16, Precision.BF16})


def same_precision(wanted: Precision, actual: Precision | None) -> bool:
    """Tell whether a wish for one is met by the other; TF32 is how a GPU multiplies FP32 unless forbidden."""
    floats = (Precision.FP32, Precision.TF32)
    return wanted is actual or (wanted in floats and actual in floats)


def precision_of(text: str) -> Precision:
    """Return the data type that a text names, else UNKNOWN ("N/A due to dynamic shapes")."""
    for pattern, precision in _PATTERNS:
        if pattern.search(text):
            return precision
    return Precision.UNKNOWN


def multiplied_in(data: Precision, weights: Precision) -> Precision:
    """Return the precision that a kernel with these operands multiplies in.

    Equal operands say it themselves. INT8 times UINT8 is an INT8 multiplication (ONNX Runtime shifts
    activations to unsigned). A float times weights in something narrower has a word of its own, for the weights were
    only stored so; narrower data times a float is the float.
    """
    if Precision.UNKNOWN in (data, weights):
        return weights if data is Precision.UNKNOWN else data
    both = {data, weights}
    if len(both) == 1:
        return data
    if both <= EIGHT_BIT:
        return Precision.INT8
    if data in FLOATS and weights in WEIGHTS:
        return WEIGHTS[weights]
    if data in NARROW and weights in FLOATS:
        return weights
    return Precision.FP32 if both == {Precision.FP32, Precision.FP16} else Precision.UNKNOWN


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


def types_of(tensors: GraphReader) -> dict[str, Precision]:
    """Return each tensor's type: as the graph declares it, else after the input that fixes it; its nodes are sorted."""
    known = {name: ELEMENTS.get(kind, Precision.UNKNOWN) for name, kind in tensors.types.items()}
    for node in tensors.nodes:
        fixing = name_at(node.input, _TYPED_BY.get(node.op_type, 0))
        for output in node.output:
            known.setdefault(output, known.get(fixing, Precision.UNKNOWN))
    return known

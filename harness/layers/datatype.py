"""Words for data types, in all spellings that engines print, to `Precision`."""

from __future__ import annotations

import re

from harness.words import Precision

#: Searched in this order: "BFloat16" contains "Float", "UInt8" contains "Int8".
_SPELLINGS: tuple[tuple[str, Precision], ...] = (
    (r"bf16|bfloat16", Precision.BF16),
    (r"fp16|half|float16", Precision.FP16),
    (r"uint8", Precision.UINT8),
    (r"int8", Precision.INT8),
    (r"fp8|float8\w*|e4m3\w*|e5m2\w*", Precision.FP8),
    (r"fp4|float4\w*|e2m1\w*", Precision.FP4),
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
#: What data are stored in to be smaller; a kernel whose other operand is a float widens them first.
NARROW = frozenset({Precision.FP8, Precision.FP4, Precision.INT8, Precision.UINT8, Precision.INT4})
EIGHT_BIT = frozenset({Precision.INT8, Precision.UINT8})


def precision_of(text: str) -> Precision:
    """Return the data type that a text names; UNKNOWN where it names none ("N/A due to dynamic shapes")."""
    for pattern, precision in _PATTERNS:
        if pattern.search(text):
            return precision
    return Precision.UNKNOWN


def multiplied_in(data: Precision, weights: Precision) -> Precision:
    """Return what a kernel with these operands multiplies in.

    Equal operands say it themselves. INT8 times UINT8 is an INT8 multiplication (ONNX Runtime shifts
    activations to unsigned). A float times something narrower is the float: the narrow operand was only
    stored so.
    """
    if Precision.UNKNOWN in (data, weights):
        return weights if data is Precision.UNKNOWN else data
    both = {data, weights}
    if len(both) == 1:
        return data
    if both <= EIGHT_BIT:
        return Precision.INT8
    floats = both & FLOATS
    if len(floats) == 1 and both - floats <= NARROW:
        return floats.pop()
    return Precision.FP32 if both == {Precision.FP32, Precision.FP16} else Precision.UNKNOWN

"""The bytes of a tensor's elements, in every ONNX type that a case may want, on every machine the same."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING

from onnx import TensorProto

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FORMATS: dict[int, str] = {
    TensorProto.FLOAT: "f",
    TensorProto.FLOAT16: "e",
    TensorProto.INT8: "b",
    TensorProto.UINT8: "B",
    TensorProto.INT32: "i",
    TensorProto.INT64: "q",
    TensorProto.BOOL: "?",
}
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})
#: The largest magnitude that a symmetric quantiser maps onto, by the type that it quantises to.
LARGEST: dict[int, float] = {
    TensorProto.INT8: 127,
    TensorProto.UINT8: 127,
    TensorProto.INT4: 7,
    TensorProto.FLOAT8E4M3FN: 448,
    TensorProto.FLOAT4E2M1: 6,
}
#: The first ONNX IR that knows a type, for those that came after IR 8.
FIRST_IR: dict[int, int] = {
    TensorProto.FLOAT8E4M3FN: 9,
    TensorProto.INT4: 10,
    TensorProto.UINT4: 10,
    TensorProto.FLOAT4E2M1: 11,
}


def pack(values: Sequence[float], dtype: int) -> bytes:
    """Return elements as `TensorProto.raw_data` has them; elements of 4 bits are two in a byte, the first one low.

    Floats are rounded to the nearest that the type holds; a type without a packing raises KeyError.
    """
    if dtype == TensorProto.BFLOAT16:
        return struct.pack(f"<{len(values)}H", *map(_bfloat16, values))
    if dtype == TensorProto.FLOAT8E4M3FN:
        return bytes(_nearest(value, 3, 4, 7) for value in values)
    if dtype in {TensorProto.INT4, TensorProto.UINT4}:
        return _halves([int(value) & 15 for value in values])
    if dtype == TensorProto.FLOAT4E2M1:
        return _halves([_nearest(value, 1, 2, 1) for value in values])
    numbers = values if dtype in _FLOATS else [int(value) for value in values]
    return struct.pack(f"<{len(values)}{_FORMATS[dtype]}", *numbers)


def as_float32(values: Iterable[float]) -> list[float]:
    """Return each value as the nearest FP32 number."""
    return array("f", values).tolist()


def _halves(codes: list[int]) -> bytes:
    codes = [*codes, 0] if len(codes) % 2 else codes
    return bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))


def _bfloat16(value: float) -> int:
    """Return the upper half of an FP32 number's bits, rounded to the nearest, and to even between two."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def _nearest(value: float, mantissa: int, exponent: int, bias: int) -> int:
    """Return the code of the nearest number, the even one between two, of a float with neither infinity nor zeros."""
    magnitudes = _magnitudes(mantissa, exponent, bias)
    size = abs(value)
    above = min(bisect_left(magnitudes, size), len(magnitudes) - 1)
    below = max(above - 1, 0)
    code = min(above, below, key=lambda each: (abs(magnitudes[each] - size), each % 2))
    return code | (1 << mantissa + exponent if value < 0 else 0)


@cache
def _magnitudes(mantissa: int, exponent: int, bias: int) -> tuple[float, ...]:
    """Return the numbers of a small float without its sign, by their codes; FP8 E4M3FN's last code is no number."""
    steps = 1 << mantissa
    count = steps << exponent
    whole = range(count - 1 if mantissa == 3 else count)  # noqa: PLR2004  (E4M3FN)
    return tuple(
        (code % steps / steps) * 2.0 ** (1 - bias)
        if code < steps
        else (1 + code % steps / steps) * 2.0 ** (code // steps - bias)
        for code in whole
    )

"""Tensors as they cross the wire: a word for the element type, a shape, and the bytes of ONNX's `raw_data`.

That is little-endian, row-major, and elements of less than a byte packed with the first in the lowest bits: both
engines hold them so too, and the way from the host's arrays to an engine's memory unpacks no bits.
"""

import array
from typing import Dict, NamedTuple, Sequence, Tuple


class Element(NamedTuple):
    """Bits of one element, ONNX's number of the type, and ONNX Runtime's word for it."""

    bits: int
    onnx: int
    ort: str


#: Every element type that the wire carries, by NumPy's word for it.
ELEMENTS: Dict[str, Element] = {
    "float32": Element(32, 1, "float"),
    "uint8": Element(8, 2, "uint8"),
    "int8": Element(8, 3, "int8"),
    "uint16": Element(16, 4, "uint16"),
    "int16": Element(16, 5, "int16"),
    "int32": Element(32, 6, "int32"),
    "int64": Element(64, 7, "int64"),
    "bool": Element(8, 9, "bool"),
    "float16": Element(16, 10, "float16"),
    "float64": Element(64, 11, "double"),
    "uint32": Element(32, 12, "uint32"),
    "uint64": Element(64, 13, "uint64"),
    "bfloat16": Element(16, 16, "bfloat16"),
    "float8_e4m3fn": Element(8, 17, "float8e4m3fn"),
    "float8_e4m3fnuz": Element(8, 18, "float8e4m3fnuz"),
    "float8_e5m2": Element(8, 19, "float8e5m2"),
    "float8_e5m2fnuz": Element(8, 20, "float8e5m2fnuz"),
    "uint4": Element(4, 21, "uint4"),
    "int4": Element(4, 22, "int4"),
    "float4_e2m1fn": Element(4, 23, "float4e2m1"),
    "float8_e8m0fnu": Element(8, 24, "float8e8m0"),
    "uint2": Element(2, 25, "uint2"),
    "int2": Element(2, 26, "int2"),
}


def size(dtype: str, shape: Sequence[int]) -> int:
    """Return how many bytes a tensor takes on the wire."""
    count = 1
    for extent in shape:
        count *= int(extent)
    return (ELEMENTS[dtype].bits * count + 7) // 8


#: Types that the parser narrows, with the codes of `array`: INT64 up to 8.6, DOUBLE up to TensorRT for RTX 1.7 at
#: least.
_NARROWED = {"int32": ("int64", "i", "q"), "float32": ("float64", "f", "d")}


def narrowed(data: bytes, shape: Sequence[int], dtype: str) -> bytes:
    """Return a tensor's bytes as elements of a type that the model's own may be wider than; raises ValueError."""
    wide, code, wide_code = _NARROWED.get(dtype, (dtype, "", ""))
    if wide != dtype and len(data) == size(wide, shape):
        wider = array.array(wide_code)
        wider.frombytes(data)
        data = array.array(code, wider).tobytes()
    if len(data) != size(dtype, shape):
        raise ValueError("takes the shape %s of %s and was given %d bytes" % (list(shape), dtype, len(data)))
    return data


def write_shape(shape: Sequence[int]) -> bytes:
    """Return a shape as a job's part, "2,3"; that of a scalar is empty."""
    return ",".join(map(str, shape)).encode()


def read_shape(data: bytes) -> Tuple[int, ...]:
    """Return the shape that `write_shape` wrote."""
    return tuple(int(extent) for extent in data.split(b",") if extent)

"""Arrays as the wire carries them: `harness.agent.tensors` says how, onnx packs and unpacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

from harness.agent.tensors import ELEMENTS, size

Array = npt.NDArray[Any]

#: The word of each element type that the wire carries, by ONNX's number.
WORDS = {element.onnx: word for word, element in ELEMENTS.items()}


def dtype_of(word: str) -> np.dtype[Any]:
    """Return the NumPy type of a word of the wire, or that of ml_dtypes if NumPy lacks it."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(ELEMENTS[word].onnx))


def length_of(number: int, shape: Sequence[int]) -> int:
    """Return how many bytes a tensor of ONNX's type takes; raises ValueError for one that the wire has no form for."""
    if number not in WORDS or any(extent < 0 for extent in shape):
        raise ValueError(f"element type {number} of shape {list(shape)} has no wire form")
    return size(WORDS[number], shape)


def is_carried(value: object) -> bool:
    """Tell whether the wire has a form for a value: sequences, strings and complex numbers have no form."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.name in ELEMENTS


def to_wire(array: Array) -> tuple[str, tuple[int, ...], bytes]:
    """Return an array as (element type, shape, bytes as ONNX's `raw_data` has them)."""
    word = array.dtype.name
    _check(word)
    # In the machine's own byte order, which onnx takes for granted.
    data: bytes = numpy_helper.from_array(np.asarray(array, dtype_of(word))).raw_data
    return word, array.shape, data


def from_wire(dtype: str, shape: Sequence[int], data: bytes) -> Array:
    """Return the array that `to_wire` sent; raises ValueError if the bytes do not fill the shape."""
    _check(dtype)
    if any(extent < 0 for extent in shape) or len(data) != size(dtype, shape):
        raise ValueError(f"{len(data)} bytes do not fill the shape {list(shape)} of {dtype}")
    tensor = TensorProto(data_type=ELEMENTS[dtype].onnx, dims=shape, raw_data=data)
    return np.array(numpy_helper.to_array(tensor))


def _check(word: str) -> None:
    if word not in ELEMENTS:
        raise ValueError(f"element type {word!r} has no wire form; it is one of {', '.join(ELEMENTS)}")

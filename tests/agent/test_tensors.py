"""How tensors cross the wire: sizes, and shapes as text."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from harness.agent.tensors import ELEMENTS, read_shape, size, write_shape

pytestmark = pytest.mark.unit


def test_sizes_are_those_of_packed_elements() -> None:
    assert [size("float64", shape) for shape in ((), (3,), (2, 3), (0, 3))] == [8, 24, 48, 0]
    assert [size("int4", (count,)) for count in range(4)] == [0, 1, 1, 2]
    assert [size("uint2", (count,)) for count in (1, 4, 5)] == [1, 1, 2]


@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 0, 3)])
def test_shapes_cross_as_text(shape: tuple[int, ...]) -> None:
    assert read_shape(write_shape(shape)) == shape
    assert write_shape((2, 3)) == b"2,3"


def test_the_numbers_are_those_of_onnx() -> None:
    """All types of ONNX, except those that no engine takes: strings, complex numbers, FP6."""
    left = {name for name, number in TensorProto.DataType.items()} - {
        TensorProto.DataType.Name(element.onnx) for element in ELEMENTS.values()
    }
    assert {name for name in left if "FLOAT6" not in name} == {
        "UNDEFINED",
        "STRING",
        "COMPLEX64",
        "COMPLEX128",
    }
    for element in ELEMENTS.values():
        assert element.ort == TensorProto.DataType.Name(element.onnx).lower()

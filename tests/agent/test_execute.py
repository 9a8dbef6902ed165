"""The bytes that a TensorRT engine gets for an input; they can be worked out without a GPU."""

from __future__ import annotations

import array
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.engines import Failed
from harness.agent.engines.tensorrt import api, execute

pytestmark = pytest.mark.unit


def taken(dtype: str, data: bytes, shape: bytes = b"1,2") -> bytes:
    """Return the bytes for an engine whose input "x" has this DataType."""
    engine: Any = SimpleNamespace(get_tensor_dtype=lambda _name: SimpleNamespace(name=dtype))
    return execute._as_taken("x", engine, {"x": data, "shape:x": shape})


@pytest.mark.parametrize(
    ("dtype", "code", "wide"), [("INT32", "i", "q"), ("FLOAT", "f", "d")], ids=["INT64", "DOUBLE"]
)
def test_what_the_parser_narrowed_is_narrowed(dtype: str, code: str, wide: str) -> None:
    """TensorRT for RTX 1.4 to 1.7 parse a DOUBLE input, and the network then has a FLOAT one."""
    assert array.array(code, taken(dtype, array.array(wide, [3, -1]).tobytes())).tolist() == [3, -1]
    assert array.array(code, taken(dtype, array.array(code, [3, -1]).tobytes())).tolist() == [3, -1]


@pytest.mark.parametrize(
    ("dtype", "data", "shape"),
    [
        ("FLOAT", b"1234", b""),
        ("FLOAT", b"", b"0,3"),
        ("BOOL", b"\1\0", b"2"),
        ("UINT8", b"\1\0", b"2"),
        ("FP8", b"\1\0", b"2"),
        ("BF16", b"\1\0\2\0", b"2"),
        ("INT4", b"\x21\3", b"3"),
        ("FP4", b"\x21\3", b"3"),
        ("E8M0", b"\1\0", b"2"),
    ],
)
def test_the_rest_is_given_as_it_came(dtype: str, data: bytes, shape: bytes) -> None:
    assert taken(dtype, data, shape) == data
    with pytest.raises(Failed, match=r"input x takes the shape .* and was given \d+ bytes"):
        taken(dtype, data + b"\0", shape)


def test_a_type_that_nobody_knows_is_said() -> None:
    with pytest.raises(Failed, match=r"no means to carry DataType\.FP3"):
        api.datatype_name(SimpleNamespace(name="FP3"))


def test_an_output_sized_by_the_data_is_given_the_memory_that_it_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NonMaxSuppression on TensorRT 10.6: with a buffer made before the run, its kernel wrote past the end."""
    bare = SimpleNamespace(IOutputAllocator=type("IOutputAllocator", (), {}))
    monkeypatch.setattr(api, "trt", bare)
    allocators: dict[str, Any] = {}
    context: Any = SimpleNamespace(
        get_tensor_shape=lambda _name: (-1, 3), set_output_allocator=allocators.__setitem__
    )
    held: dict[int, int] = {}

    def allocate(length: int) -> int:
        held[len(held) * 4096] = length
        return (len(held) - 1) * 4096

    device: Any = SimpleNamespace(allocate=allocate, clear=lambda *_: None)
    output = execute._output("picked", "int64", context, device)
    for rows in (2, 5, 1):
        address = allocators["picked"].reallocate_output("picked", 0, rows * 24, 256)
        allocators["picked"].notify_shape("picked", (rows, 3))
        assert (output.address(), list(output.shape())) == (address, [rows, 3])
        assert held[address] >= rows * 24

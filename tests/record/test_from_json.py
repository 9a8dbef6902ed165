"""`decode`: dataclasses from JSON by their hints; test_outcome.py and test_results.py hold it to real ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.record.from_json import decode, fields_of
from harness.words import Precision

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Toy:
    pairs: tuple[tuple[str, Precision], ...]
    by_name: dict[str, Precision] = field(default_factory=dict)
    word: Precision | None = None
    size: float = 0.0
    anything: Any = None


def test_words_pairs_and_maps_come_back_as_what_they_were() -> None:
    data = {"pairs": [["a", "int8"]], "by_name": {"n": "fp32"}, "word": "fp16", "anything": [{"x": 1}]}
    found = decode(Toy, data)
    assert found == Toy((("a", Precision.INT8),), {"n": Precision.FP32}, Precision.FP16, 0.0, [{"x": 1}])
    assert found.pairs[0][1] is Precision.INT8
    assert found.by_name["n"] is Precision.FP32


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"pairs": [["a"]]},
        {"pairs": [["a", "int8", "b"]]},
        {"pairs": [], "by_name": {"n": 3}},
        {"pairs": [], "size": 10**400},
    ],
)
def test_what_does_not_fit_is_a_type_error(data: Any) -> None:
    with pytest.raises(TypeError, match=r"^(pairs|by_name|size|Expected|Object missing)"):
        decode(Toy, data)


def test_a_word_that_is_none_is_named_with_its_place() -> None:
    with pytest.raises(TypeError, match=r"pairs\[0\]\[1\]: Invalid enum value 'int9'"):
        decode(Toy, {"pairs": [["a", "int9"]]})


def test_fields_hold_defaults_that_the_data_lacks() -> None:
    """Of a record of an older harness as of one made today."""
    assert fields_of(decode(Toy, {"pairs": []})) == fields_of(Toy(pairs=()))
    assert list(fields_of(Toy(pairs=()))) == ["pairs", "by_name", "word", "size", "anything"]

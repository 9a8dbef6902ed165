"""What the page's evidence is packed into: nothing is lost, nothing is mixed up, and what is equal is written once."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

import onnx
import pytest

from harness import text
from harness.report.page import models
from harness.report.page.models import held
from harness.report.page.packing import columns, pack, squeeze, unsqueezed
from tests.report.test_pages import resolved

pytestmark = pytest.mark.unit

LONG = "a text that is longer than what it costs to refer to it"


class Look(NamedTuple):
    """Any row of named fields."""

    number: int
    name: str


def chunk(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what rows are packed into, as JSON holds it."""
    found: dict[str, Any] = json.loads(unsqueezed(pack(rows)))
    return found


def through(rows: list[dict[str, Any]]) -> Any:
    """Return rows as the page's script gets them."""
    found = chunk(rows)
    return resolved(found["rows"], found["table"])


def test_values_that_python_takes_for_equal_stay_apart() -> None:
    """1, 1.0 and True are equal there, and so are the zeros; a list is no object, and a number no text."""
    leaves: list[Any] = [1, 1.0, True, 0, 0.0, -0.0, False, None, "1", "None", "null"]
    nests: list[Any] = [[], {}, "", "[]", [[]], [{}], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
    rows = [{"each": [[one, LONG] for one in leaves]}, {"each": [[one, LONG] for one in nests]}]
    assert repr(through(rows)) == repr(rows)


def test_what_json_cannot_hold_is_told_in_words() -> None:
    """A reader of JSON would refuse it, and a hidden character would not be seen."""
    said = through([{"a": float("nan"), "b": [float("-inf"), 1.5], "c": ("x\u202ey", "\x1b[31mred")}])
    assert said == [{"a": "nan", "b": ["-inf", 1.5], "c": ["x⟨U+202E⟩y", "red"]}]


def test_texts_that_differ_in_what_is_not_shown_are_one() -> None:
    """Colour is taken away before texts are compared."""
    rows = [{"a": LONG}, {"a": f"\x1b[31m{LONG}\x1b[0m"}]
    assert json.dumps(chunk(rows)).count(LONG) == 1
    assert through(rows) == [{"a": LONG}] * 2


def test_what_occurs_twice_is_written_once_and_with_all_that_is_in_it() -> None:
    """A part of a repeated part is no entry of its own, unless it occurs elsewhere too."""
    inner, other = {"inside": [LONG, 1]}, {"apart": LONG + "!"}
    found = chunk([{"all": [inner, inner, other]}, {"all": [other, "short", "short"]}])
    assert found["table"] == [inner, other]
    assert found["rows"] == [{"all": [{"$": 0}, {"$": 0}, {"$": 1}]}, {"all": [{"$": 1}, "short", "short"]}]
    elsewhere = chunk([{"all": [inner, inner, LONG]}])
    assert elsewhere == {
        "rows": [{"all": [{"$": 1}, {"$": 1}, {"$": 0}]}],
        "table": [LONG, {"inside": [{"$": 0}, 1]}],
    }


def test_a_text_that_python_calls_printable_hides_nothing() -> None:
    """`visible` gives such a text back as it is, and must not let through what it writes out elsewhere."""
    hidden = [
        chr(code) for code in range(sys.maxunicode + 1) if text.visible(f"\n{chr(code)}") != f"\n{chr(code)}"
    ]
    assert len(hidden) > 100
    assert [one for one in hidden if text.visible(one) == one] == []


def test_the_page_holds_the_smallest_models_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal ones count once; a larger one than fits ends it."""
    monkeypatch.setattr(models, "LONGEST_MODEL", 8)
    monkeypatch.setattr(models, "MOST_MODELS", 10)
    given = {
        "models/a": b"aaaa",
        "models/b": b"bbbbb",
        "models/c": b"aaaa",
        "models/d": b"dddddd",
        "models/e": b"e" * 9,
    }
    assert sorted(held(given).places) == ["a", "b", "c"]
    monkeypatch.setattr(models, "MOST_MODELS", 100)
    assert sorted(held(given).places) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("size", range(9))
def test_packed_bytes_come_back_and_nothing_of_them_is_markup(size: int) -> None:
    data = bytes(range(256)) * 8 + b"<&>" * size
    text = squeeze(data)
    assert unsqueezed(text) == data
    assert not set(text) & set('<>"\\')


def test_columns_hold_what_rows_hold() -> None:
    assert columns(Look, [Look(1, "a"), Look(2, "b")]) == {"columns": {"number": [1, 2], "name": ["a", "b"]}}
    assert columns(Look, []) == {"columns": {"number": [], "name": []}}


def _model(name: str, weight: bytes) -> bytes:
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.INT8, [len(weight)], weight, raw=True)
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"], name=name)
    return onnx.helper.make_model(onnx.helper.make_graph([node], name, [], [], [tensor])).SerializeToString()


def test_models_come_back_from_their_pieces_and_share_their_weights() -> None:
    weight = bytes(range(100))
    given = {
        "models/a.onnx": _model("one", weight),
        "models/b.onnx": _model("another", weight),
        "models/c.onnx": b"no model",
    }
    found = held(given)
    plain = unsqueezed(found.packed)
    back = {
        f"models/{name}": b"".join(plain[start : start + length] for start, length in places)
        for name, places in found.places.items()
    }
    assert back == given
    assert plain.count(weight) == 1

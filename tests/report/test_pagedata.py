"""What the page's evidence is packed into: nothing is lost, nothing is mixed up, and what is equal is written once."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from typing import Any

import pytest

from harness.report import text
from harness.report.page import data
from harness.report.page.packing import pack
from tests.report.test_pages import resolved

pytestmark = pytest.mark.unit

LONG = "a text that is longer than what it costs to refer to it"


def chunk(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what rows are packed into, as JSON holds it."""
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(pack(rows))))
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
    monkeypatch.setattr(data, "LONGEST_MODEL", 8)
    monkeypatch.setattr(data, "MOST_MODELS", 10)
    models = {
        "models/a": b"aaaa",
        "models/b": b"bbbbb",
        "models/c": b"aaaa",
        "models/d": b"dddddd",
        "models/e": b"e" * 9,
    }
    assert sorted(data._held(models)) == ["a", "b", "c"]
    monkeypatch.setattr(data, "MOST_MODELS", 100)
    assert sorted(data._held(models)) == ["a", "b", "c", "d"]

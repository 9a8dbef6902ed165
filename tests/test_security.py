"""SECURITY.md names tests that are there, and the groups of faults that they try."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_promise_names_tests_that_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)`", PAGE)
    assert len(named) > 10
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_what_is_tried_as_a_fault_stands_on_the_page() -> None:
    """A file of faults that no promise names is a promise that nobody reads."""
    trying = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if path.parent.name != "tools"
        and re.search(r"^@pytest\.mark\.fault\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert sorted(each for each in trying if f"`{each}`" not in PAGE) == []

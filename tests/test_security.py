"""SECURITY.md names tests that are there."""

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

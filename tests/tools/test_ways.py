"""How much the cases tell apart: counted over variants that were measured on every target asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.ways import main, ways

pytestmark = pytest.mark.unit


def cell(variant: str, target: str, cls: str, cause: str = "", **fields: Any) -> dict[str, Any]:
    diagnosis = {"id": cause} if cause else None
    plain = {"case": "toy", "variant": variant, "target": target, "class": cls, "diagnosis": diagnosis}
    return {**plain, "stamps": {"when": "now"}, **fields}


CELLS = {
    "cells": [
        *(cell(name, "a", "build_failed", "no-kernel") for name in ("one", "two", "three")),
        *(cell(name, "b", "built") for name in ("one", "two")),
        cell("three", "b", "build_failed", "other"),
        cell("four", "a", "built"),
        cell("four", "b", "not_run", stamps=None),
        cell("one", "c", "crashed", "elsewhere"),
    ]
}


def test_a_way_is_class_and_cause_on_each_target() -> None:
    """A variant that was not measured on one of them, and other targets, count for nothing."""
    found, causes = ways(CELLS, ["a", "b"])
    assert found == {
        ("build_failed no-kernel", "built"): 2,
        ("build_failed no-kernel", "build_failed other"): 1,
    }
    assert causes == {"no-kernel": 3, "other": 1}


def test_the_count_is_printed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(CELLS))
    main(str(path), "a", "b")
    assert capsys.readouterr().out.startswith("3 variants behave in 2 ways over a, b; 2 causes\n")

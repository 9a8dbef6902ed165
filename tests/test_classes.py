"""A class is a word and a row of `CLASSES`; no other module keeps a set or a table of classes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from harness.words import CLASSES, Class

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]


def _named(nodes: list[ast.expr | None]) -> set[str]:
    words = [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
    return {word for word in words if word.startswith("Class.")}


def test_every_class_has_a_row() -> None:
    assert set(CLASSES) == set(Class)


def test_no_module_keeps_a_set_or_a_table_of_classes() -> None:
    """A property of a class is a column: a private set would be forgotten for the next class."""
    for path in sorted((ROOT / "harness").rglob("*.py")):
        if path.name == "words.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            members = node.elts if isinstance(node, (ast.Set, ast.List, ast.Tuple)) else []
            keys = node.keys if isinstance(node, ast.Dict) else []
            assert len(_named([*members, *keys])) < 2, f"{path.name}: {ast.unparse(node)}"

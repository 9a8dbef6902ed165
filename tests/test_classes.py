"""A class is a word and a row of `CLASSES`; no other module keeps a set or a table of classes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from harness.words import CLASSES, Class

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]


#: Comparisons with one class that are left. It only gets smaller: what a class has in common with another is a column.
MOST_ALONE = 66


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


def test_no_further_module_asks_for_one_class() -> None:
    """Who adds a class is not told of a comparison with another one, and would have to find it."""
    asking = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / "harness").rglob("*.py"))
        if path.name != "words.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and _named([node.left, *node.comparators])
    ]
    assert len(asking) <= MOST_ALONE, "\n".join(asking)

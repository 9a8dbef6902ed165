"""Picks cells: one by its id, or some by an expression as pytest's -k takes it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from harness.errors import HandledError
from harness.plan.cells import Cell
from harness.text import did_you_mean


def find(cells: Sequence[Cell], cell_id: str) -> Cell:
    """Return a cell by its id; raises HandledError, with the nearest id, for an unknown one."""
    by_id = {cell.id: cell for cell in cells}
    if cell_id not in by_id:
        raise HandledError(f"there is no cell {cell_id!r}; {did_you_mean(cell_id, by_id)}")
    return by_id[cell_id]


_WORD = re.compile(r"[()]|[\w:+\-.\[\]\\/]+|\S")
_NAME = re.compile(r"[\w:+\-.\[\]\\/]+")


def select(cells: Iterable[Cell], expression: str) -> tuple[Cell, ...]:
    """Return the cells whose id matches an expression of names, `and`, `or`, `not` and parentheses.

    As for pytest's -k, a name matches every id that contains it, in capitals or not, so "rtx17" takes
    "rtx17-sm75" along, and an empty expression matches everything. Raises HandledError for an expression that cannot
    be read. Not by pytest's own reader, which is private to it; a test holds this one to its answers.
    """
    if not expression.strip():
        return tuple(cells)
    names: list[str] = []
    words: list[str] = []
    for word in _WORD.findall(expression):
        if _is_name(word):
            # Ids hold no capitals: the names of cases, variants and targets must not.
            names.append(word.lower())
            words.append(f"name{len(names) - 1}")
        else:
            words.append(word)
    try:
        tree = ast.parse(" ".join(words), mode="eval").body
        return tuple(cell for cell in cells if _holds(tree, cell.id, names))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise HandledError(
            f"expression {expression!r} cannot be read; write it like 'mish and not trt86'"
        ) from None


def taken_along(cells: Iterable[Cell], expression: str, alone: str = "--target") -> str:
    """Return a sentence if a target's name in an expression also selected other targets, else "".

    `alone` is the option that takes one target.
    """
    targets = dict.fromkeys(cell.target.name for cell in cells)
    for word in filter(_is_name, _WORD.findall(expression)):
        along = [name for name in targets if word.lower() in name and word.lower() != name]
        if word.lower() in targets and along:
            return f"-k {word} takes {', '.join(along)} along; {alone} {word.lower()} is that one alone"
    return ""


def _is_name(word: str) -> bool:
    return bool(_NAME.fullmatch(word)) and word not in ("and", "or", "not")


def _holds(node: ast.expr, cell_id: str, names: Sequence[str]) -> bool:
    """Tell whether an expression of Python over `name0`, `name1` ... matches an id; raises ValueError for any other."""
    if isinstance(node, ast.Name):
        return names[int(node.id.removeprefix("name"))] in cell_id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _holds(node.operand, cell_id, names)
    if isinstance(node, ast.BoolOp):
        # Each part is looked at, so that an odd one is refused whatever the others are.
        parts = [_holds(value, cell_id, names) for value in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    raise ValueError(ast.dump(node))

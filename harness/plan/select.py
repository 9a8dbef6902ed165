"""Picks cells: one by its id, or some by an expression as pytest's -k takes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.errors import HandledError
from harness.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness.plan.cells import Cell


def find(cells: Sequence[Cell], cell_id: str) -> Cell:
    """Return a cell by its id; raises HandledError, with the nearest id, where there is none."""
    by_id = {cell.id: cell for cell in cells}
    if cell_id not in by_id:
        raise HandledError(f"there is no cell {cell_id!r}; {did_you_mean(cell_id, by_id)}")
    return by_id[cell_id]


def select(cells: Iterable[Cell], expression: str) -> tuple[Cell, ...]:
    """Return the cells whose id matches an expression of names, `and`, `or`, `not` and parentheses.

    As for pytest's -k, a name matches every id that contains it, in capitals or not, so "rtx17" takes
    "rtx17-sm75" along, and an empty expression matches everything. Raises HandledError, naming the column,
    for an expression that cannot be read.
    """
    if not expression.strip():
        return tuple(cells)
    matches = _Expression(expression).parse()
    return tuple(cell for cell in cells if matches(cell.id))


_TOKEN = re.compile(r"[ \t]*(?:(?P<mark>[()])|(?P<name>[\w:+\-.\[\]\\/]+))")


class _Expression:
    """Recursive descent over pytest's -k grammar.

    Why not pytest's own: `_pytest.mark.expression` compiles to Python's `eval`, and this room knows no pytest. Some
    70 lines do it here, and tests/plan/test_plan.py holds them to pytest's answers on random expressions.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        self._next = 0
        position = 0
        end = len(text.rstrip())
        while position < end:
            token = _TOKEN.match(text, position)
            if token is None:
                column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
                raise self._error(column, f"the character {text[column - 1]!r} means nothing here")
            word = token["mark"] or token["name"]
            self._tokens.append((word, token.end() - len(word) + 1))
            position = token.end()

    def parse(self) -> Callable[[str], bool]:
        matches = self._either()
        if self._next < len(self._tokens):
            word, column = self._tokens[self._next]
            raise self._error(column, f"{word!r} follows without `and` or `or` before it")
        return matches

    def _either(self) -> Callable[[str], bool]:
        parts = [self._both()]
        while self._accept("or"):
            parts.append(self._both())
        return lambda name: any(part(name) for part in parts)

    def _both(self) -> Callable[[str], bool]:
        parts = [self._one()]
        while self._accept("and"):
            parts.append(self._one())
        return lambda name: all(part(name) for part in parts)

    def _one(self) -> Callable[[str], bool]:
        if self._accept("not"):
            inner = self._one()
            return lambda name: not inner(name)
        if self._accept("("):
            inner = self._either()
            if not self._accept(")"):
                raise self._unexpected("a closing parenthesis")
            return inner
        word, _ = self._peek()
        if word in ("", "and", "or", ")"):
            raise self._unexpected("a name")
        self._next += 1
        # Ids hold no capitals: the names of cases, variants and targets must not.
        return lambda name: word.lower() in name

    def _peek(self) -> tuple[str, int]:
        end = ("", len(self._text) + 1)
        return self._tokens[self._next] if self._next < len(self._tokens) else end

    def _accept(self, word: str) -> bool:
        found = self._peek()[0] == word
        self._next += found
        return found

    def _unexpected(self, wanted: str) -> HandledError:
        word, column = self._peek()
        where = f"before {word!r}" if word else "at the end"
        return self._error(column, f"{wanted} is missing {where}")

    def _error(self, column: int, sentence: str) -> HandledError:
        return HandledError(
            f"expression {self._text!r}, column {column}: {sentence}; write it like 'mish and not trt86'"
        )

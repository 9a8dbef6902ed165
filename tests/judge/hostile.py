"""Texts that are hard for a regular expression: made of its own parts, each cut short or repeated without end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

if sys.version_info >= (3, 11):
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_parse as parser


#: Repeated more often than this, a part counts as one without end.
_MANY = 50
#: Tried in this order for a character that a class holds.
_CHARACTERS = "a A1_ ,.:/()[]'\"\n-|>"
#: Neither the end of the line nor that of the text is where a pattern may end.
END = "\x00\nx"
_Parts = list[tuple[str, bool]]


def hostile(pattern: str, length: int) -> list[str]:
    """Return texts of about `length` characters that make a search start, or go on, at as many places as can be."""
    return [before + unit * (length // len(unit)) + END for before, unit in beginnings(pattern)]


def beginnings(pattern: str) -> list[tuple[str, str]]:
    """Return what such texts begin with, and what they then repeat."""
    tree: Any = parser.parse(pattern)
    units: set[tuple[str, str]] = set()
    for parts in _paths(tree):
        texts = [text for text, _ in parts]
        for index, (text, endless) in enumerate(parts):
            if endless:
                before = "".join(texts[:index])
                units |= {(before, text), ("", before + text), (before + text, " ")}
                units |= {
                    (before + text, text + "".join(texts[index + 1 : end]))
                    for end in range(index + 2, len(parts) + 1)
                }
    return [(before, unit) for before, unit in sorted(units) if unit]


def _paths(tree: Sequence[Any]) -> Iterator[_Parts]:
    """Yield the pattern as a row of parts, each with whether it is repeated without end; of alternatives one a row."""
    for number in range(_widest(tree)):
        yield list(_row(tree, number))
    for kind, value in tree:
        if str(kind) in ("ASSERT", "ASSERT_NOT"):
            yield from _paths(value[1])


def _widest(tree: Sequence[Any]) -> int:
    inner = [_widest(branch) for kind, value in tree for branch in _inside(str(kind), value)]
    own = [len(value[1]) for kind, value in tree if str(kind) == "BRANCH"]
    return max([2, *inner, *own])


def _inside(kind: str, value: Any) -> list[Any]:
    if kind == "BRANCH":
        return list(value[1])
    if kind == "SUBPATTERN":
        return [value[3]]
    return [value[2]] if kind in ("MAX_REPEAT", "MIN_REPEAT") else []


def _row(tree: Sequence[Any], number: int) -> Iterator[tuple[str, bool]]:
    for kind, value in tree:
        inside = _inside(str(kind), value)
        if str(kind) in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, _ = value
            if most > _MANY:
                yield "".join(text for text, _ in _row(inside[0], number)), True
            elif least or number % 2 == 0:
                yield from chain.from_iterable(_row(inside[0], number) for _ in range(max(1, least)))
        elif inside:
            yield from _row(inside[number % len(inside)], number)
        elif str(kind) in ("LITERAL", "IN", "ANY", "NOT_LITERAL"):
            yield _character(str(kind), value), False


def _character(kind: str, value: Any) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind == "ANY":
        return "a"
    if kind == "NOT_LITERAL":
        return next(character for character in _CHARACTERS if ord(character) != value)
    return next((character for character in _CHARACTERS if _holds(value, character)), "a")


def _holds(members: Sequence[Any], character: str) -> bool:
    negated = str(members[0][0]) == "NEGATE"
    return negated != any(_is(str(kind), value, character) for kind, value in members)


def _is(kind: str, value: Any, character: str) -> bool:
    if kind == "LITERAL":
        return bool(ord(character) == value)
    if kind == "RANGE":
        return bool(value[0] <= ord(character) <= value[1])
    found = {
        "CATEGORY_WORD": character.isalnum() or character == "_",
        "CATEGORY_DIGIT": character.isdigit(),
        "CATEGORY_SPACE": character.isspace(),
    }
    return found.get(str(value), False)

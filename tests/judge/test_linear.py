"""A pattern's search takes a time in proportion to the message, whatever the message is nearly like."""

from __future__ import annotations

import re
import sys
import time
import timeit
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pytest

from harness.judge import classify, complaints, diagnosis, findings, logs, tables
from harness.judge.complaints import find_place
from harness.judge.signatures import load_signatures
from harness.record.outcome import Node, ParserError
from tests.judge.said import found_id, outcome

pytestmark = pytest.mark.unit

#: A text that takes the square of this length takes some thousandths of a second or more.
LONG, TIMES = 8_000, 8
SLOW_SECONDS = 0.001
#: Between 8, the proportion, and 64, the square.
MOST = 24

#: These see the first 2,000 characters of a line alone, and so do those of engine.yaml.
SHORT = {"_CODE", "_PLACE", "_INTERFACE", "_CONDITION", "_PLUGIN"}
PATTERNS = (
    {
        f"{signature.id}-{number}-{kind}": regex.pattern
        for signature in load_signatures()
        for number, pattern in enumerate(signature.patterns)
        for kind, regex in (("", pattern.regex), ("near", pattern.near), ("unless", pattern.unless))
        if regex
    }
    | {
        f"{module.__name__}.{name}-{number}": regex.pattern
        for module in (classify, diagnosis, complaints, findings, logs, tables)
        for name, value in vars(module).items()
        for number, regex in enumerate(value if isinstance(value, tuple) else [value])
        if isinstance(regex, re.Pattern) and name not in SHORT
    }
    | {"died": tables.tables()["died"]["text"]}
)


def seconds(regex: re.Pattern[str], text: str, repeat: int = 1) -> float:
    """Return the processor's time for a search, the best of several."""
    return min(timeit.repeat(partial(regex.search, text), timer=time.process_time, repeat=repeat, number=1))


def growth(regex: re.Pattern[str]) -> float:
    """Return how many times the time for an eighth of it the slowest hostile text takes; 0 if all are fast."""
    texts = zip(hostile(regex.pattern, LONG), hostile(regex.pattern, LONG // TIMES), strict=True)
    slowest, short = max(texts, key=lambda pair: seconds(regex, pair[0]), default=("", ""))
    took = seconds(regex, slowest, 3)
    return took / max(seconds(regex, short, 3), 1e-6) if took > SLOW_SECONDS else 0.0


@pytest.mark.parametrize("name", PATTERNS)
def test_a_search_grows_with_the_message_and_no_faster(name: str) -> None:
    assert growth(re.compile(PATTERNS[name], re.ASCII)) < MOST


@pytest.mark.parametrize("text", [r"(?P<node>\S+) has no runners", r"undefined symbol: .*nvdla"])
def test_a_pattern_that_grows_faster_is_noticed(text: str) -> None:
    assert growth(re.compile(text)) > MOST


@pytest.mark.parametrize("unit", ["a", "a:", "Node a", "In node 1 with name: a ", " ", "\n", "("])
def test_a_long_message_is_diagnosed(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    said = outcome(("errors", text), ("parser", text), native_output=text, nodes=(Node("a", "Conv"),))
    assert complaints.fatal(said) is not None
    assert found_id(("errors", text), ("parser", text), ("warnings", text), native_output=text) is None


def test_the_places_of_a_thousand_refusals_are_not_all_looked_up() -> None:
    said = outcome(*(("errors", f"message {number}") for number in range(500)))
    refused = outcome(*(("parser", "refused") for _ in range(20_000)))
    both = outcome(parser_errors=refused.parser_errors, messages=said.messages)
    assert str(find_place(both, "refused")) == ""
    known = outcome(parser_errors=(ParserError("refused", operator="Mish", node="a"),) * 20_000)
    assert str(find_place(known, "refused")) == "Mish node 'a'"


if sys.version_info >= (3, 11):
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_parse as parser


#: Repeated more often than this, a part counts as one without end.
_MANY = 50
#: Tried in this order for a character that a class holds.
_CHARACTERS = "a A1_ ,.:/()[]'\"\n-|>"
#: A pattern may end neither at the end of the line nor at that of the text.
END = "\x00\nx"
_Parts = list[tuple[str, bool]]


def hostile(pattern: str, length: int) -> list[str]:
    """Return texts of about `length` characters that make a search start, or go on, at as many places as can be."""
    return [before + unit * (length // len(unit)) + END for before, unit in beginnings(pattern)]


def beginnings(pattern: str) -> list[tuple[str, str]]:
    """Return the beginnings of such texts, and the parts that they then repeat."""
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

"""A pattern's search takes a time in proportion to the message, whatever the message is nearly like."""

from __future__ import annotations

import re
import time
import timeit
from functools import partial

import pytest

from harness.judge import classify, complaints, diagnosis, findings, logs
from harness.judge.complaints import find_place
from harness.judge.signatures import load_signatures
from harness.record.outcome import Node, ParserError
from tests.judge.hostile import hostile
from tests.judge.said import found_id, outcome

pytestmark = pytest.mark.unit

#: A text that takes the square of this length takes some thousandths of a second or more.
LONG, TIMES = 8_000, 8
SLOW_SECONDS = 0.001
#: Between 8, the proportion, and 64, the square.
MOST = 24

PATTERNS = {
    f"{signature.id}-{number}-{kind}": regex.pattern
    for signature in load_signatures()
    for number, pattern in enumerate(signature.patterns)
    for kind, regex in (("", pattern.regex), ("near", pattern.near), ("unless", pattern.unless))
    if regex
} | {
    f"{module.__name__}.{name}-{number}": regex.pattern
    for module in (classify, diagnosis, complaints, findings, logs)
    for name, value in vars(module).items()
    for number, regex in enumerate(value if isinstance(value, tuple) else [value])
    if isinstance(regex, re.Pattern)
}


def seconds(regex: re.Pattern[str], text: str, repeat: int = 1) -> float:
    """Return the processor's time for a search, the best of several."""
    return min(timeit.repeat(partial(regex.search, text), timer=time.process_time, repeat=repeat, number=1))


def growth(regex: re.Pattern[str]) -> float:
    """Return how many times the time for an eighth of it the slowest hostile text takes; 0 where none is slow."""
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

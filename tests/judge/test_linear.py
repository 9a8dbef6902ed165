"""A pattern's search takes a time in proportion to the message, whatever the message is nearly like."""

from __future__ import annotations

import re
import time
import timeit
from collections.abc import Callable
from functools import partial

import pytest

from harness.judge import classify, complaints, diagnosis, findings, logs
from harness.judge.complaints import find_place
from harness.judge.signatures import load_signatures
from harness.record.outcome import Node, ParserError
from tests.judge.hostile import hostile
from tests.judge.said import found_id, outcome

pytestmark = pytest.mark.unit

#: A pattern that takes the square of this length takes a tenth of a second or more; any other, some hundredths.
LONG, TIMES = 40_000, 8
SLOW_SECONDS = 0.04
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


def growth(search: Callable[[str], object], short: str, long: str) -> float:
    """Return how many times the processor's time for the one text the other takes, the best of three each."""
    took = [
        min(timeit.repeat(partial(search, text), timer=time.process_time, repeat=3, number=1))
        for text in (short, long)
    ]
    return took[1] / max(took[0], 1e-6)


def slow(regex: re.Pattern[str]) -> list[str]:
    """Return the texts for which a search grows with more than their length."""
    found = []
    for number, long in enumerate(hostile(regex.pattern, LONG)):
        start = time.process_time()
        regex.search(long)
        if time.process_time() - start > SLOW_SECONDS:
            short = hostile(regex.pattern, LONG // TIMES)[number]
            if growth(regex.search, short, long) > MOST:
                found.append(long[:100])
    return found


@pytest.mark.parametrize("name", PATTERNS)
def test_a_search_grows_with_the_message_and_no_faster(name: str) -> None:
    assert slow(re.compile(PATTERNS[name], re.ASCII)) == []


@pytest.mark.long
@pytest.mark.parametrize("text", [r"(?P<node>\S+) has no runners", r"undefined symbol: .*nvdla"])
def test_a_pattern_that_grows_faster_is_noticed(text: str) -> None:
    assert slow(re.compile(text))


@pytest.mark.parametrize(
    "unit", ["a", "a:", "Node a", "ERROR: ", "In node 1 with name: a ", "only supports ", " ", "\n", "("]
)
def test_a_message_of_a_megabyte_is_diagnosed(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
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

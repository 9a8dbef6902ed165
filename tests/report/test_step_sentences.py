"""The numbers in the sentences of a step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from harness.report.compare.instead import Meanwhile
from harness.report.compare.sides import STACK, Side, SideTiming
from harness.report.compare.upgrade import judged
from harness.words import Class, Grade
from tests.report.handmade import FP16, INT8, pair, side, step, variant

if TYPE_CHECKING:
    from harness.report.compare.pairs import Pair
    from harness.report.compare.upgrade import Upgrade
    from harness.report.model import TargetView

pytestmark = pytest.mark.unit

OK, BUILT, LOST, FAILED = Class.OK, Class.BUILT, Class.PRECISION_LOST, Class.BUILD_FAILED
UNKNOWN = side(None, why="not run")

STAYS, BUILDS = pair(side(OK), side(OK)), pair(side(BUILT), side(BUILT))
BREAKS, FAILS = pair(side(OK), side(FAILED)), pair(side(FAILED), side(FAILED))
LOSES, WITHOUT = pair(side(BUILT), side(LOST)), pair(side(FAILED), side(LOST))
WIDENS = pair(side(OK, rest=(("x", "int8"),)), side(OK, rest=(("x", "fp32"),)))


def judge(*pairs: Pair, **columns: TargetView) -> Upgrade:
    return judged(step(*pairs, **columns), Meanwhile([(each.variant, each.new) for each in pairs], "new"))


@pytest.mark.parametrize(
    ("pairs", "clear", "numbers"),
    [
        ([], False, []),
        ([pair(side(OK), UNKNOWN), pair(UNKNOWN, side(OK))], False, []),
        ([BREAKS], False, [1, 1]),
        ([BREAKS, LOSES, LOSES, STAYS, pair(side(OK), UNKNOWN)], False, [1, 2, 4]),
        ([WITHOUT, WITHOUT, WIDENS, WIDENS], True, [4, 2, 2]),
        ([STAYS, BUILDS], True, [2]),
        ([FAILS], True, [1]),
    ],
)
def test_the_headline_counts_and_gives_an_all_clear_where_nothing_is_lost(
    pairs: list[Pair], clear: bool, numbers: list[int]
) -> None:
    headline = judge(*pairs).headline
    assert headline.startswith("Nothing that ") is clear
    assert [int(each) for each in re.findall(r"\d+", headline)] == numbers


BOX = SideTiming(1.0, ("monotonic", *STACK))


@pytest.mark.parametrize(
    ("news", "named"),
    [
        ([side(BUILT)], "new"),
        ([side(BUILT), side(BUILT), side(LOST), side(Class.CRASHED), UNKNOWN], "new"),
        ([side(BUILT), side(OK)], "new (1 variant)"),
        ([side(BUILT), side(BUILT), side(Class.INACCURATE)], "new (2 variants)"),
        ([side(BUILT), side(Class.LOAD_FAILED)], "new (1 variant)"),
        ([side(BUILT), side(Class.RUN_FAILED)], "new (1 variant)"),
        ([side(BUILT), side(LOST, timing=BOX)], "new (1 variant)"),
        ([side(BUILT), side(OK, grade=Grade.REPORTED)], "new"),
        ([side(OK)], ""),
        ([side(BUILT, grade=Grade.REPORTED), side(OK)], ""),
    ],
)
def test_what_was_built_and_not_run_is_said(news: list[Side], named: str) -> None:
    """With how many where others of the column were tried on a device; claims are not counted."""
    told = f"Built, not run, on {named}: numbers and latency were not measured." if named else ""
    found = judge(*(pair(side(OK), new) for new in news)).basis
    assert (
        found.partition("side: 1 measured, 1 reported. ")[2]
        or found.removesuffix("Known on both, by the less sure side: 1 measured, 1 reported.") == told
    )


@pytest.mark.parametrize(
    ("olds", "news", "said"),
    [
        ([True, False], [False, False], ["1"]),
        ([False, True], [True, False], ["2"]),
        ([False, True], [False, True], ["1"]),
        ([False, False], [False, False], []),
    ],
)
def test_flaky_variants_are_counted_once(olds: list[bool], news: list[bool], said: list[str]) -> None:
    def made(*, flaky: bool) -> Side:
        return side(OK, flaky=(OK, FAILED) if flaky else ())

    both = zip(olds, news, strict=True)
    found = judge(*(pair(made(flaky=old), made(flaky=new)) for old, new in both))
    assert re.findall(r"(\d+) variants? (?:is|are) flaky", found.basis) == said


def wants(*news: tuple[dict[str, Any], Side]) -> list[tuple[str, str]]:
    """Return the number of INT8 nodes that are wanted, and how many run so on the new column or why not."""
    found = judge(*(pair(UNKNOWN, new, of=variant(**wanted)) for wanted, new in news)).coverage
    return re.findall(r"of (\d+) that should: not told on old, (\d+|none|not told) on new", found)


TWO = {"a": INT8, "b": INT8}


@pytest.mark.parametrize(
    ("news", "said"),
    [
        ([({"a": FP16}, side(OK, nodes=("int8",)))], []),
        ([(TWO, side(LOST, nodes=("fp32", "int8")))], [("2", "1")]),
        ([(TWO, side(LOST, nodes=("", "fp32")))], [("2", "0")]),
        (
            [
                ({"a": FP16, "b": INT8, "c": INT8}, side(LOST, nodes=("int8", "int8", "fp32"))),
                ({"a": INT8}, side(FAILED)),
                (TWO, side(LOST, nodes=("fp32", "int8"))),
            ],
            [("5", "2")],
        ),
        ([({"a": INT8}, UNKNOWN)], [("1", "not told")]),
        ([({"a": INT8}, side(FAILED, grade=Grade.REPORTED))], [("1", "not told")]),
        ([({"a": INT8}, side(FAILED)), ({"a": INT8}, UNKNOWN)], [("2", "none")]),
        ([({"a": INT8}, side(FAILED)), ({"a": INT8}, side(OK))], [("2", "not told")]),
        ([({"a": INT8}, side(Class.INACCURATE))], [("1", "not told")]),
    ],
)
def test_int8_nodes_are_counted_where_they_are_told(news: list[Any], said: list[tuple[str, str]]) -> None:
    """What gives wrong numbers ran, in whatever precision; what is claimed to fail has not been tried."""
    assert wants(*news) == said


def timed(clock: str = "monotonic", **others: str) -> Side:
    stack = (clock, *(others.get(field, "same") for field in STACK))
    return side(OK, timing=SideTiming(1.0, stack, (1.0, 1.0)))


NOISY = side(OK, timing=SideTiming(1.0, ("monotonic", *("same" for _ in STACK))))
QUIET = pair(timed(), timed())
NOT_BOTH = [pair(side(OK), timed()), pair(timed(), side(OK)), pair(UNKNOWN, UNKNOWN)]


@pytest.mark.parametrize(
    ("pairs", "count", "left"),
    [
        (NOT_BOTH, 0, []),
        ([QUIET, QUIET, *NOT_BOTH], 2, []),
        ([pair(timed(), NOISY), pair(NOISY, timed())], 0, [("2", "noisy")]),
        (
            [
                QUIET,
                pair(timed(), timed(gpu="other", driver="other")),
                pair(timed(), timed("cuda_events", kernel="other")),
                pair(timed(), NOISY),
                pair(timed(), timed(), altered=True),
                pair(timed(), NOISY, altered=True),
                *NOT_BOTH,
            ],
            1,
            [("2", "stacks"), ("1", "noisy"), ("2", "model")],
        ),
    ],
)
def test_latencies_that_are_not_compared_are_counted_by_why(
    pairs: list[Pair], count: int, left: list[tuple[str, str]]
) -> None:
    found = judge(*pairs)
    reasons = found.timing.partition("left out: ")[2]
    counted: list[tuple[str, str]] = re.findall(r"(\d+) [a-z ]*?(stacks|noisy|model)", reasons)
    assert (found.timed, counted) == (count, left)


@pytest.mark.parametrize("field", STACK)
def test_each_part_of_the_stack_keeps_timings_apart(field: str) -> None:
    """What is not the engine, and may be faster for its own reasons."""
    found = judge(pair(timed(), timed(**{field: "other"})))
    assert (found.timed, f"({field} differ)" in found.timing) == (0, True)

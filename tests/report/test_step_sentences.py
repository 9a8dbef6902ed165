"""What a step amounts to, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.report.compare.instead import Meanwhile
from harness.report.compare.sides import STACK, Side, SideTiming
from harness.report.compare.upgrade import judged
from harness.report.graph import GraphView, NodeView
from harness.words import Class, Grade
from tests.report.handmade import FP16, INT8, pair, side, step, target, variant

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
    ("pairs", "text"),
    [
        (
            [],
            "Nobody has run old or new; no report speaks of them, so what this step does is not known.",
        ),
        (
            [pair(side(OK), UNKNOWN), pair(UNKNOWN, side(OK))],
            "Nothing is known on both old and new, so nothing can be said.",
        ),
        ([BREAKS], "Going to new breaks 1 of 1 variants known on both."),
        ([LOSES, LOSES, STAYS], "Going to new loses the precision of 2 of 3 variants known on both."),
        (
            [BREAKS, LOSES, LOSES, STAYS, pair(side(OK), UNKNOWN)],
            "Going to new breaks 1 and loses the precision of 2 of 4 variants known on both.",
        ),
        (
            [BREAKS, WITHOUT, WIDENS],
            (
                "Going to new breaks 1 of 3 variants known on both; "
                "1 that failed before now builds without its precision; "
                "1 gives up a narrow type that nobody asked for."
            ),
        ),
        (
            [WITHOUT, WITHOUT, WIDENS, WIDENS],
            (
                "Nothing that works on old breaks or loses precision on new, of 4 variants known on both; "
                "2 that failed before now build without their precision; "
                "2 give up a narrow type that nobody asked for."
            ),
        ),
        (
            [STAYS, BUILDS],
            (
                "Nothing that works or builds on old breaks or loses precision on new, "
                "of 2 variants known on both."
            ),
        ),
        (
            [BUILDS, FAILS],
            "Nothing that builds on old breaks or loses precision on new, of 2 variants known on both.",
        ),
        (
            [FAILS],
            "Nothing that works on old breaks or loses precision on new, of 1 variants known on both.",
        ),
    ],
)
def test_the_headline_answers(pairs: list[Pair], text: str) -> None:
    assert judge(*pairs).headline == text


def test_what_was_not_run_is_no_basis() -> None:
    """A column is named once, whatever is claimed of it."""
    old, new = target("old", stamps=None), target("new", stamps=None)
    assert judge(STAYS).basis == ""
    assert judge(STAYS, old=old, new=new).basis == "Not run for this report: old and new."
    assert judge(STAYS, old=old, new=replace(old)).basis == "Not run for this report: old."
    assert judge(pair(side(), side(OK)), old=old).basis == "Not run for this report: old."


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


def test_both_columns_may_have_been_built_alone() -> None:
    assert judge(BUILDS).basis == "Built, not run, on old and new: numbers and latency were not measured."


@pytest.mark.parametrize(
    ("olds", "news", "said"),
    [
        ([True, False], [False, False], "1 variant is flaky on old."),
        ([False, True], [True, False], "2 variants are flaky on old or new."),
        ([False, True], [False, True], "1 variant is flaky on old or new."),
        ([False, False], [False, False], ""),
    ],
)
def test_flaky_variants_are_counted_once(olds: list[bool], news: list[bool], said: str) -> None:
    def made(*, flaky: bool) -> Side:
        return side(OK, flaky=(OK, FAILED) if flaky else ())

    both = zip(olds, news, strict=True)
    assert judge(*(pair(made(flaky=old), made(flaky=new)) for old, new in both)).basis == said


def wants(*news: tuple[dict[str, Any], Side]) -> str:
    """Return what is said of the INT8 nodes of variants on the new column; the old one knows of none."""
    found = judge(*(pair(UNKNOWN, new, of=variant(**wanted)) for wanted, new in news)).coverage
    return found.replace("not told on old, ", "")


TWO = {"a": INT8, "b": INT8}


@pytest.mark.parametrize(
    ("news", "said"),
    [
        ([({}, side(OK))], ""),
        ([({"a": FP16}, side(OK, nodes=("int8",)))], ""),
        (
            [(TWO, side(OK, nodes=("int8", "int8")))],
            "Nodes that run in INT8, of 2 that should: 2 on new (Conv 2).",
        ),
        (
            [(TWO, side(LOST, nodes=("fp32", "int8")))],
            "Nodes that run in INT8, of 2 that should: 1 on new (Conv 1).",
        ),
        (
            [(TWO, side(LOST, nodes=("", "fp32")))],
            "Nodes that run in INT8, of 2 that should: 0 on new.",
        ),
        (
            [
                ({"a": FP16, "b": INT8, "c": INT8}, side(LOST, nodes=("int8", "int8", "fp32"))),
                ({"a": INT8}, side(FAILED)),
                (TWO, side(LOST, nodes=("fp32", "int8"))),
            ],
            "Nodes that run in INT8, of 5 that should: 2 on new (Conv 2).",
        ),
        ([({"a": INT8}, UNKNOWN)], "Nodes that run in INT8, of 1 that should: not told on new."),
        (
            [({"a": INT8}, side(FAILED, grade=Grade.REPORTED))],
            "Nodes that run in INT8, of 1 that should: not told on new.",
        ),
        (
            [({"a": INT8}, side(FAILED)), ({"a": INT8}, UNKNOWN), ({"a": FP16}, side(OK))],
            (
                "Nodes that run in INT8, of 2 that should: "
                "none on new (every variant measured there that wants INT8 fails)."
            ),
        ),
        (
            [({"a": INT8}, side(FAILED)), ({"a": INT8}, side(OK))],
            "Nodes that run in INT8, of 2 that should: not told on new.",
        ),
        (
            [({"a": INT8}, side(Class.INACCURATE))],
            "Nodes that run in INT8, of 1 that should: not told on new.",
        ),
    ],
)
def test_int8_nodes_are_counted_where_they_are_told(news: list[Any], said: str) -> None:
    """What gives wrong numbers ran, in whatever precision; what is claimed to fail has not been tried."""
    assert wants(*news) == said


def test_int8_nodes_are_counted_by_operator() -> None:
    """By name; a node that the graph does not have, as it may be too large to be drawn, is a question mark."""
    nodes = tuple(
        NodeView(name, op, (), ()) for name, op in (("a", "MatMul"), ("b", "Conv"), ("c", "MatMul"))
    )
    mixed = replace(variant(a=INT8, b=INT8, c=INT8, d=INT8), graph=GraphView(nodes))
    both = side(OK, nodes=("int8",) * 4)
    assert judge(pair(both, both, of=mixed)).coverage == (
        "Nodes that run in INT8, of 4 that should: "
        "4 on old (? 1, Conv 1, MatMul 2), 4 on new (? 1, Conv 1, MatMul 2)."
    )


def timed(clock: str = "monotonic", **others: str) -> Side:
    stack = (clock, *(others.get(field, "same") for field in STACK))
    return side(OK, timing=SideTiming(1.0, stack, (1.0, 1.0)))


NOISY = side(OK, timing=SideTiming(1.0, ("monotonic", *("same" for _ in STACK))))
QUIET = pair(timed(), timed())
NOT_BOTH = [pair(side(OK), timed()), pair(timed(), side(OK)), pair(UNKNOWN, UNKNOWN)]


@pytest.mark.parametrize(
    ("pairs", "count", "said"),
    [
        (NOT_BOTH, 0, "Latency is not compared: no variant was timed on both."),
        ([QUIET, QUIET, *NOT_BOTH], 2, "Latency is compared for 2 of 2 variants timed on both."),
        (
            [pair(timed(), NOISY), pair(NOISY, timed())],
            0,
            "Latency is compared for none of 2 variants timed on both; left out: 2 too noisy.",
        ),
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
            (
                "Latency is compared for 1 of 6 variants timed on both; "
                "left out: 2 timed on different stacks (clock, kernel, gpu, driver differ), 1 too noisy, "
                "2 of another model or recipe."
            ),
        ),
    ],
)
def test_latencies_that_are_not_compared_are_counted_by_why(pairs: list[Pair], count: int, said: str) -> None:
    found = judge(*pairs)
    assert (found.timed, found.timing) == (count, said)


@pytest.mark.parametrize("field", STACK)
def test_each_part_of_the_stack_keeps_timings_apart(field: str) -> None:
    """What is not the engine, and may be faster for its own reasons."""
    found = judge(pair(timed(), timed(**{field: "other"})))
    assert found.timing.endswith(f"left out: 1 timed on different stacks ({field} differ).")

"""A step as it is judged: its rows, its numbers, and which step is shown first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.report.compare.choices import choice, later
from harness.report.compare.instead import Meanwhile
from harness.report.compare.kinds import Kind
from harness.report.compare.pairs import Pair
from harness.report.compare.rows import Row, change
from harness.report.compare.sentences import basis
from harness.report.compare.sides import Side, SideTiming
from harness.report.compare.upgrade import Upgrade, default_pair, judged
from harness.report.model import Results
from harness.words import Class, Grade, Role
from tests.report.handmade import pair, side, step, target, variant

pytestmark = pytest.mark.unit

OK, BUILT, LOST, FAILED = Class.OK, Class.BUILT, Class.PRECISION_LOST, Class.BUILD_FAILED
WRONG, CRASHED = Class.INACCURATE, Class.CRASHED
UNKNOWN = side(None, why="not run")
HELP = "c.remedy works, measured"
REMEDY = replace(variant("remedy"), role=Role.WORKAROUND, counterpart="v")


def judge(*pairs: Pair) -> Upgrade:
    """Return the step of these pairs, for all of which there is a remedy that works."""
    rows = [*((each.variant, each.new) for each in pairs), (REMEDY, side(OK))]
    return judged(step(*pairs), Meanwhile(rows, "new"))


def timed(median: float, cls: Class = OK, **fields: Any) -> Side:
    return side(cls, timing=SideTiming(median, ("monotonic",), (median, median)), **fields)


def test_the_rows_and_counts_of_a_step() -> None:
    """Worst first; what makes no row is counted."""
    pairs = [
        pair(timed(1.0), timed(2.0), of=variant("slow")),
        pair(side(FAILED, why="no tactic"), side(OK), of=variant("mended")),
        pair(side(BUILT), side(FAILED, why="no tactic"), of=variant("v")),
        *(pair(UNKNOWN, UNKNOWN, of=variant(name)) for name in "abcd"),
        *(pair(side(OK), side(OK), of=variant(name)) for name in "efg"),
        *(pair(UNKNOWN, side(OK), of=variant(name)) for name in "hi"),
        pair(side(OK), side(None, why="does not apply"), of=variant("j")),
    ]
    found = judge(*pairs)
    assert [(row.kind, row.variant, row.cause, row.measured) for row in found.rows] == [
        (Kind.BROKEN, "v", "no tactic", True),
        (Kind.SLOWER, "slow", "", True),
        (Kind.FIXED, "mended", "no tactic", True),
    ]
    assert (found.same, found.added, found.dropped, found.unknown, found.open) == (3, 2, 1, 4, 0)
    assert (found.known, found.timed, found.breaks) == (6, 1, True)


def test_a_defect_that_is_reported_of_the_new_version_alone_is_told_though_no_variant_shows_it() -> None:
    """Neither where the old version has it too, nor where a variant shows it, nor of another product."""

    def met(before: str, after: str, engine: str = "tensorrt", **shown: Any) -> Upgrade:
        ends = (target("old", before, engine=engine), target("new", after, engine=engine))
        rows = pair(side(OK), side(OK, **shown))
        return judged(step(rows, old=ends[0], new=ends[1]), Meanwhile([(rows.variant, rows.new)], "new"))

    found = met("10.0.1", "10.3.0.26")
    (one,) = found.troubles
    assert one.id == "check-links"
    gone = {"bindings-removed", "workspace-size-removed", "build-engine-removed"}
    many = met("8.6.1", "10.3.0.26").troubles
    assert {each.id for each in many} == gone | {"check-links"}
    assert "DeepStream-Yolo issue 585" in one.seen
    assert "Orin" not in one.seen
    for other in (
        met("10.3.0", "10.3.0.26"),
        met("10.0.1", "10.7.0"),
        met("10.0.1", "10.3.0", "tensorrt_rtx"),
        met("10.0.1", "10.3.0.26", signature="check-links"),
    ):
        assert other.troubles == ()


def test_rows_stand_in_the_order_of_the_page() -> None:
    """Of a variant with two, the latency comes later."""
    narrow, wide = (("x", "int8"),), (("x", "fp32"),)
    assert [str(row.kind) for row in judge(
        pair(timed(2.0, LOST), timed(1.0)),
        pair(side(rest=wide), side(rest=narrow)),
        pair(side(FAILED), side(OK)),
        pair(side(FAILED), side(CRASHED)),
        pair(side(OK), UNKNOWN),
        pair(timed(1.0), timed(2.0)),
        pair(side(rest=narrow), side(rest=wide)),
        pair(side(FAILED), side(LOST)),
        pair(side(OK), side(LOST)),
        pair(side(OK), side(FAILED)),
    ).rows] == [
        "broken",
        "precision_lost",
        "builds_without",
        "wider",
        "slower",
        "otherwise",
        "fixed",
        "precision_gained",
        "narrower",
        "faster",
        "newly_unknown",
    ]  # fmt: skip


def only(found: Pair) -> Row:
    (row,) = judge(found).rows
    return row


BEFORE, AFTER = "before", "after"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (side(OK), side(CRASHED, why=AFTER), ("broken", "works → crashes", AFTER, HELP)),
        (side(OK), side(LOST, why=AFTER), ("precision_lost", "works → loses precision", AFTER, HELP)),
        (
            side(FAILED, why=BEFORE),
            side(LOST),
            ("builds_without", "fails to build → builds without its precision", "", HELP),
        ),
        (side(OK), UNKNOWN, ("newly_unknown", "works → not run", "", "")),
        (
            side(FAILED, why=BEFORE),
            side(CRASHED, why=AFTER),
            ("otherwise", "fails to build → crashes", AFTER, HELP),
        ),
        (side(FAILED, why=BEFORE), side(OK), ("fixed", "fails to build → works", BEFORE, "")),
        (side(LOST, why=BEFORE), side(OK), ("precision_gained", "loses precision → works", BEFORE, "")),
        (timed(1.0), timed(1.5), ("slower", "median 1 ms → 1.5 ms, 50 % slower", "", "")),
        (timed(1.5), timed(1.0), ("faster", "median 1.5 ms → 1 ms, 33 % faster", "", "")),
    ],
)
def test_a_row_says_why_and_what_to_use_meanwhile(old: Side, new: Side, told: tuple[str, ...]) -> None:
    """The cause of what is mended was before; what works needs no remedy."""
    row = only(pair(old, new))
    assert (str(row.kind), row.text, row.cause, row.instead) == told


def test_a_variant_may_have_a_row_of_its_latency_beside_another() -> None:
    found = judge(pair(timed(2.0, LOST), timed(1.0)))
    assert [row.text for row in found.rows] == ["loses precision → works", "median 2 ms → 1 ms, 50 % faster"]


SWAYING = (OK, CRASHED)


@pytest.mark.parametrize(
    ("found", "text", "sure", "measured"),
    [
        (pair(side(OK), side(CRASHED)), "", "measured", True),
        (
            pair(side(OK, flaky=SWAYING), side(CRASHED, flaky=SWAYING)),
            "; flaky on old (ok, crashed); flaky on new (ok, crashed)",
            "measured; flaky on old and new",
            True,
        ),
        (
            pair(side(OK), side(CRASHED, flaky=SWAYING), altered=True),
            "; flaky on new (ok, crashed)",
            "measured; flaky on new; model or recipe changed",
            True,
        ),
        (
            pair(side(OK, grade=Grade.REPORTED, graded="reported by users"), side(CRASHED)),
            "",
            "old reported by users, new measured",
            False,
        ),
        (pair(side(OK), UNKNOWN), "", "measured", True),
    ],
)
def test_a_row_says_how_sure_it_is(found: Pair, text: str, sure: str, measured: bool) -> None:
    """Measured where both sides are, of those of which something is known; only that fails a step."""
    row = only(found)
    assert (row.text.partition(";")[1] + row.text.partition(";")[2], row.sure, row.measured) == (
        text,
        sure,
        measured,
    )
    assert judge(found).breaks is (measured and row.kind is Kind.BROKEN)


DASH = "\N{EN DASH}"


def test_what_fails_where_nothing_was_known_is_named_and_no_all_clear() -> None:
    """By name, with how sure it is: what only loses precision too, and what builds well not."""
    found = judge(
        pair(UNKNOWN, side(LOST)),
        pair(UNKNOWN, side(FAILED)),
        pair(UNKNOWN, side(OK)),
        pair(side(OK), side(OK)),
    )
    assert len(found.alone) == 2
    assert "2 more fail" in found.headline


def test_a_step_to_another_product_is_no_upgrade() -> None:
    same = pair(side(OK), side(OK))
    assert basis(step(same)) == ""
    found = basis(step(same, old=target("old", engine="tensorrt")))
    assert found == "old is TensorRT and new is TensorRT for RTX: different products, so this is no upgrade."


@pytest.mark.parametrize(
    ("timed_on_both", "slower", "faster"),
    [([], DASH, DASH), ([pair(timed(1.0), timed(2.0))], "1", "0")],
)
def test_the_numbers_on_top(timed_on_both: list[Pair], slower: str, faster: str) -> None:
    """Every kind has one; how many are slower or faster is not known where no latency was compared."""
    broken = pair(side(OK), side(CRASHED))
    numbers = {tile.kind: tile.number for tile in judge(broken, broken, *timed_on_both).tiles()}
    assert numbers == {**dict.fromkeys(Kind, "0"), Kind.BROKEN: "2", Kind.SLOWER: slower, Kind.FASTER: faster}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (timed(1.0), timed(1.0), "≈+0 %"),
        (timed(1.0), timed(1.125), "≈+13 %"),
        (timed(1.0), timed(0.9921875), "≈\N{MINUS SIGN}1 %"),
        (timed(1.0), timed(0.5), "\N{MINUS SIGN}50 %"),
        (timed(1.0), timed(3.0), "+200 %"),
        (timed(2.0), timed(2.5), "≈+25 %"),
        (timed(1.0), timed(1.125, LOST), "≈+13 %"),
        (timed(1.0), timed(2.0, LOST), "+100 %"),
        (timed(1.0), side(OK), ""),
        (side(OK), timed(1.0), ""),
    ],
)
def test_the_change_of_a_median(old: Side, new: Side, said: str) -> None:
    """Rounded halves up, and about so where runs of one machine differ as much, whatever else changed."""
    assert change(pair(old, new)) == said


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ("", ("", "")),
        ("a1", ("a1", "a1")),
        ("a1 b1 d1 e1", ("a1", "e1")),
        ("a1* b1* d1* e1*", ("a1", "e1")),
        ("a1 a2 a3", ("a2", "a3")),
        ("a3* a1* a2*", ("a2", "a3")),
        ("a1* a2* a3", ("a1", "a2")),
        ("a1* a2 a3 b1 b2", ("a2", "a3")),
        ("a1 a2 a3 b1* b2*", ("b1", "b2")),
        ("a1* a2* b1* b2* b3*", ("b2", "b3")),
        ("a9* a10*", ("a9", "a10")),
    ],
)
def test_the_step_that_is_shown_first(columns: str, shown: tuple[str, str]) -> None:
    """The two newest measured ones (*) of the series with most of them; the first and the last where none has two."""
    targets = tuple(
        target(name, f"1.{name[1:]}", series=name[0], **({} if star else {"stamps": None}))
        for name, star, _ in (each.partition("*") for each in columns.split())
    )
    assert default_pair(Results(targets, (), ())) == shown


@pytest.mark.parametrize(
    ("measured", "shown"),
    [
        ({"r1", "r2", "r3"}, ("r2", "r3")),
        ({"r1", "r2", "r3", "t1"}, ("r2", "r3")),
        ({"r1", "r2", "r3", "t1", "t2"}, ("t1", "t2")),
    ],
)
def test_two_measured_versions_of_tensorrt_itself_are_shown_before_more_of_another_product(
    measured: set[str], shown: tuple[str, str]
) -> None:
    targets = tuple(
        target(
            name,
            f"1.{name[1]}",
            series=name[0],
            engine="tensorrt" if name[0] == "t" else "tensorrt_rtx",
            **({} if name in measured else {"stamps": None}),
        )
        for name in ("r1", "r2", "r3", "t1", "t2")
    )
    assert default_pair(Results(targets, (), ())) == shown


def test_a_step_is_counted_by_grade_to_choose_a_version_by() -> None:
    """A dash where nothing is known of both; nothing at all where nobody knows anything."""
    claimed = {"grade": Grade.REPORTED, "graded": "reported by users", "seen": "reported by users in T"}
    fails = pair(side(OK), side(CRASHED, **claimed))
    found = judge(
        fails, pair(side(OK), side(CRASHED)), pair(side(CRASHED), side(OK)), pair(UNKNOWN, side(LOST))
    )
    assert choice(found) == ("3", "1 measured, 1 reported", "0", "1 measured", "1 measured", "0")
    assert choice(judge(pair(UNKNOWN, side(LOST)))) == ("0", DASH, DASH, "1 measured", DASH, "0")
    assert choice(judge(pair(side(OK), UNKNOWN))) == ()


def test_later_versions_are_those_of_the_series_in_their_order() -> None:
    targets = tuple(
        target(name, f"1.{name[1:]}", series=name[0]) for name in ("a10", "a9", "a1", "b11", "a2")
    )
    assert later(Results(targets, (), ()), "a2") == ["a9", "a10"]
    assert later(Results(targets, (), ()), "a10") == []

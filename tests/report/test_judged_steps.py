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
from harness.report.compare.upgrade import Tile, Upgrade, default_pair, judged
from harness.report.model import Results
from harness.words import Class, Grade, Precision, Role
from tests.report.handmade import INT8, pair, side, step, target, variant

pytestmark = pytest.mark.unit

OK, BUILT, LOST, FAILED = Class.OK, Class.BUILT, Class.PRECISION_LOST, Class.BUILD_FAILED
WRONG, CRASHED = Class.INACCURATE, Class.CRASHED
UNKNOWN = side(None, why="not run")
HELP = "c[remedy] works, measured"
REMEDY = replace(variant("remedy"), role=Role.WORKAROUND, counterpart="v")


def judge(*pairs: Pair) -> Upgrade:
    """Return the step of these pairs, for all of which there is a remedy that works."""
    rows = [*((each.variant, each.new) for each in pairs), (REMEDY, side(OK))]
    return judged(step(*pairs), Meanwhile(rows, "new"))


def timed(median: float, cls: Class = OK, **fields: Any) -> Side:
    return side(cls, timing=SideTiming(median, ("monotonic",), (median, median)), **fields)


def test_a_judged_step_is_told_in_full() -> None:
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
    assert found == Upgrade(
        before="old",
        after="new",
        rows=(
            Row(Kind.BROKEN, "c", "v", "builds → fails to build", "no tactic", HELP, "measured", measured=True),
            Row(Kind.SLOWER, "c", "slow", "median 1 ms → 2 ms, 100 % slower", "", "", "measured", measured=True),
            Row(Kind.FIXED, "c", "mended", "fails to build → works", "no tactic", "", "measured", measured=True),
        ),
        same=3,
        added=2,
        dropped=1,
        unknown=4,
        open=0,
        known=6,
        timed=1,
        headline="Going to new breaks 1 of 6 variants known on both.",
        basis="Built, not run, on old (1 variant): numbers and latency were not measured.",
        coverage="",
        timing="Latency is compared for 1 of 1 variants timed on both.",
    )  # fmt: skip
    assert found.breaks
    assert found.quiet == (
        "3 variants are the same on both, 2 known on new alone, 1 known on old but not applicable to new, "
        "4 known on neither. Latency is compared for 1 of 1 variants timed on both."
    )


def test_a_defect_that_is_reported_of_the_new_version_alone_is_told_though_no_variant_shows_it() -> None:
    """Neither where the old version has it too, nor where a variant shows it, nor of another product."""

    def met(before: str, after: str, engine: str = "tensorrt", **shown: Any) -> Upgrade:
        ends = (target("old", before, engine=engine), target("new", after, engine=engine))
        rows = pair(side(OK), side(OK, **shown))
        return judged(step(rows, old=ends[0], new=ends[1]), Meanwhile([(rows.variant, rows.new)], "new"))

    found = met("10.0.1", "10.3.0.26")
    (one,) = found.troubles
    assert (one.id, one.title) == ("check-links", "The builder of 10.3 loses a region in implicit INT8")
    gone = {"bindings-removed", "workspace-size-removed", "build-engine-removed"}
    many = met("8.6.1", "10.3.0.26").troubles
    assert {each.id for each in many} == gone | {"check-links"}
    # What only a failure tells is left out.
    assert "What set the workspace is gone" in {each.title for each in many}
    assert not any("<" in each.title for each in many)
    assert one.seen.startswith("reported by users in DeepStream-Yolo issue 585: a YOLOv8s under DeepStream")
    assert "Orin" not in one.seen
    assert found.headline.endswith(" 1 more trouble is reported of new that no variant here shows.")
    for other in (
        met("10.3.0", "10.3.0.26"),
        met("10.0.1", "10.7.0"),
        met("10.0.1", "10.3.0", "tensorrt_rtx"),
        met("10.0.1", "10.3.0.26", signature="check-links"),
    ):
        assert other.troubles == ()
        assert "trouble" not in other.headline


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


def wide(low: float, high: float) -> Side:
    return side(OK, timing=SideTiming(1.0, ("monotonic",), (low, high)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (wide(1.0, 1.0), wide(1.5, 1.75), "50 to 75 % slower"),
        (wide(1.0, 1.0), wide(1.506, 1.514), "51 % slower"),
        (wide(1.0, 1.0), wide(0.25, 0.5), "50 to 75 % faster"),
        (wide(1.0, 1.0), wide(1.375, 1.625), "38 to 63 % slower"),
    ],
)
def test_a_change_of_latency_lies_between_two_bounds(old: Side, new: Side, said: str) -> None:
    """Rounded halves up; bounds that are the same in percent are one number."""
    assert only(pair(old, new)).text == f"median 1 ms → 1 ms, {said}"


FIVE: dict[str, Precision] = dict.fromkeys("pqrst", INT8)
STEADY = side(nodes=("int8",) * 5)


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        ("fp32 int8 int8 int8 int8", "p in fp32 instead of int8"),
        (
            "fp32 fp16 int4_weights int8 int8",
            "p in fp32 instead of int8, q in fp16 instead of int8, r in int4 weights instead of int8",
        ),
        (
            "int8 fp32 fp32 fp32 fp32",
            "q in fp32 instead of int8, r in fp32 instead of int8, s in fp32 instead of int8 and 1 more",
        ),
        (
            "fp32 fp32 fp32 fp32 fp32",
            "p in fp32 instead of int8, q in fp32 instead of int8, r in fp32 instead of int8 and 2 more",
        ),
        (". . int8 fp32 int8", "s in fp32 instead of int8"),
    ],
)
def test_three_nodes_that_lost_their_precision_are_named(nodes: str, named: str) -> None:
    """The others are counted; what is not told is not lost."""
    new = side(LOST, nodes=tuple(node.removeprefix(".") for node in nodes.split()))
    lost = only(pair(STEADY, new, of=variant(**FIVE)))
    assert (lost.kind, lost.text) == (Kind.PRECISION_LOST, f"builds → loses precision: {named}")
    silent = only(pair(side(FAILED), new, of=variant(**FIVE)))
    assert silent.text == f"fails to build → builds without its precision: {named}"
    wrong = only(pair(STEADY, replace(new, cls=WRONG), of=variant(**FIVE)))
    assert wrong.text == "builds → gives wrong numbers"


REST = tuple((name, "int8") for name in "wxyz")
WIDER = tuple((name, "int8_weights") for name in "wxyz")
CROSSED = "w int8 → int8 weights, x int8 → int8 weights, y int8 → int8 weights and 1 more"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (side(rest=REST), side(rest=WIDER), f"builds → builds: {CROSSED}"),
        (side(rest=WIDER[:1]), side(rest=REST[:1]), "builds → builds: w int8 weights → int8"),
        (
            side(nodes=("int8",), rest=REST),
            side(LOST, nodes=("fp16",), rest=WIDER),
            f"builds → loses precision: a in fp16 instead of int8; not asked for: {CROSSED}",
        ),
        (
            side(LOST, nodes=("fp16",), rest=REST[:1]),
            side(OK, nodes=("int8",), rest=WIDER[:1]),
            "loses precision → works: not asked for: w int8 → int8 weights",
        ),
    ],
)
def test_nodes_that_nobody_asked_for_are_named_as_such_beside_others(old: Side, new: Side, text: str) -> None:
    assert only(pair(old, new, of=variant(a=INT8))).text == text


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
            pair(side(OK), side(CRASHED, grade=Grade.GUESSED, graded="guessed")),
            "",
            "old measured, new guessed",
            False,
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
    assert [one.said for one in found.alone] == ["Precision lost, measured", "Build failed, measured"]
    assert found.headline.endswith(
        "But 2 more fail or lose precision on new, and nothing is known of old there."
    )
    assert "3 known on new alone (2 of them to fail or lose precision)" in found.rest


def test_the_headline_tells_of_guesses_that_something_builds_without_precision() -> None:
    guess = side(LOST, grade=Grade.GUESSED)
    found = judge(pair(side(FAILED), guess), pair(side(FAILED), guess))
    assert found.headline.endswith("; 2 that failed before now build without their precision.")


def test_a_step_to_another_product_is_no_upgrade() -> None:
    same = pair(side(OK), side(OK))
    assert basis(step(same)) == ""
    found = basis(step(same, old=target("old", engine="tensorrt")))
    assert found == "old is TensorRT and new is TensorRT for RTX: different products, so this is no upgrade."


def test_a_number_on_top_says_what_it_rests_on_and_what_it_leaves_out() -> None:
    """A loss that is named below, with nothing known before, is no 0 without a word."""
    claimed = {"grade": Grade.REPORTED, "graded": "reported by users", "seen": "reported by users in T"}
    lost = pair(UNKNOWN, side(LOST, **claimed))
    breaks = pair(side(OK), side(CRASHED, **claimed))
    labels = {str(tile.kind): (tile.number, tile.label) for tile in judge(lost, breaks).tiles()}
    assert labels["precision_lost"] == ("0", "Loses precision; 1 more with nothing known before")
    assert labels["broken"] == ("1", "Breaks, reported")
    more = judge(breaks, pair(side(OK), side(CRASHED)), pair(UNKNOWN, side(CRASHED))).tiles()
    assert (more[0].number, more[0].label) == ("2", "Breaks, 1 reported; 1 more with nothing known before")
    gone = judge(pair(side(OK, **claimed), UNKNOWN)).tiles()[-1]
    assert (gone.number, gone.label) == ("1", "Nothing known after")


@pytest.mark.parametrize(
    ("timed_on_both", "slower", "faster"),
    [
        ([], (DASH, "Slower, not compared", 0), (DASH, "Faster, not compared", 0)),
        ([pair(timed(1.0), timed(2.0))], ("1", "Slower", 1), ("0", "Faster", 0)),
    ],
)
def test_the_numbers_on_top(
    timed_on_both: list[Pair], slower: tuple[str, str, int], faster: tuple[str, str, int]
) -> None:
    """Every kind has one; how many are slower or faster is not known where no latency was compared."""
    broken = pair(side(OK), side(CRASHED))
    assert judge(broken, broken, *timed_on_both).tiles() == [
        Tile(Kind.BROKEN, "2", "Breaks", 2),
        Tile(Kind.PRECISION_LOST, "0", "Loses precision", 0),
        Tile(Kind.BUILDS_WITHOUT, "0", "Builds without precision", 0),
        Tile(Kind.WIDER, "0", "Wider type", 0),
        Tile(Kind.SLOWER, *slower),
        Tile(Kind.OTHERWISE, "0", "Fails in another way", 0),
        Tile(Kind.FIXED, "0", "Now works", 0),
        Tile(Kind.PRECISION_GAINED, "0", "Keeps precision now", 0),
        Tile(Kind.NARROWER, "0", "Narrower type", 0),
        Tile(Kind.FASTER, *faster),
        Tile(Kind.NEWLY_UNKNOWN, "0", "Nothing known after", 0),
    ]


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

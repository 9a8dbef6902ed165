"""What to use in place of a variant that does not work on a column."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.report.compare.instead import Meanwhile
from harness.report.compare.sides import Side
from harness.report.compare.steps import Steps
from harness.words import Class, Grade, Role
from tests.report.handmade import cell, results, side, target, variant

if TYPE_CHECKING:
    from harness.report.model import VariantView

pytestmark = pytest.mark.unit

WORKS, FAILS = side(Class.OK), side(Class.CRASHED)
CLAIMED = side(Class.OK, grade=Grade.REPORTED, graded="reported by users")
CLAIMED_TO_FAIL = side(Class.CRASHED, grade=Grade.REPORTED, graded="reported by users")
UNKNOWN = side(None, why="not run")
BECAUSE = "; named because it puts the advice to the test"
NONE_KNOWN = "no workaround of it is known here"

Entry = tuple["VariantView", Side]


def row(
    name: str, known: Side, of: str | None = None, role: Role = Role.REPRODUCER, case: str = "c"
) -> Entry:
    return replace(variant(name), case=case, role=role, counterpart=of), known


def remedy(name: str, known: Side, of: str | None = "v") -> Entry:
    return row(name, known, of, Role.WORKAROUND)


V = row("v", FAILS)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([V], NONE_KNOWN),
        ([V, remedy("a", WORKS)], "c.a works, measured"),
        (
            [V, remedy("a", WORKS), remedy("b", WORKS), remedy("d", WORKS)],
            "c.a works, measured; c.b works, measured",
        ),
        ([V, remedy("a", CLAIMED), remedy("b", WORKS)], "c.b works, measured"),
        ([V, remedy("a", CLAIMED), remedy("b", FAILS)], "c.a works, reported by users"),
        ([V, remedy("a", side(Class.BUILT, chip="INT8 1/1"))], "c.a builds (INT8 1/1), measured"),
        ([V, remedy("a", FAILS), remedy("b", FAILS)], "none of 2 known here works on new"),
        (
            [V, remedy("a", FAILS), remedy("b", UNKNOWN)],
            "a workaround is known that nobody has tried on new: c.b",
        ),
        ([V, remedy("a", CLAIMED_TO_FAIL)], "none of 1 known here is known to work on new"),
        # What only controls it, and what is a remedy for something else, is none.
        (
            [V, row("a", WORKS, "v", Role.CONTROL), remedy("b", WORKS, "other"), remedy("d", WORKS, None)],
            NONE_KNOWN,
        ),
        ([V, row("a", WORKS, "v", Role.WORKAROUND, case="d")], NONE_KNOWN),
    ],
)
def test_workarounds_that_hold_are_named(rows: list[Entry], said: str) -> None:
    """Two at most, measured ones before those claimed to."""
    found = Meanwhile(rows, "new")
    assert [found.of(0), found.of(0)] == [said, said]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # A twin is helped by what helps the variant that it is read against, and by that of that one.
        ([row("t", FAILS, "v"), V, remedy("a", WORKS)], "c.a works, measured"),
        ([row("u", FAILS, "t"), row("t", FAILS, "v"), V, remedy("a", WORKS)], "c.a works, measured"),
        ([row("u", FAILS, "t"), row("t", FAILS, "v"), V, remedy("a", WORKS, "t")], "c.a works, measured"),
        # A control of a workaround is helped by the workaround.
        ([row("t", FAILS, "a"), V, remedy("a", WORKS)], "c.a works, measured"),
        ([row("t", FAILS, "a"), remedy("a", WORKS, None)], "c.a works, measured"),
        # A workaround that fails is no help to itself, but the others of its variant are.
        ([remedy("a", FAILS), V], NONE_KNOWN),
        ([remedy("a", FAILS), V, remedy("b", WORKS)], "c.b works, measured"),
        # Two that are read against each other, and one against something that is not there.
        ([row("t", FAILS, "v"), row("v", FAILS, "t"), remedy("a", WORKS)], "c.a works, measured"),
        ([row("t", FAILS, "gone"), remedy("a", WORKS, "gone")], NONE_KNOWN),
    ],
)
def test_what_helps_its_counterpart_helps_a_variant(rows: list[Entry], said: str) -> None:
    assert Meanwhile(rows, "new").of(0) == said


def test_what_proves_the_advice_is_named_after_the_workarounds() -> None:
    """Also of another case; each once, and never the variant itself or one that is not there."""
    proven = side(Class.CRASHED, proofs=("c.v", "d.p", "c.a", "d.gone"))
    other = row("p", WORKS, case="d")
    assert Meanwhile([row("v", proven), other], "new").of(0) == f"d.p works, measured{BECAUSE}"
    assert Meanwhile([row("v", proven), other, remedy("a", WORKS)], "new").of(0) == (
        f"c.a works, measured; d.p works, measured{BECAUSE}"
    )
    failing = [row("v", proven), row("p", FAILS, case="d"), remedy("a", FAILS)]
    assert Meanwhile(failing, "new").of(0) == "none of 2 known here works on new"


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Class.CRASHED, "c.a works, measured"),
        (Class.PRECISION_LOST, "c.a works, measured"),
        (Class.OK, ""),
        (Class.BUILT, ""),
        (Class.NOT_RUN, ""),
        (None, ""),
    ],
)
def test_a_report_looks_for_a_remedy_where_a_cell_fails(cls: Class | None, said: str) -> None:
    """Not where it works, nor where nothing is known, nor where an older report lacks the cell."""
    rows = [known for known, _ in (V, remedy("a", WORKS))]
    cells = [cell(Class.OK, variant="a", target=on) for on in ("old", "new")]
    if cls:
        cells.append(cell(cls))
    made = Steps(results((target("old"), target("new")), tuple(rows), *cells))
    assert (made.instead(0, 1), made.instead(1, 1)) == (said, "")

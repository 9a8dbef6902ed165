"""What to use in place of a variant that does not work on a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.compare.step import instead
from harness.known.model import Known, VariantView
from harness.words import Basis, Class, Role
from tests.compare.handmade import INT8, known, variant

pytestmark = pytest.mark.unit

WORKS, FAILS = known(Class.OK), known(Class.CRASHED)
REPORTED = known(Class.OK, basis=Basis.REPORTED, evidence=True)
UNKNOWN = known(None)

Entry = tuple["VariantView", "Known"]


def row(
    name: str, cell: Known, of: str | None = None, role: Role = Role.REPRODUCER, case: str = "c"
) -> Entry:
    return replace(variant(name), case=case, role=role, counterpart=of), cell


def of_first(rows: list[Entry], *proofs: str) -> tuple[str, ...]:
    """Return what to use in place of the first variant."""
    return instead({found.id: (found, cell) for found, cell in rows}, *rows[0], proofs)


def remedy(name: str, cell: Known, of: str | None = "v") -> Entry:
    return row(name, cell, of, Role.WORKAROUND)


V = row("v", FAILS)


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ([V], ()),
        ([V, remedy("a", WORKS)], ("c.a",)),
        (
            [V, remedy("a", WORKS), remedy("b", WORKS), remedy("d", WORKS)],
            ("c.a", "c.b"),
        ),
        ([V, remedy("a", REPORTED), remedy("b", WORKS)], ("c.b",)),
        ([V, remedy("a", REPORTED), remedy("b", FAILS)], ("c.a",)),
        ([V, remedy("a", known(Class.BUILT))], ("c.a",)),
        ([V, remedy("a", FAILS), remedy("b", FAILS)], ()),
        (
            [V, remedy("a", FAILS), remedy("b", UNKNOWN)],
            ("c.b",),
        ),
        ([V, remedy("a", FAILS)], ()),
        # What only controls it, and what is a remedy for something else, is none.
        (
            [V, row("a", WORKS, "v", Role.CONTROL), remedy("b", WORKS, "other"), remedy("d", WORKS, None)],
            (),
        ),
        ([V, row("a", WORKS, "v", Role.WORKAROUND, case="d")], ()),
    ],
)
def test_workarounds_that_hold_are_named(rows: list[Entry], ids: tuple[str, ...]) -> None:
    """Two at most, measured ones before those claimed to."""
    assert of_first(rows) == ids


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        # A twin is helped by what helps the variant that it is read against, and by that of that one.
        ([row("t", FAILS, "v"), V, remedy("a", WORKS)], ("c.a",)),
        ([row("u", FAILS, "t"), row("t", FAILS, "v"), V, remedy("a", WORKS)], ("c.a",)),
        ([row("u", FAILS, "t"), row("t", FAILS, "v"), V, remedy("a", WORKS, "t")], ("c.a",)),
        # A control of a workaround is helped by the workaround.
        ([row("t", FAILS, "a"), V, remedy("a", WORKS)], ("c.a",)),
        ([row("t", FAILS, "a"), remedy("a", WORKS, None)], ("c.a",)),
        # A workaround that fails is no help to itself, but the others of its variant are.
        ([remedy("a", FAILS), V], ()),
        ([remedy("a", FAILS), V, remedy("b", WORKS)], ("c.b",)),
        # Two that are read against each other, and one against something that is not there.
        ([row("t", FAILS, "v"), row("v", FAILS, "t"), remedy("a", WORKS)], ("c.a",)),
        ([row("t", FAILS, "gone"), remedy("a", WORKS, "gone")], ()),
    ],
)
def test_what_helps_its_counterpart_helps_a_variant(rows: list[Entry], ids: tuple[str, ...]) -> None:
    assert of_first(rows) == ids


def test_a_proof_of_the_advice_is_named_after_the_workarounds() -> None:
    """Also of another case; each once, and never the variant itself or one that is not there."""
    other = row("p", WORKS, case="d")
    proofs = ("c.v", "d.p", "c.a", "d.gone")
    assert of_first([V, other], *proofs) == ("d.p",)
    assert of_first([V, other, remedy("a", WORKS)], *proofs) == ("c.a", "d.p")
    assert of_first([V, row("p", FAILS, case="d"), remedy("a", FAILS)], *proofs) == ()


@pytest.mark.parametrize("cls", [Class.OK, Class.BUILT, None])
def test_nothing_is_named_where_a_cell_works_or_nothing_is_known(cls: Class | None) -> None:
    assert of_first([row("v", known(cls)), remedy("a", WORKS)]) == ()


def test_a_variant_that_gives_up_the_narrow_type_is_no_help_where_that_is_lost() -> None:
    lost = replace(variant("v", a=INT8)), known(Class.PRECISION_LOST)
    assert of_first([lost, remedy("a", WORKS)]) == ()

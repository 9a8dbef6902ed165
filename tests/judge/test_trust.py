"""Who is believed: the project, two who are independent, and nobody alone; a conflict is shown and not decided."""

from __future__ import annotations

import pytest

from harness.judge.trust import DISPUTED, MEASURED, OBSERVED_ONCE, Witness, trust
from harness.words import Class

pytestmark = pytest.mark.unit


def seen(who: str, gpu: str, cls: Class = Class.OK, when: str = "2026-01-01") -> Witness:
    """Return what somebody found; "" is the project."""
    return Witness(when, cls, f"{who}-{gpu}" if who else "", who, gpu if who else "", "L4")


@pytest.mark.parametrize(
    ("witnesses", "word"),
    [
        ([seen("a", "1")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("a", "2")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("A", "2")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("b", "1")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("b", "2")], MEASURED),
        ([seen("a", "1"), seen("b", "1"), seen("a", "2")], MEASURED),
        ([seen("", "")], MEASURED),
        ([seen("", ""), seen("a", "1")], MEASURED),
        ([seen("a", "1"), seen("b", "2", Class.BUILT)], MEASURED),
        ([seen("a", "1"), seen("b", "2", Class.BUILD_FAILED)], DISPUTED),
        ([seen("a", "1", Class.CRASHED), seen("b", "2", Class.BUILD_FAILED)], DISPUTED),
        ([seen("a", "1", Class.CRASHED), seen("b", "2", Class.CRASHED)], MEASURED),
        ([seen("", ""), seen("a", "1", Class.PRECISION_LOST)], DISPUTED),
        ([seen("a", "1"), seen("a", "2", Class.CRASHED)], DISPUTED),
    ],
)
def test_two_who_are_independent_are_believed(witnesses: list[Witness], word: str) -> None:
    found = trust(witnesses)
    assert found.word == word
    assert trust(reversed(witnesses)) == found


def test_who_measures_again_is_not_in_conflict_with_themselves() -> None:
    """The later of one account on one GPU speaks."""
    found = trust([seen("a", "1", Class.CRASHED, "2026-01-01"), seen("a", "1", Class.OK, "2026-02-01")])
    assert (found.word, [witness.cls for witness in found.by]) == (OBSERVED_ONCE, [Class.OK])


def test_a_conflict_shows_all_sides() -> None:
    found = trust([seen("", ""), seen("a", "1", Class.BUILD_FAILED, "2026-02-01")])
    assert (
        found.sentence == "disputed: build_failed by a (L4, 2026-02-01); ok by this project (L4, 2026-01-01)"
    )

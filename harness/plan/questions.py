"""Says which unmeasured cells would settle the most claims: what a person with the hardware should run first; pure.

A claim is settled where a cell that it is about was measured. Of the other cells the one that would settle the most
claims is asked first, and what it would settle does not count for those after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.plan.cells import claims_about
from harness.plan.inapplicable import inapplicable_because
from harness.words import GOOD, UNJUDGED, Class, Grade, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from harness.case import Expectation
    from harness.plan.cells import Cell

    #: A claim as one of its variant's; many variants may share the object.
    Claim = tuple[str, str, int]

#: How many questions are asked where all of them would be too many.
MOST = 20


@dataclass(frozen=True)
class Question:
    """A cell that was not measured, and the claims that its answer would settle."""

    cell: Cell
    claims: tuple[Expectation, ...]

    @property
    def command(self) -> str:
        """Return the line that measures it."""
        return f"trt-compat run --pull -k '{self.cell.id}'"


def open_questions(
    cells: Iterable[Cell], answered: Collection[str], most: int | None = MOST
) -> tuple[Question, ...]:
    """Return the cells whose answers would settle the most claims, the most telling first; `answered` are cell ids.

    Claims that somebody reports count before guesses; then failures before what works, reproducers before what is held
    beside them. What a release note says of a removed API, which nobody needs to run, does not count.
    """
    left: dict[str, tuple[Cell, dict[Claim, Expectation]]] = {}
    settled: set[Claim] = set()
    for cell in cells:
        found = {(cell.case.name, cell.variant.name, id(claim)): claim for claim in claims_about(cell)}
        if cell.id in answered or any(claim.grade is Grade.MEASURED for claim in found.values()):
            settled |= found.keys()
        elif any(map(_asks, found.values())) and inapplicable_because(cell) is None:
            left[cell.id] = cell, {key: claim for key, claim in found.items() if _asks(claim)}
    questions: list[Question] = []
    while most is None or len(questions) < most:
        for _, claims in left.values():
            for key in settled & claims.keys():
                del claims[key]
        best = max(left.values(), key=_worth, default=None)
        if best is None or not best[1]:
            break
        cell, claims = left.pop(best[0].id)
        questions.append(Question(cell, tuple(claims.values())))
        settled |= claims.keys()
    return tuple(questions)


def _asks(claim: Expectation) -> bool:
    return claim.outcome not in UNJUDGED and claim.outcome is not Class.API_REMOVED


def _worth(entry: tuple[Cell, dict[Claim, Expectation]]) -> tuple[int, bool, bool, int]:
    """Return how much an answer is worth; of equals `max` takes the first, in the order of the report."""
    cell, claims = entry
    reported = sum(claim.grade is Grade.REPORTED for claim in claims.values())
    fails = any(claim.outcome not in GOOD for claim in claims.values())
    return reported, fails, cell.variant.role is Role.REPRODUCER, len(claims)

"""What the page says of what nobody measured: the open questions, and where a variant was reproduced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.compare.ranges import PREDICATE
from harness.report.model import Span
from harness.words import Class, Grade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.case import Expectation, Level
    from harness.report.model import CellView, Results, VariantView


#: What a claim of the class `ok` says at each level: who says "it builds" has not said "it works".
_AT_LEVEL: dict[Level, str] = {
    "builds": "builds",
    "runs": "runs",
    "right numbers": "gives the right numbers",
    "precision": "works in the precision wanted",
}


@dataclass(frozen=True)
class Asked:
    """An open question as a reader gets it: the cell, what is claimed of it, the line that measures it."""

    cell: CellView
    claims: tuple[str, ...]
    command: str


def questions(results: Results) -> Sequence[Asked]:
    """Return the open questions of the results."""
    cells = {(cell.case, cell.variant, cell.target): cell for cell in results.cells}
    claims = {
        (case.name, variant.name): variant.expectations for case in results.cases for variant in case.variants
    }
    return [
        Asked(
            cells[asked.case, asked.variant, asked.target],
            tuple(_told(claims[asked.case, asked.variant][index]) for index in asked.claims),
            asked.command,
        )
        for asked in results.questions
    ]


def _told(claim: Expectation) -> str:
    where = "from" if claim.grade is Grade.GUESSED else "in"
    source = f" {where} {claim.source.title or claim.source.url}" if claim.source else ""
    says = _AT_LEVEL[claim.level] if claim.outcome is Class.OK and claim.level else PREDICATE[claim.outcome]
    return f"{says}, {claim.graded}{source}"


def told_spans(variant: VariantView) -> tuple[Span, ...]:
    """Return how a variant fares along the versions, and where it was reproduced if anybody claims that it fails."""
    told = (Span("Reproduced", variant.reproduced),) if variant.reproduced else ()
    return (*variant.spans, *told)

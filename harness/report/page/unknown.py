"""What the page says of what nobody measured: the open questions, and where a variant was reproduced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.claimed import says, source
from harness.report.model import Span
from harness.words import Grade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.case import Expectation
    from harness.report.model import CellView, Results, VariantView


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
    return f"{says(claim)}, {claim.graded}{f' {where} {source(claim)}' if claim.source else ''}"


def told_spans(variant: VariantView) -> tuple[Span, ...]:
    """Return how a variant fares along the versions, and where it was reproduced if anybody claims that it fails."""
    told = (Span("Reproduced", variant.reproduced),) if variant.reproduced else ()
    return (*variant.spans, *told)

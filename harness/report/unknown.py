"""What the results leave open: where what is reported was reproduced, and which cells would settle most claims."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.plan.questions import open_questions
from harness.plan.reproduced import reproduced_on, reproduced_said
from harness.report.model import QuestionView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.plan import Cell
    from harness.plan.questions import Question
    from harness.report.model import Results
    from harness.words import Class


def with_unknown(results: Results, cells: Sequence[Cell]) -> Results:
    """Return the results with the open questions, and with where each variant was reproduced."""
    seen = {
        cell.id: {cell.cls, *(each.cls for each in cell.by_gpu)}
        for cell in results.cells
        if cell.measured and not cell.stale
    }
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.case.name, cell.variant.name), []).append(cell)
    cases = tuple(
        replace(
            case,
            variants=tuple(
                replace(variant, reproduced=_reproduced(rows[variant.case, variant.name], seen))
                for variant in case.variants
            ),
        )
        for case in results.cases
    )
    questions = tuple(map(_view, open_questions(cells, seen.keys())))
    return replace(results, cases=cases, questions=questions)


def _reproduced(cells: Sequence[Cell], seen: dict[str, set[Class]]) -> str:
    return reproduced_said(reproduced_on(cells, seen))


def _view(question: Question) -> QuestionView:
    cell = question.cell
    expectations = cell.variant.expectations
    claims = tuple(expectations.index(claim) for claim in question.claims)
    return QuestionView(cell.case.name, cell.variant.name, cell.target.name, claims, question.command)

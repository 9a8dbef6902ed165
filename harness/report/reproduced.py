"""Where what is reported to fail was reproduced, in the results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.plan.reproduced import reproduced_on, reproduced_said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.plan import Cell
    from harness.report.model import Results
    from harness.words import Class


def with_reproduced(results: Results, cells: Sequence[Cell]) -> Results:
    """Return the results with where each variant was reproduced."""
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
    return replace(results, cases=cases)


def _reproduced(cells: Sequence[Cell], seen: dict[str, set[Class]]) -> str:
    return reproduced_said(reproduced_on(cells, seen))

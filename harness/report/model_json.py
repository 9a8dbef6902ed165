"""The cells of results.json: how they are written, and read again, also as an older harness wrote them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.judge.timing import statistics
from harness.record.from_json import fields_of
from harness.report.claimed import exported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.case import Expectation
    from harness.report.model import CellView, Results


def cells_of(results: Results) -> Iterator[dict[str, Any]]:
    """Yield each cell with what is claimed of it, so that nobody has to look that up among the variants."""
    claims = _claims(results)
    for cell in results.cells:
        about = claims.get((cell.case, cell.variant), ())
        claimed = [exported(about[index]) for index in cell.claims if about]
        yield {**_cell(cell), "claimed": claimed} if claimed else _cell(cell)


def _claims(results: Results) -> dict[tuple[str, str], tuple[Expectation, ...]]:
    return {
        (variant.case, variant.name): variant.expectations
        for case in results.cases
        for variant in case.variants
    }


def graded(results: Results) -> Results:
    """Return the results with the grade of what is claimed of each cell, which its claims say."""
    claims = _claims(results)
    return replace(
        results,
        cells=tuple(
            replace(cell, grade=claims[cell.case, cell.variant][cell.claims[0]].grade)
            if cell.claims
            else cell
            for cell in results.cells
        ),
    )


def _cell(cell: CellView) -> dict[str, Any]:
    data = fields_of(cell)
    data["class"] = data.pop("cls")
    del data["grade"]
    data["latency_ms"] = data.pop("latency")
    data["stamps"] = data["stamps"] or {}
    by_gpu = [fields_of(each) for each in data.pop("by_gpu")]
    for each in by_gpu:
        each["class"] = each.pop("cls")
    return {**data, "by_gpu": by_gpu} if by_gpu else data


def cell_fields(data: Any) -> Any:  # noqa: ANN401
    """Undo `cells_of`; samples of a harness that did not judge their noise are judged here."""
    if not isinstance(data, dict):
        return data
    fields = {**data, "cls": data.get("class"), "stamps": data.get("stamps") or None}
    latency = fields["latency"] = data.get("latency_ms")
    if isinstance(latency, dict) and not {"noise", "spread"} <= latency.keys() and latency.get("samples"):
        found = statistics(latency["samples"])
        fields["latency"] = {"noise": found.noise, "spread": found.spread, **latency}
    if isinstance(data.get("accuracy"), list):
        fields["accuracy"] = [_figures(entry) for entry in data["accuracy"]]
    if isinstance(data.get("by_gpu"), list):
        fields["by_gpu"] = [
            {**each, "cls": each.get("class")} if isinstance(each, dict) else each for each in data["by_gpu"]
        ]
    return fields


def _figures(data: Any) -> Any:  # noqa: ANN401
    """Return figures with a NaN for each null, which stands for one that is not finite."""
    if not isinstance(data, dict):
        return data
    return {key: math.nan if value is None else value for key, value in data.items()}


def check_claims(results: Results) -> None:
    """Raise ValueError where a cell is of no variant, or names a claim that its variant does not have."""
    claims = {key: len(every) for key, every in _claims(results).items()}
    for cell in results.cells:
        many = claims.get((cell.case, cell.variant))
        if many is None:
            raise ValueError(f"cell {cell.id!r:.120} is of a variant that is not there")
        if not all(0 <= index < many for index in cell.claims):
            raise ValueError(f"cell {cell.id!r:.120} names a claim that is not there")

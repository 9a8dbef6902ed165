"""Cells, their selection by expression, and the reasons for leaving one out on its target."""

from harness.plan.cells import (
    Cell,
    all_cells,
    claims_about,
    failed_before,
    find,
    inapplicable_because,
    select,
    series,
    taken_along,
)

__all__ = [
    "Cell",
    "all_cells",
    "claims_about",
    "failed_before",
    "find",
    "inapplicable_because",
    "select",
    "series",
    "taken_along",
]

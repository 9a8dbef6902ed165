"""What is to be expected of every recipe on every target before anything runs, and the page that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from harness.judge.explain import describe_recipe
from harness.plan import Cell, all_cells, inapplicable_because
from tools.capabilities import missing_api

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.case import Case
    from harness.matrix import Matrix

Status = Literal["runnable", "api_removed", "not_applicable"]


@dataclass(frozen=True)
class Planned:
    """`detail` is the missing name of `api_removed`, the reason of `not_applicable`, "" where it is to be run.

    A runnable cell may fail: whether the engine builds and runs it is what running it shows.
    """

    status: Status
    detail: str = ""


def planned(cell: Cell) -> Planned:
    """Return what is to be expected of one cell."""
    reason = inapplicable_because(cell)
    if reason is not None:
        return Planned("not_applicable", reason)
    target = cell.target
    if target.traits.graph_alone:
        return Planned("runnable")
    missing = missing_api(cell.variant.recipe, target.engine, target.version)
    return Planned("api_removed", missing) if missing else Planned("runnable")


def recipes_page(matrix: Matrix, cases: Sequence[Case]) -> str:
    """Return docs/recipes.md: a row a recipe, with the variants that use it and what each target makes of it."""
    rows: dict[str, list[Cell]] = {}
    for cell in all_cells(matrix, cases):
        rows.setdefault(describe_recipe(cell.variant.recipe), []).append(cell)
    order = [target.name for target in matrix]
    count = sum(len(case.variants) for case in cases)
    lines = [
        "# Every recipe on every target",
        "",
        f"{count} variants have {len(rows)} recipes between them; this is what each of the {len(order)} targets makes",
        "of each before anything runs. `make docs` writes this page; a test holds it to the code.",
        "",
        "- *to be run*: the version has all that the recipe asks for. Whether the graph then parses, builds and runs",
        "  is what running it shows.",
        "- *API removed*: this version has no such name; the cell ends as `api_removed` before any work is done.",
        "- *not applicable*: the cell is not run. ONNX Runtime takes precision from the graph alone, and the recipe",
        "  asks for more.",
        "",
        "A range, `trt86 to trt1016`, is of neighbouring columns of matrix.yaml.",
        "",
        "| recipe | variants | to be run | API removed | not applicable |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [_row(recipe, cells, order) for recipe, cells in rows.items()]
    return "\n".join(lines) + "\n"


def _row(recipe: str, cells: Sequence[Cell], order: Sequence[str]) -> str:
    variants = dict.fromkeys(f"{cell.case.name}[{cell.variant.name}]" for cell in cells)
    fates: dict[tuple[Status, str], set[str]] = {}
    for cell in cells:
        fate = planned(cell)
        # The text after the semicolon names a variant of the same graph, which differs between variants; the text
        # before "this recipe" stands once on the page.
        detail = fate.detail.partition(";")[0].rpartition("this recipe ")[2]
        fates.setdefault((fate.status, detail), set()).add(cell.target.name)
    columns = [recipe, "<br>".join(f"`{name}`" for name in variants)]
    for status in ("runnable", "api_removed", "not_applicable"):
        told = [
            f"{_reason(found, detail)}{_ranges(names, order)}"
            for (found, detail), names in fates.items()
            if found == status
        ]
        columns.append("<br>".join(told))
    return f"| {' | '.join(columns)} |"


def _reason(status: Status, detail: str) -> str:
    if not detail:
        return ""
    return f"no `{detail}`: " if status == "api_removed" else f"{detail}: "


def _ranges(names: set[str], order: Sequence[str]) -> str:
    """Return names with neighbours of the order drawn together."""
    parts = []
    for chosen, group in groupby(order, key=names.__contains__):
        run = list(group)
        if chosen:
            parts.append(", ".join(run) if len(run) <= 2 else f"{run[0]} to {run[-1]}")  # noqa: PLR2004
    return ", ".join(parts)

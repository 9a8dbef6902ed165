"""What the page knows of every cell before one is opened: a few bytes each, enough to draw, filter and compare.

Cells point into `looks`; a matrix has a few hundred different ones, however many cells it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harness.judge.names import replaced
from harness.report.compare.upgrade import default_pair
from harness.report.labels import KINDS, MARKS, PATTERNS, ROLES
from harness.report.model import Span
from harness.report.page.columns import groups, target_data
from harness.report.page.folds import Fold, folds
from harness.report.page.looks import Look, look_of
from harness.report.page.packing import columns, table
from harness.report.page.query import vocabulary
from harness.report.page.steps import series_of
from harness.words import said

if TYPE_CHECKING:
    from harness.report.compare.steps import Steps
    from harness.report.model import CaseView, CellView, Results, VariantView


def rows_of(results: Results) -> list[tuple[CaseView, VariantView]]:
    """Return the variants with their cases, in the order of the page's rows."""
    return [(case, variant) for case in results.cases for variant in case.variants]


def grid_of(results: Results) -> list[list[CellView]]:
    """Return the cells by row and column."""
    found: dict[tuple[str, str], list[CellView]] = {
        (variant.case, variant.name): [] for _, variant in rows_of(results)
    }
    for cell in results.cells:
        found[cell.case, cell.variant].append(cell)
    return list(found.values())


class Row(NamedTuple):
    """A variant, with the number of its case.

    `wanted` are nodes with precision and operator, `changes` the pairs of columns that were measured to differ.
    """

    case: int
    name: str
    title: str
    role: str
    role_name: str
    counterpart: str | None
    tags: tuple[str, ...]
    wanted: list[tuple[str, str, str]]
    spans: list[dict[str, Any]]
    changes: list[tuple[int, int]]


class Time(NamedTuple):
    """A cell's median in milliseconds; `stack` numbers what it was taken on, `noisy` is 1 or 0."""

    row: int
    column: int
    median: float
    stack: int
    noisy: int


class Grid(NamedTuple):
    """The looks of all cells, and by row and column which one each has; what each row ends as; the timings."""

    looks: dict[Look, int]
    places: list[list[int]]
    ends: list[tuple[str, ...]]
    times: list[Time]


def facts(results: Results, steps: Steps) -> dict[str, Any]:
    """Return targets, rows, looks and timings as plain data."""
    rows = rows_of(results)
    numbers = {case.name: number for number, case in enumerate(results.cases)}
    changes = _changes(results)
    grid = _grid(results, steps)
    return {
        "targets": [target_data(column) for group in groups(results) for column in group.columns],
        "pair": default_pair(results),
        "series": series_of(results),
        "cases": [_case(case) for case in results.cases],
        "rows": table(
            Row,
            (
                _row(numbers[case.name], variant, changes.get((case.name, variant.name), []))
                for case, variant in rows
            ),
        ),
        "folds": table(Fold, folds([variant for _, variant in rows], grid.ends)),
        "looks": table(Look, grid.looks),
        "grid": grid.places,
        "times": columns(Time, grid.times),
        "marks": {
            str(cls): {"letters": mark.letters, "shape": mark.shape, "name": mark.name}
            for cls, mark in MARKS.items()
        },
        "kinds": [{"id": key, "name": name, "meaning": meaning} for key, (name, meaning) in KINDS.items()],
        "patterns": PATTERNS,
        "replaced": {
            key: [[call.old, call.new, call.url] for call in calls] for key, calls in replaced().items()
        },
        "query": vocabulary(),
    }


def _grid(results: Results, steps: Steps) -> Grid:
    # What differs, numbered in the order it comes.
    looks: dict[Look, int] = {}
    stacks: dict[tuple[str, ...], int] = {}
    known = {each.column.target: each for each in steps.known}
    places: list[list[int]] = []
    ends: list[tuple[str, ...]] = []
    times: list[Time] = []
    for row, ((_, variant), cells) in enumerate(zip(rows_of(results), grid_of(results), strict=True)):
        sides = [known[cell.target].sides[variant.case, variant.name] for cell in cells]
        line: list[int] = []
        found: list[str] = []
        for cell, one in zip(cells, sides, strict=True):
            shown = look_of(cell, variant, one)
            found.append(shown.known or shown.cls)
            line.append(looks.setdefault(shown, len(looks)))
        places.append(line)
        ends.append(tuple(found))
        times += [
            Time(row, column, one.median, stacks.setdefault(one.stack, len(stacks)), int(not one.interval))
            for column, one in enumerate(each.timing for each in sides)
            if one
        ]
    return Grid(looks, places, ends, times)


def _changes(results: Results) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Return by variant which columns were measured to differ, neighbours in a series."""
    column = {target.id: number for number, target in enumerate(results.targets)}
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for change in results.changes:
        ends = (column[change.before], column[change.after])
        found.setdefault((change.case, change.variant), []).append(ends)
    return found


def _case(case: CaseView) -> dict[str, Any]:
    links = [{"url": link.url, "title": link.title or link.url} for link in case.links]
    return {"name": case.name, "title": case.title, "summary": case.summary, "links": links}


def _row(case: int, variant: VariantView, changes: list[tuple[int, int]]) -> Row:
    ops = variant.ops
    return Row(
        case,
        variant.name,
        variant.title,
        str(variant.role),
        ROLES[variant.role],
        variant.counterpart,
        variant.tags,
        [(node, said(want), ops.get(node, "")) for node, want in variant.wanted],
        [{"series": span.series, "text": span.text} for span in told_spans(variant)],
        changes,
    )


def told_spans(variant: VariantView) -> tuple[Span, ...]:
    """Return how a variant fares along the versions, and where it was reproduced if anybody claims that it fails."""
    told = (Span("Reproduced", variant.reproduced),) if variant.reproduced else ()
    return (*variant.spans, *told)

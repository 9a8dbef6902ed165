"""What the page knows of every cell before one is opened: a few bytes each, enough to draw, filter and compare.

Cells point into `looks`; a matrix has a few hundred different ones, however many cells it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.engines import ENGINES
from harness.judge.timing import RUN_TO_RUN
from harness.layers.datatype import NARROW
from harness.report import past
from harness.report.compare.ranges import PREDICATE
from harness.report.compare.sides import STACK, Side, side
from harness.report.compare.upgrade import default_pair
from harness.report.labels import BUCKETS, CORNERS, KINDS, MARKS, ROLES, bucket
from harness.report.page.columns import Column, groups
from harness.report.text import clip, milliseconds, visible
from harness.words import Engine, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.case import Expectation
    from harness.report.model import CaseView, CellView, Results, Timing, VariantView

#: Precisions that say nothing of how a node computes.
_UNTOLD = ("", "unknown")
_NARROW = frozenset(map(str, NARROW))


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


def facts(results: Results) -> dict[str, Any]:
    """Return targets, rows, looks and timings as plain data."""
    rows = rows_of(results)
    numbers = {case.name: number for number, case in enumerate(results.cases)}
    differing = {(change.case, change.variant) for change in results.changes}
    # What differs, numbered in the order it comes.
    looks: dict[tuple[Any, ...], int] = {}
    stacks: dict[tuple[str, ...], int] = {}
    grid, boxes, rests = [], [], []
    for (_, variant), cells in zip(rows, grid_of(results), strict=True):
        sides = [side(cell, variant) for cell in cells]
        rest = _narrowed(sides)
        rests.append(rest)
        shown = [_look(cell, variant, one, rest) for cell, one in zip(cells, sides, strict=True)]
        grid.append([looks.setdefault(one, len(looks)) for one in shown])
        timed = [(column, one.box) for column, one in enumerate(sides) if one.box]
        boxes.append(
            [
                [column, box.median, stacks.setdefault(box.stack, len(stacks)), *(box.interval or ())]
                for column, box in timed
            ]
        )
    return {
        "targets": [_target(column) for group in groups(results) for column in group.columns],
        "pair": default_pair(results),
        "cases": [
            [case.name, case.title, case.summary, [[link.url, link.title or link.url] for link in case.links]]
            for case in results.cases
        ],
        "rows": [
            [numbers[case.name], *_row(variant, (case.name, variant.name) in differing), rest]
            for (case, variant), rest in zip(rows, rests, strict=True)
        ],
        "looks": list(looks),
        "grid": grid,
        "boxes": boxes,
        "stacks": list(stacks),
        "stackFields": ["clock", *STACK],
        "runToRun": RUN_TO_RUN,
        "marks": {str(cls): [mark.letters, mark.shape, mark.name] for cls, mark in MARKS.items()},
        "buckets": {key: name for key, (name, _) in BUCKETS.items()},
        "kinds": [[key, name, meaning] for key, (name, meaning) in KINDS.items()],
        "predicates": {str(cls): said for cls, said in PREDICATE.items()},
    }


def _target(column: Column) -> dict[str, Any]:
    target = column.target
    return {
        "id": target.id,
        "label": target.label,
        "family": target.family,
        "series": target.series,
        "version": target.version,
        "short": target.short,
        "engine": target.engine,
        "platform": target.platform,
        "run": int(bool(target.stamps)),
        "needs": target.needs,
        "gpu": column.gpu,
        "baseline": int(ENGINES[Engine(target.engine)].baseline),
        "commands": list(target.commands),
    }


def _narrowed(sides: Sequence[Side]) -> list[str]:
    """Return the nodes that nobody wished for and that ran in a narrow type somewhere: only these can leave it."""
    return sorted({node for one in sides for node, kind in one.rest if kind in _NARROW})


def _row(variant: VariantView, differs: bool) -> list[Any]:  # noqa: FBT001
    return [
        variant.name,
        variant.title,
        str(variant.role),
        ROLES[variant.role],
        variant.counterpart,
        list(variant.tags),
        [[node, said(precision), variant.ops.get(node, "")] for node, precision in variant.wanted],
        [[span.series, span.text, int(span.claimed)] for span in variant.spans],
        int(differs),
    ]


def look(cell: CellView, variant: VariantView) -> dict[str, str]:
    """Return what the table cell shows: badge, class names, chip, time."""
    where = bucket(cell)
    claims = _only_claimed(cell, variant)
    shown = claims[0].outcome if claims else cell.cls
    mark = MARKS[shown]
    return {
        "letters": mark.letters,
        "classes": f"{mark.shape} k-{shown} b-{where}",
        "corner": (CORNERS.get(cell.verdict, "") if cell.measured else "") + past.corner(cell),
        "under": str(claims[0].grade) if claims else "old" if where == "stale" else cell.chip,
        "time": _time(cell.latency) if cell.latency else "",
    }


def _time(latency: Timing) -> str:
    """Return the median, marked as approximate where the samples are too noisy to compare."""
    return f"{'≈' if latency.noise else ''}{milliseconds(latency.median)}"


def words(cell: CellView, variant: VariantView) -> str:
    """Return the cell in full words but for its time, for the tooltip and for screen readers."""
    where = bucket(cell)
    claims = _only_claimed(cell, variant)
    if claims:
        told = "; ".join(f"{MARKS[claim.outcome].name.lower()} ({claim.grade})" for claim in claims)
        return f"Not run here: {told}"
    if not cell.measured:
        return f"{BUCKETS[where][0]}: {clip(cell.reason or cell.sentence, 200)}"
    parts = [f"{BUCKETS[where][0]}: {MARKS[cell.cls].name.lower()}", cell.chip]
    marks = past.corner(cell)
    parts += [past.NEWS[word] for word, mark in past.CORNERS.items() if mark in marks]
    if cell.diagnosis:
        parts.append(cell.diagnosis.title)
    return ". ".join(part for part in parts if part)


def _only_claimed(cell: CellView, variant: VariantView) -> list[Expectation]:
    """Return the claims about a cell that shows nothing else."""
    return [variant.expectations[index] for index in cell.claims] if bucket(cell) == "claimed" else []


def spoken(cell: CellView, variant: VariantView) -> str:
    """Return the cell in full words with its time."""
    noise = ", too noisy" if cell.latency and cell.latency.noise else ""
    timed = f". median {milliseconds(cell.latency.median)}{noise}" if cell.latency else ""
    return words(cell, variant) + timed


def _look(cell: CellView, variant: VariantView, one: Side, rest: Sequence[str]) -> tuple[Any, ...]:
    shown = look(cell, variant)
    ran = dict(one.rest)
    return (
        str(cell.cls),
        bucket(cell),
        shown["letters"],
        shown["classes"],
        shown["corner"],
        shown["under"],
        visible(words(cell, variant)),
        str(one.cls) if one.cls else None,
        str(one.grade) if one.grade else None,
        one.graded,
        one.chip,
        tuple(map(said, one.nodes)),
        one.why,
        one.signature,
        one.proofs,
        tuple(str(cls) for cls in one.flaky),
        _ran_in(cell, variant, one.nodes),
        int(cell.measured),
        tuple(said(ran.get(node, "")) for node in rest),
        past.words(cell),
    )


def _ran_in(cell: CellView, variant: VariantView, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the precisions that the nodes that matter ran in; where the variant names none, those of all layers."""
    ran = nodes if variant.wanted and cell.demanded else (str(layer.precision) for layer in cell.layers)
    return tuple(sorted(said(kind) for kind in set(ran) - set(_UNTOLD)))

"""What the page knows of every cell before one is opened: a few bytes each, enough to draw, filter and compare.

Cells point into `looks`; a matrix has a few hundred different ones, however many cells it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harness.judge.replaced import REPLACED
from harness.judge.worst import badness
from harness.layers.datatype import same_precision
from harness.report import past
from harness.report.claimed import by_whom, drawn, says
from harness.report.compare.pairs import fails
from harness.report.compare.upgrade import default_pair
from harness.report.labels import BUCKETS, CLAIMED, CORNERS, KINDS, MARKS, PATTERNS, ROLES, bucket, drawn_as
from harness.report.page import gpus
from harness.report.page.columns import groups, target_data
from harness.report.page.folds import Fold, folds
from harness.report.page.packing import table
from harness.report.page.query import states, vocabulary
from harness.report.page.steps import series_of
from harness.report.page.unknown import told_spans
from harness.report.text import capital, clip, milliseconds, visible
from harness.words import GOOD, Grade, Precision, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.case import Expectation
    from harness.report.compare.sides import Side
    from harness.report.compare.steps import Steps
    from harness.report.model import CaseView, CellView, Results, Span, Timing, VariantView

#: Precisions that say nothing of how a node computes.
_UNTOLD = ("", "unknown")


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


class Look(NamedTuple):
    """What cells that look alike have in common: what is drawn, said and asked for.

    `said` is what is known in a few words, `nodes` what each wanted node ran in and whether that was asked for, `ran`
    and `past` and `states` are words of the query language. `known` is the class that it is known to end as, "" where
    nothing is, `grade` how sure that is, `bad` how bad it is beside others, `good` that it is not, `fails` that it
    fails or loses precision. `guess` numbers the look of those cells where guesses are shown, of which nothing else is
    known.
    """

    cls: str
    bucket: str
    letters: str
    classes: str
    corner: str
    under: str
    chip: str
    words: str
    said: str
    nodes: tuple[tuple[str, bool], ...]
    states: tuple[str, ...]
    signature: str | None
    ran: tuple[str, ...]
    measured: bool
    past: tuple[str, ...]
    known: str
    grade: str
    bad: int
    good: bool
    fails: bool
    guess: int | None = None


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
        "times": table(Time, grid.times),
        "marks": {
            str(cls): {"letters": mark.letters, "shape": mark.shape, "name": mark.name}
            for cls, mark in MARKS.items()
        },
        "kinds": [{"id": key, "name": name, "meaning": meaning} for key, (name, meaning) in KINDS.items()],
        "patterns": PATTERNS,
        "replaced": {
            key: [[call.old, call.new, call.url] for call in calls] for key, calls in REPLACED.items()
        },
        "query": vocabulary(),
    }


def _grid(results: Results, steps: Steps) -> Grid:
    # What differs, numbered in the order it comes.
    looks: dict[Look, int] = {}
    stacks: dict[tuple[str, ...], int] = {}
    known, guessing = (
        {each.column.target: each for each in every} for every in (steps.known, steps.guessing)
    )
    places: list[list[int]] = []
    ends: list[tuple[str, ...]] = []
    times: list[Time] = []
    for row, ((_, variant), cells) in enumerate(zip(rows_of(results), grid_of(results), strict=True)):
        sides = [known[cell.target].sides[variant.case, variant.name] for cell in cells]
        line: list[int] = []
        found: list[str] = []
        for cell, one in zip(cells, sides, strict=True):
            shown = _look(cell, variant, one)
            if bucket(cell) == "guessed":
                guess = guessing[cell.target].sides[variant.case, variant.name]
                of = _look(cell, variant, guess, guesses=True)
                shown = shown._replace(guess=looks.setdefault(of, len(looks)))
                found.append(of.known)
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
        [_span(span) for span in told_spans(variant)],
        changes,
    )


def _span(span: Span) -> dict[str, Any]:
    """Return a sentence, and the one with guesses where it is another."""
    plain = {"series": span.series, "text": span.text}
    return {**plain, "guesses": span.guesses} if span.guesses else plain


def look(cell: CellView, variant: VariantView, *, guesses: bool = False) -> dict[str, str]:
    """Return what the table cell shows: badge, class names, corner marks, what stands below the badge, time.

    What is only guessed looks as if nothing were known, unless `guesses` asks for it.
    """
    where = _shown(cell, guesses=guesses)
    claims = _only_claimed(cell, variant, guesses=guesses)
    shown = drawn(claims[0]) if claims else drawn_as(cell)
    mark = MARKS[shown]
    return {
        "letters": mark.letters + ("?" if where == "guessed" else ""),
        "classes": f"{mark.shape} k-{shown} b-{where}",
        "corner": (CORNERS.get(cell.verdict, "") if cell.measured else "")
        + (gpus.mark(cell) or (claims[0].compute_capability or "" if claims else ""))
        + past.corner(cell),
        "under": by_whom(claims[0]) if claims else "old" if where == "stale" else cell.chip,
        "time": _time(cell.latency) if cell.latency else "",
    }


def _time(latency: Timing) -> str:
    """Return the median, marked as approximate where the samples are too noisy to compare."""
    return f"{'≈' if latency.noise else ''}{milliseconds(latency.median)}"


def tooltip(cell: CellView, variant: VariantView, *, guesses: bool = False) -> str:
    """Return the cell in full words but for its time, for the tooltip and for screen readers."""
    where = _shown(cell, guesses=guesses)
    claims = _only_claimed(cell, variant, guesses=guesses)
    if claims:
        told = dict.fromkeys(f"{claim.graded}: {says(claim)}" for claim in claims)
        return f"Not run for this report. {capital('; '.join(told))}"
    if where == "not_run":
        return f"{capital(clip(cell.sentence, 200))}{UNREPORTED}"
    if not cell.measured:
        return f"{BUCKETS[where][0]}: {clip(cell.reason or cell.sentence, 200)}"
    ended = clip(cell.sentence, 200) if where == "fails_when_run" else MARKS[cell.cls].name.lower()
    parts = [f"{BUCKETS[where][0]}: {ended}", cell.chip, gpus.said(cell)]
    marks = past.corner(cell)
    parts += [past.NEWS[word] for word, mark in past.TREND_MARKS.items() if mark in marks]
    if cell.diagnosis:
        parts.append(cell.diagnosis.title)
    return ". ".join(part for part in parts if part)


#: What is added where nobody ran a cell, and no more than our guess is at hand.
UNREPORTED = "; nobody reports of this very graph on it"


def _shown(cell: CellView, *, guesses: bool) -> str:
    """Return the bucket that a cell is shown in."""
    where = bucket(cell)
    return "not_run" if where == "guessed" and not guesses else where


def _only_claimed(cell: CellView, variant: VariantView, *, guesses: bool) -> list[Expectation]:
    """Return the claims about a cell that shows nothing else."""
    every = [variant.expectations[index] for index in cell.claims]
    told = [claim for claim in every if guesses or claim.grade is not Grade.GUESSED]
    return told if bucket(cell) in CLAIMED.values() else []


def spoken(cell: CellView, variant: VariantView) -> str:
    """Return the cell in full words with its time."""
    noise = ", too noisy" if cell.latency and cell.latency.noise else ""
    timed = f". median {milliseconds(cell.latency.median)}{noise}" if cell.latency else ""
    return tooltip(cell, variant) + timed


def _look(cell: CellView, variant: VariantView, one: Side, *, guesses: bool = False) -> Look:
    shown = look(cell, variant, guesses=guesses)
    where = _shown(cell, guesses=guesses)
    return Look(
        str(cell.cls),
        where,
        shown["letters"],
        shown["classes"],
        shown["corner"],
        shown["under"],
        one.chip,
        visible(tooltip(cell, variant, guesses=guesses)),
        _said(cell, one),
        tuple(_nodes(cell, variant, one)),
        states(cell, one, where),
        one.signature,
        _ran_in(cell, variant, one.nodes),
        cell.measured,
        past.history_words(cell),
        str(one.cls or ""),
        str(one.grade or ""),
        _bad(cell, one),
        one.cls in GOOD,
        fails(one.cls),
    )


def _bad(cell: CellView, one: Side) -> int:
    """Return how bad a cell is beside others, in one number; what nothing is known of hides nothing."""
    if one.cls is None:
        return -1
    news, by_class = badness(one.cls, cell.verdict)
    return 100 * news + by_class


def _said(cell: CellView, one: Side) -> str:
    """Return what is known in words; what was measured before and accepted says so, as the cell was not run here."""
    accepted = one.grade is Grade.MEASURED and not cell.measured
    return f"{one.grade}: {one.told()}" if accepted else one.told()


def _nodes(cell: CellView, variant: VariantView, one: Side) -> Iterator[tuple[str, bool]]:
    """Say of each wanted node what it ran in, or why that is not known, and whether that is what is wanted."""
    for at, (_, want) in enumerate(variant.wanted):
        ran = one.nodes[at] if one.nodes else ""
        untold = "folded or not told" if one.cls in GOOD else one.does()
        yield (
            said(ran) or (untold if cell.measured else one.why or "not run"),
            bool(ran) and same_precision(want, Precision(ran)),
        )


def _ran_in(cell: CellView, variant: VariantView, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the precisions that the nodes that matter ran in; where the variant names none, those of all layers."""
    ran = nodes if variant.wanted and cell.demanded else (str(layer.precision) for layer in cell.layers)
    return tuple(sorted(said(kind) for kind in set(ran) - set(_UNTOLD)))

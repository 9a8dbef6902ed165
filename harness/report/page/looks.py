"""How a cell looks and what is said of it before it is opened: badge, corner marks, words, and what filters ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.judge.worst import badness
from harness.layers.datatype import same_precision
from harness.report import past
from harness.report.claimed import by_whom, drawn, says
from harness.report.compare.kinds import fails
from harness.report.labels import BUCKETS, CLAIMED, CORNERS, MARKS, bucket, drawn_as
from harness.report.page import gpus
from harness.report.page.query import states
from harness.text import capital, clip, milliseconds, visible
from harness.words import GOOD, Grade, Precision, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.case import Expectation
    from harness.report.compare.sides import Side
    from harness.report.model import CellView, Timing, VariantView

#: Precisions that say nothing of how a node computes.
_UNTOLD = ("", "unknown")
#: What is added where nobody ran a cell, and nobody reports of it.
UNREPORTED = "; nobody reports of this very graph on it"


class Look(NamedTuple):
    """What cells that look alike have in common: what is drawn, said and asked for.

    `said` is what is known in a few words, `nodes` what each wanted node ran in and whether that was asked for, `ran`
    and `past` and `states` are words of the query language. `known` is the class that it is known to end as, "" where
    nothing is, `grade` how sure that is, `bad` how bad it is beside others, `good` that it is not, `fails` that it
    fails or loses precision.
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


def look(cell: CellView, variant: VariantView) -> dict[str, str]:
    """Return what the table cell shows: badge, class names, corner marks, what stands below the badge, time."""
    where = bucket(cell)
    claims = _only_claimed(cell, variant)
    shown = drawn(claims[0]) if claims else drawn_as(cell)
    mark = MARKS[shown]
    return {
        "letters": mark.letters,
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


def tooltip(cell: CellView, variant: VariantView) -> str:
    """Return the cell in full words but for its time, for the tooltip and for screen readers."""
    where = bucket(cell)
    claims = _only_claimed(cell, variant)
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


def _only_claimed(cell: CellView, variant: VariantView) -> list[Expectation]:
    """Return the claims about a cell that shows nothing else."""
    if bucket(cell) not in CLAIMED.values():
        return []
    return [variant.expectations[index] for index in cell.claims]


def spoken(cell: CellView, variant: VariantView) -> str:
    """Return the cell in full words with its time."""
    noise = ", too noisy" if cell.latency and cell.latency.noise else ""
    timed = f". median {milliseconds(cell.latency.median)}{noise}" if cell.latency else ""
    return tooltip(cell, variant) + timed


def look_of(cell: CellView, variant: VariantView, one: Side) -> Look:
    """Return all that the page knows of a cell before it is opened; `one` is what is known of it."""
    shown = look(cell, variant)
    where = bucket(cell)
    return Look(
        str(cell.cls),
        where,
        shown["letters"],
        shown["classes"],
        shown["corner"],
        shown["under"],
        one.chip,
        visible(tooltip(cell, variant)),
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

"""The figures as Markdown: one table, in which nothing is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.suite.figures import Figure, Limit, Section

#: Behind this line of a page each run adds a section.
MARKER = "<!-- runs: python -m benchmarks.suite --write adds each below, the latest last -->"
_HEAD = ("", "what", "median", "min to max", "limit", "held")


class NoMarker(Exception):
    """A page has no place for figures."""


def markdown(sections: Iterable[Section], *, judged: bool = True) -> str:
    """Return a table of all figures, then the notes; unless `judged` no limit is said to be held or missed."""
    known = tuple(sections)
    rows = [row for section in known for row in _rows(section, judged=judged)]
    lines = [_line(_HEAD), "| --- | --- | ---: | ---: | ---: | --- |", *map(_line, rows)]
    notes = [f"- {section.letter}: {note}" for section in known for note in section.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def with_section(page: str, title: str, text: str) -> str:
    """Return a page with one more section at its end; raises NoMarker where it has no place for it."""
    if MARKER not in page.splitlines():
        raise NoMarker
    return f"{page.rstrip()}\n\n### {title}\n\n{text.strip()}\n"


def shown(value: float) -> str:
    """Return a figure with the digits that it is read by: three, and no fraction from a hundred up."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _rows(section: Section, *, judged: bool) -> Iterator[Sequence[str]]:
    if section.skipped:
        how = "failed" if section.failed else "skipped"
        yield section.letter, f"{section.title}: {how}, {section.skipped}", "", "", "", ""
    for figure in section.figures:
        spread = f"{shown(min(figure.samples))} to {shown(max(figure.samples))}"
        median = f"{shown(figure.median)} {figure.unit}"
        limit = _limit(figure.limit, figure.unit)
        yield section.letter, figure.what, median, spread, limit, _held(figure, judged=judged)


def _limit(limit: Limit | None, unit: str) -> str:
    if limit is None:
        return ""
    return f"{'at least' if limit.least else 'at most'} {shown(limit.value)} {unit}"


def _held(figure: Figure, *, judged: bool) -> str:
    if figure.passed is None:
        return ""
    if not judged:
        return "not judged"
    return "pass" if figure.passed else "**miss**"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

"""The summary in Markdown, for CI job pages and pull requests: bounded, worst news first."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING

from harness.report.counts import clusters, counts, disagreement, nobody_ran
from harness.report.labels import BUCKETS, MARKS, bucket
from harness.report.past import NEWS, news
from harness.text import capital, clip, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.compare.versions import Change
    from harness.known.model import Known
    from harness.report.model import Results

#: GitHub refuses a comment of more than 65 536 characters; a job summary may have 1 MiB.
LIMIT_BYTES = 60_000
_PER_LIST = 40
#: Variants named behind a change.
_PER_GROUP = 12
_PER_LINE = 400
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#|~&!])")
_LISTED = ("regressed", "new", "fixed", "new_ok", "infra")


def summary(results: Results) -> str:
    """Return the summary: the same text for the same results, at most `LIMIT_BYTES` of UTF-8."""
    listed = [_cells(results, key) for key in _LISTED]
    sections = [_head(results), *listed, _last_night(results), _changes(results), _causes(results)]
    text = ""
    for section in filter(None, sections):
        for line in section:
            if len((text + line).encode()) > LIMIT_BYTES - 100:
                return text + "\n*Cut here; the rest is in index.html and results.json.*\n"
            text += line + "\n"
        text += "\n"
    return text


def _head(results: Results) -> list[str]:
    tally = counts(results)
    shown = {key: number for key, number in tally.items() if number or key in ("regressed", "new", "fixed")}
    return [
        "# TensorRT compatibility matrix",
        "",
        _verdict(tally),
        "",
        *([_plain(unrun), ""] if (unrun := nobody_ran(results)) else []),
        "| Verdict | Cells |",
        "| --- | ---: |",
        *(f"| {BUCKETS[key][0]} | {number} |" for key, number in shown.items()),
        f"| **All** | **{len(results.cells)}** |",
    ]


def _verdict(tally: dict[str, int]) -> str:
    bad = [f"**{BUCKETS[key][0]}: {tally[key]}.**" for key in ("regressed", "new") if tally[key]]
    return " ".join(bad) if bad else "**No regression and no new failure.**"


def _cells(results: Results, key: str) -> list[str]:
    cells = [cell for cell in results.cells if bucket(cell) == key]
    return _section(BUCKETS[key][0], [_cell(cell) for cell in cells])


def _cell(cell: Known) -> str:
    said = f"{MARKS[cell.cls].name.lower()}. {_plain(capital(cell.reason))}"
    differing = disagreement(cell.by_gpu)
    gpus = f" GPUs disagree: {_plain(differing)}." if differing else ""
    return f"- {_code(cell.id)}: {said}{gpus}{_advice(cell)}"


def _advice(cell: Known) -> str:
    return f" **{_plain(cell.diagnosis.title)}.** {_plain(cell.diagnosis.advice)}" if cell.diagnosis else ""


def _last_night(results: Results) -> list[str]:
    """Return what changed within a day of the last run: each target of a night is a run of its own."""
    if not results.runs:
        return []
    since = _day_before(results.runs[-1].when)
    return _section(
        "Changed in the last 24 hours of runs",
        [
            f"- {_code(cell.id)}: {NEWS[entry.kind].lower()}. {_plain(text)}"
            for entry in news(results)
            if entry.when > since
            for cell, text in entry.cells
        ],
    )


def _day_before(when: str) -> str:
    try:
        return f"{date.fromisoformat(when[:10]) - timedelta(days=1)}{when[10:]}"
    except (ValueError, OverflowError):
        # Somebody else's record may hold any text; nothing is later than what is no time.
        return when


def _changes(results: Results) -> list[str]:
    """Return what changed between neighbouring versions, each once for all variants that it happened to."""
    found: dict[tuple[str, str, str, str], list[Change]] = {}
    for change in results.changes:
        found.setdefault((change.series, change.versions, change.kind, change.text), []).append(change)
    lines = [
        f"- **{_plain(f'{series} {versions}')}**, {kind}: {_plain(text)}: {_names(changes)}"
        for (series, versions, kind, text), changes in sorted(found.items(), key=_rank)
    ]
    return _section("Changed between versions", lines, len(results.changes))


def _rank(entry: tuple[tuple[str, str, str, str], list[Change]]) -> tuple[bool, bool, int]:
    """Order changes: results before precision, worse before better, the most variants first."""
    (_, _, kind, _), changes = entry
    return kind != "result", changes[0].better is not False, -len(changes)


def _names(changes: Sequence[Change]) -> str:
    named = ", ".join(_code(f"{change.case}.{change.variant}") for change in changes[:_PER_GROUP])
    return named + (f" and {len(changes) - _PER_GROUP} more" if len(changes) > _PER_GROUP else "")


def _causes(results: Results) -> list[str]:
    return _section(
        "Failures by cause",
        [
            f"- {len(cluster.cells)} of {_plain(cluster.title)}: "
            + _plain(", ".join(sorted({cell.target for cell in cluster.cells})))
            for cluster in clusters(results)
        ],
    )


def _section(title: str, lines: Sequence[str], count: int | None = None) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - _PER_LIST} more"] if len(lines) > _PER_LIST else []
    return [f"## {title} ({len(lines) if count is None else count})", "", *lines[:_PER_LIST], *more]


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line, and in which nobody is mentioned."""
    flat = clip(" ".join(visible(text).split()), _PER_LINE)
    return _MARKUP.sub(r"\\\1", flat).replace("@", "@\u2060")


def _code(text: str) -> str:
    return "`" + clip(" ".join(visible(text).split()), _PER_LINE).replace("`", "'") + "`"

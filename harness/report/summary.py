"""What is Markdown, for CI job pages and pull requests: a report's summary, and steps; bounded, worst first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.compare.kinds import Kind
from harness.compare.step import Step
from harness.known.model import Known, OnGpu
from harness.report.labels import BUCKETS, KINDS, MARKS, bucket
from harness.report.model import Results
from harness.text import capital, one_line
from harness.words import GOOD, UNJUDGED, Class

#: GitHub refuses a comment of more than 65 536 characters; a job summary may have 1 MiB.
LIMIT_BYTES = 60_000
_PER_LIST = 40
_PER_LINE = 400
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#|~&!])")
_LISTED = ("regressed", "new", "fixed", "new_ok", "infra")


def summary(results: Results) -> str:
    """Return the summary: the same text for the same results, at most `LIMIT_BYTES` of UTF-8."""
    cells: dict[str, list[Known]] = {key: [] for key in BUCKETS}
    for cell in results.cells:
        cells[bucket(cell)].append(cell)
    lines = _head({key: len(found) for key, found in cells.items()})
    for key in _LISTED:
        lines += _section(BUCKETS[key][0], list(map(_cell, cells[key])))
    return _cut(lines, "the rest is in index.html and results.json")


def _head(counts: Mapping[str, int]) -> list[str]:
    bad = [f"**{BUCKETS[key][0]}: {counts[key]}.**" for key in ("regressed", "new") if counts[key]]
    return [
        "# TensorRT compatibility matrix",
        "",
        " ".join(bad) or "**No regression and no new failure.**",
        "",
        "| Verdict | Cells |",
        "| --- | ---: |",
        *(f"| {BUCKETS[key][0]} | {many} |" for key, many in counts.items() if many or key in _LISTED[:3]),
        f"| **All** | **{sum(counts.values())}** |",
        "",
    ]


def _cell(cell: Known) -> str:
    said = f"{MARKS[cell.cls].name.lower()}. {plain(capital(cell.reason))}"
    differing = disagreement(cell.by_gpu)
    gpus = f" GPUs disagree: {plain(differing)}." if differing else ""
    found = cell.diagnosis
    advice = f" **{plain(found.title)}.** {plain(found.advice)}" if found else ""
    return f"- {code(cell.id)}: {said}{gpus}{advice}"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - _PER_LIST} more"] if len(lines) > _PER_LIST else []
    return [f"## {title} ({len(lines)})", "", *lines[:_PER_LIST], *more, ""]


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line, without mentioning an account."""
    flat = one_line(text, _PER_LINE)
    return _MARKUP.sub(r"\\\1", flat).replace("@", "@\u2060")


def code(text: str) -> str:
    """Return text as code, on one line."""
    return "`" + one_line(text, _PER_LINE).replace("`", "'") + "`"


def disagreement(results: Sequence[OnGpu]) -> str:
    """Return how GPUs disagree, in words; "" where all that was judged ended alike, save that some only built."""
    unjudged = UNJUDGED | {Class.NEEDS_GPU_TO_BUILD}
    judged = [each for each in results if each.cls not in unjudged]
    ends = {Class.OK if each.cls in GOOD else (each.cls, each.signature) for each in judged}
    told = (f"{MARKS[each.cls].name.lower()} on {each.gpu or 'no GPU'}" for each in judged)
    return "; ".join(told) if len(ends) > 1 else ""


#: Kinds whose rows stand in the table; the others are in the fold.
_SHOWN = (
    Kind.BROKEN,
    Kind.PRECISION_LOST,
    Kind.BUILDS_WITHOUT,
    Kind.SLOWER,
    Kind.FIXED,
    Kind.PRECISION_GAINED,
)
_HEAD = ("| | Target | Model | Change |", "| --- | --- | --- | --- |")


def told(steps: Sequence[tuple[str, Step]]) -> str:
    """Return steps, each with the name of its target, as Markdown that fits a comment."""
    silent = [name for name, step in steps if quiet(step)]
    loud = [(name, step) for name, step in steps if not quiet(step)]
    rows: dict[bool, list[str]] = {True: [], False: []}
    for name, step in loud:
        for kind, row in _rows(name, step):
            rows[kind in _SHOWN].append(row)
    lines = [f"### {headline(steps)}", "", *([*_HEAD, *rows[True], ""] if rows[True] else [])]
    lines += [*_fold(loud, rows[False]), ""] if loud else []
    lines += [f"Unchanged: {', '.join(map(code, silent))}."] if silent else []
    return _cut(lines, "`trt-compat diff` has the rest")


def quiet(step: Step) -> bool:
    """Tell whether a step has nothing to tell: both sides are measured, and nothing changed."""
    return all(step.run) and bool(step.known) and not (step.rows or step.alone or step.troubles)


def headline(steps: Sequence[tuple[str, Step]]) -> str:
    """Return what all steps come to, the worst kind first."""
    counts = {kind: sum(step.counts[kind] for _, step in steps) for kind in _SHOWN}
    parts = [f"{KINDS[kind][0].lower()}: {count}" for kind, count in counts.items() if count]
    alone = sum(len(step.alone) for _, step in steps)
    parts += [f"fails, not known before: {alone}"] if alone else []
    known = sum(step.known for _, step in steps)
    return f"{'; '.join(parts) or 'Nothing changed'}, of {known} cells known on both".capitalize()


def _rows(name: str, step: Step) -> Iterator[tuple[Kind, str]]:
    for row in step.rows:
        texts = [_kept(row.text), *([_kept(f"Cause: {row.cause}")] if row.cause else [])]
        texts += [f"Meanwhile: {', '.join(map(code, row.instead))}"] if row.instead else []
        texts += [] if row.measured else [_kept(row.sure)]
        yield row.kind, _row(KINDS[row.kind][0], name, row.variant, "<br>".join(texts))
    for each in step.alone:
        yield Kind.BROKEN, _row("Fails, not known before", name, each.variant, _kept(each.text))


def _row(kind: str, target: str, variant: str, text: str) -> str:
    # A table's cell ends at a bar, in code too.
    names = " | ".join(code(each).replace("|", "\\|") for each in (target, variant))
    return f"| {kind} | {names} | {text} |"


def _kept(text: str) -> str:
    """Return text that Markdown shows as it is; what parts an account's name from its @ survives a terminal."""
    return plain(text).replace("@\u2060", "@<!-- -->")


def _fold(steps: Iterable[tuple[str, Step]], rest: Sequence[str]) -> list[str]:
    lines = [f"- {code(name)}: {_kept(step.headline)}" for name, step in steps]
    if not lines:
        return []
    table = [*_HEAD, *rest] if rest else []
    return ["<details><summary>Target by target</summary>", "", *lines, "", *table, "", "</details>"]


def _cut(lines: Sequence[str], rest: str) -> str:
    text = ""
    for line in lines:
        if len((text + line).encode()) > LIMIT_BYTES - 200:
            open_fold = "<details>" in text and "</details>" not in text
            return text + ("\n</details>\n" if open_fold else "") + f"\n*Cut here; {rest}.*\n"
        text += line + "\n"
    return text

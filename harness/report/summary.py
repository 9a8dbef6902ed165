"""What is Markdown, for CI job pages and pull requests: a report's summary, and steps; bounded, worst first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from harness.compare.kinds import Kind
from harness.compare.step import Step
from harness.compare.versions import Change
from harness.known.cell import shared_advice
from harness.known.model import Known, OnGpu
from harness.report.labels import BUCKETS, KINDS, MARKS, bucket
from harness.report.model import Results
from harness.text import capital, listed, one_line, some
from harness.words import GOOD, UNJUDGED, Basis, Class

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
    cells: dict[str, list[str]] = {key: [] for key in _LISTED}
    for cell in results.cells:
        if (key := bucket(cell)) in cells:
            cells[key].append(_cell(cell))
    listed = [_section(BUCKETS[key][0], lines) for key, lines in cells.items()]
    sections = [_head(results), *listed, _changes(results), _causes(results)]
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
    bad = [f"**{BUCKETS[key][0]}: {tally[key]}.**" for key in ("regressed", "new") if tally[key]]
    return [
        "# TensorRT compatibility matrix",
        "",
        " ".join(bad) or "**No regression and no new failure.**",
        "",
        *([plain(unrun), ""] if (unrun := nobody_ran(results)) else []),
        "| Verdict | Cells |",
        "| --- | ---: |",
        *(f"| {BUCKETS[key][0]} | {number} |" for key, number in shown.items()),
        f"| **All** | **{len(results.cells)}** |",
    ]


def _cell(cell: Known) -> str:
    said = f"{MARKS[cell.cls].name.lower()}. {plain(capital(cell.reason))}"
    differing = disagreement(cell.by_gpu)
    gpus = f" GPUs disagree: {plain(differing)}." if differing else ""
    found = cell.diagnosis
    advice = f" **{plain(found.title)}.** {plain(found.advice)}" if found else ""
    return f"- {code(cell.id)}: {said}{gpus}{advice}"


def _changes(results: Results) -> list[str]:
    """Return the changes between neighbouring versions, each once with all its variants."""
    found: dict[tuple[str, str, str, str], list[Change]] = {}
    for change in results.changes:
        found.setdefault((change.series, change.versions, change.kind, change.text), []).append(change)
    lines = []
    for (series, versions, kind, text), changes in sorted(found.items(), key=_rank):
        names = some([code(f"{change.case}.{change.variant}") for change in changes], _PER_GROUP)
        lines.append(f"- **{plain(f'{series} {versions}')}**, {kind}: {plain(text)}: {names}")
    return _section("Changed between versions", lines, len(results.changes))


def _rank(entry: tuple[tuple[str, str, str, str], list[Change]]) -> tuple[bool, bool, int]:
    """Order changes: results before precision, worse before better, the most variants first."""
    (_, _, kind, _), changes = entry
    return kind != "result", changes[0].better is not False, -len(changes)


def _causes(results: Results) -> list[str]:
    return _section(
        "Failures by cause",
        [
            f"- {len(cells)} of {plain(title)}: " + plain(", ".join(sorted({cell.target for cell in cells})))
            for title, cells in causes(results.cells)
        ],
    )


def _section(title: str, lines: Sequence[str], count: int | None = None) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - _PER_LIST} more"] if len(lines) > _PER_LIST else []
    return [f"## {title} ({len(lines) if count is None else count})", "", *lines[:_PER_LIST], *more]


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line, without mentioning an account."""
    flat = one_line(text, _PER_LINE)
    return _MARKUP.sub(r"\\\1", flat).replace("@", "@\u2060")


def code(text: str) -> str:
    """Return text as code, on one line."""
    return "`" + one_line(text, _PER_LINE).replace("`", "'") + "`"


def counts(results: Results) -> dict[str, int]:
    """Return the number of cells by bucket, in the buckets' order; they add up to the number of cells."""
    found = Counter(bucket(cell) for cell in results.cells)
    return {key: found[key] for key in BUCKETS}


def nobody_ran(results: Results) -> str:
    """Name the families without a measured target, and count the claims about them; "" if all have one."""
    families = {target.id: target.family for target in results.targets}
    found: dict[Basis | None, list[Known]] = {}
    for cell in results.cells:
        found.setdefault(cell.basis, []).append(cell)
    ran = {families[cell.target] for cell in found.get(Basis.MEASURED, ())}
    unrun = [family for family in dict.fromkeys(families.values()) if family not in ran]
    reported = [cell for cell in found.get(Basis.REPORTED, ()) if families[cell.target] in unrun]
    reports = {(cell.case, cell.variant, cell.claims[0]) for cell in reported if cell.claims}
    return f"Nobody has run {listed(unrun)} yet; claims reported of them: {len(reports)}." if unrun else ""


def causes(cells: Iterable[Known]) -> list[tuple[str, list[Known]]]:
    """Return the measured failures by the title of their diagnosis, else of their class; the largest group first.

    If its cells name nodes of their own the title is that of the signature.
    """
    groups: dict[str, list[Known]] = {}
    for cell in cells:
        if cell.measured and cell.cls not in GOOD:
            groups.setdefault(cell.signature or f"\0{cell.cls}", []).append(cell)
    titled = []
    for _, found in sorted(groups.items()):
        every = [cell.diagnosis for cell in found if cell.diagnosis]
        unknown = f"{MARKS[found[0].cls].name}, no known signature"
        titled.append((shared_advice(every).title if every else unknown, found))
    return sorted(titled, key=lambda each: (each[1][0].diagnosis is None, -len(each[1]), each[0]))


def disagreement(results: Sequence[OnGpu]) -> str:
    """Return how GPUs disagree, in words; "" where all that was judged ended alike, save that some only built."""
    judged = [
        (name, each)
        for name, each in named(results)
        if each.cls not in UNJUDGED and each.cls is not Class.NEEDS_GPU_TO_BUILD
    ]
    ends = {Class.OK if each.cls in GOOD else (each.cls, each.signature) for _, each in judged}
    told = "; ".join(f"{MARKS[each.cls].name.lower()} on {name}" for name, each in judged)
    return told if len(ends) > 1 else ""


def named(results: Sequence[OnGpu]) -> list[tuple[str, OnGpu]]:
    """Return each result with its GPU for readers: the product, and the driver if a product is there twice."""
    products = [each.gpu for each in results]
    return [
        (f"{each.gpu}, driver {each.driver}" if products.count(each.gpu) > 1 else each.gpu or "no GPU", each)
        for each in results
    ]


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
_CUT = "\n*Cut here; `trt-compat diff` has the rest.*\n"


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
    return _cut([*lines, f"Unchanged: {', '.join(map(code, silent))}."] if silent else lines)


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


def _cut(lines: Sequence[str]) -> str:
    text = ""
    for line in lines:
        if len((text + line).encode()) > LIMIT_BYTES - 200:
            open_fold = "<details>" in text and "</details>" not in text
            return text + ("\n</details>\n" if open_fold else "") + _CUT
        text += line + "\n"
    return text

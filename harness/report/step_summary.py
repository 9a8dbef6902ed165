"""Steps in Markdown, for a comment on a pull request: headline, a table of what changed, and a fold for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.compare.kinds import Kind
from harness.compare.step import Step
from harness.report.labels import KINDS
from harness.report.summary import LIMIT_BYTES, code
from harness.report.summary import plain as joined

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
    loud = [(name, step) for name, step in steps if not quiet(step)]
    lines = [f"### {headline(steps)}", ""]
    rows = [row for name, step in loud for row in _rows(name, step)]
    shown = [row for kind, row in rows if kind in _SHOWN]
    lines += [*_HEAD, *shown, ""] if shown else []
    rest = [row for kind, row in rows if kind not in _SHOWN]
    lines += [*_fold(loud, rest), ""] if loud else []
    if silent := [name for name, step in steps if quiet(step)]:
        lines.append(f"Unchanged: {', '.join(map(code, silent))}.")
    return _cut(lines)


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
        texts = [plain(row.text), *([plain(f"Cause: {row.cause}")] if row.cause else [])]
        texts += [f"Meanwhile: {', '.join(map(code, row.instead))}"] if row.instead else []
        texts += [] if row.measured else [plain(row.sure)]
        yield row.kind, _row(KINDS[row.kind][0], name, row.variant, "<br>".join(texts))
    for each in step.alone:
        yield Kind.BROKEN, _row("Fails, not known before", name, each.variant, plain(each.text))


def _row(kind: str, target: str, variant: str, text: str) -> str:
    # A table's cell ends at a bar, in code too.
    names = " | ".join(code(each).replace("|", "\\|") for each in (target, variant))
    return f"| {kind} | {names} | {text} |"


def plain(text: str) -> str:
    """Return text that Markdown shows as it is; what parts an account's name from its @ survives a terminal."""
    return joined(text).replace("@\u2060", "@<!-- -->")


def _fold(steps: Iterable[tuple[str, Step]], rest: Sequence[str]) -> list[str]:
    lines = [f"- {code(name)}: {plain(step.headline)}" for name, step in steps]
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

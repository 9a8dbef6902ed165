"""The summary of `run`: counts, changes, cells that did not run and why, the next command."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from harness.judge.cell import claim, headline
from harness.words import GOOD, Class, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.judge.cell import Judged

#: Cells of a list that are named one by one; a longer list is told by cause, and the report has them all.
_MOST_LISTED = 15
#: Characters of a sentence, and causes of a list.
_WIDEST = 200
_MOST_CAUSES = 20

#: Every cell is counted under exactly one of these, worst first.
_COUNTED = (
    "regressed",
    "new failure",
    "fixed",
    "not reproduced",
    "infrastructure trouble",
    "known failure",
    "built, known to fail when run",
    "as expected",
    "newly found to work",
    "undecided without a GPU",
    "not run",
    "not applicable",
)
_VERDICTS = {
    Verdict.REGRESSED: "regressed",
    Verdict.NEW: "new failure",
    Verdict.FIXED: "fixed",
    Verdict.NOT_REPRODUCED: "not reproduced",
    Verdict.INFRA: "infrastructure trouble",
    Verdict.KNOWN_FAILURE: "known failure",
    Verdict.FAILS_WHEN_RUN: "built, known to fail when run",
    Verdict.EXPECTED: "as expected",
    Verdict.NOT_RUN: "undecided without a GPU",
}


def summarise(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines on cells that were judged: counts, then news, then cells that did not run and why."""
    groups: dict[str, list[Judged]] = {name: [] for name in _COUNTED}
    for result in judged:
        groups[_counted(result)].append(result)
    targets = len({result.cell.target.name for result in judged})
    counts = ", ".join(f"{len(found)} {_plural(name, len(found))}" for name, found in groups.items() if found)
    yield f"{_number(len(judged), 'cell')} on {_number(targets, 'target')}: {counts}"
    classes = Counter(result.classification.cls for result in judged)
    ended = [f"{classes[cls]} {cls}" for cls in Class if classes[cls] and cls not in _SAID_ALREADY]
    if ended:
        yield f"ended as: {', '.join(ended)}"
    for name in ("regressed", "new failure", "fixed", "not reproduced"):
        yield from _listed(name, groups[name])
    for name in ("infrastructure trouble", "not run"):
        yield from _by_cause(name, groups[name], _reason)


def missing(required: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines on cells of required targets that did not run."""
    yield from _by_cause("required and not run", required, _reason)


def advice(judged: Sequence[Judged], accept: str, places: Sequence[str]) -> Iterator[str]:
    """Yield the next commands: `accept` is the command that takes these measurements for granted, "" for none."""
    groups = {name: [result for result in judged if _counted(result) == name] for name in _COUNTED}
    bad = groups["regressed"] or groups["new failure"]
    if bad:
        show = shlex.join(["trt-compat", "show", bad[0].cell.id, *places])
        yield f"look into one: {show}"
    if accept and (bad or groups["fixed"] or groups["not reproduced"] or groups["newly found to work"]):
        yield f"to expect these results from now on: {accept}"


_SAID_ALREADY = frozenset({Class.NOT_RUN, Class.NOT_APPLICABLE, Class.INFRA_ERROR})


def _counted(result: Judged) -> str:
    cls, verdict = result.classification.cls, result.judgement.verdict
    if cls is Class.NOT_APPLICABLE:
        return "not applicable"
    if cls is Class.NOT_RUN:
        return "not run"
    if verdict is Verdict.NEW and cls in GOOD:
        return "newly found to work"
    return _VERDICTS[verdict]


def _listed(title: str, results: Sequence[Judged]) -> Iterator[str]:
    if len(results) > _MOST_LISTED:
        yield from _by_cause(title, results, _cause)
    elif results:
        yield f"{_plural(title)}: {len(results)}"
        for result in results:
            yield f"  {result.cell.id}: {_told(result)}"


def _told(result: Judged) -> str:
    if not result.failed:
        return _short(result.judgement.sentence)
    told = _short(f"{result.classification.cls}: {headline(result)}")
    # What was claimed of a regressed cell is news as well, and an engine's sentence must not push it off the line.
    return f"{told}; {_short(claim(result))}" if result.judgement.expectation else told


def _by_cause(title: str, results: Sequence[Judged], cause: Callable[[Judged], str]) -> Iterator[str]:
    if not results:
        return
    yield f"{_plural(title)}: {len(results)}"
    causes: dict[str, list[Judged]] = {}
    for result in results:
        causes.setdefault(cause(result), []).append(result)
    most = sorted(causes.items(), key=lambda entry: -len(entry[1]))
    for text, found in most[:_MOST_CAUSES]:
        targets = dict.fromkeys(result.cell.target.name for result in found)
        yield f"  {len(found):>4}  {_short(text)}: {', '.join(targets)}"
    if len(most) > _MOST_CAUSES:
        rest = sum(len(found) for _, found in most[_MOST_CAUSES:])
        yield f"  {rest:>4}  by {_number(len(most) - _MOST_CAUSES, 'other cause')}, which the report lists"


def _reason(result: Judged) -> str:
    return result.judgement.sentence


def _cause(result: Judged) -> str:
    cls = result.classification.cls
    return f"{cls}, {result.diagnosis.title}" if result.diagnosis else f"{cls}, no known signature"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _plural(name: str, count: int = 2) -> str:
    return f"{name}s" if name.endswith("failure") and count != 1 else name


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."

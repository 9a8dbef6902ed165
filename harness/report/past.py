"""News: what changed of cells from one run to the next, for readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.labels import MARKS
from harness.text import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.history import CellHistory
    from harness.history.changes import LatencyHistory
    from harness.known.model import Known
    from harness.report.model import Results
    from harness.words import Class

#: What can be said of a cell's past in a word, for the filter; those that are news, worst first.
NEWS = {
    "new_failure": "Began to fail",
    "flaky": "Flaky",
    "slower": "Slower",
    "changed": "Changed",
    "fixed": "Stopped failing",
    "faster": "Faster",
}
_STACK = {
    "engine": "engine version",
    "image": "image or packages",
    "device": "device",
    "driver": "driver",
    "harness": "harness version",
    "compute_capability": "compute capability",
}


@dataclass(frozen=True)
class News:
    """What changed from one run to the next: since when, one of `NEWS`, and the cells, each with a sentence."""

    when: str
    kind: str
    cells: tuple[tuple[Known, str], ...]


def news(results: Results) -> tuple[News, ...]:
    """Return what changed from run to run, the latest first; cells that changed alike in one run stand together."""
    found: dict[tuple[str, str], list[tuple[Known, str]]] = {}
    for cell in results.cells:
        for when, kind, text in _news(cell):
            found.setdefault((when, kind), []).append((cell, text))
    order = list(NEWS)
    made = [News(when, kind, tuple(cells)) for (when, kind), cells in found.items()]
    made.sort(key=lambda entry: order.index(entry.kind))
    return tuple(sorted(made, key=lambda entry: entry.when, reverse=True))


def _news(cell: Known) -> Iterable[tuple[str, str, str]]:
    past = cell.past
    if past is None:
        return
    if past.event in NEWS:
        said = (_class(past, _last(cell, past)), *(_stack(past) if past.with_stack else ()))
        yield past.flaky_since or past.since, past.event, " ".join(said)
    if _latency_change(past):
        yield cell.when, _latency_change(past), _latency(past.latency)[0]


def _last(cell: Known, past: CellHistory) -> Class:
    """Return the class that the past ends with; a cell that was not run or judged this time shows another."""
    own = [cls for number, cls in past.strip if number not in past.elsewhere]
    return own[-1] if own and not cell.measured else cell.cls


def _class(past: CellHistory, cls: Class) -> str:
    now, since = MARKS[cls].name, moment(past.since)
    was = MARKS[past.before].name.lower() if past.before else ""
    if past.event == "first":
        return f"Run once, {since}."
    if past.event == "flaky":
        seen = " and ".join(MARKS[each].name.lower() for each in past.flaky)
        since = f" since {moment(past.flaky_since)}" if past.flaky_since else ""
        return f"Flaky{since}: {seen} on the same stack; nothing that is recorded tells these runs apart."
    if past.event == "steady":
        return f"{now} in every run since {since}."
    told = {
        "new_failure": "worked until then",
        "fixed": "failed until then",
        "changed": "otherwise until then",
    }
    return f"{now} since {since}; {told[past.event]} ({was})."


def _stack(past: CellHistory) -> list[str]:
    if past.stack_since is None:
        return []
    what = ", ".join(_STACK[name] for name in past.stack_changed)
    cause = " The result changed in that very run, so the stack may be the cause." if past.with_stack else ""
    return [
        f"The stack changed {moment(past.stack_since)} ({what}): latencies from before it are not compared.{cause}"
    ]


def _latency_change(past: CellHistory) -> str:
    return (past.latency.change or "") if past.latency else ""


def _latency(latency: LatencyHistory | None) -> list[str]:
    if latency is None:
        return []
    before, now = milliseconds(latency.before_ms), milliseconds(latency.now_ms)
    part = f"{(latency.now_ms / latency.before_ms - 1) * 100:+.0f} %"
    over = f"the {latency.runs} runs before it on this stack"
    return [f"The median of the last run is {now}, and {before} over {over} ({part})."]


def day(when: str) -> str:
    """Return a UTC time to the minute, for where it says UTC already."""
    return when[:16].replace("T", " ")


def moment(when: str) -> str:
    """Return a UTC time to the minute."""
    return f"{day(when)} UTC"

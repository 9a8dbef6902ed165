"""What the runs of the past say of a cell, for readers: sentences, the marks of its corner, and the list of news."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.history.latency import NEEDED
from harness.report.labels import MARKS
from harness.text import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.history import CellHistory
    from harness.history.latency import LatencyChange, LatencyHistory
    from harness.report.model import CellView, Results
    from harness.words import Class

#: What can be said of a cell's past in a word, for the filter; those that are news, worst first.
NEWS = {
    "new_failure": "Began to fail",
    "flaky": "Flaky",
    "slower": "Slower",
    "spike": "Spike",
    "changed": "Changed",
    "fixed": "Stopped failing",
    "faster": "Faster",
}
#: The corner mark of what a reader of the matrix must know before trusting a cell.
TREND_MARKS = {"flaky": "~", "slower": "▼", "faster": "▲"}

#: A latency that ends within this part of where it began is about what it was.
_AS_BEFORE = 0.1
_BACK = "It is about what it was before it first changed."

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
    cells: tuple[tuple[CellView, str], ...]


def history_words(cell: CellView) -> tuple[str, ...]:
    """Return the words of `NEWS` that are true of a cell, or "steady", or "first" where it was run once."""
    past = cell.history
    if past is None:
        return ()
    return (past.event, *_latency_words(past.latency))


def corner(cell: CellView) -> str:
    """Return the marks of a cell's past: flaky, and where the latency went and stayed."""
    past = cell.history
    if past is None:
        return ""
    lasting = [word for word in _latency_words(past.latency) if word in TREND_MARKS]
    latest = [] if _returned(past.latency) else lasting[-1:]
    return "".join(TREND_MARKS[word] for word in (past.event, *latest) if word in TREND_MARKS)


def sentences(cell: CellView) -> tuple[str, ...]:
    """Return all that the past says of a cell, a sentence each; nothing where it was never run."""
    past = cell.history
    if past is None:
        return ()
    return (_class(past, _last(cell, past)), *_first_seen(past), *_stack(past), *_latency(past.latency))


def news(results: Results) -> tuple[News, ...]:
    """Return what changed from run to run, the latest first; cells that changed alike in one run stand together."""
    found: dict[tuple[str, str], list[tuple[CellView, str]]] = {}
    for cell in results.cells:
        for when, kind, text in _news(cell):
            found.setdefault((when, kind), []).append((cell, text))
    order = list(NEWS)
    made = [News(when, kind, tuple(cells)) for (when, kind), cells in found.items()]
    made.sort(key=lambda entry: order.index(entry.kind))
    return tuple(sorted(made, key=lambda entry: entry.when, reverse=True))


def _news(cell: CellView) -> Iterable[tuple[str, str, str]]:
    past = cell.history
    if past is None:
        return
    if past.event in NEWS:
        said = (_class(past, _last(cell, past)), *(_stack(past) if past.with_stack else ()))
        yield past.flaky_since or past.since, past.event, " ".join(said)
    if past.latency:
        for change in past.latency.changes:
            back = f" {_BACK}" if change is past.latency.changes[-1] and _returned(past.latency) else ""
            yield change.when, _latency_word(change), _change(past.latency, change) + back


def _last(cell: CellView, past: CellHistory) -> Class:
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


def _first_seen(past: CellHistory) -> list[str]:
    if past.first_seen is None or past.first_seen >= past.since:
        return []
    return [f"It first failed in this way {moment(past.first_seen)}."]


def _stack(past: CellHistory) -> list[str]:
    if past.stack_since is None:
        return []
    what = ", ".join(_STACK[name] for name in past.stack_changed)
    cause = " The result changed in that very run, so the stack may be the cause." if past.with_stack else ""
    return [
        f"The stack changed {moment(past.stack_since)} ({what}): latencies from before it are not compared.{cause}"
    ]


def _latency_word(change: LatencyChange) -> str:
    if change.p is None:
        return "spike"
    return "slower" if change.after_ms > change.before_ms else "faster"


def _latency_words(latency: LatencyHistory | None) -> list[str]:
    """Return what the latency ever did, the latest step or drift last."""
    changes = latency.changes if latency else ()
    return list(dict.fromkeys(_latency_word(change) for change in reversed(changes)))[::-1]


def _returned(latency: LatencyHistory | None) -> bool:
    """Tell whether the latency is what it was before it first changed, within a tenth."""
    lasting = [change for change in latency.changes if change.p is not None] if latency else []
    return len(lasting) > 1 and abs(lasting[-1].after_ms / lasting[0].before_ms - 1) < _AS_BEFORE


def _latency(latency: LatencyHistory | None) -> list[str]:
    if latency is None:
        return []
    over = _over(latency)
    if latency.verdict == "inconclusive":
        why = (
            f"{NEEDED} are needed" if latency.runs < NEEDED else "runs that did not change might look like it"
        )
        return [f"Whether its latency changed is inconclusive: {over}, {why}."]
    if latency.verdict == "steady":
        return [f"Its latency is steady over {over}."]
    back = [_BACK] if _returned(latency) else []
    return [*(_change(latency, change) for change in latency.changes), *back]


def _over(latency: LatencyHistory) -> str:
    return f"{latency.runs} timed run{'' if latency.runs == 1 else 's'} on this stack"


def _change(latency: LatencyHistory, change: LatencyChange) -> str:
    before, after = milliseconds(change.before_ms), milliseconds(change.after_ms)
    part = f"{(change.after_ms / change.before_ms - 1) * 100:+.0f} %"
    if change.p is None:
        return f"The run of {moment(change.when)} stands out: {after} instead of {before} ({part})."
    sure = f"p {change.p:.2g}"
    if latency.verdict == "drift":
        return f"Its latency drifts from {before} to {after} ({part}, {sure}) over {_over(latency)}."
    return f"Its latency went from {before} to {after} ({part}, {sure}) in the run of {moment(change.when)}."


def day(when: str) -> str:
    """Return a UTC time to the minute, for where it says UTC already."""
    return when[:16].replace("T", " ")


def moment(when: str) -> str:
    """Return a UTC time to the minute."""
    return f"{day(when)} UTC"

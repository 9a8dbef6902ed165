"""The past of a cell: since when it ends as it does, whether it is flaky, slower, or on another stack; pure.

Results are compared if model, recipe and stack are the same; a result on another GPU is no past of this one. A class
that differs from one run to the next on the same stack has no cause among the stamps. The cell is flaky: after one such
change until `SETTLED` runs in a row agree, after several as long as two of them are within the last `WINDOW` runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

from harness.history.runs import Entry, RunRecord, Stack
from harness.words import GOOD, Class

#: Runs on one stack in which a class that comes and goes makes a cell flaky.
WINDOW = 20
#: Runs in a row of one class after which a change on the same stack counts as a change and no longer as flaky.
SETTLED = 3
#: Earlier runs without which no change of the latency is told.
NEEDED = 5
#: Earlier runs, the latest, that a latency is compared with.
MOST = 20
#: A change is told beyond this part of the median: an untuned machine varies by less from day to day.
LEAST = 0.1

Event = Literal["first", "steady", "new_failure", "fixed", "changed", "flaky"]


@dataclass(frozen=True)
class LatencyHistory:
    """The last run's median, and that of the `runs` before it, in milliseconds; `change` is None if small."""

    now_ms: float
    before_ms: float
    runs: int
    change: Literal["slower", "faster"] | None = None


@dataclass(frozen=True)
class CellHistory:
    """A cell's past.

    since: the time of the first run of its present class.
    first_seen: the time of the first run with its present failure, None if it works.
    fixed_since: the time of the first run since which it works, None if it fails or never failed.
    flaky: the classes of the recent runs on the present stack, if they disagree.
    before: the class before the present one.
    """

    event: Event
    since: str
    first_seen: str | None = None
    fixed_since: str | None = None
    flaky: tuple[Class, ...] = ()
    latency: LatencyHistory | None = None
    before: Class | None = None


@dataclass(frozen=True)
class _Seen:
    run: str
    when: str
    entry: Entry
    stack: Stack


def histories(
    runs: Sequence[RunRecord],
    subjects: Mapping[str, str] | None = None,
    shown: Mapping[str, str] | None = None,
) -> dict[str, CellHistory]:
    """Return the history of every cell that was ever run, by cell id; `runs` are the oldest first.

    `subjects` are today's model and recipe by cell id; a cell that was only run with others has no history. `shown` are
    the runs whose result speaks for a cell: their stack is the present one, though a machine that can do less, and so
    does not speak, may have run later. Without it the last run speaks.
    """
    by_cell: dict[str, list[_Seen]] = {}
    for run in runs:
        for key, entry in run.cells.items():
            if subjects is None or subjects.get(key) == entry.subject:
                seen = _Seen(run.run, run.when, entry, run.stacks[entry.stack])
                by_cell.setdefault(key, []).append(seen)
    return {key: _history(seen, (shown or {}).get(key)) for key, seen in by_cell.items()}


def _history(seen: list[_Seen], shown: str | None) -> CellHistory:
    speaks = next((each for each in seen if each.run == shown), seen[-1])
    same_subject = [
        each
        for each in seen
        if each.entry.subject == speaks.entry.subject
        and (each.stack.gpu == speaks.stack.gpu or not (each.stack.gpu and speaks.stack.gpu))
    ]
    own = [each for each in same_subject if each.stack == speaks.stack]
    now = own[-1]
    earlier = same_subject[: same_subject.index(own[0])]
    line = [*earlier, *own]
    start = _streak(line)
    flaky = _flaky(own)
    failing = now.entry.cls not in GOOD
    failed_before = any(each.entry.cls not in GOOD for each in line)
    alike = (each.when for each in line if _ending(each) == _ending(now))
    medians = [each.entry.median_ms for each in own if each.entry.cls is now.entry.cls]
    return CellHistory(
        event="flaky" if flaky else _event(line, start),
        since=line[start].when,
        first_seen=next(alike) if failing else None,
        fixed_since=None if failing or not failed_before else line[_works_since(line)].when,
        before=line[start - 1].entry.cls if start else None,
        flaky=flaky,
        latency=judge_latency([median for median in medians if median is not None]),
    )


def judge_latency(medians_ms: Sequence[float]) -> LatencyHistory | None:
    """Return how the last of the medians of runs on one stack compares, the oldest first; None if they are too few.

    It is a change if it differs from the median of the runs before by more than `LEAST`, and from each of them.
    """
    *earlier, now = medians_ms[-MOST - 1 :] or [0.0]
    if len(earlier) < NEEDED:
        return None
    before = median(earlier)
    if now > max(*earlier, before * (1 + LEAST)):
        return LatencyHistory(now, before, len(earlier), "slower")
    if now < min(*earlier, before * (1 - LEAST)):
        return LatencyHistory(now, before, len(earlier), "faster")
    return LatencyHistory(now, before, len(earlier))


def _ending(seen: _Seen) -> tuple[Class, str | None]:
    return seen.entry.cls, seen.entry.signature


def _streak(line: Sequence[_Seen]) -> int:
    start = len(line) - 1
    while start and line[start - 1].entry.cls is line[-1].entry.cls:
        start -= 1
    return start


def _works_since(line: Sequence[_Seen]) -> int:
    start = len(line) - 1
    while start and line[start - 1].entry.cls in GOOD:
        start -= 1
    return start


def _flaky(own: Sequence[_Seen]) -> tuple[Class, ...]:
    recent = [each.entry.cls for each in own[-WINDOW:]]
    switches = sum(one is not other for one, other in pairwise(recent))
    settled = len(own) - _streak(own) >= SETTLED
    if switches == 0 or (switches == 1 and settled):
        return ()
    return tuple(sorted(set(recent)))


def _event(line: Sequence[_Seen], start: int) -> Event:
    if len(line) == 1:
        return "first"
    if start == 0:
        return "steady"
    was, now = line[start - 1].entry.cls, line[start].entry.cls
    if (was in GOOD) is (now in GOOD):
        return "changed"
    return "fixed" if now in GOOD else "new_failure"

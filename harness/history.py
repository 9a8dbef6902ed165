"""A compact record of each run under `reports/history/`, and the past of each cell that is read from them.

`history/<date>-<run>.json` has the class of each cell of a run, in a form that a year of nights can keep. It outlives
the run's records and logs. The class is the one judged then, for cases and diagnoses of a later day would judge another
model. Cells that an engine had no part in are left out.

Results are compared if model, recipe and stack are the same; a result on another GPU is no past of this one. A class
that differs from one run to the next on the same stack has no cause among the stamps. The cell is flaky: after one such
change until `SETTLED` runs in a row agree, after several as long as two of them are within the last `WINDOW` runs.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from pathlib import Path
from statistics import median
from typing import Literal

from msgspec import Struct

from harness.bounded import files_of, parse_json
from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.record.from_json import check_schema, decode, plain
from harness.record.outcome import Stamps
from harness.record.store import write_files
from harness.words import GOOD, UNJUDGED, Class

#: The folder beside results.json.
FOLDER = "history"
#: Raised when the meaning of a field changes.
HISTORY_SCHEMA = 2
#: Hexadecimal digits kept of the model's and the recipe's hash.
_DIGITS = 12
#: Images that were built here: their tag is a hash of all they are made of, whereas two builds of one recipe differ in
#: their digest.
_BUILT_HERE = "trt-compat/"
_FILE = re.compile(r"\d{4}-\d{2}-\d{2}-[A-Za-z0-9_.-]+\.json")


@dataclass(frozen=True)
class Stack:
    """The machine and software of a result; figures of different stacks are not compared.

    image: the digest of a pulled image, the tag of one that was built here, or the packages of an environment.
    device: the GPU's name, or the CPU's if no GPU took part.
    compute_capability: the GPU's, "" without a GPU.
    """

    engine: str
    image: str
    device: str
    driver: str
    harness: str
    compute_capability: str = ""

    @property
    def gpu(self) -> tuple[str, str] | None:
        """Return compute capability and product of the GPU, None without one."""
        return (self.compute_capability, self.device) if self.compute_capability else None


class Entry(Struct, frozen=True, rename={"cls": "class"}, omit_defaults=True):
    """One cell in one run; `subject` is short for the hashes of model and recipe, `stack` an index.

    clock: that of the median where it is another than launches have, for only like medians are compared.
    """

    case: str
    variant: str
    target: str
    cls: Class
    subject: str
    stack: int
    signature: str | None = None
    median_ms: float | None = None
    clock: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """One run: `when` is the UTC time of its first cell."""

    run: str
    when: str
    stacks: tuple[Stack, ...] = ()
    cells: dict[str, Entry] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Return the name under which it is kept."""
        return f"{self.when[:10]}-{self.run}.json"


def subject_of(model_sha256: str, recipe_sha256: str) -> str:
    """Return the hashes of model and recipe in short."""
    return f"{model_sha256[:_DIGITS]}-{recipe_sha256[:_DIGITS]}"


def stack_of(stamps: Stamps) -> Stack:
    """Return the stack of an outcome."""
    seen = stamps.environment
    if stamps.image.startswith(_BUILT_HERE):
        image = stamps.image
    elif stamps.image_digest:
        image = stamps.image_digest
    else:
        host = (f"python {seen.get('python', '')}", seen.get("libc", ""))
        image = " ".join(filter(None, (*sorted(stamps.packages), *host)))
    device = seen.get("gpu") or seen.get("cpu", "")
    capability = seen.get("compute_capability", "") if seen.get("gpu") else ""
    driver, harness = seen.get("driver", ""), stamps.harness_version
    return Stack(stamps.engine_version, image, device, driver, harness, capability)


def records(results: Iterable[Judged]) -> tuple[RunRecord, ...]:
    """Return the records of the runs that outcomes are of, the oldest first.

    The last of several outcomes of a cell in one run counts; runs that are not `keepable` are left out.
    """
    by_run: dict[str, list[Judged]] = {}
    for result in results:
        stamps = result.outcome.stamps
        if keepable(stamps) and result.classification.cls not in UNJUDGED:
            by_run.setdefault(_run(stamps), []).append(result)
    return tuple(sorted((_record(run, found) for run, found in by_run.items()), key=_age))


def keepable(stamps: Stamps) -> bool:
    """Tell whether a run can be kept under its day and id, which in somebody else's record may be any text."""
    return _is_time(stamps.when) and bool(_FILE.fullmatch(RunRecord(_run(stamps), stamps.when).file_name))


def _run(stamps: Stamps) -> str:
    return stamps.run or "run"


def _is_time(when: str) -> bool:
    """Tell whether a text is an ISO 8601 time by its minutes: Python 3.10 reads less of the rest than 3.11."""
    try:
        dt.datetime.fromisoformat(when[:16])
    except ValueError:
        return False
    return True


def _age(record: RunRecord) -> tuple[str, str]:
    return record.when, record.run


def _record(run: str, results: list[Judged]) -> RunRecord:
    results.sort(key=lambda result: (result.outcome.stamps.when, result.cell.id))
    stacks = sorted({stack_of(result.outcome.stamps) for result in results}, key=repr)
    numbers = {stack: number for number, stack in enumerate(stacks)}
    cells = {result.cell.id: _entry(result, numbers[stack_of(result.outcome.stamps)]) for result in results}
    return RunRecord(run, results[0].outcome.stamps.when, tuple(stacks), dict(sorted(cells.items())))


def _entry(result: Judged, stack: int) -> Entry:
    stamps, latency = result.outcome.stamps, result.outcome.latency
    samples = sorted(latency.samples_ms) if latency else []
    # A ratio of medians needs times above 0, and all of them finite.
    timed = bool(samples) and samples[0] > 0 and math.isfinite(sum(samples))
    return Entry(
        case=result.cell.case.name,
        variant=result.cell.variant.name,
        target=result.cell.target.name,
        cls=result.classification.cls,
        subject=subject_of(stamps.model_sha256, stamps.recipe_sha256),
        stack=stack,
        signature=result.signature,
        # Five digits: CUDA events resolve half a microsecond, and the file is kept for years.
        median_ms=float(f"{samples[len(samples) // 2]:.5g}") if timed else None,
        clock="cuda_graph" if latency and latency.clock == "cuda_graph" else None,
    )


def to_text(record: RunRecord) -> str:
    """Return the file's text."""
    return json.dumps({"schema": HISTORY_SCHEMA, **plain(record)}) + "\n"


def from_text(text: str) -> RunRecord:
    """Rebuild a record; raises ValueError, KeyError or TypeError for another text."""
    data = parse_json(text)
    check_schema(data, HISTORY_SCHEMA)
    record = decode(RunRecord, data)
    if not _is_time(record.when):
        raise ValueError(f"{record.when!r:.60} is no time")
    for entry in record.cells.values():
        record.stacks[entry.stack]
    return record


def read_history(reports: Path) -> tuple[RunRecord, ...]:
    """Return all records of a reports folder, the oldest first.

    Raises HandledError, naming the file, for one that cannot be read: leaving it out would move dates.
    """
    found = []
    for path, data in files_of(reports / FOLDER, ".json"):
        try:
            record = from_text(data.decode())
        except (ArithmeticError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise HandledError(f"{path}: not a history record ({error}); mend or delete it") from error
        if not _FILE.fullmatch(path.name) or path.name != record.file_name:
            raise HandledError(f"{path}: holds the record {record.file_name}; give it that name or delete it")
        found.append(record)
    return tuple(sorted(found, key=_age))


def missing(reports: Path, fresh: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """Return those of `fresh` that the folder lacks, or holds with fewer cells, as of a run still under way."""
    kept = {record.file_name: len(record.cells) for record in read_history(reports)}
    return tuple(record for record in fresh if len(record.cells) > kept.get(record.file_name, 0))


def update_history(reports: Path, fresh: Iterable[RunRecord]) -> tuple[Path, ...]:
    """Write those records that the folder lacks; return their paths."""
    written = []
    for record in missing(reports, fresh):
        path = reports / FOLDER / record.file_name
        write_files(path.parent, {path.name: to_text(record).encode()})
        written.append(path)
    return tuple(written)


def take_history(reports: Path, other: Path) -> int:
    """Copy the records that another reports folder has and this one lacks; return how many."""
    return len(update_history(reports, read_history(other)))


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

    @property
    def works(self) -> bool:
        return self.entry.cls in GOOD

    @property
    def ending(self) -> tuple[Class, str | None]:
        return self.entry.cls, self.entry.signature

    def is_past_of(self, other: _Seen) -> bool:
        """Tell whether it is not of another GPU."""
        return self.stack.gpu == other.stack.gpu or not (self.stack.gpu and other.stack.gpu)


def histories(
    runs: Sequence[RunRecord],
    subjects: Mapping[str, str],
    shown: Mapping[str, str],
) -> dict[str, CellHistory]:
    """Return the history of every cell that was ever run, by cell id; `runs` are the oldest first.

    `subjects` are today's model and recipe by cell id; a cell that was only run with others has no history. `shown` are
    the runs whose result speaks for a cell: their stack is the present one, though a machine that can do less, and so
    does not speak, may have run later. Without it the last run speaks.
    """
    by_cell: dict[str, list[_Seen]] = {}
    for run in runs:
        for key, entry in run.cells.items():
            if subjects.get(key) == entry.subject:
                seen = _Seen(run.run, run.when, entry, run.stacks[entry.stack])
                by_cell.setdefault(key, []).append(seen)
    return {key: _history(seen, shown.get(key)) for key, seen in by_cell.items()}


def _history(seen: list[_Seen], shown: str | None) -> CellHistory:
    speaks = next((each for each in seen if each.run == shown), seen[-1])
    past = [each for each in seen if each.is_past_of(speaks)]
    own = [each for each in past if each.stack == speaks.stack]
    line = [*past[: past.index(own[0])], *own]
    start, flaky = _streak(line), _flaky(own)
    first_seen, fixed_since = _ends(line)
    alike = own[-1].entry.cls, own[-1].entry.clock
    medians = (each.entry.median_ms for each in own if (each.entry.cls, each.entry.clock) == alike)
    return CellHistory(
        event="flaky" if flaky else _event(line, start),
        since=line[start].when,
        first_seen=first_seen,
        fixed_since=fixed_since,
        before=line[start - 1].entry.cls if start else None,
        flaky=flaky,
        latency=judge_latency([median for median in medians if median is not None]),
    )


def _ends(line: Sequence[_Seen]) -> tuple[str | None, str | None]:
    """Return since when it fails as it does now, or since when it works if it ever failed."""
    now = line[-1]
    if not now.works:
        return next(each.when for each in line if each.ending == now.ending), None
    if all(each.works for each in line):
        return None, None
    return None, line[_since(line, lambda each: each.works)].when


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


def _since(line: Sequence[_Seen], holds: Callable[[_Seen], bool]) -> int:
    """Return the place of the first of the last results in a row of which it holds."""
    return len(line) - sum(1 for _ in takewhile(holds, reversed(line)))


def _streak(line: Sequence[_Seen]) -> int:
    return _since(line, lambda each: each.entry.cls is line[-1].entry.cls)


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
    worked, works = line[start - 1].works, line[start].works
    if worked is works:
        return "changed"
    return "fixed" if works else "new_failure"

"""`history/<date>-<run>.json`: the class of each cell of a run, in a form that a year of nights can keep.

It outlives the run's records and logs. The class is the one judged then, for cases and diagnoses of a later day would
judge another model. Cells that an engine had no part in are left out.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.bounded import files_of, parse_json
from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.record.from_json import check_schema, decode
from harness.record.outcome import Stamps
from harness.record.store import write_files
from harness.words import UNJUDGED, Class

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


@dataclass(frozen=True)
class Entry:
    """One cell in one run; `subject` is short for the hashes of model and recipe, `stack` an index."""

    case: str
    variant: str
    target: str
    cls: Class
    subject: str
    stack: int
    signature: str | None = None
    median_ms: float | None = None


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
    )


def to_text(record: RunRecord) -> str:
    """Return the file's text: a stack or a cell a line, sorted."""
    head = {"schema": HISTORY_SCHEMA, "run": record.run, "when": record.when}
    lines = ",\n".join(f"{json.dumps(key)}: {_line(entry)}" for key, entry in sorted(record.cells.items()))
    stacks = ",\n".join(json.dumps(asdict(stack)) for stack in record.stacks)
    return f'{json.dumps(head)[:-1]},\n"stacks": [\n{stacks}\n],\n"cells": {{\n{lines}\n}}}}\n'


def _line(entry: Entry) -> str:
    data = {"class" if name == "cls" else name: value for name, value in asdict(entry).items()}
    return json.dumps({name: value for name, value in data.items() if value is not None})


def from_text(text: str) -> RunRecord:
    """Rebuild a record; raises ValueError, KeyError or TypeError for another text."""
    data = parse_json(text)
    check_schema(data, HISTORY_SCHEMA)
    if not _is_time(data["when"]):
        raise ValueError(f"{data['when']!r:.60} is no time")
    cells = {key: {**entry, "cls": entry["class"]} for key, entry in data["cells"].items()}
    record = decode(RunRecord, {**data, "cells": cells})
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

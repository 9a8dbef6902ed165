"""The append-only store of a suite: lean, for of thousands of models most say no more than that all went well.

    records/<run>-<worker>.jsonl   what is run, then the stamps of a target where they begin, then a line a model
    logs/<run>-<worker>.txt        the logs of what failed, one behind the other, each below a line of its own

Written and read as the other store is (`store.py`): a file a process, a torn last line passed over. Times
are rounded to a tenth of a millisecond, and of a model that went well neither messages nor nodes are kept; what the
numbers of one that ran are judged by stays.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

from harness.bounded import files_of, parse_json
from harness.errors import HandledError
from harness.record.from_json import OutdatedError, check_schema, decode
from harness.record.outcome import RECORD_SCHEMA, Outcome
from harness.record.store import LOGS, RECORDS, readable, tell_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

#: The folder in that of the reports that holds a folder for each suite.
SUITES = "suites"
#: Hexadecimal digits kept of a hash: there are thousands of them, and none of them packs.
_DIGITS = 12
#: Characters kept of a log, its end: a builder that fails says of every tactic that it tried before.
LONGEST_LOG = 16_000
#: What stands in a record's line and not in the lines above it.
_SHARED = frozenset({"cell", "case", "target", "variant", "stamps", "schema"})
_STAMPED = ("model_sha256", "when")
#: What of a model that went well nobody will ask.
_OF_FAILURES = ("messages", "native_output", "nodes", "layers", "layer_source")
_HEAD = re.compile(rb"==== (?P<cell>\S+) (?P<digits>[0-9a-f]{12}) (?P<bytes>\d{1,9})\n")


@dataclass(frozen=True)
class About:
    """What is run: `recipe` says how models are built, `items` are operator and opset of each by its id."""

    name: str
    title: str
    source: str
    recipe: str = ""
    link: str = ""
    items: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """A model's outcome as it was kept, and what was run."""

    about: About
    outcome: Outcome

    @property
    def place(self) -> tuple[str, str]:
        """Return operator and opset of the model."""
        return self.about.items.get(self.outcome.variant, ("graph", "?"))


class SuiteStore:
    """A suite's folder; `run` and `worker` name the files that this process appends to, which begin with `about`."""

    def __init__(
        self, path: Path, about: About | None = None, *, run: str = "run", worker: str = "main"
    ) -> None:
        self.path = path
        self._about = about
        self._name = f"{run}-{worker}"
        self._records: BinaryIO | None = None
        self._logs: BinaryIO | None = None
        self._heads: dict[str, int] = {}
        self._faults: dict[str, None] = {}

    @property
    def holds_records(self) -> bool:
        """Whether anything was ever recorded here."""
        return any((self.path / RECORDS).glob("*.jsonl"))

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:
        """Record an outcome for good, its log first; return it as recorded."""
        records = self._writer()
        outcome = readable(outcome)
        if log_text:
            outcome = dataclasses.replace(outcome, log_sha256=self._write_log(outcome.cell, log_text))
        head = json.dumps(_head(outcome), sort_keys=True)
        if head not in self._heads:
            self._heads[head] = len(self._heads)
            self._write(records, {"head": self._heads[head], **_head(outcome)})
        self._write(records, {"of": self._heads[head], "item": outcome.variant, **_lean(outcome)})
        records.flush()
        os.fsync(records.fileno())
        return outcome

    def kept(self) -> Iterator[Kept]:
        """Yield every record, file by file in name order, each in the order written.

        Of a line that is no record a sentence is told on standard error, and stands in `faults`; the others are read.
        """
        for path, data in files_of(self.path / RECORDS, ".jsonl"):
            yield from _read(path, data, self._pass_over)

    @property
    def faults(self) -> tuple[str, ...]:
        """A sentence on each line that was no record, of those read so far."""
        return tuple(self._faults)

    def _pass_over(self, sentence: str) -> None:
        self._faults[sentence] = None
        tell_once(sentence)

    def log(self, outcome: Outcome) -> str:
        """Return the log of an outcome; raises HandledError where it is missing or not what the record says."""
        text = self._texts.get((outcome.cell, outcome.log_sha256 or ""))
        if text is None:
            raise HandledError(f"{self.path / LOGS}: holds no log of {outcome.cell}; run it again")
        return text

    def absorb(self, other: SuiteStore) -> int:
        """Take in the files of another store that this one lacks; return how many records those hold."""
        taken = 0
        for folder, suffix in ((RECORDS, ".jsonl"), (LOGS, ".txt")):
            mine = {path.name: data for path, data in files_of(self.path / folder, suffix)}
            for path, data in files_of(other.path / folder, suffix):
                if not mine.get(path.name, b"").startswith(data):
                    (self.path / folder).mkdir(parents=True, exist_ok=True)
                    (self.path / folder / path.name).write_bytes(data)
                    taken += data.count(b'\n{"of": ')
        return taken

    def close(self) -> None:
        """Close the files; a later `append` starts others."""
        for file in (self._records, self._logs):
            if file is not None:
                file.close()
        self._records = self._logs = None
        self._heads = {}

    def __enter__(self) -> SuiteStore:  # noqa: PYI034  (Self is Python 3.11)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _writer(self) -> BinaryIO:
        if self._records is None:
            if self._about is None:
                raise TypeError("a store that is written to knows what it is about")
            for folder in (RECORDS, LOGS):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            name, numbers = self._name, itertools.count(2)
            while self._records is None:
                try:
                    self._records = (self.path / RECORDS / f"{name}.jsonl").open("xb")
                except FileExistsError:
                    name = f"{self._name}.{next(numbers)}"
            self._logs = (self.path / LOGS / f"{name}.txt").open("wb")
            self._write(self._records, {"schema": RECORD_SCHEMA, "about": dataclasses.asdict(self._about)})
        return self._records

    def _write(self, file: BinaryIO, data: Mapping[str, Any]) -> None:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        # A lone surrogate, from bytes that were no UTF-8, becomes its JSON escape.
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def _write_log(self, cell: str, text: str) -> str:
        assert self._logs is not None  # noqa: S101  (opened with the records)
        data = text[-LONGEST_LOG:].encode("utf-8", "backslashreplace")
        digits = hashlib.sha256(data).hexdigest()[:_DIGITS]
        self._logs.write(section(cell, digits, data))
        self._logs.flush()
        os.fsync(self._logs.fileno())
        return digits

    @cached_property
    def _texts(self) -> dict[tuple[str, str], str]:
        return {
            (cell, digits): data.decode("utf-8", "backslashreplace")
            for path, every in files_of(self.path / LOGS, ".txt")
            for cell, digits, data in sections(path, every)
        }


def section(cell: str, digits: str, data: bytes) -> bytes:
    """Return a log as it stands among others."""
    return b"==== %s %s %d\n%s\n" % (cell.encode(), digits.encode(), len(data), data)


def sections(path: Path, data: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield cell, digits of the hash and bytes of each log; one that is cut short ends a file, as a torn line does.

    Raises HandledError for one that is not what its hash says.
    """
    at = 0
    while at < len(data):
        head = _HEAD.match(data, at)
        if head is None:
            raise HandledError(f"{path}: no log begins at byte {at}; delete the file or run the suite again")
        text = data[head.end() : head.end() + int(head["bytes"])]
        at = head.end() + int(head["bytes"]) + 1
        if at > len(data):
            return
        cell, digits = head["cell"].decode("utf-8", "backslashreplace"), head["digits"].decode()
        if hashlib.sha256(text).hexdigest()[:_DIGITS] != digits:
            raise HandledError(
                f"{path}: the log of {cell} is not the one that was recorded; run the suite again"
            )
        yield cell, digits, text


def _head(outcome: Outcome) -> dict[str, Any]:
    """Return what the records of a target have in common."""
    stamps = dataclasses.asdict(outcome.stamps)
    for name in _STAMPED:
        del stamps[name]
    return {"target": outcome.target, "case": outcome.case, "stamps": stamps}


def _lean(outcome: Outcome) -> dict[str, Any]:
    """Return what a record says of its own, without what is as it always is."""
    ended_well = outcome.end is not None and outcome.end.kind == "finished"
    went_well = outcome.state == "done" and ended_well and not (outcome.failed_phase or outcome.missing_api)
    plain = {entry.name: _default(entry) for entry in dataclasses.fields(Outcome)}
    data = {
        key: value
        for key, value in outcome.to_json().items()
        if key not in _SHARED and value != plain[key] and value not in ((), [], {})
    }
    if went_well and outcome.log_sha256 is None:
        # The numbers of what ran are judged by the types that it ran in.
        keep = {"nodes", "layers"} if outcome.accuracy else set()
        data = {key: value for key, value in data.items() if key not in _OF_FAILURES or key in keep}
    elif not outcome.accuracy:
        data.pop("layers", None)
    if "phases" in data:
        data["phases"] = {name: round(seconds, 4) for name, seconds in outcome.phases.items()}
    data["model_sha256"] = outcome.stamps.model_sha256[:_DIGITS]
    data["when"] = outcome.stamps.when
    if outcome.end is not None:
        peak = outcome.end.peak_rss_bytes
        data["end"] = {key: value for key, value in data["end"].items() if value not in (None, "")}
        data["end"]["peak_rss_bytes"] = None if peak is None else peak >> 20 << 20
    return data


def _default(entry: dataclasses.Field[Any]) -> object:
    return entry.default if entry.default is not dataclasses.MISSING else None


def _read(path: Path, data: bytes, tell: Callable[[str], None]) -> Iterator[Kept]:
    *lines, tail = data.split(b"\n")
    about: About | None = None
    heads: dict[int, dict[str, Any]] = {}
    for number, line in enumerate([*lines, tail], start=1):
        if not line.strip():
            continue
        try:
            entry = parse_json(line)
        except ValueError as error:
            if number > len(lines):
                # Its writer was killed in mid-line.
                return
            tell(f"{path}:{number}: not a record ({error}); it is passed over: mend or delete that line")
            continue
        try:
            kept = None
            if "about" in entry:
                about = _about(entry)
            elif "head" in entry:
                heads[entry["head"]] = entry
            else:
                kept = Kept(*_outcome(about, heads[entry["of"]], entry))
        except OutdatedError as error:
            tell(f"{path.parent}: holds records of {error}, which are passed over; run again")
            return
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            tell(
                f"{path}:{number}: not a record this harness reads, and passed over: {error}; "
                "mend or delete that line"
            )
            continue
        if kept:
            yield kept


def _about(entry: Mapping[str, Any]) -> About:
    check_schema(entry, RECORD_SCHEMA)
    return decode(About, entry["about"])


def _outcome(about: About | None, head: Mapping[str, Any], entry: Mapping[str, Any]) -> tuple[About, Outcome]:
    if about is None:
        raise ValueError("it stands before what it is about")
    stamps = {**head["stamps"], **{name: entry[name] for name in _STAMPED}}
    shared = {"case": head["case"], "target": head["target"], "variant": entry["item"], "stamps": stamps}
    cell = f"{about.name}.{entry['item']}-{head['target']}"
    return about, Outcome.from_json({**entry, **shared, "cell": cell, "schema": RECORD_SCHEMA})

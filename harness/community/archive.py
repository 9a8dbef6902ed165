"""The file that `submit` writes: a line of JSON a record, with the lines of its log, packed with xz.

It comes from a stranger, and is read with bounds on its size, its records and the depth of its JSON. A record that
would spoil a report is refused with a sentence; whether a record is true is for who reviews the file to say.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.bounded import check_file, parse_json
from harness.community.scrub import identifying
from harness.errors import HandledError, InfraError
from harness.plan import inapplicable_because
from harness.record.archive import compress, decompress
from harness.record.outcome import Outcome
from harness.record.speaking import todays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.plan import Cell

SUFFIX = ".jsonl.xz"
#: Bytes of the file, of all that it holds, and of one line; lines.
MOST_PACKED, MOST_UNPACKED, MOST_OF_ONE, MOST_RECORDS = 8 << 20, 96 << 20, 24 << 20, 1000
#: As GitHub takes them.
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}")


@dataclass(frozen=True)
class Archive:
    """What somebody sent in: records, stamped with their account; logs by hash; a sentence on each fault."""

    records: tuple[Outcome, ...]
    logs: Mapping[str, str]
    faults: tuple[str, ...]

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the records, as a store does."""
        yield from self.records

    def log(self, sha256: str) -> str:
        """Return the log of a record."""
        return self.logs[sha256]


def checked_account(name: str) -> str:
    """Return an account, or ""; raises HandledError for what can be none."""
    if name and not _ACCOUNT.fullmatch(name):
        raise HandledError(f"{name!r:.60} is no account; give --account as GitHub spells it")
    return name


def write(measured: Iterable[tuple[Outcome, str]]) -> bytes:
    """Return the file of records with their logs; the same content gives the same bytes."""
    lines = (
        json.dumps({"log": log.split("\n"), "record": outcome.to_json()}, sort_keys=True, allow_nan=False)
        for outcome, log in measured
    )
    return compress("the archive", "".join(f"{line}\n" for line in lines).encode("ascii"))


def read(path: Path, account: str = "") -> Archive:
    """Read an archive, which `account` sends; raises HandledError where it is none."""
    records: dict[str, Outcome] = {}
    logs: dict[str, str] = {}
    faults = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            outcome, log = _entry(line, account)
        except (ValueError, TypeError) as error:
            faults.append(f"line {number}: {error}")
            continue
        if outcome.cell in records:
            faults.append(f"line {number}: a second record of {outcome.cell!r:.120}")
        records[outcome.cell], logs[str(outcome.log_sha256)] = outcome, log
    return Archive(tuple(records.values()), logs, tuple(faults))


def unknown(archive: Archive, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a sentence on each record that is of no cell of today, or of another model than its cell is made of."""
    known = {(cell.id, cell.case.name, cell.variant.name, cell.target.name): cell for cell in cells}
    found = [known.get((each.cell, each.case, each.variant, each.target)) for each in archive.records]
    today = todays(filter(None, found))
    for outcome, cell in zip(archive.records, found, strict=True):
        if cell is None:
            yield f"{outcome.cell[:120]}: the cases and the matrix have no such cell"
        elif why := inapplicable_because(cell) or today[cell.id].stale_because(outcome):
            yield f"{cell.id}: {why}"


def _lines(path: Path) -> list[bytes]:
    try:
        check_file(path, MOST_PACKED)
        lines = decompress(path, MOST_UNPACKED).splitlines()
    except InfraError as error:
        sentence = str(error).partition(";")[0]
        raise HandledError(f"{sentence}; give what `trt-compat submit` wrote, unchanged") from error
    except OSError as error:
        raise HandledError(f"{path}: cannot be read: {error.strerror}") from error
    if not 0 < len(lines) <= MOST_RECORDS or max(map(len, lines)) > MOST_OF_ONE:
        raise HandledError(f"{path}: has not 1 to {MOST_RECORDS} lines of at most {MOST_OF_ONE >> 20} MiB")
    return lines


def _entry(line: bytes, account: str) -> tuple[Outcome, str]:
    """Return a record and its log; raises ValueError or TypeError for what is to be refused."""
    text = line.decode("utf-8")
    if uuid := identifying(text):
        raise ValueError(f"it holds {uuid[:12]!r}..., which tells whose GPU it was: it was not scrubbed")
    data = parse_json(text)
    record, log = (data.get("record"), data.get("log")) if isinstance(data, dict) else (None, None)
    if not isinstance(record, dict) or not isinstance(log, list):
        raise TypeError("it is no record with its log")
    whole = "\n".join(log)
    if not whole:
        raise ValueError("its log is empty")
    sha256 = hashlib.sha256(whole.encode("utf-8")).hexdigest()
    outcome = replace(Outcome.from_json(record), key="", log_sha256=sha256)
    if fault := _fault(outcome, account):
        raise ValueError(f"{outcome.cell[:120]} {fault}")
    return outcome, whole


def _fault(outcome: Outcome, account: str) -> str:
    """Return why a record cannot be taken in, "" where it can."""
    stamps = outcome.stamps
    if not _ACCOUNT.fullmatch(stamps.account):
        return "names no account that measured it"
    if account and stamps.account.casefold() != account.casefold():
        return f"is by {stamps.account}, and {account} sends it: each sends in what they measured themselves"
    if outcome.state != "done":
        return f"is {outcome.state}: that says nothing of the engine"
    if not stamps.environment.get("gpu") or "gpu_uuid" in stamps.environment:
        return "does not say on which GPU it was measured, or says more than that"
    if not stamps.harness_commit or stamps.harness_commit.endswith("+"):
        return "was measured by a changed checkout, or by none: nobody can tell what that was"
    return ""

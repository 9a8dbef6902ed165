"""Keep the plan of a run that is under way beside its records, to go on with where it is stopped.

unfinished/<run>.json   cells and options of a run; locked while it lasts, and gone when it has come to its end
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.bounded import SMALL, parse_json, read_text
from harness.errors import SHORT_OF, HandledError, InfraError
from harness.record.from_json import decode

UNFINISHED = "unfinished"


@dataclass(frozen=True)
class Planned:
    """The plan of a run: `cells` by id, and the options of the command by name."""

    run: str
    when: str
    cells: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


@contextlib.contextmanager
def under_way(reports: Path, planned: Planned) -> Iterator[None]:
    """Keep the plan of a run until it has come to its end, however it is stopped."""
    path = reports / UNFINISHED / f"{planned.run}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = _locked(path, os.O_CREAT)
        if handle is None:
            raise HandledError(f"run {planned.run} is under way in another process")
        if not os.fstat(handle).st_size:
            os.write(handle, json.dumps(dataclasses.asdict(planned)).encode())
            os.fsync(handle)
    except OSError as error:
        # A full disk is the machine's trouble, a folder that is not one's own the user's.
        kind = InfraError if error.errno in SHORT_OF else HandledError
        raise kind(f"{path}: cannot be written ({error.strerror})") from error
    try:
        yield
        path.unlink(missing_ok=True)
        for other in _all_stopped(reports):
            # Its cells have outcomes that are newer than any that going on with it would give.
            if set(other.cells) <= set(planned.cells):
                (reports / UNFINISHED / f"{other.run}.json").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()
    finally:
        os.close(handle)


def stopped(reports: Path) -> Planned:
    """Return the plan of the newest run that was stopped; raises HandledError where there is none."""
    found = _all_stopped(reports)
    if not found:
        raise HandledError(
            f"there is no unfinished run in {reports} to go on with; leave out --resume to start one"
        )
    return max(found, key=lambda planned: planned.when)


def _all_stopped(reports: Path) -> list[Planned]:
    return [planned for path in (reports / UNFINISHED).glob("*.json") if (planned := _stopped(path))]


def _stopped(path: Path) -> Planned | None:
    """Return the plan of a run; None where it is under way, or was stopped before it had written that."""
    try:
        handle = _locked(path)
    except OSError:
        return None
    if handle is None:
        return None
    try:
        planned = decode(Planned, parse_json(read_text(path, SMALL)))
    except (OSError, ValueError, TypeError):
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(handle)
    return planned if planned.run == path.stem else None


def _locked(path: Path, flags: int = 0) -> int | None:
    """Return the descriptor of a file that is locked for as long as it is open; None where another process has it."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | flags, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        # A file system without locks: who goes on there is to know that nobody else does.
        return handle
    return handle

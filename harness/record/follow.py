"""Reads a store that another process, on another machine perhaps, is still writing to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import HandledError
from harness.record.store import RECORDS, Store, read_records, tell_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.record.outcome import Outcome


class Follower:
    """Gives what is new in a store since the last look: whole lines, each once."""

    def __init__(self, path: Path) -> None:
        self._store = Store(path)
        self._read: dict[Path, int] = {}
        #: Records whose log is not to be seen yet, as on a network file system.
        self._without: list[Outcome] = []

    def new(self) -> Iterator[tuple[Outcome, str]]:
        """Yield the records that have come, each with its whole log; one waits as long as its log is missing."""
        waiting, self._without = [*self._without, *self._lines()], []
        for outcome in waiting:
            try:
                yield outcome, self._store.log(outcome.log_sha256) if outcome.log_sha256 else ""
            except HandledError:
                self._without.append(outcome)

    def _lines(self) -> Iterator[Outcome]:
        for path in sorted((self._store.path / RECORDS).glob("*.jsonl")):
            start = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(start)
                whole = file.read().rpartition(b"\n")
            data = whole[0] + whole[1]
            self._read[path] = start + len(data)
            yield from read_records(path, data, tell_once)

"""What was tried is remembered beside the model that comes of it, so that a second call goes on where one stopped."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.bounded import LARGE, parse_json, read_text
from harness.errors import HandledError

if TYPE_CHECKING:
    from types import TracebackType


class Journal:
    """A file of lines of JSON: first what is reduced, then each model that was tried, by its hash, and what it showed.

    `about` is what the verdicts depend on: model, targets with their versions, recipe and what is sought. Raises
    HandledError for a file that is about something else. Without a path nothing is kept.
    """

    def __init__(self, path: Path | None, about: dict[str, Any]) -> None:
        self._path = path
        self.known: dict[str, bool] = {}
        self._file = None
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = read_text(path, LARGE).splitlines() if path.exists() else []
            self._read(path, lines, about)
            self._file = path.open("a", encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise HandledError(f"{path}: cannot be kept ({error}); give another place with -o") from error
        if not lines:
            self._write(about)

    def _read(self, path: Path, lines: list[str], about: dict[str, Any]) -> None:
        entries = []
        for line in lines:
            # A line that was cut off, by a full disk or a killed process, costs one try.
            with contextlib.suppress(ValueError):
                entries.append(parse_json(line))
        if lines and entries[:1] != [about]:
            first = entries[0] if entries and isinstance(entries[0], dict) else None
            differs = next(
                (key for key in about if first is not None and first.get(key) != about[key]), "form"
            )
            raise HandledError(f"{path}: is of another {differs}; delete it, or give another place with -o")
        told = (entry for entry in entries[1:] if isinstance(entry, dict))
        self.known = {
            entry["sha256"]: entry.get("shown") is True
            for entry in told
            if isinstance(entry.get("sha256"), str)
        }

    def keep(self, sha256: str, *, shown: bool, nodes: int, ended: str) -> None:
        """Remember what a model showed."""
        self.known[sha256] = shown
        self._write({"sha256": sha256, "shown": shown, "nodes": nodes, "ended": ended})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()

    def __enter__(self) -> Journal:  # noqa: PYI034  (Self is Python 3.11)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

"""Slow conclusions, kept between runs by a hash of all their sources: deleting them costs only time."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.record.store import write_whole

_Made = TypeVar("_Made")


class Kept:
    """A folder of a file an entry; `code` is a hash of the code that makes them. A bad file is never an error."""

    def __init__(self, folder: Path, code: str) -> None:
        self._folder = folder
        self._code = code
        self._used: set[str] = set()

    def get(self, kind: Any, sources: object, make: Callable[[], _Made]) -> _Made:  # noqa: ANN401  (a type)
        """Return the kept result of `make`, a pure function of the sources, or call it; msgspec reads its type."""
        name = hashlib.sha256(msgspec.msgpack.encode((self._code, sources))).hexdigest()
        self._used.add(name)
        with contextlib.suppress(OSError, ValueError, TypeError, msgspec.MsgspecError):
            digest, data = (whole := (self._folder / name).read_bytes())[:32], whole[32:]
            if hashlib.sha256(data).digest() == digest:
                made: _Made = msgspec.msgpack.decode(data, type=kind)
                return made
        made = make()
        with contextlib.suppress(OSError, ValueError, TypeError):
            data = msgspec.msgpack.encode(made)
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / name, hashlib.sha256(data).digest() + data)
        return made

    def drop_others(self) -> None:
        """Delete the entries that were not asked for."""
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if path.name not in self._used:
                    path.unlink()

"""A task: some cells of a run that a run elsewhere was sent, as a file; and its end when nobody waits for it any more.

Whoever sends tasks writes a heartbeat now and then, into a file that both see. A task that sees no new one for too long
ends itself, so that a run that was killed, or whose machine is gone, leaves nothing running for long.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HandledError, InfraError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What stands in the heartbeat's file when the run has ended.
_OVER = "over"


@dataclass(frozen=True)
class Task:
    """Cells of the run `run`, by id; `heartbeat` is the file, and `patience_s` how long it may stay as it is."""

    run: str
    cells: tuple[str, ...]
    heartbeat: str
    patience_s: float

    def write(self, path: Path) -> None:
        """Write it into a file, in a folder that is made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Task:
        """Read it from a file; raises HandledError where that is none."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return Task(**{**data, "cells": tuple(data["cells"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise HandledError(f"{path}: cannot be read as a task ({error})") from error


class Heartbeat:
    """The writer's side of a heartbeat."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def beating(self, seconds: float) -> Iterator[None]:
        """Say every so many seconds that the run is there, and at the end that it is over."""
        stop = threading.Event()
        self.beat()
        beats = threading.Thread(target=self._beat, args=(seconds, stop), daemon=True)
        beats.start()
        try:
            yield
        finally:
            stop.set()
            beats.join()
            self.end()

    def beat(self) -> None:
        """Say that the run is there."""
        self._write(repr(time.time()))

    def end(self) -> None:
        """Say that the run has ended: a task that starts later ends at once."""
        self._write(_OVER)

    def _beat(self, seconds: float, stop: threading.Event) -> None:
        while not stop.wait(seconds):
            self.beat()

    def _write(self, text: str) -> None:
        # On a disk that is full for a moment the next time will do.
        with contextlib.suppress(OSError):
            self._path.write_text(text, encoding="ascii")


@contextlib.contextmanager
def bound(task: Task) -> Iterator[None]:
    """Terminate this process, as SIGTERM does, when nobody waits for the task any more.

    Raises InfraError, before anything is done, where the run has ended already. A heartbeat that is old by this
    machine's clock, which may be wrong, must move first.
    """
    path = Path(task.heartbeat)
    _await_beat(path, task.patience_s)
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(path, task.patience_s, stop), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _await_beat(path: Path, patience: float) -> None:
    first, end = _text(path), time.monotonic() + patience
    if _age(first) < patience:
        return
    while (now := _text(path)) in (first, "") or now == _OVER:
        if now == _OVER or time.monotonic() > end:
            raise InfraError(f"the run that this task is of has ended ({path})")
        time.sleep(min(1.0, patience / 4))


class Pulse:
    """The reader's side of a heartbeat, told what stands in the file at which time."""

    def __init__(self, text: str, now: float, patience: float) -> None:
        self._last, self._since, self._patience = text, now, patience

    def stopped(self, text: str, now: float) -> bool:
        """Tell whether the run has ended, or must have."""
        if text not in (self._last, "", _OVER):
            self._last, self._since = text, now
        return text == _OVER or now - self._since > self._patience


def _watch(path: Path, patience: float, stop: threading.Event) -> None:
    pulse = Pulse(_text(path), time.monotonic(), patience)
    while not stop.wait(min(5.0, patience / 4)):
        if pulse.stopped(_text(path), time.monotonic()):
            print("the run that this task is of has ended: so does the task", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGTERM)
            return


def _age(beat: str) -> float:
    try:
        return abs(time.time() - float(beat))
    except ValueError:
        return float("inf")


def _text(path: Path) -> str:
    """Return what stands in the file, "" where it cannot be read, or is just being written."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""

"""Where the time of a run goes, as a file for a trace viewer: https://ui.perfetto.dev, or chrome://tracing.

TRT_COMPAT_TRACE names the file. Each span is a line in Chrome's trace event format; the list needs no end, so that the
processes of a run append to one file, and a killed run leaves what it had.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import HandledError

VARIABLE = "TRT_COMPAT_TRACE"
_Value = str | int | float | bool


@contextmanager
def span(name: str, **told: _Value) -> Iterator[None]:
    """Write the time of a piece of work, with what is told of it, under the thread that did it."""
    if not os.environ.get(VARIABLE):
        yield
        return
    begin = time.time()
    try:
        yield
    finally:
        passed(name, time.time() - begin, **told)


def passed(name: str, seconds: float, **told: _Value) -> None:
    """Write a piece of work that has ended now."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    event = {
        "name": name,
        "ph": "X",
        "ts": round((time.time() - seconds) * 1e6),
        "dur": round(seconds * 1e6),
        "pid": os.getpid(),
        "tid": _named(path, threading.get_native_id(), threading.current_thread().name),
        "args": told,
    }
    _append(path, event)


@functools.cache
def _named(path: str, thread: int, name: str) -> int:
    """Return a thread's number, having written its name once."""
    told = {"name": "thread_name", "ph": "M", "pid": os.getpid(), "tid": thread, "args": {"name": name}}
    _append(path, told)
    return thread


def _append(path: str, event: dict[str, object]) -> None:
    line = json.dumps(event, separators=(",", ":")) + ",\n"
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.write(file, (line if os.fstat(file).st_size else f"[\n{line}").encode())
        finally:
            os.close(file)
    except OSError as error:
        raise HandledError(
            f"{VARIABLE}={path}: cannot be written ({error.strerror}); name another file"
        ) from error

"""Work in forks of this process: some at a time, each with limits, a scratch folder and an end."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

_Job = TypeVar("_Job")

#: The most a fork may take of memory, and write into one file.
_MEMORY, _FILE = 6 << 30, 256 << 20
#: The end of what a fork printed, in characters.
_SAID = 20000
#: Exit code of a fork whose own work failed, as against the tests'.
TROUBLE = 70


@dataclass(frozen=True)
class Limits:
    """Seconds of processor and of the clock that a fork has."""

    processor: float = 3600
    clock: float = 3600


@dataclass(frozen=True)
class Ended(Generic[_Job]):
    """How a fork ended; `said` is the end of what it printed."""

    job: _Job
    code: int
    timed_out: bool
    said: str
    note: str


@dataclass(frozen=True)
class _Running(Generic[_Job]):
    job: _Job
    pid: int
    folder: Path
    deadline: float


def forked(
    jobs: Iterable[tuple[_Job, Limits]], work: Callable[[_Job, Path], int], scratch: Path, at_once: int
) -> Iterator[Ended[_Job]]:
    """Run `work(job, folder)` for each job in a fork of its own and yield how each ended, as they end.

    The fork's exit code is what `work` returns. A file `note` in its folder comes back with it. Where the caller stops
    asking, all that run are ended.
    """
    waiting, running = iter(jobs), dict[int, _Running[_Job]]()
    try:
        more = True
        while more or running:
            while more and len(running) < at_once:
                job = next(waiting, None)
                more = job is not None
                if job is not None:
                    each = _start(*job, work, Path(tempfile.mkdtemp(dir=scratch)))
                    running[os.pidfd_open(each.pid)] = each
            if running:
                yield from _ended(running)
    finally:
        for each in running.values():
            _kill(each)


def _ended(running: dict[int, _Running[_Job]]) -> Iterator[Ended[_Job]]:
    patience = max(0.0, min(each.deadline for each in running.values()) - time.monotonic())
    ready, _, _ = select.select(list(running), [], [], patience)
    late = [fd for fd, each in running.items() if each.deadline <= time.monotonic() and fd not in ready]
    for fd in (*ready, *late):
        each = running.pop(fd)
        os.close(fd)
        status = _kill(each)
        code = os.waitstatus_to_exitcode(status)
        said, note = (_text(each.folder / name) for name in ("said", "note"))
        shutil.rmtree(each.folder, ignore_errors=True)
        yield Ended(each.job, code, fd in late or code == -signal.SIGXCPU, said[-_SAID:], note)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _kill(each: _Running[_Job]) -> int:
    """End what is left of a fork's process group; return the fork's status."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(each.pid, signal.SIGKILL)
    return os.waitpid(each.pid, 0)[1]


def _start(job: _Job, limits: Limits, work: Callable[[_Job, Path], int], folder: Path) -> _Running[_Job]:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        with contextlib.suppress(
            PermissionError, ProcessLookupError
        ):  # it may have done so itself, or be gone
            os.setpgid(pid, pid)
        return _Running(job, pid, folder, time.monotonic() + limits.clock)
    code = TROUBLE
    try:
        _settle(limits, folder)
        code = work(job, folder)
    except BaseException:  # noqa: BLE001  (nothing may run on in the copy of the parent)
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _settle(limits: Limits, folder: Path) -> None:
    """Give a fork its own group, limits, output and temporary folder."""
    os.setpgid(0, 0)
    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, fd in enumerate((nothing, said, said)):
        os.dup2(fd, number)
    seconds = int(limits.processor) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, _FILE))
    temporary = folder / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None

"""Runs programs as a user does, and what each took: wall and CPU seconds, memory, its records."""

from __future__ import annotations

import functools
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.suite.processes import field_mb
from harness.errors import InfraError
from harness.record.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.record.outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]
#: Exit codes of a run that did its work: a regression is an answer, and on a slow machine a cell may time out.
DONE = (0, 1, 3)
#: The four versions of TensorRT for RTX, which build without a GPU.
RTX = ("rtx14", "rtx15", "rtx16", "rtx17")
#: A handful of cells, of two cases.
_FEW = "residual-fp32 or op-fp32-flat"


@dataclass(frozen=True)
class Setting:
    """How much is measured, and where there is room for it."""

    times: int
    small: bool
    cores: int
    scratch: Path

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the targets that are run."""
        return RTX[2:] if self.small else RTX

    @property
    def selection(self) -> tuple[str, ...]:
        """Return the options of `run` that select the cells."""
        named = tuple(word for name in self.targets for word in ("--target", name))
        return (*named, *(("-k", _FEW) if self.small else ()))

    def folder(self) -> Path:
        """Return a new empty folder, which goes with the others when the suite ends."""
        return Path(tempfile.mkdtemp(dir=self.scratch))

    def rounds(self, what: str) -> Iterator[int]:
        """Yield the number of each round, and say which one begins."""
        for number in range(self.times):
            print(f"{what}: round {number + 1} of {self.times}", file=sys.stderr, flush=True)
            yield number


@dataclass(frozen=True)
class Ran:
    """A program that has ended: times in seconds, `first` until it printed anything, `peak_mb` of the process itself.

    `began` is the wall clock's time; `cpu` counts every process that it waited for.
    """

    code: int
    began: float
    first: float
    seconds: float
    cpu: float
    peak_mb: float
    said: str


def ran(
    words: Sequence[str],
    *,
    cwd: Path = ROOT,
    environment: dict[str, str] | None = None,
    accepted: Sequence[int] = (0,),
    beside: Callable[[int], None] | None = None,
) -> Ran:
    """Run a program to its end; `beside` is called with its process id once it runs.

    Raises InfraError with the last lines of what it said where it ends with a code that is not accepted.
    """
    own = {"PYTHONPATH": str(ROOT), **(environment or {})}
    began, start = time.time(), time.monotonic()
    process = subprocess.Popen(
        list(words), cwd=cwd, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if beside is not None:
        beside(process.pid)
    peak = _Peak(process.pid)
    assert isinstance(process.stdout, io.BufferedReader)
    heard = process.stdout.read1()
    first = time.monotonic() - start
    said = (heard + process.stdout.read()).decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = code = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    peak.stop()
    if code not in accepted:
        raise InfraError(f"{' '.join(words[:6])} ... ended with {code}: {' '.join(said.split())[-600:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return Ran(code, began, first, seconds, cpu, peak.megabytes, said)


class _Peak(threading.Thread):
    """Reads the high-water mark of a process's memory while it runs; wait4 may tell that of its parent."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.megabytes = 0.0
        self._pid = pid
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.05):
            self.megabytes = max(self.megabytes, field_mb(self._pid, "status", "VmHWM"))

    def stop(self) -> None:
        """Return once nothing is read any more."""
        self._over.set()
        self.join()


def harness(*words: str) -> list[str]:
    """Return the command line of a verb of this checkout."""
    return [sys.executable, "-m", "harness", *words]


@dataclass(frozen=True)
class Run:
    """A `run`, and the cells that an engine took part in meanwhile: not those whose outcome was there already."""

    ran: Ran
    cells: tuple[Outcome, ...]

    @property
    def engine_seconds(self) -> float:
        """Return what the engines' own phases took, one after the other."""
        return sum(seconds for outcome in self.cells for seconds in outcome.phases.values())

    @property
    def first_record(self) -> float:
        """Return the seconds from the start until the first cell was done."""
        return min(map(self._at, self.cells))

    @property
    def last_record(self) -> float:
        """Return the seconds from the start until the last cell was done: the report is what follows."""
        return max(map(self._at, self.cells))

    def _at(self, outcome: Outcome) -> float:
        return datetime.fromisoformat(outcome.stamps.when).timestamp() - self.ran.began


def run(
    reports: Path,
    *options: str,
    again: bool = True,
    beside: Callable[[int], None] | None = None,
) -> Run:
    """Run cells into a reports folder; with `again` none is taken from an earlier run.

    Raises InfraError where the machinery failed in a cell: what such a run took is no figure.
    """
    words = harness("run", "--reports", str(reports), *(fresh() if again else ()), *options)
    done = ran(words, accepted=DONE, beside=beside)
    with Store(reports) as store:
        new = [outcome for outcome in store.outcomes() if _when(outcome) >= done.began]
    trouble = [outcome for outcome in new if outcome.state == "infra_error"]
    if trouble:
        raise InfraError(f"{len(trouble)} cells failed, {trouble[0].cell} the first: {trouble[0].reason}")
    made = tuple(outcome for outcome in new if outcome.state == "done")
    if again and not made:
        raise InfraError(f"no cell was run: {' '.join(done.said.split())[-600:]}")
    return Run(done, made)


def _when(outcome: Outcome) -> float:
    # Stamps are cut to milliseconds.
    return datetime.fromisoformat(outcome.stamps.when).timestamp() + 0.001


@functools.cache
def fresh() -> tuple[str, ...]:
    """Return the option by which `run` takes no outcome of an earlier run, where it has one."""
    return ("--fresh",) if "--fresh" in ran(harness("run", "--help")).said else ()

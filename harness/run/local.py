"""Runs many cells on this machine: a few workers, each with one target at a time."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Protocol

from harness.errors import InfraError
from harness.run import docker
from harness.run.target import Aborted, TargetRunner
from harness.scratch import reap_scratch

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.plan import Cell
    from harness.record.outcome import Outcome


class Sink(Protocol):
    """Where records go: the store, or that of a suite."""

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:
        """Record an outcome for good."""


#: Called after each cell, one at a time, with the cell, its record and the sentence on its environment.
Report = Callable[["Cell", "Outcome", str], None]
#: Tells the user a line.
Say = Callable[[str], None]
MakeRunner = Callable[["Cell"], TargetRunner]


class Executor(Protocol):
    """Runs cells on this machine (`Here`) or on a cluster (`SlurmExecutor`)."""

    def plan(self, cells: Sequence[Cell]) -> Iterable[str]:
        """Return the plan of `run` as lines; nothing is started or written."""

    def run(self, cells: Sequence[Cell], *, store: Sink, report: Report, say: Say, live: Say | None) -> None:
        """Append the record of every cell to the store as it comes, and report it, one at a time.

        `live` shows the activity of the moment, where a terminal can. Whatever ends this ends all that it started.
        """


def run_cells(
    cells: Sequence[Cell], *, make_runner: MakeRunner, store: Sink, workers: int, report: Report
) -> None:
    """Run the cells, each target's in one environment, and append every record to the store as it comes.

    `make_runner` makes a target's runner from its first cell. Emulated platforms go first: they take longest. An
    interrupt ends the agents and leaves the records.
    """
    reap_orphans(cell.target for cell in cells)
    _LocalRun(cells, make_runner, store, report).run(workers)


def reap_orphans(targets: Iterable[Target]) -> None:
    """Remove the leftovers of harness processes that were killed.

    These are temporary folders here, and containers here and on the targets' hosts; where no daemon answers they stay.
    """
    reap_scratch()
    for host in dict.fromkeys(("", *(target.host for target in targets))):
        with contextlib.suppress(InfraError):
            docker.reap(host)


class _LocalRun:
    def __init__(self, cells: Sequence[Cell], make_runner: MakeRunner, store: Sink, report: Report) -> None:
        self._make_runner = make_runner
        self._store = store
        self._report = report
        self._waiting: queue.SimpleQueue[list[Cell]] = queue.SimpleQueue()
        self._runners: list[TargetRunner] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        for batch in sorted(_by_target(cells), key=lambda batch: batch[0].target.platform == "linux/amd64"):
            self._waiting.put(batch)

    def run(self, workers: int) -> None:
        with ThreadPoolExecutor(workers, thread_name_prefix="worker") as pool:
            futures = [pool.submit(self._work) for _ in range(workers)]
            try:
                # Not Thread.join: when a signal interrupts it, Python before 3.13 takes the live thread for ended
                # (https://github.com/python/cpython/issues/90882), and nobody waits for the container it is starting.
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                # A cell of another worker may have ten minutes to go, for a run that has failed or was interrupted.
                self._stop.set()
                for runner in tuple(self._runners):
                    runner.abort()
        for future in futures:
            future.result()

    def _work(self) -> None:
        with contextlib.suppress(queue.Empty):
            while not self._stop.is_set():
                self._run_batch(self._waiting.get_nowait())

    def _run_batch(self, batch: Sequence[Cell]) -> None:
        runner = self._make_runner(batch[0])
        self._runners.append(runner)
        try:
            for cell in batch:
                if self._stop.is_set():
                    return
                outcome, log = runner.run(cell)
                with self._lock:
                    self._report(cell, self._store.append(outcome, log), runner.note)
        except Aborted:
            return
        finally:
            runner.close()


def _by_target(cells: Sequence[Cell]) -> list[list[Cell]]:
    batches: dict[tuple[str, bool], list[Cell]] = {}
    for cell in cells:
        # A case's model may be untrusted on a target that is not.
        batches.setdefault((cell.target.name, cell.target.untrusted), []).append(cell)
    return list(batches.values())

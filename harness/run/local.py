"""Runs many cells on this machine: a few workers, each at one target at a time, several at one that has many cells."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol, get_args

from harness.errors import HandledError, InfraError
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.run import docker, trace
from harness.run.commands import limits, plan_environment
from harness.run.gpus import BUILD_MIB, MOST_BUILDS, WAIT, Gpus
from harness.run.prepared import PreparedVariants
from harness.run.provision.host import look_at_host
from harness.run.provision.images import Pulling
from harness.run.provision.model import Via
from harness.run.provision.prepare import refuse_no_python
from harness.run.rounds import Round
from harness.run.target import Aborted, TargetRunner
from harness.scratch import reap_scratch
from harness.text import did_you_mean


class Sink(Protocol):
    """Takes the records: the store, or that of a suite."""

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:
        """Record an outcome for good."""


#: Called after each cell, one at a time, with the cell, its record and the sentence on its environment.
Report = Callable[["Cell", "Outcome", str], None]
#: Tells the user a line.
Say = Callable[[str], None]


@dataclass(frozen=True)
class How:
    """The place of engines, how many targets at a time, whether large images are pulled, and each job has a process.

    Raises HandledError for any other place or number, and for an interpreter of the user's that is none.
    """

    via: Via = "auto"
    #: One a processor if it is None.
    jobs: int | None = None
    pull: bool = False
    process_per_cell: bool = False
    #: Seconds that a device is waited for.
    wait: float = WAIT

    def __post_init__(self) -> None:
        if self.via not in get_args(Via):
            raise HandledError(
                f"via={self.via!r}: engines run in no such place; {did_you_mean(str(self.via), get_args(Via))}"
            )
        jobs: object = self.jobs
        if jobs is not None and not (isinstance(jobs, int) and jobs > 0):
            raise HandledError(f"jobs={jobs!r}: give a whole number above 0")
        if self.via != "docker":
            refuse_no_python()


@dataclass
class Runners:
    """Makes the runners of one run: they share prepared variants, pulls and GPUs.

    `is_news` tells that a record is otherwise than expected, so that its cell is run again; `tell` hears of pulls.
    """

    how: How
    is_news: Callable[[Cell, Outcome], bool]
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    prepared: PreparedVariants | None = None
    tell: Say = lambda _: None
    gpus: Gpus = field(default_factory=Gpus)

    def of(self, target: Target) -> TargetRunner:
        """Return a new runner of a target."""
        return TargetRunner(
            target,
            via=self.how.via,
            run_id=self.run_id,
            prepared=self.prepared,
            pulling=Pulling(large=self.how.pull, tell=self.tell),
            gpus=self.gpus,
            isolated=self.how.process_per_cell,
            wait=self.how.wait,
            is_news=self.is_news,
        )


#: Waiting cells for which a worker joins others at a target, and seconds between its looks at that.
_LEAST, _LOOK = 2, 1.0


class Here:
    """Runs cells on this machine, as `SlurmExecutor` does on a cluster."""

    def __init__(self, runners: Runners) -> None:
        self._runners = runners

    def plan(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield the cells that would run, with their places and lines, without a start or a write."""
        via, host = self._runners.how.via, look_at_host()
        for target in {cell.target.name: cell.target for cell in cells}.values():
            mine = [cell for cell in cells if cell.target.name == target.name]
            yield f"{target.name} ({target.label}): {len(mine)} cells"
            lines = plan_environment(target, via, host)
            for line in lines:
                yield f"  {line}"
            if len(lines) > 1:
                for line in limits(target, via, host):
                    yield f"  {line}"
                for cell in mine:
                    yield f"    {cell.id}{' (not applicable)' if cell.inapplicable else ''}"

    def run(self, cells: Sequence[Cell], *, store: Sink, report: Report, say: Say, live: Say | None) -> None:
        """Run the cells, each target's in environments of its own; emulated platforms go first: they take longest.

        Each record goes to the store, then to `report`, one at a time. `live` shows the work of the moment on a
        terminal. An interrupt ends the agents and leaves the records.
        """
        runners = self._runners
        runners.prepared = runners.prepared or PreparedVariants(cell.variant for cell in cells)
        runners.tell = live or say
        run_cells(cells, runners, store=store, report=report)


def longest_first(cells: Iterable[Cell], outcomes: Iterable[Outcome]) -> tuple[Cell, ...]:
    """Return cells in the order of the seconds that each last took, most first: short ones fill the end of a run.

    One that never ran may be long.
    """
    took = {each.cell: sum(each.phases.values()) for each in outcomes}
    return tuple(sorted(cells, key=lambda cell: -took.get(cell.id, float("inf"))))


def run_cells(cells: Sequence[Cell], runners: Runners, *, store: Sink, report: Report) -> None:
    """Run the cells and append every record to the store as it comes, without a word on pulls."""
    reap_orphans((cell.target for cell in cells), runners.how.via)
    _LocalRun(cells, runners, store, report).run(runners.how.jobs or os.cpu_count() or 1)


def reap_orphans(targets: Iterable[Target], via: Via = "auto") -> None:
    """Remove the leftovers of harness processes that were killed.

    These are temporary folders here, and containers here and on the targets' hosts; they stay if no daemon answers,
    and without a question where engines run in virtual environments.
    """
    reap_scratch()
    hosts = dict.fromkeys(("", *(target.host for target in targets)))
    for host in hosts if via != "venv" else ():
        with contextlib.suppress(InfraError):
            docker.reap(host)


@dataclass
class _Batch:
    """The cells of a target that wait, and how many workers are at them; `runs` tells that one of them could run."""

    target: Target
    cells: deque[Cell]
    workers: int = 0
    runs: bool = False


class _LocalRun:
    def __init__(self, cells: Sequence[Cell], runners: Runners, store: Sink, report: Report) -> None:
        self._make = runners
        self._store = store
        self._report = report
        self._runners: list[TargetRunner] = []
        self._stop = threading.Event()
        self._changed = threading.Condition()
        #: Held while a record reaches the disk: others take their next cells meanwhile.
        self._recording = threading.Lock()
        self._batches = sorted(_by_target(cells), key=lambda batch: batch.target.platform == "linux/amd64")

    def run(self, workers: int) -> None:
        with ThreadPoolExecutor(workers, thread_name_prefix="worker") as pool:
            futures = [pool.submit(self._work) for _ in range(workers)]
            try:
                # Not Thread.join: when a signal interrupts it, Python before 3.13 takes the live thread for ended
                # (https://github.com/python/cpython/issues/90882), and the container that it is starting is not waited
                # for.
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                # A cell of another worker may have ten minutes to go, for a run that has failed or was interrupted.
                self._stop.set()
                for runner in tuple(self._runners):
                    runner.abort()
        for future in futures:
            future.result()

    def _work(self) -> None:
        while batch := self._taken():
            self._run_batch(batch)

    def _taken(self) -> _Batch | None:
        """Return the batch to work at: one without a worker, or else one that is worth another worker.

        Waits while others may make such a one; None if no cell waits any more.
        """
        with self._changed:
            while not self._stop.is_set():
                waiting = [batch for batch in self._batches if batch.cells]
                if not waiting:
                    return None
                found = next((batch for batch in waiting if not batch.workers), None)
                found = found or max(filter(self._worth, waiting), key=_left_to_each, default=None)
                if found:
                    found.workers += 1
                    return found
                self._changed.wait(_LOOK)
        return None

    def _worth(self, batch: _Batch) -> bool:
        """Tell whether one more worker at a target gains more than its engine's start takes, and finds memory."""
        if not batch.runs or batch.target.host or _left_to_each(batch) < _LEAST:
            return False
        taken = sum(each.workers * each.target.memory_mib for each in self._batches if each.cells)
        workers = sum(each.workers for each in self._batches)
        memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        return taken + batch.target.memory_mib <= memory_mib and workers < _most_on_gpus()

    def _tell_others(self, batch: _Batch) -> None:
        with self._changed:
            batch.runs = True
            self._changed.notify_all()

    def _run_batch(self, batch: _Batch) -> None:
        runner = self._make.of(batch.target)
        runner.on_start = functools.partial(self._tell_others, batch)
        self._runners.append(runner)
        under_way = Round()
        try:
            while not self._stop.is_set():
                with self._changed:
                    cell = batch.cells.popleft() if batch.cells else None
                if cell is not None:
                    under_way.begin(cell, runner.steps(cell))
                elif under_way.waits:
                    under_way.hold()
                elif not under_way.resume():
                    return
                if under_way.due or batch.target.untrusted:
                    under_way.hold()
                for ended, (outcome, log) in under_way.ended():
                    with self._recording, trace.span("record", cell=ended.id):
                        self._report(ended, self._store.append(outcome, log), runner.note)
        except Aborted:
            return
        finally:
            runner.close()
            with self._changed:
                batch.workers -= 1
                self._changed.notify_all()


def _left_to_each(batch: _Batch) -> float:
    return len(batch.cells) / (batch.workers + 1)


def _by_target(cells: Sequence[Cell]) -> list[_Batch]:
    batches: dict[tuple[str, bool], _Batch] = {}
    for cell in cells:
        # A case's model may be untrusted on a target that is not.
        place = (cell.target.name, cell.target.untrusted)
        batches.setdefault(place, _Batch(cell.target, deque())).cells.append(cell)
    for batch in batches.values():
        # A plugin's cells want a child of their own: one behind the other they share it, and the others keep theirs.
        batch.cells = deque(sorted(batch.cells, key=lambda cell: cell.variant.recipe.plugin is not None))
    return list(batches.values())


@functools.cache
def _most_on_gpus() -> float:
    """Return how many engines find room on this machine's GPUs at once."""
    gpus = look_at_host(docker=False).gpus
    return sum(min(MOST_BUILDS, gpu.memory_mib // BUILD_MIB) for gpu in gpus) if gpus else float("inf")

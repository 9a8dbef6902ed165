"""Runs many cells on this machine: a few workers, each with one target at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from harness.executor.target import Aborted, TargetRunner

if TYPE_CHECKING:
    from harness.outcome import Outcome
    from harness.plan import Cell
    from harness.provision import Via
    from harness.store import Store

#: Called after each cell, under a lock, with the cell, its record and the runner's note on its environment.
Report = Callable[["Cell", "Outcome", str], None]


def run_cells(
    cells: Sequence[Cell],
    *,
    store: Store,
    via: Via,
    run_id: str,
    workers: int,
    report: Report,
) -> None:
    """Run the cells, each target's in one environment, and append every record to the store as it comes.

    Emulated platforms go first: they take longest. An interrupt ends the agents and leaves what is recorded.
    """
    waiting: queue.SimpleQueue[list[Cell]] = queue.SimpleQueue()
    for batch in sorted(_by_target(cells), key=lambda batch: batch[0].target.platform == "linux/amd64"):
        waiting.put(batch)
    stop = threading.Event()
    lock = threading.Lock()
    failures: list[BaseException] = []
    runners: list[TargetRunner] = []

    def work() -> None:
        try:
            while not stop.is_set():
                batch = waiting.get_nowait()
                runner = TargetRunner(batch[0].target, via=via, run_id=run_id)
                runners.append(runner)
                _run_batch(batch, runner, stop, done)
        except queue.Empty:
            return
        except BaseException as error:  # noqa: BLE001  (handed to the caller's thread)
            failures.append(error)
            stop.set()

    def done(cell: Cell, outcome: Outcome, log: str, note: str) -> None:
        with lock:
            store.append(outcome, log)
            report(cell, outcome, note)

    threads = [threading.Thread(target=work, name=f"worker-{index}") for index in range(workers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for runner in runners:
            runner.abort()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def _by_target(cells: Iterable[Cell]) -> list[list[Cell]]:
    batches: dict[str, list[Cell]] = {}
    for cell in cells:
        batches.setdefault(cell.target.name, []).append(cell)
    return list(batches.values())


def _run_batch(
    batch: Sequence[Cell],
    runner: TargetRunner,
    stop: threading.Event,
    done: Callable[[Cell, Outcome, str, str], None],
) -> None:
    try:
        for cell in batch:
            if stop.is_set():
                return
            outcome, log = runner.run(cell)
            done(cell, outcome, log, runner.note)
    except Aborted:
        return
    finally:
        runner.close()

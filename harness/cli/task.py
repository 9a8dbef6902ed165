"""`run --task FILE`: some cells of a run that goes on elsewhere; records alone, which that run takes in."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from harness.cli.common import EXIT_OK, Project, built, load_project
from harness.errors import HandledError
from harness.record.store import Store
from harness.run.provision.trust import refuse_unconfined
from harness.run.task import Task, bound

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from harness.plan import Cell
    from harness.run.executor import Executor


def run_task(options: argparse.Namespace, executor: Callable[[str], Executor]) -> int:
    """Run the cells of a task that have no record in its own folder yet, by the executor of that run's id.

    A task that was started before, on this node or another, goes on where it was.
    """
    task = Task.read(options.task)
    store = Store(options.reports, run=task.run)
    recorded = {outcome.cell for outcome in store.outcomes()}
    say = functools.partial(print, flush=True)
    say(f"{len(task.cells)} cells, {len(recorded)} of them recorded")
    with bound(task), store:
        cells = _cells([name for name in task.cells if name not in recorded], options)
        refuse_unconfined([cell.target for cell in cells], options.via)
        executor(task.run).run(
            cells, store=store, report=lambda cell, *_: say(f"{cell.id}: recorded"), say=say, live=None
        )
    return EXIT_OK


def _cells(names: list[str], options: argparse.Namespace) -> list[Cell]:
    """Return cells by their ids, with their models built; those of other cases are not."""
    project = load_project(options)
    wanted = set(names)
    cases = {cell.case.name: cell.case for cell in project.cells if cell.id in wanted}
    few = built(Project(project.matrix, tuple(cases.values()), ()), options)
    known = {cell.id: cell for cell in few.cells}
    gone = [name for name in names if name not in known]
    if gone:
        raise HandledError(
            f"there is no cell {gone[0]} any more: matrix or cases have changed since the run began"
        )
    return [known[name] for name in names]

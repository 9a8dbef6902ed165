"""`run --task FOLDER`: some cells of a run that goes on elsewhere; records alone, which that run takes in."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.common import EXIT_OK, Project, built, load_project
from harness.cli.here import Here
from harness.errors import HandledError
from harness.record.store import Store
from harness.run.provision.requirements import refuse_unconfined
from harness.run.slurm import TASK_FILE

if TYPE_CHECKING:
    import argparse

    from harness.plan import Cell


def run_task(options: argparse.Namespace) -> int:
    """Run the cells of a task that have no record in its folder yet.

    A task that was started before, on this node or another, goes on where it was.
    """
    run_id, names = _read(options.task / TASK_FILE)
    store = Store(options.task, run=run_id)
    recorded = {outcome.cell for outcome in store.outcomes()}
    say = functools.partial(print, flush=True)
    say(f"{len(names)} cells, {len(recorded)} of them recorded")
    with store:
        cells = _cells([name for name in names if name not in recorded], options)
        refuse_unconfined([cell.target for cell in cells], options.via)
        Here(options, run_id, pauses=()).run(
            cells, store=store, report=lambda cell, *_: say(f"{cell.id}: recorded"), say=say, live=None
        )
    return EXIT_OK


def _read(path: Path) -> tuple[str, list[str]]:
    """Return the run of a task, and its cells by id."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return str(data["run"]), list(map(str, data["cells"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise HandledError(f"{path}: cannot be read as a task ({error})") from error


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

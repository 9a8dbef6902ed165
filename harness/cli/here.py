"""Runs cells on this machine: the executor of `run` unless another is asked for, and of a task of another run."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.options import EXIT_OK
from harness.cli.project import built, load_project
from harness.errors import HandledError, InfraError
from harness.judge.cell import is_news
from harness.plan import Cell, inapplicable_because
from harness.record.store import Store
from harness.run.commands import limits, plan_environment
from harness.run.gpus import Gpus
from harness.run.local import Report, Say, Sink, run_cells
from harness.run.prepared import PreparedVariants
from harness.run.provision.host import Host, look_at_host
from harness.run.provision.images import Pulling, PullPlan, plan_pulls
from harness.run.provision.requirements import refuse_unconfined
from harness.run.slurm import TASK_FILE
from harness.run.target import TargetRunner


class Here:
    """Runs cells on this machine; an Executor."""

    def __init__(
        self,
        options: argparse.Namespace,
        run_id: str,
        prepared: PreparedVariants | None = None,
    ) -> None:
        self._options = options
        #: How variants are made ready, where not from their own `build`.
        self._prepared = prepared
        self._run_id = run_id

    def plan(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield the cells that would run, where and by which lines, and the pulls for them."""
        options = self._options
        host = look_at_host()
        for target in {cell.target.name: cell.target for cell in cells}.values():
            mine = [cell for cell in cells if cell.target.name == target.name]
            yield f"{target.name} ({target.label}): {len(mine)} cells"
            lines = plan_environment(target, options.via, host)
            for line in lines:
                yield f"  {line}"
            if len(lines) > 1:
                for line in limits(target, options.via, host):
                    yield f"  {line}"
                for cell in mine:
                    yield f"    {cell.id}{' (not applicable)' if inapplicable_because(cell) else ''}"
        yield from _pull_plan(cells, options, host).lines()

    def run(self, cells: Sequence[Cell], *, store: Sink, report: Report, say: Say, live: Say | None) -> None:
        """Run cells; raises InfraError for want of room for their images."""
        options = self._options
        _announce(cells, options, say)
        pulling = Pulling(large=options.pull, tell=live or say)
        prepared, gpus = self._prepared or PreparedVariants(cell.variant for cell in cells), Gpus()
        run_cells(
            cells,
            make_runner=lambda cell: TargetRunner(
                cell.target,
                via=options.via,
                run_id=self._run_id,
                prepared=prepared,
                pulling=pulling,
                gpus=gpus,
                isolated=options.process_per_cell,
                is_news=is_news,
            ),
            store=store,
            workers=options.jobs,
            report=report,
        )


def _announce(cells: Sequence[Cell], options: argparse.Namespace, say: Say) -> None:
    """Say which images are to be pulled; raises InfraError where there is no room for them."""
    plan = _pull_plan(cells, options)
    for line in plan.lines():
        say(line)
    lacking = plan.too_little()
    if lacking:
        raise InfraError(lacking)


def _pull_plan(cells: Sequence[Cell], options: argparse.Namespace, host: Host | None = None) -> PullPlan:
    """Return the pulls of the targets that have a cell to run."""
    targets = {cell.target.name: cell.target for cell in cells if inapplicable_because(cell) is None}
    return plan_pulls(targets.values(), options.via, large=options.pull, host=host)


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
        Here(options, run_id).run(
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
    project = built(project, options, {cell.case.name for cell in project.cells if cell.id in wanted})
    known = {cell.id: cell for cell in project.cells}
    gone = [name for name in names if name not in known]
    if gone:
        raise HandledError(
            f"there is no cell {gone[0]} any more: matrix or cases have changed since the run began"
        )
    return [known[name] for name in names]

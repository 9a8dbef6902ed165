"""Runs cells as array jobs of a Slurm cluster, and takes in the tasks' records as they come."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HandledError, InfraError
from harness.plan import inapplicable_because
from harness.record.store import Store
from harness.run.slurm.client import Client
from harness.run.slurm.oversee import Overseer, Pace, Told
from harness.run.slurm.plan import Submission, by_target, grouped, unfit
from harness.run.task import Heartbeat

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.record.outcome import State
    from harness.run.executor import Say
    from harness.run.local import Report, Sink

#: The Python that runs the harness on the nodes, where it is another than here.
PYTHON_VARIABLE = "TRT_COMPAT_SLURM_PYTHON"


class SlurmExecutor:
    """Runs cells on the nodes of a cluster; an Executor.

    `words` are the harness's own, that run a task there: they follow `python -m harness`, and the nodes see `folder`
    and `here` as this machine does.
    """

    def __init__(self, *, folder: Path, run_id: str, words: Sequence[str], pace: Pace | None = None) -> None:
        self._run_id = run_id
        self._pace = pace or Pace()
        started = ("-m", "harness", "run", *words)
        place = folder.absolute() / run_id
        self._submission = Submission(place, f"trt-compat-{run_id}", started, Path.cwd())
        self._found: dict[str, str] | None = None
        self._python = os.environ.get(PYTHON_VARIABLE) or sys.executable

    def plan(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Return the scripts and sbatch lines that would submit the cells."""
        found: dict[str, str] = {}
        note = ""
        try:
            found = Client(patience=5).architectures()
        except (HandledError, InfraError) as error:
            note = f"Slurm was not asked which nodes there are: {error}"
        todo, aside = _set_aside(cells, found)
        for reason, count in Counter(reason for _, _, reason in aside).items():
            yield f"{count} cells stay here: {reason}"
        for group in grouped(todo, found, self._python):
            for index, task in enumerate(group.tasks):
                yield f"task {group.number}-{index}: {len(task)} cells of {task[0].target.name}"
            yield f"{self._submission.script_path(group)}:"
            yield from (f"  {line}" for line in self._submission.script(group).splitlines())
            yield shlex.join(self._submission.command(group, range(len(group.tasks))))
        if note:
            yield note

    def check(self) -> None:
        """Raise HandledError where Slurm is not, InfraError where it does not answer."""
        self._found = Client().architectures()

    def take_over(self, cells: Sequence[Cell], store: Store) -> None:  # noqa: ARG002  (as for any executor)
        """Take in what the tasks of a run that was stopped have recorded, once those that are left are cancelled.

        Raises InfraError where one does not end, which might go on recording.
        """
        folder, name = self._submission.folder, self._submission.name
        if not folder.is_dir():
            return
        Heartbeat(folder / "heartbeat").end()
        client = Client()
        client.cancel(name)
        if not client.gone(name, self._pace.leave, self._pace.records):
            raise InfraError(
                f"tasks of the run that was stopped are still ending in Slurm; look with `squeue --name={name}`, and "
                "go on with it when they are gone"
            )
        store.absorb(*(Store(task) for task in sorted(path for path in folder.iterdir() if path.is_dir())))
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, cells: Sequence[Cell], *, store: Sink, report: Report, say: Say, live: Say | None) -> None:
        """Run the cells; what no node can run is recorded, with the reason, before anything is submitted."""
        client = Client()
        found = client.architectures() if self._found is None else self._found
        todo, aside = _set_aside(cells, found)
        overseer = Overseer(
            self._submission, self._run_id, client, Told(store, report, say, live), self._pace
        )
        for cell, state, reason in aside:
            overseer.record(cell, state, reason)
        if todo:
            overseer.run(grouped(todo, found, self._python))


_Aside = list[tuple["Cell", "State", str]]


def _set_aside(cells: Iterable[Cell], architectures: dict[str, str]) -> tuple[list[Cell], _Aside]:
    """Part the cells that some node may run from those that need none or have none, with the reason."""
    todo: list[Cell] = []
    aside = _Aside()
    for batch in by_target(cells):
        target = batch[0].target
        lacking = ""
        if architectures and len(unfit(target, architectures)) == len(architectures):
            wanted = target.slurm.architecture or target.needs.architecture
            lacking = f"no node of this Slurm cluster is {wanted}"
        for cell in batch:
            reason = inapplicable_because(cell)
            if reason is not None:
                aside.append((cell, "not_applicable", reason))
            elif lacking:
                aside.append((cell, "not_run", lacking))
            else:
                todo.append(cell)
    return todo, aside

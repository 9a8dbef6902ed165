"""Runs cells as array jobs of a Slurm cluster: the one module that starts Slurm's commands.

Targets that ask the same of a node share one `sbatch --wait` array; a task of it runs cells of one target by
`run --task FOLDER` and records them into that folder, which this process follows. Slurm starts a task that was lost
with its node again (`--requeue`), and it goes on behind its last record. The job's time limit bounds it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HandledError, InfraError
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import Outcome, State
from harness.record.store import RECORDS, Store
from harness.run.local import Here, Report, Say, Sink
from harness.run.stamps import bare_stamps
from harness.run.transport import kill, run_to_end, start

#: The file in a task's folder that names its cells, and the one that takes all it writes.
_TASK_FILE, _OUTPUT = "task.json", "slurm.txt"
#: Seconds between looks at the records.
_EVERY = 2.0
#: Seconds after the end of a job in which its last records may still come to be seen here, over a network.
_SETTLE = 10.0
#: Seconds that tasks may take to end once they are cancelled, and one of Slurm's commands to answer.
_LEAVE, _PATIENCE = 60.0, 120.0
#: Exit code of sbatch for an unknown option.
_MISUSED = 255
#: Characters of a task's last line.
_WORDS = 300


@dataclass
class _Task:
    """Cells of one target that are recorded into `folder`: `left` have no record yet, `read` bytes are read."""

    folder: Path
    left: dict[str, Cell]
    read: int = 0

    def write(self, run_id: str) -> None:
        """Write the file that `run --task` reads."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"run": run_id, "cells": list(self.left)})
        (self.folder / _TASK_FILE).write_text(text, encoding="utf-8")

    def new(self) -> Iterator[tuple[Cell, Outcome, str]]:
        """Yield the first record of each cell and its log, as they come.

        A task may go on on a node that Slurm has given up, while it is started again on another. A record waits as long
        as its log is not to be seen here, as on a network file system.
        """
        size = sum(path.stat().st_size for path in (self.folder / RECORDS).glob("*.jsonl"))
        if size == self.read:
            return
        store, waiting = Store(self.folder), False
        for outcome in store.outcomes():
            if outcome.cell not in self.left:
                continue
            try:
                log = store.log(outcome.log_sha256) if outcome.log_sha256 else ""
            except HandledError:
                waiting = True
                continue
            yield self.left.pop(outcome.cell), outcome, log
        self.read = -1 if waiting else size

    def last_line(self) -> str:
        """Return, as the end of a sentence, the last line of the output, Slurm's own before the task's."""
        try:
            lines = (self.folder / _OUTPUT).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return f"; it wrote nothing into {self.folder}: do the nodes see this folder?"
        written = [line.strip() for line in lines if line.strip()]
        # Such as "slurmstepd: error: *** JOB 7 ON a CANCELLED AT 12:00 DUE TO TIME LIMIT ***".
        last = next(
            (line for line in reversed(written) if line.startswith("slurmstepd")), "".join(written[-1:])
        )
        return f"; its output ends: {last[:_WORDS]}" if last else ""


@dataclass
class _Job:
    """One array: `asked` are the options that its targets give sbatch, `line` the whole command."""

    asked: tuple[str, ...]
    line: list[str]
    log: Path
    tasks: list[_Task]
    process: subprocess.Popen[bytes] | None = None
    ended: float = 0.0

    @property
    def left(self) -> list[Cell]:
        """Return the cells without a record."""
        return [cell for task in self.tasks for cell in task.left.values()]

    def start(self, run_id: str) -> None:
        """Submit it; the process ends when all of its tasks have."""
        for task in self.tasks:
            task.write(run_id)
        with self.log.open("wb") as log:
            self.process = start(self.line, subprocess.DEVNULL, log, log)

    def refused(self) -> str:
        """Return why Slurm did not take the job, "" if it did.

        Raises HandledError for an option that sbatch does not know.
        """
        text = self.log.read_text(encoding="utf-8", errors="replace")
        if "Submitted batch job" in text:
            return ""
        why = " ".join(text.replace("sbatch: error: ", "").split()) or "it gives no reason"
        asked = shlex.join(self.asked) or "with no options of its own"
        if self.process is not None and self.process.returncode == _MISUSED:
            raise HandledError(f"sbatch does not understand {asked}: {why}; correct `slurm` in matrix.yaml")
        return f"Slurm does not take its job ({asked}): {why}"

    def over(self) -> bool:
        """Tell whether all of its tasks have ended, and their records had time to be seen."""
        if self.process is None or self.process.poll() is None:
            return False
        self.ended = self.ended or time.monotonic()
        return time.monotonic() - self.ended >= _SETTLE or bool(self.refused())

    def forget(self) -> None:
        """End the process that waits; the tasks are Slurm's."""
        if self.process is not None:
            kill(self.process)


def run_task(
    folder: Path, cells_of: Callable[[Sequence[str]], Sequence[Cell]], here_of: Callable[[str], Here]
) -> None:
    """Run the cells of a task that have no record in its folder yet: `cells_of` ids, by the executor of a run.

    A task that was started before, on this node or another, goes on after its last record.
    """
    path = folder / _TASK_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        run_id, names = str(data["run"]), list(map(str, data["cells"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise HandledError(f"{path}: cannot be read as a task ({error})") from error
    store = Store(folder, run=run_id)
    recorded = {outcome.cell for outcome in store.outcomes()}
    say = functools.partial(print, flush=True)
    say(f"{len(names)} cells, {len(recorded)} of them recorded")
    with store:
        cells = cells_of([name for name in names if name not in recorded])
        here_of(run_id).run(
            cells, store=store, report=lambda cell, *_: say(f"{cell.id}: recorded"), say=say, live=None
        )


class SlurmExecutor:
    """Runs cells on the nodes of a cluster, as `Here` does on this machine.

    `words` are the options of `run` on a node. The nodes see `folder`, the current folder and the Python as this
    machine does.
    """

    def __init__(self, *, folder: Path, run_id: str, words: Sequence[str]) -> None:
        self._folder = folder.absolute() / run_id
        self._run_id = run_id
        self._name = f"trt-compat-{run_id}"
        self._words = tuple(words)

    def plan(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield the sbatch lines that would submit the cells."""
        for job in self._jobs(cell for cell in cells if cell.inapplicable is None):
            for task in job.tasks:
                target = next(iter(task.left.values())).target
                yield f"task {task.folder.name}: {len(task.left)} of the cells of {target.name}"
            yield shlex.join(job.line)

    def check(self) -> None:
        """Raise HandledError without Slurm, InfraError if it does not answer."""
        for program in ("sbatch", "squeue", "scancel"):
            if shutil.which(program) is None:
                raise HandledError(
                    f"--executor slurm needs Slurm's commands, and there is no {program} on the PATH; "
                    "run it where jobs are submitted, or leave --executor out to run here"
                )
        self._queue()

    def run(self, cells: Sequence[Cell], *, store: Sink, report: Report, say: Say, live: Say | None) -> None:  # noqa: ARG002
        """Run the cells: `not_run` if Slurm refuses their job, `infra_error` if a task has not recorded them."""

        def keep(cell: Cell, outcome: Outcome, log: str = "") -> None:
            report(cell, store.append(outcome, log or None), "")

        todo = []
        for cell in cells:
            reason = cell.inapplicable
            if reason is None:
                todo.append(cell)
            else:
                keep(cell, self._blank(cell, "not_applicable", reason))
        jobs, lost = self._jobs(todo), False
        try:
            for job in jobs:
                job.start(self._run_id)
            while any(job.left for job in jobs):
                time.sleep(_EVERY)
                _take_in(jobs, keep)
                lost = self._give_up(jobs, keep) or lost
        finally:
            gone = self._end(jobs, say)
            _take_in(jobs, keep)
            if gone and not lost:
                shutil.rmtree(self._folder, ignore_errors=True)
                with contextlib.suppress(OSError):
                    self._folder.parent.rmdir()
            elif jobs:
                say(f"the output of the tasks in Slurm is kept in {self._folder}")

    def _jobs(self, cells: Iterable[Cell]) -> list[_Job]:
        """Return the arrays that run the cells: targets that ask the same of a node in one."""
        by_target: dict[str, list[Cell]] = {}
        for cell in cells:
            by_target.setdefault(cell.target.name, []).append(cell)
        alike: dict[tuple[tuple[str, ...], str], list[list[Cell]]] = {}
        for batch in by_target.values():
            target = batch[0].target
            size = target.slurm.cells or len(batch)
            tasks = [batch[start : start + size] for start in range(0, len(batch), size)]
            alike.setdefault((_asked(target), target.slurm.python or sys.executable), []).extend(tasks)
        return [
            self._job(number, asked, python, tasks)
            for number, ((asked, python), tasks) in enumerate(alike.items(), start=1)
        ]

    def _job(self, number: int, asked: tuple[str, ...], python: str, tasks: list[list[Cell]]) -> _Job:
        place = self._folder / str(number)
        started = shlex.join([python, "-m", "harness", "run", *self._words, "--task", str(place)])
        line = [
            *("sbatch", *asked, "--wait", f"--job-name={self._name}", f"--array=0-{len(tasks) - 1}"),
            *("--requeue", f"--chdir={Path.cwd()}"),
            # A task that is started again goes on in the same file.
            *(f"--output={place}-%a/{_OUTPUT}", "--open-mode=append"),
            # In place of the shell: Slurm's signals are the harness's.
            f'--wrap=exec {started}-"$SLURM_ARRAY_TASK_ID"',
        ]
        folders = (Path(f"{place}-{index}") for index in range(len(tasks)))
        left = ({cell.id: cell for cell in task} for task in tasks)
        return _Job(asked, line, place.with_suffix(".sbatch"), list(map(_Task, folders, left)))

    def _give_up(self, jobs: Iterable[_Job], keep: Callable[[Cell, Outcome], None]) -> bool:
        """Record the cells that will have no record of their tasks; tell whether tasks were lost over it."""
        lost = False
        for job in jobs:
            if not job.left or not job.over():
                continue
            refusal = job.refused()
            if refusal:
                self._queue()
            lost = lost or not refusal
            for task in job.tasks:
                reason = (
                    refusal
                    or f"the task {task.folder.name} in Slurm ended without its record{task.last_line()}"
                )
                while task.left:
                    cell = task.left.pop(next(iter(task.left)))
                    keep(cell, self._blank(cell, "not_run" if refusal else "infra_error", reason))
        return lost

    def _blank(self, cell: Cell, state: State, reason: str) -> Outcome:
        return Outcome.blank(cell, state, reason, bare_stamps(cell, self._run_id))

    def _end(self, jobs: Iterable[_Job], say: Say) -> bool:
        """Wait for the tasks of a run that is done, cancel those of any other; tell whether all have ended."""
        for job in jobs:
            job.forget()
        try:
            if any(job.left for job in jobs) or not self._gone():
                self._cancel()
        except InfraError as error:
            say(f"{error}; end what is left by `scancel --name={self._name}`")
            return False
        return True

    def _cancel(self) -> None:
        """Cancel the tasks and wait for their end; raises InfraError if one does not end."""
        _answer("scancel", f"--name={self._name}")
        if not self._gone():
            raise InfraError(
                f"tasks are still ending in Slurm; look with `squeue --name={self._name}`, and go on when they are gone"
            )

    def _gone(self) -> bool:
        """Wait for the end of all tasks, for a while; tell whether they have ended."""
        end = time.monotonic() + _LEAVE
        while self._queue():
            if time.monotonic() > end:
                return False
            time.sleep(_EVERY)
        return True

    def _queue(self) -> bool:
        """Tell whether a task has not ended; raises InfraError if Slurm does not answer."""
        return bool(_answer("squeue", "--noheader", f"--name={self._name}").strip())


def _asked(target: Target) -> tuple[str, ...]:
    """Return a target's options of sbatch: those of matrix.yaml, and a GPU for a target that needs one."""
    given = {"gres": "gpu:1"} if target.needs.gpu else {}
    options = {**given, **dict(target.slurm.options)}
    return tuple(
        f"--{name}={value}" if value else f"--{name}" for name, value in options.items() if value is not None
    )


def _take_in(jobs: Iterable[_Job], keep: Callable[[Cell, Outcome, str], None]) -> None:
    """Keep the records that have come."""
    for job in jobs:
        for task in job.tasks:
            for cell, outcome, log in task.new():
                keep(cell, outcome, log)


def _answer(*command: str) -> str:
    """Return the output of one of Slurm's commands; raises InfraError if it fails or takes too long."""
    done = run_to_end(command, _PATIENCE)
    if done.returncode != 0:
        why = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise InfraError(f"Slurm does not answer: {why}")
    return done.stdout

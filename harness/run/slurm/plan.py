"""Cells -> tasks -> jobs: what is submitted, as sbatch lines and scripts; pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.matrix import Target
    from harness.plan import Cell

#: How many tasks one job may have: the default of Slurm's MaxArraySize allows indexes to 1000.
_MOST = 1000
TASK_FILE, OUTPUT = "task.json", "slurm.txt"


@dataclass(frozen=True)
class Group:
    """Tasks of like constraints, one array job; a task is cells of one target."""

    number: int
    options: tuple[str, ...]
    python: str
    tasks: tuple[tuple[Cell, ...], ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the names of its targets."""
        return tuple(dict.fromkeys(cells[0].target.name for cells in self.tasks))

    @property
    def asked(self) -> str:
        """Return what it asks of a node, as sbatch's options."""
        return shlex.join(self.options) or "nothing in particular"


@dataclass(frozen=True)
class Submission:
    """Where a run's jobs are kept and what their tasks start: `words` follow the Python of a group."""

    folder: Path
    name: str
    words: tuple[str, ...]
    here: Path

    def task_folder(self, group: Group, index: int) -> Path:
        """Return the folder of a task: its file, records, logs and output."""
        return self.folder / f"{group.number}-{index}"

    def script_path(self, group: Group) -> Path:
        """Return where the script of a group is written."""
        return self.folder / f"{group.number}.sh"

    def script(self, group: Group) -> str:
        """Return the script of a group."""
        started = shlex.join([group.python, *self.words])
        task = f'{shlex.quote(str(self.folder / str(group.number)))}-"$SLURM_ARRAY_TASK_ID"'
        return (
            "#!/bin/sh\n"
            f"# A task of this job: cells of {', '.join(group.targets)}\n"
            # In place of the shell: what Slurm signals is the harness itself.
            f"exec {started} --reports {task} --task {task}/{TASK_FILE}\n"
        )

    def command(self, group: Group, indexes: Sequence[int]) -> list[str]:
        """Return the sbatch line that submits tasks of a group."""
        return [
            "sbatch",
            "--parsable",
            f"--job-name={self.name}",
            f"--array={ranges(indexes)}",
            "--requeue",
            f"--chdir={self.here}",
            # Appended to: a task that is requeued says in the same file what it does.
            f"--output={self.folder}/{group.number}-%a/{OUTPUT}",
            "--open-mode=append",
            *group.options,
            str(self.script_path(group)),
        ]


def grouped(cells: Iterable[Cell], architectures: Mapping[str, str], python: str) -> list[Group]:
    """Return the jobs that run the cells: targets that ask the same of a node in one, in the order of the cells.

    `architectures` are the nodes', by name, and `python` runs the harness where a target names no other.
    """
    tasks: dict[tuple[tuple[str, ...], str], list[tuple[Cell, ...]]] = {}
    for batch in by_target(cells):
        target = batch[0].target
        size = target.slurm.cells or len(batch)
        key = options(target, architectures), target.slurm.python or python
        tasks.setdefault(key, []).extend(
            tuple(batch[start : start + size]) for start in range(0, len(batch), size)
        )
    groups: list[Group] = []
    for (asked, runs), found in tasks.items():
        for start in range(0, len(found), _MOST):
            groups.append(Group(len(groups) + 1, asked, runs, tuple(found[start : start + _MOST])))
    return groups


def by_target(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the cells of each target."""
    batches: dict[str, list[Cell]] = {}
    for cell in cells:
        batches.setdefault(cell.target.name, []).append(cell)
    return list(batches.values())


def options(target: Target, architectures: Mapping[str, str]) -> tuple[str, ...]:
    """Return what sbatch is told of a target."""
    asked = target.slurm
    usual = "gpu:1" if target.needs.gpu else ""
    given = {
        "partition": asked.partition,
        "account": asked.account,
        "time": asked.time,
        "constraint": asked.constraint,
        "gres": usual if asked.gres is None else asked.gres,
        "exclude": ",".join(sorted(unfit(target, architectures))),
    }
    return (*(f"--{name}={value}" for name, value in given.items() if value), *asked.options)


def unfit(target: Target, architectures: Mapping[str, str]) -> set[str]:
    """Return the nodes that are known to be of another architecture than the target runs on."""
    wanted = target.slurm.architecture or target.needs.architecture
    return {node for node, found in architectures.items() if wanted not in ("any", found)}


def ranges(indexes: Sequence[int]) -> str:
    """Return indexes as --array takes them: "0-3,7"."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)

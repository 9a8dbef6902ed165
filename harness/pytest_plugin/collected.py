"""What was collected, and what runs it: the latter takes most of a second to load, and is loaded for the first cell."""

from __future__ import annotations

import functools
import uuid
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.matrix import load_matrix

if TYPE_CHECKING:
    from harness.case import Case
    from harness.plan import Cell
    from harness.pytest_plugin.run import Run


class Terminated(KeyboardInterrupt):
    """SIGTERM came: pytest is to end as if interrupted, its agents with it."""


class OnTarget(pytest.Item):
    """An item that runs on a target, which those after it on the same target find warm."""

    cell: Cell

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the cell, and not by its id alone: pytest writes `::` for a dot in what a node id ends on."""
        return self.path, self.cell.target.line, f"cell {self.cell.id}"


class Collected:
    """The cells that one pytest process has collected, and their run."""

    def __init__(self, config: pytest.Config) -> None:
        # Under xdist each worker has its own file in the store, and all of them one run id.
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        self.id = str(worker.get("testrunuid") or uuid.uuid4().hex)[:12]
        self.cases: dict[Path, tuple[Case, ...]] = {}
        self.cells: list[Cell] = []
        self._config = config

    def know(self, folder: Path, cases: tuple[Case, ...], cells: tuple[Cell, ...]) -> None:
        """Keep the cases of a folder, whose models are built when the first of their cells is run, and the cells."""
        self.cases[folder] = cases
        self.cells += cells

    @cached_property
    def run(self) -> Run:
        """Return what the cells share that are run."""
        from harness.pytest_plugin.run import Run  # noqa: PLC0415  (engines' machinery and Docker's SDK)

        return Run(self._config, self.id, self.cases, self.cells)

    def close(self) -> None:
        """End the warm target, where there is one."""
        if "run" in vars(self):
            self.run.close()


@functools.cache
def _names(matrix: Path) -> tuple[str, ...]:
    return tuple(sorted((target.name for target in load_matrix(matrix)), key=len, reverse=True))


def target_of(cell: str, matrix: Path) -> str:
    """Return the name of the target whose cell has this id, as far as the id's end tells; "" for none.

    For xdist's own process, whose workers give it the ids of what they collected and nothing else; what else asks for a
    cell's target has the cell.
    """
    return next((name for name in _names(matrix) if cell.endswith(f"-{name}")), "")


#: Where a process keeps what it has collected.
COLLECTED = pytest.StashKey[Collected]()

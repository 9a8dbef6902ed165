"""Runs the cells of one pytest process, one warm target after the other, and writes the report."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from harness.case import load_cases
from harness.errors import InfraError
from harness.judge.cell import Judged, is_news, judge_cell
from harness.matrix import load_matrix
from harness.plan import Cell
from harness.pytest_plugin import reports_folder
from harness.record.outcome import Outcome
from harness.record.speaking import todays
from harness.record.store import Store
from harness.report.writer import build_report
from harness.run.commands import published_lines
from harness.run.gpus import Gpus
from harness.run.key import answering, keys_of
from harness.run.local import How, Runners, reap_orphans
from harness.run.prepared import PreparedVariants, with_models
from harness.run.target import TargetRunner
from harness.scratch import reap_scratch
from harness.text import visible


class Run:
    """The selected cells that can run here, the store, and the one warm target."""

    def __init__(self, config: pytest.Config, folder: Path, cells: Sequence[Cell]) -> None:
        # Under xdist each worker has its own file in the store, and all of them one run id.
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        self._id = str(worker.get("testrunuid") or uuid.uuid4().hex)[:12]
        self._folder, self._cells = folder, cells
        self._store = Store(reports_folder(config), run=self._id, worker=worker.get("workerid", "main"))
        self._via = config.getoption("compat_via")
        self._fresh = config.getoption("compat_fresh")
        self._runner: TargetRunner | None = None
        self._runners = Runners(
            How(
                self._via,
                pull=config.getoption("compat_pull"),
                process_per_cell=config.getoption("compat_process_per_cell"),
            ),
            is_news,
            run_id=self._id,
            prepared=PreparedVariants(),
            tell=_printer(config),
            # "gw3" unless `--tx` names the workers.
            gpus=Gpus(int("".join(filter(str.isdecimal, worker.get("workerid", ""))) or 0)),
        )

    def judged(self, cell: Cell) -> tuple[Judged, str]:
        """Return a cell's result, run or recorded earlier, and the earlier run's id, "" for one that ran now."""
        cell = self._built[cell.id]
        earlier = self._earlier.get(cell.id)
        if earlier is not None:
            return judge_cell(cell, earlier), earlier.stamps.run
        outcome, log = self._runner_of(cell).run(cell)
        try:
            return judge_cell(cell, self._store.append(outcome, log)), ""
        except OSError as error:
            raise InfraError(f"{self._store.path}: cannot be written: {error.strerror}") from error

    @cached_property
    def _built(self) -> dict[str, Cell]:
        """The cells with their models, built in a child process."""
        cases = {cell.case.name: cell.case for cell in self._cells}
        made = {case.name: case for case in with_models(cases.values(), self._folder)}
        variants = {(case.name, each.name): each for case in made.values() for each in case}
        return {
            cell.id: replace(
                cell, case=made[cell.case.name], variant=variants[cell.case.name, cell.variant.name]
            )
            for cell in self._cells
        }

    @cached_property
    def _earlier(self) -> dict[str, Outcome]:
        """The outcomes of earlier runs that need not be made anew, by cell."""
        # The report tells of a line that is no record: pytest catches the prints of a test.
        outcomes = () if self._fresh else tuple(Store(self._store.path, tell=lambda _: None).outcomes())
        if not outcomes:
            return {}
        cells = self._built.values()
        today = todays(cells)
        return answering(today, outcomes, keys_of(cells, today, self._via))

    def _runner_of(self, cell: Cell) -> TargetRunner:
        """Return the runner of the cell's target; the one before is closed."""
        if self._runner is None:
            reap_orphans([cell.target], self._via)
        if self._runner is None or self._runner.target is not cell.target:
            self.close()
            self._runner = self._runners.of(cell.target)
        return self._runner

    def close(self) -> None:
        """End the warm target; the store's file is closed too and opens again when needed."""
        self._store.close()
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        reap_scratch()


def write_report(matrix_file: Path, folder: Path, reports: Path) -> None:
    """Write the report on all records in `reports`; `folder` is that of the cases."""
    matrix, cases = load_matrix(matrix_file), with_models(load_cases(folder), folder)
    build_report(matrix, cases, Store(reports), reports, published_lines(matrix))


def _printer(config: pytest.Config) -> Callable[[str], None]:
    """Return a function that writes a line on the terminal from within a test; an xdist worker has no terminal."""
    terminal, capture = map(config.pluginmanager.getplugin, ("terminalreporter", "capturemanager"))

    def say(text: str) -> None:
        if terminal is not None:
            with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
                terminal.write_line(visible(text))

    return say

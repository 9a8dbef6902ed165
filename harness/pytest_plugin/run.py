"""What the cells of one pytest process share, and where it is kept."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HandledError, InfraError
from harness.pytest_plugin.options import reports_folder
from harness.record.staleness import todays
from harness.record.store import Store
from harness.run.gpus import Gpus
from harness.run.local import reap_orphans
from harness.run.prepare_in_child import PreparedVariants, with_models
from harness.run.provision import Host, Pulling, can_run, host_of, look_at_host
from harness.run.pull_plan import PullLines
from harness.run.reuse import answering, keys_of
from harness.run.target import TargetRunner
from harness.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pytest

    from harness.case import Case
    from harness.matrix import Target
    from harness.plan import Cell
    from harness.record.outcome import Outcome


class Run:
    """What the cells of one pytest process share: the store and the one warm target."""

    def __init__(
        self,
        config: pytest.Config,
        run_id: str,
        cases: Mapping[Path, Sequence[Case]],
        cells: Sequence[Cell],
    ) -> None:
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        self.id, self._cases, self._cells = run_id, cases, cells
        self.store = Store(reports_folder(config), run=self.id, worker=worker.get("workerid", "main"))
        self.via = config.getoption("compat_via")
        self.ignore_needs = config.getoption("compat_ignore_needs")
        self._pulling = Pulling(large=config.getoption("compat_pull"), tell=PullLines(_printer(config)))
        self._runner: TargetRunner | None = None
        self._prepared = PreparedVariants()
        # "gw3" unless `--tx` names the workers.
        self._gpus = Gpus(int("".join(filter(str.isdecimal, worker.get("workerid", ""))) or 0))
        self._fresh = config.getoption("compat_fresh")
        #: What there is already, by target; and by cell in it.
        self._earlier: dict[int, dict[str, Outcome]] = {}
        self._outcomes: tuple[Outcome, ...] | None = None
        self._host: Host | None = None
        self._lacking: dict[tuple[str, bool], str] = {}
        self._built: dict[Path, dict[str, Case]] = {}

    def prepare(self, prepared: PreparedVariants) -> None:
        """Take what makes variants ready, where that is not their own `build`."""
        self._prepared = prepared

    def lacking(self, target: Target) -> str:
        """Return what this machine lacks for a target, looked up once; "" where only a try can tell."""
        # A case may be untrusted on a target that others trust.
        place = (target.name, target.untrusted)
        if place not in self._lacking:
            self._host = self._host or look_at_host()
            try:
                host = host_of(target, self._host)
                lacking = can_run(target, host, self.via, ignore_needs=self.ignore_needs)
            except (HandledError, InfraError):
                lacking = None
            self._lacking[place] = lacking or ""
        return self._lacking[place]

    def earlier(self, cell: Cell, folder: Path) -> Outcome | None:
        """Return the outcome of an earlier run that need not be made anew."""
        if self._fresh:
            return None
        target = cell.target
        if id(target) not in self._earlier:
            if self._outcomes is None:
                # What cannot be read is told with the report: pytest catches what a test prints.
                self._outcomes = tuple(Store(self.store.path, tell=lambda _: None).outcomes())
            cells = [each for each in self._cells if each.target is target] if self._outcomes else []
            cells = [self.built(each, folder) for each in cells]
            today = todays(cells)
            keys = keys_of(cells, today, self.via, ignore_needs=self.ignore_needs)
            self._earlier[id(target)] = answering(today, self._outcomes, keys)
        return self._earlier[id(target)].get(cell.id)

    def built(self, cell: Cell, folder: Path) -> Cell:
        """Return a cell with its model built, in a child process; it is `Unbuildable` where that cannot be."""
        if folder not in self._built:
            cases = with_models(self._cases[folder], folder)
            self._built[folder] = {case.name: case for case in cases}
        case = self._built[folder][cell.case.name]
        variant = next(each for each in case if each.name == cell.variant.name)
        return replace(cell, case=case, variant=variant)

    def runner(self, cell: Cell) -> TargetRunner:
        """Return the runner of the cell's target; the one before is closed."""
        if self._runner is None:
            reap_orphans([cell.target])
        if self._runner is None or self._runner.target is not cell.target:
            self.close()
            self._runner = TargetRunner(
                cell.target,
                via=self.via,
                run_id=self.id,
                prepared=self._prepared,
                pulling=self._pulling,
                ignore_needs=self.ignore_needs,
                gpus=self._gpus,
            )
        return self._runner

    def close(self) -> None:
        """End the warm target; the store's file is closed too and opens again when needed."""
        self.store.close()
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def _printer(config: pytest.Config) -> Callable[[str], None]:
    """Return what writes a line on the terminal from within a test; one of xdist's workers has no terminal."""
    terminal, capture = map(config.pluginmanager.getplugin, ("terminalreporter", "capturemanager"))

    def say(text: str) -> None:
        if terminal is not None:
            with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
                terminal.write_line(visible(text))

    return say

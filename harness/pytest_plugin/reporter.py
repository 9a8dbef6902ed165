"""The end of a session: one report on all that was recorded."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from harness.case import load_cases
from harness.errors import HandledError, described
from harness.matrix import load_matrix
from harness.pytest_plugin.collected import COLLECTED, Terminated, target_of
from harness.pytest_plugin.options import cases_folder, matrix_name, reports_folder
from harness.record.suites import SUITES
from harness.text import visible
from harness.words import Class

#: The property of a cell's report that names the run which its outcome was taken from.
REUSED = "reused"


class Reporter:
    """Notes which matrix files had cells that ran, here or in xdist's workers, and writes the one report at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder = reports_folder(config)
        self._matrices: set[Path] = set()
        self._suites: set[Path] = set()
        self._complaint = ""
        self._terminated = False
        self._announced = False
        self._cells = self._reused = 0
        self._workers: list[subprocess.Popen[bytes]] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say what will be pulled, before it is."""
        if not self._config.option.collectonly:
            self._announce([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Say so for xdist's workers, once: each has collected the same."""
        if not self._announced:
            self._announce(ids)

    def _announce(self, nodeids: list[str]) -> None:
        from harness.run.pull_plan import plan_pulls  # noqa: PLC0415  (takes its time, and collecting needs none of it)

        self._announced = True
        terminal: Any = self._config.pluginmanager.getplugin("terminalreporter")
        cells = [nodeid.partition("::") for nodeid in nodeids]
        wanted: dict[str, set[str]] = {}
        for path, _, name in cells:
            if Path(path).name == matrix_name(self._config):
                wanted.setdefault(path, set()).add(target_of(name, self._config.rootpath / path))
        for path, names in wanted.items():
            targets = [target for target in load_matrix(self._config.rootpath / path) if target.name in names]
            asked = ("via", "pull", "ignore_needs")
            via, large, ignore = (self._config.getoption(f"compat_{option}") for option in asked)
            # What is wrong is said of the cells themselves.
            with contextlib.suppress(HandledError):
                for line in plan_pulls(targets, via, large=large, ignore_needs=ignore).lines():
                    terminal.write_line(visible(line))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the matrix file of a cell that ran, now or in an earlier run."""
        told = dict(report.user_properties)
        if report.when == "setup" and "class" in told:
            matrix = self._config.rootpath / report.nodeid.split("::")[0]
            if "suite" in told:
                self._suites.add(matrix)
            elif told["class"] not in (Class.NOT_RUN, Class.NOT_APPLICABLE):
                self._matrices.add(matrix)
            self._cells += "suite" not in told
            self._reused += REUSED in told

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:  # noqa: ANN401
        """Note the process of one of xdist's workers; one on another machine has none here."""
        # Private to execnet, seen with 2.1.2 and xdist 3.8: no event of xdist's tells a worker's process.
        io = node.gateway._io  # noqa: SLF001
        if hasattr(io, "popen"):
            self._workers.append(io.popen)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Have the workers end their agents: xdist lets a cell go on for 5 seconds, and kills the worker after 10."""
        self._terminated = isinstance(excinfo.value, Terminated)
        for worker in self._workers:
            worker.terminate()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write the report on all that the store holds, once every agent and xdist's workers have ended."""
        if COLLECTED in self._config.stash:
            self._config.stash[COLLECTED].close()
        yield
        if self._terminated:
            session.exitstatus = 128 + signal.SIGTERM
        try:
            for path in sorted(self._matrices):
                self._report(path, cases_folder(self._config))
            if self._suites:
                self._report_suites()
        except HandledError as error:
            self._complaint = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        except Exception as error:  # noqa: BLE001  (the tests' own results must still be told)
            self._complaint = described(error)
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def _report_suites(self) -> None:
        from harness.report.suites import build_suites  # noqa: PLC0415  (as above)

        for path in sorted(self._suites):
            build_suites(load_matrix(path), self._folder)

    def _report(self, path: Path, folder: Path) -> None:
        from harness.record.store import Store  # noqa: PLC0415  (as above)
        from harness.report import build_report  # noqa: PLC0415
        from harness.run.commands import published_lines  # noqa: PLC0415
        from harness.run.prepare_in_child import with_models  # noqa: PLC0415

        matrix, cases = load_matrix(path), with_models(load_cases(folder), folder)
        build_report(matrix, cases, Store(self._folder), self._folder, published_lines(matrix))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where the report is, or why there is none."""
        if self._reused:
            taken = f"{self._reused} of {self._cells} cells taken from earlier runs; --fresh runs all"
            terminalreporter.write_line(taken)
        if self._complaint:
            terminalreporter.write_line(f"no compatibility report: {visible(self._complaint)}", red=True)
        elif self._matrices:
            terminalreporter.write_line(f"compatibility report: {self._folder / 'index.html'}")
        elif self._suites:
            terminalreporter.write_line(f"compatibility report: {self._folder / SUITES}")
        elif self._cells:
            terminalreporter.write_line("no cell ran here: no compatibility report is written")

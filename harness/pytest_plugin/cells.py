"""The plugin, where there is a matrix: it is collected into one item a cell.

`pytest -k rtx17`, `pytest -k "mish and rtx"`, `pytest -m trt86`, `pytest -n 4`. A cell that cannot run here is
skipped with what it needs (`--require TARGET` makes that a failure), a known failure is an xfail with its link, an
unexpected pass an XPASS. Infrastructure trouble is an error of the item's set-up, never a failure of the cell.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from xdist.scheduler import LoadScopeScheduling

from harness.case import load_cases
from harness.errors import HandledError, InfraError
from harness.judge.cell import Judged, judge_cell
from harness.judge.explain import explain
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.pytest_plugin import FILE, has_matrix, is_matrix, named_matrix
from harness.pytest_plugin.collected import COLLECTED, Collected, OnTarget, Terminated, target_of
from harness.pytest_plugin.options import PULL_GB, cases_folder, matrix_name, named
from harness.pytest_plugin.reporter import REUSED, Reporter
from harness.record.outcome import Outcome
from harness.scratch import reap_scratch
from harness.suggest import did_you_mean
from harness.text import visible
from harness.words import Class, Verdict

if TYPE_CHECKING:
    from harness.pytest_plugin.run import Run

_BEFORE = pytest.StashKey[Any]()
#: The ids of all cells that were collected.
_IDS = pytest.StashKey[list[str]]()


class CellFailed(Exception):
    """The verdict on a cell is not good; carries the judged cell for the explanation."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(judged.judgement.sentence)
        self.judged = judged


class ByTarget(LoadScopeScheduling):  # type: ignore[misc]
    """Keeps the cells of a target on one worker, which warms it up once, and other tests by their module.

    xdist's own groups will not do: it marks them in an attribute that pytest 9.2 no longer reads.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.partition("::")
        of_cell = Path(path).name == matrix_name(self.config)
        return f"{path}::{target_of(name, self.config.rootpath / path) if of_cell else ''}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByTarget | None:  # noqa: ANN401
    """Let `-n` keep the cells of a target together, where there are cells and unless `--dist` says otherwise."""
    told = any(argument.startswith("--dist") for argument in config.invocation_params.args)
    if told or config.getoption("dist") != "load" or not has_matrix(config, config.args):
        return None
    return ByTarget(config, log)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a matrix: its cells, or with `--suite` the models of a suite on its targets."""
    named = named_matrix(parent.config)
    if file_path == named if named else file_path.name == FILE and is_matrix(file_path):
        if not parent.config.getoption("compat_suite"):
            return MatrixFile.from_parent(parent, path=file_path)
        from harness.pytest_plugin.suite import SuiteFile  # noqa: PLC0415  (takes its time, and few ask for it)

        return SuiteFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Say of a cell that is asked for and is not there what is likely meant, and in which cases it was looked for."""
    try:
        return (yield)
    except pytest.UsageError as error:
        ids = session.config.stash.get(_IDS, [])
        asked = (arg.partition("::") for arg in session.config.args)
        names = [name for path, _, name in asked if Path(path).name == matrix_name(session.config) and name]
        lacking = next((name for name in names if name not in ids), None)
        if lacking is None or not ids:
            raise
        where = f"in {cases_folder(session.config)}; {did_you_mean(lacking, ids)}"
        raise pytest.UsageError(f"no cell {lacking!r} {where}; --cases=FOLDER names other cases") from error
    finally:
        # All of it stays until the end, where pytest looks for garbage several times: half a second for 10,000 cells.
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order cells by target, one warm environment after the other; everything else keeps its place before them."""
    cells = [item for item in items if isinstance(item, OnTarget)]
    targets = list(dict.fromkeys(item.cell.target.name for item in cells))
    cells.sort(key=lambda item: targets.index(item.cell.target.name))
    items[:] = [*(item for item in items if not isinstance(item, OnTarget)), *cells]


class MatrixFile(pytest.File):
    """matrix.yaml as a collector."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for each cell; a mistake in matrix.yaml or a case is one sentence."""
        try:
            matrix = load_matrix(self.path)
            folder = cases_folder(self.config)
            cases = load_cases(folder)
            for name in self.config.getoption("compat_require"):
                matrix.target(name)
            if PULL_GB in os.environ:
                from harness.run.provision.pulls import threshold  # noqa: PLC0415  (as above)

                threshold()
        except HandledError as error:
            raise self.CollectError(visible(str(error))) from error
        words = {target.name for target in matrix} | {target.engine.value for target in matrix}
        for word in sorted(words | {case.name for case in cases}):
            self.config.addinivalue_line("markers", f"{word}: cells of {word}")
        cells = all_cells(matrix, cases)
        self.config.stash.setdefault(COLLECTED, Collected(self.config)).know(folder, cases, cells)
        self.config.stash.setdefault(_IDS, []).extend(cell.id for cell in cells)
        for cell in cells:
            yield CellItem.from_parent(self, name=cell.id, cell=cell, folder=folder)


class CellItem(OnTarget):
    """One cell as a test item."""

    def __init__(self, *, cell: Cell, folder: Path, **rest: Any) -> None:  # noqa: ANN401  (pytest's own arguments)
        super().__init__(**rest)
        self.cell = cell
        self.folder = folder
        self.judged: Judged | None = None
        #: What this machine lacks for the target.
        self._lacking = ""
        for mark in (cell.target.name, cell.target.engine.value, cell.case.name):
            self.add_marker(mark)

    def setup(self) -> None:
        """Run the cell and record it, or take what is recorded; infrastructure trouble is an error here.

        A target that this machine cannot run costs no model and leaves no record.
        """
        run = self.config.stash[COLLECTED].run
        self._lacking = run.lacking(self.cell.target)
        if self._lacking:
            self.user_properties += [
                ("class", str(Class.NOT_RUN)),
                ("verdict", str(Verdict.NOT_RUN)),
                ("signature", ""),
            ]
            if not self._asked_for():
                pytest.skip(visible(self._lacking))
            return
        try:
            cell, outcome = self.cell, run.earlier(self.cell, self.folder)
        except (HandledError, InfraError) as error:
            # Of a file among the records: not by `repr_failure`, which pytest asks of the call alone.
            pytest.fail(visible(str(error)), pytrace=False)
        if outcome is None:
            cell = run.built(cell, self.folder)
            outcome = self._measured(run, cell)
        else:
            self.user_properties.append((REUSED, outcome.stamps.run))
        self.judged = judge_cell(cell, outcome)
        self.user_properties += [
            ("class", str(self.judged.classification.cls)),
            ("verdict", str(self.judged.judgement.verdict)),
            ("signature", self.judged.signature or ""),
        ]
        judgement = self.judged.judgement
        if judgement.verdict is Verdict.INFRA:
            # Not by `repr_failure`: pytest asks that of the call alone, and prints a traceback for any other exception.
            pytest.fail(f"infrastructure, not the engine: {visible(judgement.sentence)}", pytrace=False)
        if judgement.verdict is Verdict.NOT_RUN and not self._required():
            pytest.skip(visible(judgement.sentence))

    def _measured(self, run: Run, cell: Cell) -> Outcome:
        outcome, log = run.runner(self.cell).run(cell)
        try:
            return run.store.append(outcome, log)
        except OSError as error:
            pytest.fail(f"{run.store.path}: cannot be written: {error.strerror}", pytrace=False)

    def _asked_for(self) -> bool:
        return self.cell.target.name in self.config.getoption("compat_require")

    def _required(self) -> bool:
        assert self.judged is not None  # noqa: S101  (set by setup)
        return self._asked_for() and self.judged.classification.cls is Class.NOT_RUN

    def runtest(self) -> None:
        """Fail where the verdict is bad."""
        if self._lacking:
            pytest.fail(f"required to run here, and it {visible(self._lacking)}", pytrace=False)
        assert self.judged is not None  # noqa: S101  (set by setup)
        if self._required():
            sentence = visible(self.judged.judgement.sentence)
            pytest.fail(f"required to run here, and it {sentence}", pytrace=False)
        if self.judged.failed:
            raise CellFailed(self.judged)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ANN401
        """Explain a failed cell in words; a traceback is for faults of the harness only."""
        if isinstance(excinfo.value, CellFailed):
            return visible(explain(excinfo.value.judged, **named(self.config, self.path)))
        return super().repr_failure(excinfo, style)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a known failure into an xfail and an unexpected pass into an XPASS, each with its reason.

    What builds here and is known to fail when it is run is no pass either.
    """
    report = yield
    if isinstance(item, CellItem) and call.when == "call" and item.judged is not None:
        judgement = item.judged.judgement
        if judgement.verdict in (Verdict.KNOWN_FAILURE, Verdict.FAILS_WHEN_RUN):
            report.outcome = "skipped"
            report.wasxfail = visible(judgement.sentence)
        elif judgement.verdict in (Verdict.FIXED, Verdict.NOT_REPRODUCED):
            report.wasxfail = visible(judgement.sentence)
    return report


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End a target's agent with its last cell."""
    if isinstance(item, OnTarget) and not (
        isinstance(nextitem, OnTarget) and nextitem.cell.target is item.cell.target
    ):
        item.config.stash[COLLECTED].close()


def pytest_configure(config: pytest.Config) -> None:
    """Have the process that the user started write the report; xdist's workers only record.

    SIGTERM interrupts each of them: its default would leave a container to the next run's reaper.
    """
    if _in_main_thread():
        config.stash[_BEFORE] = signal.signal(signal.SIGTERM, _terminate)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "compat-reporter")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what an interrupted run left, and remove what one that was killed did."""
    if COLLECTED in config.stash:
        config.stash[COLLECTED].close()
        reap_scratch()
    if _BEFORE in config.stash:
        signal.signal(signal.SIGTERM, config.stash[_BEFORE])


def _terminate(*_: object) -> NoReturn:
    # Sent to the process group as well, or again, it must not stop the ending of agents.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated("SIGTERM")


def pytest_keyboard_interrupt() -> None:
    """Let nothing but SIGKILL come between an interrupt and the end of the agents.

    A worker of xdist that takes five seconds to end is interrupted again, by execnet: in the middle of its exit, maybe.
    """
    if _in_main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "PYTEST_XDIST_WORKER" in os.environ:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

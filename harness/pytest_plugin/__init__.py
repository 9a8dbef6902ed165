"""The only room that knows pytest: matrix.yaml is collected into one item a cell.

`pytest -k rtx17`, `pytest -k "mish and rtx"`, `pytest -m trt86`, `pytest -n 4`. A cell that cannot run here is
skipped with what it needs (`--require TARGET` makes that a failure), a known failure is an xfail with its link, an
unexpected pass an XPASS. Infrastructure trouble is an error of the item's set-up, never a failure of the cell.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from xdist.scheduler import LoadScopeScheduling

from harness.case import load_cases
from harness.errors import HandledError
from harness.judge.cell import Judged, judge_cell
from harness.judge.explain import explain
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.pytest_plugin.reporter import Reporter
from harness.pytest_plugin.run import FILE, RUN, Run, Terminated
from harness.run.provision.pulls import THRESHOLD_VARIABLE, threshold
from harness.words import Class, Verdict

_BEFORE = pytest.StashKey[Any]()


class CellFailed(Exception):
    """The verdict on a cell is not good; carries the judged cell for the explanation."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(judged.judgement.sentence)
        self.judged = judged


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the matrix's options."""
    group = parser.getgroup("compat", "TensorRT compatibility matrix")
    group.addoption(
        "--via",
        dest="compat_via",
        choices=("auto", "docker", "venv"),
        default="auto",
        help="where engines run: containers, virtual environments, or containers where possible (default: auto)",
    )
    group.addoption(
        "--ignore-needs",
        dest="compat_ignore_needs",
        action="store_true",
        help="run also what is refused for this machine's driver, GPU or Jetson Linux; the records say so",
    )
    group.addoption(
        "--require",
        dest="compat_require",
        metavar="TARGET",
        action="append",
        default=[],
        help="fail, not skip, the cells of this target that cannot run here (may be repeated)",
    )
    group.addoption(
        "--pull",
        dest="compat_pull",
        action="store_true",
        help=f"pull large images too: those above {THRESHOLD_VARIABLE} (default: 2 GB), or of unknown size",
    )
    # pytest looks for its settings before it has heard of these options, and takes a folder that exists for one of
    # tests: outside the project it is to be written with "=".
    group.addoption(
        "--cases",
        dest="compat_cases",
        default="cases",
        help='folder of case modules (default: cases); with "=" where it is outside the project',
    )
    group.addoption(
        "--reports",
        dest="compat_reports",
        default="reports",
        help='folder for records and the report (default: reports); with "=" where it is outside the project',
    )


class ByTarget(LoadScopeScheduling):  # type: ignore[misc]
    """Keeps the cells of a target on one worker, which warms it up once, and other tests by their module.

    xdist's own groups will not do: it marks them in an attribute that pytest 9.2 no longer reads.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.partition("::")
        target = name.rpartition("]-")[2] if Path(path).name == FILE else ""
        return f"{path}::{target}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByTarget | None:  # noqa: ANN401
    """Let `-n` keep the cells of a target together, unless `--dist` says otherwise."""
    told = any(argument.startswith("--dist") for argument in config.invocation_params.args)
    return ByTarget(config, log) if config.getoption("dist") == "load" and not told else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect matrix.yaml."""
    if file_path.name == FILE:
        return MatrixFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order cells by target, one warm environment after the other; everything else keeps its place before them."""
    cells = [item for item in items if isinstance(item, CellItem)]
    targets = list(dict.fromkeys(item.cell.target.name for item in cells))
    cells.sort(key=lambda item: targets.index(item.cell.target.name))
    items[:] = [*(item for item in items if not isinstance(item, CellItem)), *cells]


class MatrixFile(pytest.File):
    """matrix.yaml as a collector."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for each cell; a mistake in matrix.yaml or a case is one sentence."""
        try:
            matrix = load_matrix(self.path)
            folder = self.config.rootpath / self.config.getoption("compat_cases")
            cases = load_cases(folder)
            for name in self.config.getoption("compat_require"):
                matrix.target(name)
            threshold()
        except HandledError as error:
            raise self.CollectError(str(error)) from error
        self.config.stash.setdefault(RUN, Run(self.config)).know(folder, cases)
        words = {target.name for target in matrix} | {target.engine.value for target in matrix}
        for word in sorted(words | {case.name for case in cases}):
            self.config.addinivalue_line("markers", f"{word}: cells of {word}")
        for cell in all_cells(matrix, cases):
            yield CellItem.from_parent(self, name=cell.id, cell=cell, folder=folder)


class CellItem(pytest.Item):
    """One cell as a test item."""

    def __init__(self, *, cell: Cell, folder: Path, **rest: Any) -> None:  # noqa: ANN401  (pytest's own arguments)
        super().__init__(**rest)
        self.cell = cell
        self.folder = folder
        self.judged: Judged | None = None
        for mark in (cell.target.name, cell.target.engine.value, cell.case.name):
            self.add_marker(mark)

    def setup(self) -> None:
        """Run the cell and record it; infrastructure trouble is an error here."""
        run = self.config.stash[RUN]
        runner = run.runner(self.cell)
        cell = run.built(self.cell, self.folder)
        outcome, log = runner.run(cell)
        try:
            run.store.append(outcome, log)
        except OSError as error:
            pytest.fail(f"{run.store.path}: cannot be written: {error.strerror}", pytrace=False)
        self.judged = judge_cell(cell, outcome)
        self.user_properties += [
            ("class", str(self.judged.classification.cls)),
            ("verdict", str(self.judged.judgement.verdict)),
            ("signature", self.judged.signature or ""),
        ]
        judgement = self.judged.judgement
        if judgement.verdict is Verdict.INFRA:
            # Not by `repr_failure`: pytest asks that of the call alone, and prints a traceback for any other exception.
            pytest.fail(f"infrastructure, not the engine: {judgement.sentence}", pytrace=False)
        if judgement.verdict is Verdict.NOT_RUN and not self._required():
            pytest.skip(judgement.sentence)

    def _required(self) -> bool:
        assert self.judged is not None  # noqa: S101  (set by setup)
        required = self.cell.target.name in self.config.getoption("compat_require")
        return required and self.judged.classification.cls is Class.NOT_RUN

    def runtest(self) -> None:
        """Fail where the verdict is bad."""
        assert self.judged is not None  # noqa: S101  (set by setup)
        if self._required():
            pytest.fail(f"required to run here, and it {self.judged.judgement.sentence}", pytrace=False)
        if self.judged.failed:
            raise CellFailed(self.judged)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ANN401
        """Explain a failed cell in words; a traceback is for faults of the harness only."""
        if isinstance(excinfo.value, CellFailed):
            return explain(excinfo.value.judged)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the cell."""
        return self.path, self.cell.target.line, self.cell.id


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a known failure into an xfail and an unexpected pass into an XPASS, each with its reason."""
    report = yield
    if isinstance(item, CellItem) and call.when == "call" and item.judged is not None:
        judgement = item.judged.judgement
        if judgement.verdict is Verdict.KNOWN_FAILURE:
            report.outcome = "skipped"
            report.wasxfail = judgement.sentence
        elif judgement.verdict in (Verdict.FIXED, Verdict.NOT_REPRODUCED):
            report.wasxfail = judgement.sentence
    return report


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End a target's agent with its last cell."""
    if isinstance(item, CellItem) and not (
        isinstance(nextitem, CellItem) and nextitem.cell.target is item.cell.target
    ):
        item.config.stash[RUN].close()


def pytest_configure(config: pytest.Config) -> None:
    """Have the process that the user started write the report; xdist's workers only record.

    SIGTERM interrupts each of them: its default would leave a container to the next run's reaper.
    """
    if _in_main_thread():
        config.stash[_BEFORE] = signal.signal(signal.SIGTERM, _terminate)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "compat-reporter")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what an interrupted run left."""
    if RUN in config.stash:
        config.stash[RUN].close()
    if _BEFORE in config.stash:
        signal.signal(signal.SIGTERM, config.stash[_BEFORE])


def _terminate(*_: object) -> NoReturn:
    # Sent to the process group as well, or again, it must not stop the ending of agents.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated("SIGTERM")


def pytest_keyboard_interrupt() -> None:
    """Let nothing but SIGKILL come between an interrupt and the end of the agents."""
    if _in_main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

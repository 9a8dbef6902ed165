"""The only room that knows pytest: matrix.yaml is collected into one item a cell.

A conftest.py asks for it by `pytest_plugins = ["harness.pytest_plugin"]`. Then `pytest -k rtx17`, `pytest -m trt86` and
`pytest -n 4` run cells. A cell that cannot run here is skipped with its needs (`--require TARGET` makes that a
failure), a known failure is an xfail with its link, an unexpected pass an XPASS. Infrastructure trouble is an error of
the item's set-up, never a failure of the cell.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import threading
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from harness.case import load_cases
from harness.errors import HandledError, InfraError, described
from harness.judge.cell import failure_text
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells, emptied_by, taken_along
from harness.shipped import shipped
from harness.text import visible
from harness.words import UNJUDGED, Class, Verdict

if TYPE_CHECKING:
    from harness.judge.cell import Judged
    from harness.matrix import Target
    from harness.pytest_plugin.run import Run

#: The file that is collected.
FILE = "matrix.yaml"
_CASES = "cases"
#: Pieces for each worker of a target that several share: who is done first takes the next.
_PIECES = 2
#: The property of a cell's report that names the run which its outcome was taken from.
_REUSED = "reused"
#: Loading engines' machinery and Docker's takes most of a second: the first cell does it.
_RUN = pytest.StashKey["Run"]()
#: Every cell that was collected.
_FOUND = pytest.StashKey[list[Cell]]()
#: This machine's lack, by target and whether it is trusted.
_LACKING = pytest.StashKey[dict[tuple[str, bool], str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the matrix."""
    group = parser.getgroup("compat", "TensorRT compatibility matrix")
    # pytest looks for its settings before it knows these options, and takes a folder that exists for one of tests.
    outside = 'write it with "=" where it is outside the project'
    options: dict[str, dict[str, Any]] = {
        "cases": {"metavar": "FOLDER", "help": f"folder of case modules (default: {_CASES}); {outside}"},
        "reports": {
            "metavar": "FOLDER",
            "default": "reports",
            "help": f"folder of records and report (default: reports); {outside}",
        },
        "via": {
            "choices": ("auto", "docker", "venv"),
            "default": "auto",
            "help": "where engines run: containers, virtual environments, or containers where possible (default: auto)",
        },
        "require": {
            "metavar": "TARGET",
            "action": "append",
            "default": [],
            "help": "fail, not skip, the cells of this target that cannot run here (repeatable)",
        },
        "pull": {"action": "store_true", "help": "pull large images too, or those of unknown size"},
        "process-per-cell": {
            "action": "store_true",
            "help": "a process for every cell (default: trusted cells of a target share one, and news is run again)",
        },
        "fresh": {"action": "store_true", "help": "run every cell, whatever is recorded"},
    }
    for name, attributes in options.items():
        group.addoption(f"--{name}", dest=f"compat_{name.replace('-', '_')}", **attributes)


class CellFailed(Exception):
    """The verdict on a cell is not good; carries the judged cell for the explanation."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(judged.judgement.sentence)
        self.judged = judged


class MatrixFile(pytest.File):
    """matrix.yaml as a collector."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for each cell; a mistake in matrix.yaml or a case is one sentence."""
        try:
            matrix, cases = load_matrix(self.path), load_cases(cases_folder(self.config))
            for name in self.config.getoption("compat_require"):
                matrix.target(name)
            cells = all_cells(matrix, cases)
        except HandledError as error:
            raise self.CollectError(visible(str(error))) from error
        words = {target.name for target in matrix} | {target.engine.value for target in matrix}
        for word in sorted(words | {case.name for case in cases}):
            self.config.addinivalue_line("markers", f"{word}: cells of {word}")
        self.config.stash.setdefault(_FOUND, []).extend(cells)
        marks = functools.cache(lambda word: getattr(pytest.mark, word))
        for cell in cells:
            yield CellItem.from_parent(self, name=cell.id, cell=cell, marks=marks)
        # They stay until the end, and pytest looks for garbage several times: half a second for 10,000 cells.
        gc.freeze()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a matrix."""
    return MatrixFile.from_parent(parent, path=file_path) if file_path.name == FILE else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order cells by target, one warm environment after the other; everything else keeps its place before them.

    A plugin that shuffles tests does so before.
    """
    cells = [item for item in items if isinstance(item, CellItem)]
    targets = {target: place for place, target in enumerate(dict.fromkeys(i.cell.target.name for i in cells))}
    cells.sort(key=lambda item: targets[item.cell.target.name])
    items[:] = [*(item for item in items if not isinstance(item, CellItem)), *cells]


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Name the targets that a name under -k took along."""
    cells, expression = (
        [item.cell for item in items if isinstance(item, CellItem)],
        config.getoption("keyword"),
    )
    found = config.stash.get(_FOUND, [])
    if expression and found and not items:
        # Of other words than names of cells, pytest's own reader decides.
        with contextlib.suppress(HandledError):
            return list(filter(None, [emptied_by(found, expression)]))
    return list(filter(None, [taken_along(cells, expression, "-m")]))


class CellItem(pytest.Item):
    """One cell as a test item."""

    def __init__(self, *, cell: Cell, marks: Any, **rest: Any) -> None:  # noqa: ANN401  (pytest's own arguments)
        super().__init__(**rest)
        self.cell = cell
        self.judged: Judged | None = None
        #: Why the cell did not run here.
        self._not_run = ""
        for word in (cell.target.name, cell.target.engine.value, cell.case.name):
            self.add_marker(marks(word))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the cell, and not by its id alone: pytest writes `::` for a dot in the end of a node id."""
        return self.path, self.cell.target.line, f"cell {self.cell.id}"

    def setup(self) -> None:
        """Run the cell and record it, or take a recorded outcome; infrastructure trouble is an error here.

        A target that this machine cannot run costs no model and leaves no record.
        """
        try:
            self._not_run = _lacking(self.cell.target, self.config)
            if self._not_run:
                self._tell(Class.NOT_RUN, Verdict.NOT_RUN)
            else:
                self.judged, reused = _run_of(self.session).judged(self.cell)
                found = self.judged
                self._tell(found.classification.cls, found.judgement.verdict, found.signature, reused)
        except (HandledError, InfraError) as error:
            # Not by `repr_failure`: pytest asks that of the call alone, and prints a traceback for other exceptions.
            pytest.fail(visible(str(error)), pytrace=False)
        judgement = self.judged and self.judged.judgement
        if judgement and judgement.verdict is Verdict.INFRA:
            pytest.fail(f"infrastructure, not the engine: {visible(judgement.sentence)}", pytrace=False)
        if judgement and judgement.verdict is Verdict.NOT_RUN:
            self._not_run = judgement.sentence
        ran = self.judged is not None and self.judged.classification.cls is not Class.NOT_RUN
        if self._not_run and (ran or self.cell.target.name not in self.config.getoption("compat_require")):
            pytest.skip(visible(self._not_run))

    def _tell(self, cls: Class, verdict: Verdict, signature: str | None = None, reused: str = "") -> None:
        """Put the cell's conclusions into its report, and so into a JUnit file."""
        told = {"class": str(cls), "verdict": str(verdict), "signature": signature or ""}
        self.user_properties += list(told.items()) + ([(_REUSED, reused)] if reused else [])

    def runtest(self) -> None:
        """Fail for a bad verdict."""
        if self._not_run:
            pytest.fail(f"required to run here, and it {visible(self._not_run)}", pytrace=False)
        if self.judged and self.judged.failed:
            raise CellFailed(self.judged)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ANN401
        """Explain a failed cell in words; a traceback is for faults of the harness only."""
        if not isinstance(excinfo.value, CellFailed):
            return super().repr_failure(excinfo, style)
        path = os.path.relpath(self.path, self.config.invocation_params.dir)
        cases = self.config.getoption("compat_cases") or ""
        return visible(failure_text(excinfo.value.judged, matrix="" if path == FILE else path, cases=cases))


def _lacking(target: Target, config: pytest.Config) -> str:
    """Return this machine's lack for a target, looked up once; "" if only a try can tell."""
    from harness.run.provision.host import host_of, look_at_host  # noqa: PLC0415  (as above)
    from harness.run.provision.requirements import can_run  # noqa: PLC0415  (as above)

    known = config.stash.setdefault(_LACKING, {})
    # A case may be untrusted on a target that others trust.
    place = (target.name, target.untrusted)
    if place not in known:
        via = config.getoption("compat_via")
        with contextlib.suppress(HandledError, InfraError):
            known[place] = can_run(target, host_of(target, look_at_host()), via) or ""
    return known.setdefault(place, "")


def _run_of(session: pytest.Session) -> Run:
    """Return the run that the session's cells share."""
    config = session.config
    if _RUN not in config.stash:
        from harness.pytest_plugin.run import Run  # noqa: PLC0415  (as above)

        cells = (item.cell for item in session.items if isinstance(item, CellItem))
        able = [cell for cell in cells if not _lacking(cell.target, config)]
        config.stash[_RUN] = Run(config, cases_folder(config), able)
    return config.stash[_RUN]


def cases_folder(config: pytest.Config) -> Path:
    """Return the folder that `--cases` names, else the project's, else the one that comes with the harness."""
    given: str | None = config.getoption("compat_cases")
    if given:
        start = config.invocation_params.dir / given
        return start if start.exists() else config.rootpath / given
    own = config.rootpath / _CASES
    return own if own.is_dir() else shipped(_CASES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a known failure into an xfail and an unexpected pass into an XPASS, each with its reason.

    A cell that builds here and is known to fail when it runs is no pass either.
    """
    report = yield
    if isinstance(item, CellItem) and call.when == "call" and item.judged is not None:
        judgement = item.judged.judgement
        if judgement.verdict in (Verdict.KNOWN_FAILURE, Verdict.FAILS_WHEN_RUN, Verdict.VARIES):
            report.outcome = "skipped"
            report.wasxfail = visible(judgement.sentence)
        elif judgement.verdict in (Verdict.FIXED, Verdict.NOT_REPRODUCED):
            report.wasxfail = visible(judgement.sentence)
    return report


def pytest_configure(config: pytest.Config) -> None:
    """Have the process that the user started write the report; xdist's workers only record.

    SIGTERM interrupts each of them: its default would leave a container to the next run's reaper.
    """
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        config.add_cleanup(functools.partial(_restore, before))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "compat-reporter")


def _restore(handler: Any) -> None:  # noqa: ANN401  (typeshed's own name for it is private)
    signal.signal(signal.SIGTERM, handler)


def pytest_keyboard_interrupt() -> None:
    """Let only SIGKILL come between an interrupt and the end of the agents.

    Execnet interrupts a worker again that takes five seconds to end: in the middle of its exit, maybe.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "PYTEST_XDIST_WORKER" in os.environ:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the agents that an interrupted run left."""
    if _RUN in config.stash:
        config.stash[_RUN].close()


class Reporter:
    """Notes which matrix files had cells that ran, here or in xdist's workers, and writes the report at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._matrices: set[Path] = set()
        self._complaint = ""
        self._cells = self._reused = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the matrix file of a cell that ran, now or in an earlier run."""
        told = dict(report.user_properties)
        if report.when == "setup" and "class" in told:
            self._cells += 1
            self._reused += _REUSED in told
            if told["class"] == Class.INFRA_ERROR or told["class"] not in UNJUDGED:
                self._matrices.add(self._config.rootpath / report.nodeid.split("::")[0])

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write the report on all that the store holds, once every agent and xdist's workers have ended."""
        if _RUN in self._config.stash:
            self._config.stash[_RUN].close()
        yield
        try:
            for path in sorted(self._matrices):
                from harness.pytest_plugin.run import write_report  # noqa: PLC0415  (takes its time)

                write_report(path, cases_folder(self._config), reports_folder(self._config))
        except HandledError as error:
            self._complaint = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        except Exception as error:  # noqa: BLE001  (the tests' own results must still be told)
            self._complaint = described(error)
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report's place, or the reason why it is missing."""
        if self._reused:
            taken = f"{self._reused} of {self._cells} cells taken from earlier runs; --fresh runs all"
            terminalreporter.write_line(taken)
        if self._complaint:
            terminalreporter.write_line(f"no compatibility report: {visible(self._complaint)}", red=True)
        elif self._matrices:
            index = reports_folder(self._config) / "index.html"
            terminalreporter.write_line(f"compatibility report: {index}")
        elif self._cells:
            terminalreporter.write_line("no cell ran here: no compatibility report is written")


def reports_folder(config: pytest.Config) -> Path:
    """Return the folder that `--reports` names, relative to the folder that pytest was started in."""
    return Path(config.invocation_params.dir, config.getoption("compat_reports"))


class ByTarget(LoadScopeScheduling):  # type: ignore[misc]
    """Keeps the cells of a target on one worker, which warms it up once, and other tests by their module.

    Fewer targets than workers are cut into pieces, so that every worker has some. xdist's own groups will not do: they
    become part of an item's id.
    """

    def _split_scope(self, nodeid: str) -> str:
        return self._scopes[nodeid]

    @functools.cached_property
    def _scopes(self) -> dict[str, str]:
        """The scope of each test of the collection."""
        scopes: dict[str, list[str]] = {}
        for nodeid in self.collection:
            path, _, name = nodeid.partition("::")
            file = self.config.rootpath / path
            # By the end of the id: xdist's own process collects no cells.
            names = _targets(file) if file.name == FILE else ()
            target = next((each for each in names if name.endswith(f"-{each}")), "")
            scopes.setdefault(f"{path}::{target}", []).append(nodeid)
        targets = sum(not scope.endswith("::") for scope in scopes)
        pieces = 1 if targets >= self.numnodes else _PIECES * self.numnodes
        return {
            nodeid: scope if scope.endswith("::") else f"{scope}/{place * pieces // len(nodeids)}"
            for scope, nodeids in scopes.items()
            for place, nodeid in enumerate(nodeids)
        }


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByTarget | None:  # noqa: ANN401
    """Let `-n` keep the cells of a target together, unless `--dist` says otherwise."""
    told = any(argument.startswith("--dist") for argument in config.invocation_params.args)
    return None if told or config.getoption("dist") != "load" else ByTarget(config, log)


@functools.cache
def _targets(matrix: Path) -> tuple[str, ...]:
    return tuple(sorted((target.name for target in load_matrix(matrix)), key=len, reverse=True))

"""`--suite NAME`: an item for each model of a suite on each target.

Nothing is claimed of these models: what fails is an xfail with its reason, unless it worked in the run before on the
same target, which is a failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HandledError, InfraError
from harness.history.suites import suite_history
from harness.matrix import load_matrix
from harness.models.suites import Sink, SuitePrepared, about, find_suite, suite_cells
from harness.pytest_plugin.collected import COLLECTED, Collected, OnTarget
from harness.pytest_plugin.options import reports_folder
from harness.record.suites import SUITES, SuiteStore
from harness.report.suites import judge_item
from harness.report.suites.compare import class_of
from harness.text import clip, visible
from harness.words import GOOD, Class

if TYPE_CHECKING:
    from harness.judge.classify import Classification
    from harness.models.suites import Item, Suite
    from harness.plan import Cell

_LONGEST = 300


class SuiteFailed(Exception):
    """A model fails that worked in the run before."""


class SuiteFile(pytest.File):
    """matrix.yaml as a collector of a suite's models on its targets."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for each model on each target; a mistake is one sentence."""
        try:
            suite = find_suite(self.config.getoption("compat_suite"))
            matrix = load_matrix(self.path)
            for name in self.config.getoption("compat_require"):
                matrix.target(name)
            items = tuple(suite.items())
        except HandledError as error:
            raise self.CollectError(visible(str(error))) from error
        run = self.config.stash.setdefault(COLLECTED, Collected(self.config)).run
        run.prepare(SuitePrepared(items))
        session = SuiteSession(self.config, suite, items, run.id)
        for word in sorted({target.name for target in matrix} | {target.engine.value for target in matrix}):
            self.config.addinivalue_line("markers", f"{word}: models on {word}")
        for cell in suite_cells(suite, items, matrix):
            yield SuiteItem.from_parent(self, name=cell.id, cell=cell, shared=session)


class SuiteSession:
    """What the items of one suite share: where records go, and how each model ended in the run before."""

    def __init__(self, config: pytest.Config, suite: Suite, items: tuple[Item, ...], run: str) -> None:
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        self._reports = reports_folder(config)
        self._suite = suite.name
        folder = self._reports / SUITES / suite.name
        self.store = SuiteStore(folder, about(suite, items), run=run, worker=worker.get("workerid", "main"))
        self.sink = Sink(self.store)

    @cached_property
    def before(self) -> dict[str, dict[str, str]]:
        """How each model ended in the latest run that is kept, by target."""
        return {run.target: run.ended for run in suite_history(self._reports, self._suite)}


class SuiteItem(OnTarget):
    """One model on one target as a test item."""

    def __init__(self, *, cell: Cell, shared: SuiteSession, **rest: Any) -> None:  # noqa: ANN401  (pytest's own arguments)
        super().__init__(**rest)
        self.cell = cell
        self._shared = shared
        self._found: Classification | None = None
        for mark in (cell.target.name, cell.target.engine.value):
            self.add_marker(mark)

    def setup(self) -> None:
        """Build the model, run it where that can be done, and record it."""
        try:
            outcome, log = self.config.stash[COLLECTED].run.runner(self.cell).run(self.cell)
            outcome = self._shared.sink.append(outcome, log)
        except OSError as error:
            pytest.fail(f"{self._shared.store.path}: cannot be written: {error.strerror}", pytrace=False)
        self._found, known = judge_item(outcome)
        cls = self._found.cls
        self.user_properties += [
            ("suite", self._shared.store.path.name),
            ("class", str(cls)),
            ("signature", known.id if known else ""),
        ]
        if cls is Class.INFRA_ERROR:
            pytest.fail(f"infrastructure, not the engine: {visible(self._found.reason)}", pytrace=False)
        required = self.cell.target.name in self.config.getoption("compat_require")
        if cls in (Class.NOT_RUN, Class.NOT_APPLICABLE) and not required:
            pytest.skip(visible(self._found.reason))

    def runtest(self) -> None:
        """Fail where the model worked in the run before; an xfail where it did not, or nobody knows."""
        found = self._found
        if found is None or found.cls in GOOD:
            return
        sentence = f"{found.cls}: {clip(' '.join(found.reason.split()), _LONGEST)}"
        try:
            before = self._shared.before
        except (HandledError, InfraError) as error:
            pytest.fail(visible(str(error)), pytrace=False)
        earlier = before.get(self.cell.target.name, {}).get(self.cell.variant.name)
        if found.cls in (Class.NOT_RUN, Class.NOT_APPLICABLE):
            pytest.fail(f"required to run here, and it {visible(found.reason)}", pytrace=False)
        if earlier is not None and class_of(earlier) in GOOD:
            raise SuiteFailed(f"worked in the run before; now {visible(sentence)}")
        pytest.xfail(visible(sentence))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ANN401
        """Say in words what is worse than before; a traceback is for faults of the harness only."""
        if isinstance(excinfo.value, SuiteFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

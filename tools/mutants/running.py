"""A mutant's tests, in a fork: in one that has collected them already, or in one that still loads everything."""

from __future__ import annotations

import gc
import importlib.util
import marshal
import math
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tools.mutants.hook.sitecustomize import Mutated
from tools.mutants.measure import PYTEST, Cost, hook_programs
from tools.mutants.mutant import Mutant

SURVIVED, KILLED = 0, 1
#: The loaded functions cannot take the code: it is to be tried in a fork that loads it.
MISFIT = 71


class Misfit(Exception):
    """The mutant's code does not go into a function that is loaded."""


class _Watched:
    """Notes the first test that fails, and gives each as much of the processor as is plenty for it."""

    def __init__(self, costs: Mapping[str, Cost]) -> None:
        self._costs = costs
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Move the limit on."""
        cost = self._costs.get(item.nodeid)
        plenty = 5 + 10 * (cost.processor if cost else 60)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (min(math.ceil(time.process_time() + plenty), most), most))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what failed."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


class Collected(_Watched):
    """A plugin that hands the collected tests on instead of running them."""

    def __init__(self, costs: Mapping[str, Cost], then: Callable[[Collected], None]) -> None:
        super().__init__(costs)
        self._then = then
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[tuple[str, int, str], list[FunctionType]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Look up functions and tests once, and let forks use them."""
        if session.testsfailed:
            return False  # pytest's own loop says what could not be collected
        self._items = {item.nodeid: item for item in session.items}
        found: defaultdict[tuple[str, int, str], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                code = each.__code__
                found[code.co_filename, code.co_firstlineno, code.co_name].append(each)
        self._functions = dict(found)
        gc.freeze()
        self._then(self)
        return True

    def run(self, tests: Sequence[str], folder: Path) -> int:
        """Run tests until one fails; in a fork."""
        items = [self._items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                (folder / "note").write_text(self.failed)
                return KILLED
        return SURVIVED

    def run_mutant(self, mutant: Mutant, tests: Sequence[str], folder: Path) -> int:
        """Put a mutant into the loaded functions and run its tests; in a fork."""
        code = mutant.compiled()
        _for_programs(mutant, code, folder)
        try:
            self._put(mutant, code)
        except Misfit:
            return MISFIT
        return self.run(tests, folder)

    def _put(self, mutant: Mutant, code: CodeType) -> None:
        assert mutant.function is not None  # noqa: S101  (one of a module's own lines is loaded, not put)
        inner = _find(code, mutant.function.names, mutant.function.line)
        key = str(mutant.module.path), mutant.function.line, mutant.function.names[-1]
        functions = self._functions.get(key, [])
        if inner is None or not functions:
            raise Misfit
        for function in functions:
            if function.__code__.co_freevars != inner.co_freevars:
                raise Misfit
            function.__code__ = inner


def _find(code: CodeType, names: tuple[str, ...], line: int) -> CodeType | None:
    """Return the code of a function by the names down to it; of several of a name the one that begins on the line."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_name == names[0]:
            found = _find(inner, names[1:], line) if len(names) > 1 else inner
            if found is not None and found.co_firstlineno == line:
                return found
    return None


def _for_programs(mutant: Mutant, code: CodeType, folder: Path) -> None:
    """Leave the code where the hook finds it, for the Python programs that the tests start."""
    path = folder / "code"
    path.write_bytes(importlib.util.MAGIC_NUMBER + mutant.module.name.encode() + b"\n" + marshal.dumps(code))
    hook_programs(MUTANTS_CODE=str(path))


class _Ordered(_Watched):
    """A plugin that keeps the given tests, in the given order."""

    def __init__(self, costs: Mapping[str, Cost], tests: Iterable[str]) -> None:
        super().__init__(costs)
        self._rank = {test: rank for rank, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drop and sort."""
        kept = [item for item in items if item.nodeid in self._rank]
        items[:] = sorted(kept, key=lambda item: self._rank[item.nodeid])


def load_mutant(
    mutant: Mutant, root: Path, tests: Sequence[str], costs: Mapping[str, Cost], folder: Path
) -> int:
    """Load the project with a mutant in it and run tests; in a fork that has loaded nothing of the project yet."""
    code = mutant.compiled()
    _for_programs(mutant, code, folder)
    sys.meta_path.insert(0, Mutated(mutant.module.name, code))
    plugin = _Ordered(costs, tests)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    ended = pytest.main([*PYTEST, "-x", f"--rootdir={root}", *files], plugins=[plugin])
    (folder / "note").write_text(plugin.failed)
    return SURVIVED if ended in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else KILLED

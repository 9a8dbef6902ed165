"""Which tests execute which lines: one run of the tests under coverage, in a fork."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

HOOK = Path(__file__).parent / "hook"
#: Tests are run as they stand in their files, in one process, and leave nothing in the checkout.
PYTEST = ("-q", "-s", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider", "--no-header")
_SHARED = "fixture "


@dataclass(frozen=True)
class Cost:
    """What a test took in this run, in seconds."""

    processor: float
    clock: float


@dataclass(frozen=True)
class Measured:
    """The tests by file and line that they execute, what each costs, and the lines that run before any test does."""

    lines: dict[str, dict[int, frozenset[str]]]
    loaded: dict[str, frozenset[int]]
    costs: dict[str, Cost]
    failed: tuple[str, ...]

    def of(self, file: str, lines: tuple[int, int]) -> set[str]:
        """Return the tests that execute any of these lines."""
        found = self.lines.get(file, {})
        return {test for line in range(lines[0], lines[1] + 1) for test in found.get(line, ())}

    def near(self, file: str) -> set[str]:
        """Return the tests that execute any line of a file."""
        return {test for tests in self.lines.get(file, {}).values() for test in tests}

    def runs_early(self, file: str, lines: tuple[int, int]) -> bool:
        """Tell whether any of these lines runs while modules are loaded or tests are collected."""
        return not self.loaded.get(file, frozenset()).isdisjoint(range(lines[0], lines[1] + 1))


def hook_programs(**variables: str) -> None:
    """Have Python programs that are started from here on load the hook, with these variables for it."""
    paths = [str(HOOK), os.environ.get("PYTHONPATH", "")]
    os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, paths)), **variables)


def measure(root: Path, files: Sequence[Path], tests: Sequence[str], folder: Path) -> int:
    """Run the tests and write to `folder`/note what was measured; for a fork that has loaded nothing of the project."""
    data, config = folder / "coverage", folder / "coveragerc"
    names = "\n    ".join(map(str, files))
    config.write_text(f"[run]\ndata_file = {data}\nconcurrency = thread\ninclude =\n    {names}\n")
    hook_programs(MUTANTS_TRACE=str(config))
    tracer = coverage.Coverage(config_file=str(config), data_suffix=True)
    tracer.start()
    plugin = _Tracing(tracer, root)
    code = pytest.main([*PYTEST, "-rN", "--tb=short", f"--rootdir={root}", *tests], plugins=[plugin])
    tracer.stop()
    tracer.save()
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(code)
    joined = coverage.Coverage(config_file=str(config))
    joined.combine([str(folder)])
    plugin.write(joined.get_data(), files, folder / "note")
    return 0


def read(note: str, root: Path) -> Measured:
    """Return what `measure` wrote."""
    known = json.loads(note)
    return Measured(
        lines={_short(file, root): _by_number(lines) for file, lines in known["lines"].items()},
        loaded={_short(file, root): frozenset(lines) for file, lines in known["loaded"].items()},
        costs={test: Cost(*cost) for test, cost in known["costs"].items()},
        failed=tuple(known["failed"]),
    )


def _short(file: str, root: Path) -> str:
    return Path(file).relative_to(root).as_posix()


def _by_number(lines: dict[str, list[str]]) -> dict[int, frozenset[str]]:
    return {int(line): frozenset(tests) for line, tests in lines.items()}


class _Tracing:
    """Tells coverage which test runs, and shared fixtures from the test that happens to be the first to need them."""

    def __init__(self, tracer: coverage.Coverage, root: Path) -> None:
        self._tracer = tracer
        self._root = root
        self._context = ""
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._costs: dict[str, list[float]] = {}
        self._failed: set[str] = set()
        self._ran: set[str] = set()
        self._loaded = 0
        self._caches: list[Any] = []

    def _switch(self, context: str) -> str:
        before, self._context = self._context, context
        self._tracer.switch_context(context)
        os.environ["MUTANTS_TEST"] = context
        return before

    def _forget(self) -> None:
        """Empty the project's caches, or a line would count for the first test that needs it and for no other."""
        if len(sys.modules) != self._loaded:
            self._loaded = len(sys.modules)
            self._caches = list(_caches(self._root))
        for cache in self._caches:
            cache.cache_clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._forget()
        for name, context in _shared_by(item):
            self._users[f"{_SHARED}{context}::{name}"].add(item.nodeid)
        self._switch(item.nodeid)
        processor, clock = time.process_time(), time.monotonic()
        result = yield
        self._costs[item.nodeid] = [time.process_time() - processor, time.monotonic() - clock]
        self._switch("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = self._switch(f"{_SHARED}{fixturedef.baseid}::{fixturedef.argname}")
        try:
            return (yield)
        finally:
            self._switch(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "call" and not report.skipped:
            self._ran.add(report.nodeid)

    def write(self, data: coverage.CoverageData, files: Iterable[Path], path: Path) -> None:
        """Write what was measured; tests that were skipped count for nothing."""
        lines: dict[str, dict[int, list[str]]] = {}
        loaded: dict[str, list[int]] = {}
        for file in map(str, files):
            contexts = data.contexts_by_lineno(file)
            lines[file] = {line: sorted(self._tests(found)) for line, found in contexts.items()}
            loaded[file] = [line for line, found in contexts.items() if "" in found]
        told = {"lines": lines, "loaded": loaded, "failed": sorted(self._failed)}
        costs = {test: cost for test, cost in self._costs.items() if test in self._ran}
        path.write_text(json.dumps({**told, "costs": costs}))

    def _tests(self, contexts: Iterable[str]) -> set[str]:
        tests: set[str] = set()
        for context in contexts:
            tests |= self._users[context] if context.startswith(_SHARED) else {context}
        return tests & self._ran


def _shared_by(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """Yield name and place of the fixtures that a test shares with others."""
    known = getattr(item, "_fixtureinfo", None)
    for name, found in known.name2fixturedefs.items() if known else ():
        for fixture in found:
            if fixture.scope != "function":
                yield name, fixture.baseid


def _caches(root: Path) -> Iterator[Any]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(root) and "site-packages" not in file:
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    yield value

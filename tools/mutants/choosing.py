"""Which tests a mutant meets, in which order, and how long it may take; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.areas import Area
from tools.mutants.forks import Limits
from tools.mutants.measure import Measured
from tools.mutants.mutant import Mutant


@dataclass(frozen=True)
class Job:
    """A mutant and the tests that it meets; `rest` follows where `tests` all pass.

    `loads` says that the mutant runs while modules are loaded or tests collected.
    """

    mutant: Mutant
    area: Area
    tests: tuple[str, ...]
    rest: tuple[str, ...] = ()
    loads: bool = False


def choose(mutant: Mutant, area: Area, measured: Measured) -> Job:
    """Return the tests of the area that execute a mutant's lines; all of them where it runs before any test does."""
    file = mutant.module.file
    if mutant.function is None or measured.runs_early(file, mutant.lines):
        return choose_all(mutant, area, measured)
    return Job(mutant, area, _ordered(_of(area, measured.of(file, mutant.lines)), file, measured))


def choose_all(mutant: Mutant, area: Area, measured: Measured) -> Job:
    """Return all tests of the area, first those of the file that knows the module best.

    Any of them may rest on what was computed when the module was loaded.
    """
    file = mutant.module.file
    near = measured.near(file)
    tests = _ordered(_of(area, measured.costs), file, measured)
    counts: defaultdict[str, int] = defaultdict(int)
    for test in tests:
        counts[_file(test)] += test in near
    best = max(counts, key=lambda each: (_named_alike(each, file), counts[each]), default="")
    first = tuple(test for test in tests if _file(test) == best)
    return Job(mutant, area, first, tuple(test for test in tests if _file(test) != best), loads=True)


def limits(tests: Sequence[str], measured: Measured) -> Limits:
    """Return plenty for a mutant as a whole, which may have to load the project; each test has a limit of its own."""
    costs = [measured.costs[test] for test in tests]
    processor, clock = sum(each.processor for each in costs), sum(each.clock for each in costs)
    return Limits(processor=60 + 10 * processor, clock=120 + 10 * clock)


def _of(area: Area, tests: Iterable[str]) -> list[str]:
    folders = tuple(f"{each.rstrip('/')}/" for each in area.tests)
    return [test for test in tests if _file(test) in area.tests or test.startswith(folders)]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _named_alike(test_file: str, file: str) -> bool:
    return Path(test_file).stem == f"test_{Path(file).stem}"


def _ordered(tests: Sequence[str], file: str, measured: Measured) -> tuple[str, ...]:
    """Return tests in the order that finds a killer soon: file by file, for shared fixtures, and cheap ones first."""
    costs: defaultdict[str, list[float]] = defaultdict(list)
    for test in tests:
        costs[_file(test)].append(measured.costs[test].processor)
    mean = {name: sum(each) / len(each) for name, each in costs.items()}

    def rank(test: str) -> tuple[object, ...]:
        name = _file(test)
        return not _named_alike(name, file), mean[name], name, round(measured.costs[test].processor, 1), test

    return tuple(sorted(tests, key=rank))

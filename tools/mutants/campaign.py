"""All mutants of some areas against the tests: measure, then try each in a fork."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.areas import Area
from tools.mutants.choosing import Job, choose, choose_all, limits
from tools.mutants.forks import TROUBLE, Ended, Limits, forked
from tools.mutants.measure import PYTEST, Measured, measure, read
from tools.mutants.mutant import Module, Mutant
from tools.mutants.running import KILLED, MISFIT, SURVIVED, Collected, load_mutant
from tools.mutants.survivors import Trouble

#: What tests import of others; loaded once, and every fork has it.
_LOADED_ONCE = (
    *("docker", "jinja2", "jsonschema", "markupsafe", "numpy", "onnx", "onnx.reference", "packaging.version"),
    *("requests", "rich.console", "ruptures", "scipy.stats", "yaml"),
)
_WHOLE = Limits(processor=3600, clock=4 * 3600)


@dataclass(frozen=True)
class Result:
    """What became of a mutant: `killed` by a test or a time-out, and how."""

    mutant: Mutant
    area: str
    killed: bool
    timed_out: bool
    how: str
    said: str = ""


def mutants_of(root: Path, areas: Sequence[Area]) -> list[tuple[Mutant, Area]]:
    """Return every mutant with its area; Trouble where a glob matches no file, which is a module that moved."""
    found = []
    for area in areas:
        for pattern in area.modules:
            paths = sorted(root.glob(pattern))
            if not paths:
                raise Trouble(f"{area.name}: there is no {pattern}; mend tools/mutants/areas.py")
            found += [(mutant, area) for path in paths for mutant in Module(root, path).mutants()]
    return found


def run(root: Path, chosen: Sequence[tuple[Mutant, Area]], at_once: int) -> Iterator[Result]:
    """Yield what became of each mutant, as it is known; raises Trouble where the tests fail as things are."""
    with _scratch() as scratch:
        _load(root)
        campaign = _Campaign(root, tuple(chosen), at_once, scratch)
        measured = campaign.measured()
        jobs = [choose(mutant, area, measured) for mutant, area in chosen]
        at_hand = [job for job in jobs if job.tests and not job.loads]
        to_load = [job for job in jobs if job.tests and job.loads]
        for job in jobs:
            if not job.tests:
                yield Result(
                    job.mutant, job.area.name, killed=False, timed_out=False, how="no test executes it"
                )
        for ended in campaign.put(at_hand, measured):
            if ended.code == MISFIT:
                to_load.append(choose_all(ended.job.mutant, ended.job.area, measured))
            else:
                yield _result(ended)
        yield from campaign.loaded(to_load, measured)


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _load(root: Path) -> None:
    # With one thread there is nothing that a fork could find locked.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    os.chdir(root)
    sys.path.insert(0, str(root))
    for name in _LOADED_ONCE:
        with suppress(ImportError):  # slower without, no less right
            importlib.import_module(name)


@dataclass(frozen=True)
class _Campaign:
    root: Path
    chosen: tuple[tuple[Mutant, Area], ...]
    at_once: int
    scratch: Path

    @property
    def _tests(self) -> list[str]:
        return sorted({test for _, area in self.chosen for test in area.tests})

    def measured(self) -> Measured:
        """Run the tests without any mutant, and see which execute what."""
        files = sorted({mutant.module.path for mutant, _ in self.chosen})

        def work(_: None, folder: Path) -> int:
            return measure(self.root, files, self._tests, folder)

        (ended,) = forked([(None, _WHOLE)], work, self.scratch, 1)
        if ended.code:
            raise Trouble(f"the tests do not run as things are:\n{ended.said}")
        measured = read(ended.note, self.root)
        if measured.failed:
            raise Trouble(f"without any mutant these fail: {', '.join(measured.failed)}\n{ended.said}")
        return measured

    def put(self, jobs: list[Job], measured: Measured) -> Iterator[Ended[Job]]:
        """Try mutants in functions that are loaded: a fork collects the tests, and forks of it run them."""
        if not jobs:
            return
        said = self.scratch / "collected"
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            code = TROUBLE
            try:
                # Its own group: an interrupt comes from this process alone, once.
                os.setpgid(0, 0)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                os.close(reading)
                code = self._collect(said, measured, lambda found: self._try(found, jobs, measured, writing))
            finally:
                os._exit(code)
        os.close(writing)
        try:
            with os.fdopen(reading) as lines:
                for line in lines:
                    number, *rest = json.loads(line)
                    yield Ended(jobs[number], *rest)
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
            raise
        finally:
            _, status = os.waitpid(pid, 0)
        if status:
            raise Trouble(f"without any mutant the tests cannot be run in a fork:\n{said.read_text()}")

    def _collect(self, said: Path, measured: Measured, then: Callable[[Collected], None]) -> int:
        with said.open("w") as out:
            for number in (1, 2):
                os.dup2(out.fileno(), number)
        plugin = Collected(measured.costs, then)
        return int(pytest.main([*PYTEST, f"--rootdir={self.root}", *self._tests], plugins=[plugin]))

    def _try(self, collected: Collected, jobs: list[Job], measured: Measured, writing: int) -> None:
        """Run all tests without any mutant, for what fails in a fork by itself would kill everything; then the rest."""
        everything = tuple(dict.fromkeys(test for job in jobs for test in job.tests))
        for whole in forked(
            [(0, _WHOLE)], lambda _, folder: collected.run(everything, folder), self.scratch, 1
        ):
            if whole.code:
                print(whole.said)
                raise pytest.UsageError(f"without any mutant {whole.note or 'a test'} fails in a fork")

        def work(number: int, folder: Path) -> int:
            return collected.run_mutant(jobs[number].mutant, jobs[number].tests, folder)

        limited = ((number, limits(job.tests, measured)) for number, job in enumerate(jobs))
        with os.fdopen(writing, "w") as out:
            for ended in forked(limited, work, self.scratch, self.at_once):
                print(
                    json.dumps([ended.job, ended.code, ended.timed_out, ended.said, ended.note]),
                    file=out,
                    flush=True,
                )

    def loaded(self, jobs: Sequence[Job], measured: Measured) -> Iterator[Result]:
        """Try mutants of what runs while modules are loaded: first the nearest tests, then all others of the area."""

        def work(job: Job, folder: Path) -> int:
            return load_mutant(job.mutant, self.root, job.tests, measured.costs, folder)

        further: list[Job] = []
        limited = ((job, limits(job.tests, measured)) for job in jobs)
        for ended in forked(limited, work, self.scratch, self.at_once):
            job = ended.job
            if ended.code == SURVIVED and job.rest:
                further.append(Job(job.mutant, job.area, job.rest, loads=True))
            else:
                yield _result(ended)
        if further:
            yield from self.loaded(further, measured)


def _result(ended: Ended[Any]) -> Result:
    job: Job = ended.job
    if ended.code == TROUBLE and not ended.timed_out:
        raise Trouble(f"{job.mutant.id} could not be tried:\n{ended.said}")
    how = "ran out of time" if ended.timed_out else ended.note
    if ended.code == KILLED and not how:
        how = "the tests could not be collected"
    elif ended.code not in (KILLED, SURVIVED) and not how:
        how = f"ended with {ended.code}"
    return Result(job.mutant, job.area.name, ended.code != SURVIVED, ended.timed_out, how, ended.said)

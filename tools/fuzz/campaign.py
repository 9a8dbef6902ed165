"""A campaign: processes of libFuzzer over the targets, their corpus minimised, and what came of each."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import corpus
from tests.fuzz.targets import LONGEST, SECONDS, TARGETS
from tools.fuzz import ledger
from tools.fuzz.ledger import Entry, Ledger

TOP = Path(__file__).resolve().parents[2]
#: Megabytes of memory that a target may take; its imports take some 200.
MEMORY = 2048
#: Seconds of the clock after which libFuzzer ends an input that the processor's clock did not: one that waits, or hangs
#: in C. A busy machine is slow.
HANGS = int(12 * SECONDS)
#: Seconds that minimising a corpus may take at least, and the part of a campaign that is fuzzing.
_MERGING = 20.0
_FUZZING = 0.8
#: Times that a target is started again, after something that ended its process.
_STARTS = 20
_LINE = re.compile(r"#(?P<runs>\d+)\s+(?P<what>\S+)\s+cov: (?P<edges>\d+) ft: (?P<features>\d+)")
_RUNS = re.compile(r"stat::number_of_executed_units: (\d+)")
#: How libFuzzer calls what it leaves of an input that ended the process, and what that is.
_ENDED = {
    "timeout": "hangs, or takes longer than anything may",
    "oom": f"takes more than {MEMORY} MB",
    "crash": "ends the process",
    "leak": "leaks memory",
}


@dataclass
class Fuzzed:
    """What one process has done: inputs, edges, features, and when, by the clock, it began and last saw a new edge."""

    target: str
    inputs: int = 0
    edges: int = 0
    features: int = 0
    began: float = 0.0
    ended: float = 0.0
    new_edge: float = 0.0
    said: list[str] = field(default_factory=list)

    def hear(self, line: str) -> None:
        """Take in a line of libFuzzer's."""
        now = time.monotonic()
        if found := _LINE.match(line):
            edges, what = int(found["edges"]), found["what"]
            if what == "INITED":
                self.began = now
            elif what == "NEW" and edges > self.edges:
                self.new_edge = now
            self.running = int(found["runs"])
            self.edges, self.features = max(self.edges, edges), max(self.features, int(found["features"]))
        elif found := _RUNS.match(line):
            self.running = int(found[1])
        self.said = [*self.said[-30:], line]
        self.ended = now

    running: int = 0

    def over(self) -> None:
        """Count the inputs of a process that ended."""
        self.inputs, self.running = self.inputs + self.running, 0


@dataclass(frozen=True)
class Campaign:
    """Fuzzes targets for some seconds in all, in so many processes at once; `out` takes what comes of it."""

    targets: Sequence[str]
    seconds: float
    jobs: int
    out: Path

    def run(self) -> Ledger:
        """Return what came of each target; corpus and findings are in the folder."""
        for name in self.targets:
            self._begin(name)
        rounds = -(-len(self.targets) // self.jobs)
        # More processes than targets, or a last round that is not full: the first targets have several.
        places = [self.targets[at % len(self.targets)] for at in range(rounds * self.jobs)]
        until = time.monotonic() + self.seconds
        fuzzed = [Fuzzed(name) for name in places]
        with ThreadPoolExecutor(self.jobs) as pool:
            for each in pool.map(lambda one: self._fuzz(one, _FUZZING * self.seconds / rounds), fuzzed):
                # Whoever ends this program in the middle has what came of it until then.
                ledger.write(self._found(fuzzed), self.out / "ledger.json")
                assert each.target  # noqa: S101  (an exception of a thread comes out here)
            list(pool.map(lambda name: self.minimise(name, until - time.monotonic()), self.targets))
        return self._found(fuzzed)

    def _found(self, fuzzed: Sequence[Fuzzed]) -> Ledger:
        return {
            name: self._entry(name, [each for each in fuzzed if each.target == name]) for name in self.targets
        }

    def work(self, name: str) -> Path:
        """Return the folder of a target's inputs."""
        return self.out / "work" / name

    def _begin(self, name: str) -> None:
        """Write what a target begins with: its corpus, its seeds, and what was ever found."""
        work = self.work(name)
        work.mkdir(parents=True, exist_ok=True)
        found = [path.read_bytes() for path in corpus.findings(name)]
        _write(work, [*corpus.kept(name), *TARGETS[name].every_seed(), *found])

    def _fuzz(self, fuzzed: Fuzzed, seconds: float) -> Fuzzed:
        """Fuzz a target; what libFuzzer ends is kept as a finding, and the target is started again."""
        name, until = fuzzed.target, time.monotonic() + seconds
        for _ in range(_STARTS):
            left = int(until - time.monotonic())
            if left < 1:
                break
            flags = [f"-max_total_time={left}", "-print_final_stats=1", f"-timeout={HANGS}", "-reload=1"]
            code = self._start(fuzzed, [*flags, str(self.work(name))])
            fuzzed.over()
            if code and not self._take_artifacts(name):
                print(f"fuzz: {name} ended with {code}: {' / '.join(fuzzed.said[-3:])}", file=sys.stderr)
        return fuzzed

    def _start(self, fuzzed: Fuzzed, flags: Sequence[str]) -> int:
        command, environment = self._command(fuzzed.target)
        limits = [
            f"-rss_limit_mb={MEMORY}",
            f"-max_len={LONGEST}",
            f"-artifact_prefix={self._artifacts(fuzzed.target)}/",
        ]
        with subprocess.Popen(
            [*command, *limits, *flags],
            cwd=TOP,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            assert process.stderr is not None  # noqa: S101  (it is a pipe)
            for line in process.stderr:
                fuzzed.hear(line.strip())
        return process.returncode

    def _artifacts(self, name: str) -> Path:
        folder = self.out / "artifacts" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _command(self, name: str) -> tuple[list[str], dict[str, str]]:
        """Return how a target is started. libFuzzer starts itself again to minimise: by a script with all the words."""
        folders = [str(folder.absolute()) for folder in (self.out / "findings" / name, self.work(name))]
        command = [sys.executable, "-m", "tools.fuzz.one", name, *folders]
        script = self.out / "work" / f"{name}.sh"
        words = " ".join(f"'{word}'" for word in command)
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        # libFuzzer ends a process without a word to Python: what that leaves goes with this folder.
        scratch = self.out / "work" / "tmp"
        scratch.mkdir(exist_ok=True)
        path = os.pathsep.join(filter(None, (str(TOP), os.environ.get("PYTHONPATH"))))
        told = {"TRT_COMPAT_FUZZ_PROGRAM": str(script.absolute()), "PYTHONPATH": path}
        told["TMPDIR"] = str(scratch.absolute())
        return command, {**os.environ, **told, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def _take_artifacts(self, name: str) -> bool:
        """Make findings of what libFuzzer left of inputs that ended the process; return whether there was any."""
        left = [path for path in self._artifacts(name).iterdir() if path.name.partition("-")[0] in _ENDED]
        folder = self.out / "findings" / name
        for path in left:
            folder.mkdir(parents=True, exist_ok=True)
            said = _ENDED[path.name.partition("-")[0]]
            kept = folder / corpus.name_of(path.read_bytes())
            kept.with_name(f"{kept.name}.txt").write_text(f"{said}\n", encoding="utf-8")
            path.replace(kept)
        return bool(left)

    def minimise(self, name: str, seconds: float) -> None:
        """Write the corpus of a target: the inputs that reach what all of them reach."""
        seconds = max(seconds, _MERGING)
        work, small = self.work(name), self.out / "work" / f"{name}.small"
        shutil.rmtree(small, ignore_errors=True)
        small.mkdir()
        command, environment = self._command(name)
        flags = [
            "-merge=1",
            f"-max_len={LONGEST}",
            f"-timeout={HANGS}",
            str(small.absolute()),
            str(work.absolute()),
        ]
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            [*command, *flags],
            cwd=TOP,
            env=environment,
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
            why = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            why = f"not done after {seconds:.0f} s"
        finally:
            # It works in a process of its own, which would go on.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if why:
            print(f"fuzz: the corpus of {name} is not minimised: {why}", file=sys.stderr)
        chosen = small if not why and any(small.iterdir()) else work
        corpus.keep(name, (path.read_bytes() for path in chosen.iterdir()), self.out / "corpus")

    def _entry(self, name: str, fuzzed: Sequence[Fuzzed]) -> Entry:
        new = max(each.new_edge for each in fuzzed)
        today = dt.datetime.now(dt.timezone.utc).date().isoformat()
        began = [max(each.began, new) for each in fuzzed]
        quiet = sum(
            max(0.0, each.ended - start) for each, start in zip(fuzzed, began, strict=True) if each.began
        )
        said = {path.stem: path.read_text(encoding="utf-8").strip() for path in self._told(name)}
        return Entry(
            inputs=sum(each.inputs + each.running for each in fuzzed),
            seconds=round(sum(each.ended - each.began for each in fuzzed if each.began), 1),
            quiet_s=round(quiet, 1),
            edges=max(each.edges for each in fuzzed),
            features=max(each.features for each in fuzzed),
            last_new_edge=today if new else "",
            findings={each: (today, what) for each, what in sorted(said.items())},
        )

    def _told(self, name: str) -> list[Path]:
        return sorted((self.out / "findings" / name).glob("*.txt"))


def minimised(out: Path, name: str, inputs: Iterable[bytes]) -> list[bytes]:
    """Return the inputs of a target that reach what all of them reach."""
    campaign = Campaign([name], 0, 1, out)
    _write(campaign.work(name), inputs)
    campaign.minimise(name, 300)
    return corpus.kept(name, out / "corpus")


def _write(folder: Path, inputs: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / corpus.name_of(data)).write_bytes(data)

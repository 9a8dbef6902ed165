"""Kills runs at random moments, goes on with each by `--resume`, and looks at what is lost, repeated or left over.

    python -m tools.kills [--times N] [--via venv|docker] [--seed N] [WORD OF `trt-compat run` ...]

The words say which cells; without any they are those of two targets and of some cases, about thirty. It prints a line a
run and what is wrong, and exits with 1 where anything is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import docker

from harness.agent.leftovers import system_v
from harness.record.store import RECORDS, Store
from harness.run.docker import PROJECT_LABEL

#: About thirty cells of two targets that need no GPU.
FEW = ("--target", "rtx17", "--target", "ort131", "-k", "mish")
#: Seconds until what has to end has ended, and a run of all cells.
_PATIENCE, _LONGEST = 120.0, 1800.0
_ENDED = (0, 1)


@dataclass
class Campaign:
    """Runs of the same cells into `folder`, whose processes are known by a variable of their own."""

    words: tuple[str, ...]
    via: str
    folder: Path
    moments: random.Random
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    kills: int = 0
    wrong: list[str] = field(default_factory=list)
    #: What other programs share already.
    shared: frozenset[str] = field(default_factory=lambda: frozenset(_shared()))

    def whole(self) -> float:
        """Run once without harm, for what is made at a first run; return how many seconds a run then takes."""
        self._finish("warm", "--fresh", *self.words)
        began = time.monotonic()
        self._finish("timed", "--fresh", *self.words)
        return time.monotonic() - began

    def run(self, name: str, seconds: float, most: int) -> int:
        """Kill one run, `most` times at most and each time within so many seconds of its start; return how often."""
        reports, kept, kills = self.folder / name, Counter[str](), 0
        words = ("--fresh", *self.words)
        while kills < most:
            process = self._started(reports, *words)
            try:
                process.wait(self.moments.uniform(0.05, seconds))
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
            err = process.communicate(timeout=_LONGEST)[1]
            if process.returncode in _ENDED:
                break
            self._said(name, err)
            kept = self._kept(name, kept)
            if list((reports / "unfinished").glob("*.json")):
                words = ("--resume",)
            elif kept:
                # All was done, and only the last words are lost. The next run removes what is left of this one.
                self._finish("timed", *self.words)
                break
        else:
            if list((reports / "unfinished").glob("*.json")):
                self._finish(name, "--resume")
        self._look(name)
        self.kills += kills
        return kills

    def left_over(self) -> list[str]:
        """Return what is left of all runs that were made, after the next run, which removes it, or by itself."""
        end = time.monotonic() + _PATIENCE
        while (
            found := [
                *self._processes(),
                *self._containers(),
                *self._folders(),
                *sorted(set(_shared()) - self.shared),
            ]
        ) and time.monotonic() < end:
            time.sleep(0.2)
        return found

    def _started(self, reports: Path, *words: str) -> subprocess.Popen[str]:
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-m", "harness", "run", *words, "--via", self.via, "--reports", str(reports)],
            env=os.environ | {"TMPDIR": str(scratch), "TRT_COMPAT_KILLS": self.mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _finish(self, name: str, *words: str) -> None:
        process = self._started(self.folder / name, *words)
        err = process.communicate(timeout=_LONGEST)[1]
        self._said(name, err)
        if process.returncode not in _ENDED:
            self.wrong.append(f"{name}: {' '.join(words)} ended with {process.returncode}: {err[-500:]}")

    def _said(self, name: str, err: str) -> None:
        if "Traceback" in err:
            self.wrong.append(f"{name}: {err}")

    def _kept(self, name: str, before: Counter[str]) -> Counter[str]:
        """Return how often each cell is recorded, which a kill may not change."""
        store = Store(self.folder / name)
        found = Counter(outcome.cell for outcome in store.outcomes())
        lost = before - found
        self.wrong += [f"{name}: lost by a kill: {cell}" for cell in lost]
        self.wrong += [f"{name}: {fault}" for fault in store.faults]
        return found

    def _look(self, name: str) -> None:
        """Look at a run that has come to its end: each cell is recorded once, of one run, and the report is whole."""
        reports = self.folder / name
        outcomes = list(Store(reports).outcomes())
        cells = Counter(outcome.cell for outcome in outcomes)
        wanted = {outcome.cell for outcome in Store(self.folder / "timed").outcomes()}
        self.wrong += [
            f"{name}: recorded {count} times: {cell}" for cell, count in cells.items() if count > 1
        ]
        self.wrong += [f"{name}: not recorded: {cell}" for cell in sorted(wanted - cells.keys())]
        if len({outcome.stamps.run for outcome in outcomes}) != 1:
            self.wrong.append(f"{name}: its records are of several runs")
        parts = [
            path for path in reports.rglob("*") if path.name.endswith(".part") or "unfinished" in path.parts
        ]
        self.wrong += [f"{name}: left over: {path}" for path in parts]
        verified = subprocess.run(
            [sys.executable, "-m", "harness", "verify", "--reports", str(reports)],
            capture_output=True,
            text=True,
            check=False,
        )
        if verified.returncode:
            self.wrong.append(f"{name}: verify: {verified.stdout}{verified.stderr}")
        self.wrong += [f"{name}: left over: {found}" for found in self.left_over()]

    def _processes(self) -> list[str]:
        wanted, found = f"TRT_COMPAT_KILLS={self.mark}".encode(), []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (place / "environ").read_bytes():
                    found.append(f"process {place.name}: {(place / 'cmdline').read_bytes()!r:.200}")
            except OSError:
                continue
        return found

    def _containers(self) -> list[str]:
        if self.via != "docker":
            return []
        runs = {path.name.partition("-")[0] for path in self.folder.glob(f"*/{RECORDS}/*")}
        client = docker.from_env()
        try:
            every = client.containers.list(all=True, filters={"label": PROJECT_LABEL}, ignore_removed=True)
            return [
                f"container {one.name}" for one in every if one.labels.get(f"{PROJECT_LABEL}.run") in runs
            ]
        finally:
            client.close()

    def _folders(self) -> list[str]:
        return [f"temporary {path}" for path in (self.folder / "tmp").iterdir()]


def _shared() -> list[str]:
    """Return what this user's processes share by name: POSIX memory and semaphores, and System V's."""
    me, found = os.getuid(), []
    for path in Path("/dev/shm").iterdir():  # noqa: S108  (looked at, not written)
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_uid == me:
                found.append(f"shared memory {path}")
    rows = ((kind, row) for kind in ("shm", "sem", "msg") for row in system_v(kind))
    return found + [f"System V {kind} {row['id']}" for kind, row in rows if row["cuid"] == me]


def main(arguments: list[str] | None = None) -> int:
    """Kill as often as is asked for, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tools.kills")
    parser.add_argument("--times", type=int, default=200, metavar="N", help="kills (default: 200)")
    parser.add_argument("--via", choices=("venv", "docker"), default="venv")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: 1)")
    options, words = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        campaign = Campaign(tuple(words or FEW), options.via, Path(folder), random.Random(options.seed))  # noqa: S311  (no secret)
        seconds = campaign.whole()
        cells = sum(1 for _ in Store(campaign.folder / "timed").outcomes())
        print(f"{cells} cells via {options.via} in {seconds:.1f} s", flush=True)
        number = 0
        while campaign.kills < options.times and not campaign.wrong:
            number += 1
            kills = campaign.run(f"run{number}", seconds, options.times - campaign.kills)
            print(f"run {number}: {kills} kills, {campaign.kills} so far", flush=True)
    print(
        f"{campaign.kills} kills of {number} runs of {cells} cells via {options.via}: {len(campaign.wrong)} wrong"
    )
    print("\n".join(campaign.wrong), end="\n" if campaign.wrong else "")
    return 1 if campaign.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

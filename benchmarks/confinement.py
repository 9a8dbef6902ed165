"""What confinement costs, as ratios of medians; the two sides of one take turns on the same machine.

    python -m benchmarks.confinement IMAGE [--times 7] [--cells mish --target rtx17]

Printed are: an empty job in a warm agent, and a container from its start to its agent's greeting and to its end, under
the filter of system calls against Docker's own; and a run of cells, untrusted against trusted. IMAGE is one with Python
that the daemon has.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

from harness.agent.bootstrap import ARGUMENTS
from harness.run.docker import DockerTransport, Options
from harness.run.session import Job, Session

EMPTY = b"""
def preload(engine):
    return {"engine": engine, "engine_version": "1"}
def run(job, body, emit):
    pass
"""
ADAPTER = {"harness/agent/engines/empty.py": EMPTY}
#: Empty jobs of one sample.
JOBS = 100


def session(options: Options) -> Session:
    """Start an agent of an engine that does nothing."""
    transport = DockerTransport(options, target="confinement")
    return Session(transport, engine="none", adapter="empty", extra=ADAPTER)


def jobs(warm: Session) -> float:
    """Return the seconds of one empty job."""
    began = time.monotonic()
    for _ in range(JOBS):
        list(warm.run(Job("run", timeout_s=60, memory_mib=512)))
    return (time.monotonic() - began) / JOBS


def container(options: Options) -> float:
    """Return the seconds of a container from its start to its end."""
    began = time.monotonic()
    session(options).close()
    return time.monotonic() - began


def cells(words: list[str], trust: str) -> float:
    """Return the seconds of a run of cells."""
    with tempfile.TemporaryDirectory() as reports:
        command = [
            sys.executable,
            "-m",
            "harness",
            "run",
            *words,
            "--via",
            "docker",
            "--reports",
            reports,
            trust,
        ]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - began


def tell(what: str, times: int, one: Callable[[], float], other: Callable[[], float]) -> None:
    """Print the medians of both sides, and the median and range of the ratio of each turn."""
    pairs = [(one(), other()) if turn % 2 else (other(), one())[::-1] for turn in range(times + 1)][1:]
    ratios = sorted(mine / theirs for mine, theirs in pairs)
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(
        f"{what}: {mine:.4f} s against {theirs:.4f} s, ratio {statistics.median(ratios):.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f}), {times} turns, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("image")
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--cells", default="")
    parser.add_argument("--target", default="rtx17")
    options = parser.parse_args()
    ours = Options(options.image, "linux/amd64", "python3", ARGUMENTS, 1024)
    dockers = replace(ours, filtered=False)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    mine, theirs = session(ours), session(dockers)
    tell("an empty job", options.times, lambda: jobs(mine), lambda: jobs(theirs))
    mine.close()
    theirs.close()
    tell("a container", options.times, lambda: container(ours), lambda: container(dockers))
    if options.cells:
        words = ["-k", options.cells, "--target", options.target, "-j", "1"]
        run = [lambda trust=trust: cells(words, trust) for trust in ("--untrusted", "--trusted")]
        tell(
            f"cells of {options.cells!r} on {options.target}, untrusted against trusted", options.times, *run
        )


if __name__ == "__main__":
    main()

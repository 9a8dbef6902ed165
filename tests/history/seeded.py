"""Runs of the past with known changes sown in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

import numpy as np

from harness.history.runs import Entry, RunRecord, Stack
from harness.words import Class

STACK = Stack("1.7.1.116", "sha256:aa", "NVIDIA H200", "575.10", "0.1.0")
OTHER = Stack("1.7.1.116", "sha256:bb", "NVIDIA H200", "575.10", "0.1.0")
CELL = "conv_silu.qdq-rtx17"
#: What a machine does from one run to the next, and within a run, as parts of the latency; and how often it stumbles.
BETWEEN, WITHIN, STUMBLES = 0.02, 0.03, 0.03


def day(number: int) -> str:
    """Return the time of the nightly run of a day."""
    when = dt.datetime(2026, 1, 1, 3, tzinfo=dt.timezone.utc) + dt.timedelta(days=number)
    return when.isoformat(timespec="milliseconds")


def timed(seed: int, count: int, shape: Callable[[int], float] = lambda _: 1.0) -> list[tuple[float, ...]]:
    """Return for each run 50 samples about 0.05 ms, times `shape`; each run has a bias of its own."""
    random = np.random.default_rng(seed)
    runs = []
    for number in range(count):
        level = 0.05 * shape(number) * np.exp(random.normal(0, BETWEEN))
        samples = level * np.exp(random.normal(0, WITHIN, 50))
        samples[random.random(50) < STUMBLES] *= 1.5
        runs.append(tuple(float(sample) for sample in samples))
    return runs


def runs(
    classes: Sequence[Class], stacks: Sequence[Stack] | None = None, subject: str = "m-r"
) -> tuple[RunRecord, ...]:
    """Return one run a class, a day apart, of one cell."""
    return tuple(
        RunRecord(
            run=f"r{number}",
            when=day(number),
            stacks=(stacks[number] if stacks else STACK,),
            cells={CELL: Entry("conv_silu", "qdq", "rtx17", cls, subject, 0)},
        )
        for number, cls in enumerate(classes)
    )

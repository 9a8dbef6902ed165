"""Runs of the past with known changes sown in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from harness.history import Entry, RunRecord, Stack
from harness.words import Class

STACK = Stack("1.7.1.116", "sha256:aa", "NVIDIA H200", "575.10", "0.1.0")
OTHER = Stack("1.7.1.116", "sha256:bb", "NVIDIA H200", "575.10", "0.1.0")
CELL = "conv_silu.qdq-rtx17"


def day(number: int) -> str:
    """Return the time of the nightly run of a day."""
    when = dt.datetime(2026, 1, 1, 3, tzinfo=dt.timezone.utc) + dt.timedelta(days=number)
    return when.isoformat(timespec="milliseconds")


def runs(
    classes: Sequence[Class],
    stacks: Sequence[Stack] | None = None,
    subject: str = "m-r",
    medians: Sequence[float] = (),
) -> tuple[RunRecord, ...]:
    """Return one run a class, a day apart, of one cell; `medians` in milliseconds where it was timed."""
    return tuple(
        RunRecord(
            run=f"r{number}",
            when=day(number),
            stacks=(stacks[number] if stacks else STACK,),
            cells={
                CELL: Entry(
                    "conv_silu",
                    "qdq",
                    "rtx17",
                    cls,
                    subject,
                    0,
                    median_ms=medians[number] if medians else None,
                )
            },
        )
        for number, cls in enumerate(classes)
    )

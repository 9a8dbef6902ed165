"""One run of the past, for readers: what it measured, by target and by what that stood on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.report.model import RanOn, RunView

if TYPE_CHECKING:
    from harness.history import RunRecord


def run_view(record: RunRecord) -> RunView:
    """Return a run with the cells that it measured, counted by target and stack."""
    counted = Counter((entry.target, entry.stack) for entry in record.cells.values())
    on = [
        RanOn(target, stack.engine, stack.device, stack.driver, cells)
        for (target, number), cells in counted.items()
        for stack in (record.stacks[number],)
    ]
    return RunView(record.run, record.when, tuple(sorted(on, key=repr)))

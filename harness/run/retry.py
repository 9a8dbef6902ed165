"""Trouble of the machinery is tried again at the end of a run, when what caused it may be over."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING

from harness.case.model import Unbuildable
from harness.errors import HandledError
from harness.run.local import run_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.run.local import MakeRunner, Report, Say, Sink

#: Seconds to wait before each time that cells are tried again, instead of the usual ones.
VARIABLE = "TRT_COMPAT_RETRY_AFTER"
_USUAL = "2 10"


def waits() -> tuple[float, ...]:
    """Return the seconds before each further try; raises HandledError where the variable cannot be read."""
    text = os.environ.get(VARIABLE, _USUAL)
    try:
        seconds = tuple(map(float, text.split()))
    except ValueError:
        seconds = (math.nan,)
    if not all(0 <= each < math.inf for each in seconds):
        raise HandledError(
            f"{VARIABLE}={text} is no list of seconds; write it like '2 10', or '' for no retry"
        )
    return seconds


def run_with_retries(  # noqa: PLR0913
    cells: Sequence[Cell],
    *,
    make_runner: MakeRunner,
    store: Sink,
    workers: int,
    report: Report,
    pauses: Sequence[float],
    say: Say,
    before: Callable[[], None],
) -> None:
    """Run cells as `run_cells` does, and once more after each of the pauses those that ended as infra_error.

    `before` is called before each further time, to forget what is kept of the trouble.
    """
    troubled: dict[str, Cell] = {}

    def noted(cell: Cell, outcome: Outcome, note: str) -> None:
        # A model that cannot be built is not built later either.
        if outcome.state == "infra_error" and not isinstance(cell.variant.build, Unbuildable):
            troubled[cell.id] = cell
        report(cell, outcome, note)

    run_cells(cells, make_runner=make_runner, store=store, workers=workers, report=noted)
    for pause in pauses:
        if not troubled:
            return
        again = tuple(troubled.values())
        troubled.clear()
        say(f"infrastructure trouble in {len(again)} of {len(cells)} cells: tried again in {pause:g} s")
        time.sleep(pause)
        before()
        run_cells(again, make_runner=make_runner, store=store, workers=workers, report=noted)

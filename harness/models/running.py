"""Runs own models on targets: each target in one warm environment, and each outcome judged as it comes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from harness.errors import HandledError
from harness.judge.cell import Judged, judge_cell
from harness.run.gpus import Gpus
from harness.run.local import run_cells
from harness.run.provision import Pulling, Via
from harness.run.provision.trust import refuse_unconfined
from harness.run.target import TargetRunner
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.run.local import Sink
    from harness.run.prepare_in_child import PreparedVariants


@dataclass(frozen=True)
class How:
    """Where engines run, how many targets at a time (None: one a processor), and whether large images are pulled.

    Raises HandledError for what is no such place or number.
    """

    via: Via = "auto"
    jobs: int | None = None
    pull: bool = False

    def __post_init__(self) -> None:
        if self.via not in get_args(Via):
            raise HandledError(f"via={self.via!r}: is no place; {did_you_mean(str(self.via), get_args(Via))}")
        jobs: object = self.jobs
        if jobs is not None and not (isinstance(jobs, int) and jobs > 0):
            raise HandledError(f"jobs={jobs!r}: is no whole number above 0")


class Nowhere:
    """A sink that keeps nothing."""

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:  # noqa: ARG002
        """Return the outcome as it is."""
        return outcome


def run_models(
    cells: Sequence[Cell],
    prepared: PreparedVariants,
    how: How,
    *,
    sink: Sink | None = None,
    tell: Callable[[Judged], None] = lambda _: None,
) -> list[Judged]:
    """Return the cells judged, in their order; `tell` is called with each as it comes.

    Raises HandledError where an untrusted one could not be confined.
    """
    refuse_unconfined([cell.target for cell in cells], how.via)
    done: dict[str, Judged] = {}

    def report(cell: Cell, outcome: Outcome, _: str) -> None:
        done[cell.id] = judge_cell(cell, outcome)
        tell(done[cell.id])

    gpus, run_id = Gpus(), uuid.uuid4().hex[:12]
    run_cells(
        cells,
        make_runner=lambda cell: TargetRunner(
            cell.target,
            via=how.via,
            run_id=run_id,
            prepared=prepared,
            pulling=Pulling(large=how.pull),
            gpus=gpus,
        ),
        store=sink or Nowhere(),
        workers=how.jobs or os.cpu_count() or 1,
        report=report,
    )
    return [done[cell.id] for cell in cells]

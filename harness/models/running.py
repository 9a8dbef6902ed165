"""Runs own models on targets: each target in one warm environment, and each outcome judged as it comes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.judge.cell import Judged, judge_cell
from harness.run.gpus import Gpus
from harness.run.local import run_cells
from harness.run.provision import Pulling
from harness.run.provision.trust import refuse_unconfined
from harness.run.target import TargetRunner

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.run.local import Sink
    from harness.run.prepare_in_child import PreparedVariants
    from harness.run.provision import Via


@dataclass(frozen=True)
class How:
    """Where engines run, how many targets at a time, and whether large images are pulled."""

    via: Via = "auto"
    jobs: int = 1
    pull: bool = False


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
        workers=how.jobs,
        report=report,
    )
    return [done[cell.id] for cell in cells]

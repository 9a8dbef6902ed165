"""What runs the cells of a run: this machine (`run/local.py`), or a cluster (`run/slurm.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.record.store import Store
    from harness.run.local import Report, Sink

#: Tells the user a line.
Say = Callable[[str], None]


class Executor(Protocol):
    """Runs cells somewhere, and says beforehand how."""

    def plan(self, cells: Sequence[Cell]) -> Iterable[str]:
        """Return, as lines, what `run` would do; nothing is started or written."""

    def check(self) -> None:
        """Raise HandledError or InfraError where nothing at all can be run."""

    def take_over(self, cells: Sequence[Cell], store: Store) -> None:
        """Take in what a run of this id that was stopped had recorded elsewhere, and end what it has left."""

    def run(self, cells: Sequence[Cell], *, store: Sink, report: Report, say: Say, live: Say | None) -> None:
        """Append the record of every cell to the store as it comes, and report it, one at a time.

        `live` shows what is being done just now, where something can. Whatever ends this ends all that it started.
        """

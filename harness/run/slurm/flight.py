"""One task under way: which of its cells have no record yet, and what has become of its job."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.record.follow import Follower
from harness.run.slurm.parse import End, Seen
from harness.run.slurm.plan import OUTPUT, Group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.plan import Cell
    from harness.record.outcome import Outcome

#: How often a task is submitted: once, and twice more where it is lost.
SUBMISSIONS = 3
#: What a shell and the harness exit with over what another try would not mend: no such program, a mistake in a file.
_FOR_GOOD = frozenset({2, 126, 127})
#: Characters of a task's last words.
_WORDS = 300


@dataclass
class Flight:
    """A task; `left` are its cells without a record, `job` is its number in Slurm, such as 12_3."""

    group: Group
    index: int
    folder: Path
    left: dict[str, Cell]
    job: str = ""
    submissions: int = 0
    seen: Seen = field(default_factory=lambda: Seen("PENDING"))
    #: When it was first seen to have ended.
    ended_at: float | None = None
    follower: Follower = field(init=False)

    def __post_init__(self) -> None:
        """Follow the task's own store."""
        self.follower = Follower(self.folder)

    @property
    def over(self) -> bool:
        """Whether its job has ended, as far as is known."""
        return self.ended_at is not None

    def submitted(self, job: str) -> None:
        """Note that it was submitted, once more perhaps."""
        self.job, self.seen, self.ended_at = f"{job}_{self.index}", Seen("PENDING"), None
        self.submissions += 1

    def look(self, queue: dict[str, Seen]) -> None:
        """Note what the queue shows of it; a job that it does not show has ended."""
        self.seen = queue.get(self.job, Seen("gone", self.seen.node))
        if self.seen.state == "gone" or self.seen.ended:
            self.ended_at = self.ended_at or time.monotonic()
        else:
            self.ended_at = None

    def take(self) -> Iterator[tuple[Cell, Outcome, str]]:
        """Yield what was recorded since, of each cell the first record only, with its log.

        A task may run twice at the same time: on a node that was given up, and on the next.
        """
        for outcome, log in self.follower.new():
            cell = self.left.pop(outcome.cell, None)
            if cell is not None:
                yield cell, outcome, log

    def note(self) -> str:
        """Return where it runs, "" while that is not known."""
        name = self.group.tasks[self.index][0].target.name
        return f"{name} runs on node {self.seen.node}, in Slurm's job {self.job}." if self.seen.node else ""

    def tried_again(self, end: End | None) -> bool:
        """Tell whether the task is submitted once more after it ended so, with cells left."""
        if end is not None and (end.state.startswith("CANCELLED") or end.code in _FOR_GOOD):
            return False
        return self.submissions < SUBMISSIONS

    def given_up(self, end: End | None) -> str:
        """Return why its cells have no record."""
        how = end.sentence() if end is not None else "is gone, and Slurm does not know it any more"
        times = f", and so did {self.submissions - 1} before it" if self.submissions > 1 else ""
        return f"the task {self.job} in Slurm {how}{times}{self._last_words()}"

    def _last_words(self) -> str:
        try:
            lines = (self.folder / OUTPUT).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return f"; it wrote nothing into {self.folder}: do the nodes see this folder?"
        said = [line.strip() for line in lines if line.strip()]
        return f"; it said: {said[-1][:_WORDS]}" if said else ""

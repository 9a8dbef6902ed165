"""Oversees the jobs of a run from their submission to their end, and leaves none behind."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import InfraError
from harness.run.blank import blank
from harness.run.slurm.client import Client, Refused
from harness.run.slurm.flight import Flight
from harness.run.slurm.parse import End, may_be_later
from harness.run.slurm.plan import TASK_FILE, Group, Submission
from harness.run.task import Heartbeat, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.plan import Cell
    from harness.record.outcome import Outcome, State
    from harness.run.executor import Say
    from harness.run.local import Report, Sink

#: Words by which Slurm says that it is the nodes which lack something.
_LACKING = re.compile(r"node configuration|feature|resource|gres|memory|cpu", re.IGNORECASE)
#: Reasons for waiting that say nothing, or nothing of this job.
_DULL = ("", "None", "Priority")


@dataclass(frozen=True)
class Pace:
    """How often things are looked at, and how long they are waited for, in seconds.

    `records` and `queue` lie between two looks at either, `beat` between two heartbeats, of which a task misses any for
    `patience`. For `settle` the records of a task that has ended may still come to be seen, for `leave` one that has
    recorded all may take to end, and for `silence` the controller may not answer in the middle of a run.
    """

    records: float = 1.0
    queue: float = 5.0
    beat: float = 10.0
    patience: float = 300.0
    settle: float = 10.0
    leave: float = 20.0
    silence: float = 900.0


@dataclass(frozen=True)
class Told:
    """Who is told what: the store each record, `report` each cell, `say` the user."""

    store: Sink
    report: Report
    say: Say
    live: Say | None


class Overseer:
    """Submits a run's jobs, takes in their records, submits again what was lost, and cancels what is left."""

    def __init__(self, submission: Submission, run_id: str, client: Client, told: Told, pace: Pace) -> None:
        self._submission = submission
        self._run_id = run_id
        self._client = client
        self._told = told
        self._pace = pace
        self._heart = Heartbeat(submission.folder / "heartbeat")
        self._flights: list[Flight] = []
        self._next_look = 0.0
        self._silent_since: float | None = None
        self._waited_for: set[str] = set()
        self._given_up = False

    def run(self, groups: Sequence[Group]) -> None:
        """Run the tasks of these jobs to their ends."""
        self._write(groups)
        left_none = False
        try:
            # By itself: one call of Slurm's may take longer than the tasks have patience.
            with self._heart.beating(self._pace.beat):
                self._submit(groups)
                while any(flight.left for flight in self._flights):
                    self._turn()
                    time.sleep(self._pace.records)
                with contextlib.suppress(InfraError):
                    left_none = self._gone()
        finally:
            left_none = left_none or self._cancelled()
            self._collect()
            if left_none and not self._given_up:
                shutil.rmtree(self._submission.folder, ignore_errors=True)
                with contextlib.suppress(OSError):
                    self._submission.folder.parent.rmdir()
            else:
                self._told.say(f"what the tasks in Slurm wrote is kept in {self._submission.folder}")

    def record(self, cell: Cell, state: State, reason: str) -> None:
        """Record that a cell came to no engine."""
        self._keep(cell, blank(cell, state, reason, self._run_id), "", "")

    def _keep(self, cell: Cell, outcome: Outcome, log: str, note: str) -> None:
        outcome = self._told.store.append(outcome, log or None)
        self._told.report(cell, outcome, note)

    def _write(self, groups: Iterable[Group]) -> None:
        # What was left of a run that goes on may not have been removed to the last file.
        self._submission.folder.mkdir(parents=True, exist_ok=True)
        for group in groups:
            self._submission.script_path(group).write_text(self._submission.script(group), encoding="utf-8")
            for index, cells in enumerate(group.tasks):
                task = Task(
                    self._run_id,
                    tuple(cell.id for cell in cells),
                    str(self._submission.folder / "heartbeat"),
                    self._pace.patience,
                )
                task.write(self._submission.task_folder(group, index) / TASK_FILE)

    def _submit(self, groups: Iterable[Group]) -> None:
        """Submit the jobs; first those of which only the submission itself tells whether any node has what they ask."""
        sure, doubtful = [], []
        for group in groups:
            try:
                self._client.test(self._submission.command(group, range(len(group.tasks))))
                sure.append(group)
            except Refused as refusal:
                if may_be_later(str(refusal)):
                    doubtful.append(group)
                else:
                    self._refuse(group, str(refusal))
        for group in (*doubtful, *sure):
            flights = [
                Flight(
                    group,
                    index,
                    self._submission.task_folder(group, index),
                    {cell.id: cell for cell in cells},
                )
                for index, cells in enumerate(group.tasks)
            ]
            try:
                job = self._send(group, flights)
            except Refused as refusal:
                self._refuse(group, str(refusal))
                continue
            self._flights += flights
            tasks = f"{len(flights)} task{'s' if len(flights) > 1 else ''}"
            self._told.say(
                f"Slurm job {job}: {tasks} of {', '.join(group.targets)}, asking for {group.asked}"
            )

    def _send(self, group: Group, flights: Sequence[Flight]) -> str:
        job = self._client.submit(self._submission.command(group, [flight.index for flight in flights]))
        for flight in flights:
            flight.submitted(job)
        return job

    def _refuse(self, group: Group, said: str) -> None:
        lacking = _LACKING.search(said) is not None
        why = (
            "no node of this Slurm cluster has what it asks for" if lacking else "Slurm does not take its job"
        )
        for cells in group.tasks:
            for cell in cells:
                self.record(cell, "not_run", f"{why}, {group.asked}: {said}")

    def _turn(self) -> None:
        self._collect()
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + self._pace.queue
            try:
                self._look()
                self._mend()
            except InfraError as error:
                self._bear(error)
            else:
                self._silent_since = None

    def _collect(self) -> None:
        looked = False
        for flight in self._flights:
            for cell, outcome, log in flight.take():
                if not flight.seen.node and not looked:
                    # A short task would be over before it is looked for, and nobody told where it ran.
                    looked = True
                    with contextlib.suppress(InfraError):
                        self._look()
                self._keep(cell, outcome, log, flight.note())

    def _bear(self, error: InfraError) -> None:
        """Wait for a controller that is silent: the tasks run on without it."""
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
            self._told.say(f"{error}; waiting for it")
        elif now - self._silent_since > self._pace.silence:
            raise error

    def _look(self) -> None:
        """See what has become of the jobs, and say what is new to know of them."""
        queue = self._client.queue(self._submission.name)
        waiting: Counter[str] = Counter()
        for flight in self._flights:
            ran = flight.seen.running
            flight.look(queue)
            seen = flight.seen
            if not flight.left or flight.over or seen.running:
                continue
            waiting[seen.reason] += 1
            if ran:
                self._told.say(f"Slurm puts task {flight.job} back into the queue: {seen.reason}")
        for reason in waiting:
            if reason not in (*_DULL, *self._waited_for):
                self._waited_for.add(reason)
                self._told.say(f"{waiting[reason]} of {len(self._flights)} tasks wait in Slurm: {reason}")
        if self._told.live is not None and waiting.total() == sum(
            bool(flight.left) for flight in self._flights
        ):
            self._told.live("waiting for Slurm")

    def _mend(self) -> None:
        """Submit again the tasks that were lost, or record why their cells were not run."""
        again: dict[int, list[Flight]] = {}
        for flight in self._flights:
            end = self._lost(flight)
            if end is None or not flight.left:
                continue
            if flight.seen.hopeless:
                self._give_up(
                    flight, "not_run", f"Slurm would never start it, {flight.group.asked}: {end.reason}"
                )
            elif flight.tried_again(end):
                self._told.say(f"the task {flight.job} in Slurm {end.sentence()}: submitted again")
                again.setdefault(flight.group.number, []).append(flight)
            else:
                self._give_up(flight, "infra_error", flight.given_up(end))
        for flights in again.values():
            try:
                self._send(flights[0].group, flights)
            except Refused as refusal:
                for flight in flights:
                    self._give_up(flight, "infra_error", f"Slurm does not take its job again: {refusal}")

    def _lost(self, flight: Flight) -> End | None:
        """Return how a task ended that still has cells to run, None while it may still record them."""
        if not flight.left:
            return None
        if flight.seen.hopeless or flight.seen.stuck:
            self._client.cancel(self._submission.name, [flight.job])
            return End("PENDING", reason=flight.seen.reason)
        # What was written on a node may take its time to be seen here; most where all is said to be done.
        settle = self._pace.settle * (6 if flight.seen.state == "COMPLETED" else 1)
        if flight.ended_at is None or time.monotonic() - flight.ended_at < settle:
            return None
        return self._client.ended(flight.job) or End(
            flight.seen.state, "", flight.seen.node, flight.seen.reason
        )

    def _give_up(self, flight: Flight, state: State, reason: str) -> None:
        self._given_up = True
        while flight.left:
            _, cell = flight.left.popitem()
            self.record(cell, state, reason)

    def _cancelled(self) -> bool:
        """Cancel what is left; tell whether all of it is gone."""
        try:
            self._client.cancel(self._submission.name)
            return self._gone()
        except InfraError as error:
            by_hand = f"scancel --name={self._submission.name}"
            self._told.say(
                f"{error}; the tasks end by themselves within {self._pace.patience:g} s, or at once by {by_hand}"
            )
            return False

    def _gone(self) -> bool:
        """Wait until no job is left, for a while; tell whether that is so."""
        return self._client.gone(self._submission.name, self._pace.leave, self._pace.records)

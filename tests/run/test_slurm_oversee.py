"""What an overseer makes of what becomes of its jobs, on a Slurm that is made up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.matrix import Slurm
from harness.plan import Cell
from harness.record.outcome import Outcome, Stamps
from harness.record.store import Store
from harness.run.slurm.client import Client, Refused
from harness.run.slurm.oversee import Overseer, Pace, Told
from harness.run.slurm.parse import End, Seen
from harness.run.slurm.plan import Submission, grouped
from harness.run.task import Task
from tests.run.bench import cell, target
from tests.waiting import wait_for

pytestmark = pytest.mark.unit

AT_ONCE = Pace(records=0, queue=0, beat=60, patience=60, settle=0, leave=0, silence=0)
#: What a job of so many submissions before it does: its task's folder is given, and its state returned.
Doing = Callable[[Path, int], Seen]


class MadeUp(Client):
    """A Slurm with one task a job that does what a test says, and notes what it is told."""

    def __init__(self, doing: Doing, *, refused: Sequence[str] = (), unsure: Sequence[str] = ()) -> None:
        super().__init__()
        self.doing = doing
        self.refused, self.unsure = refused, unsure
        self.submitted: list[str] = []
        self.cancelled: list[tuple[str, ...]] = []
        self.silent = False
        self._jobs: dict[str, Seen] = {}

    def test(self, command: Sequence[str]) -> None:
        if any(word in command for word in (*self.refused, *self.unsure)):
            raise Refused("Requested node configuration is not available")

    def submit(self, command: Sequence[str]) -> str:
        if any(word in command for word in self.refused):
            raise Refused("Requested node configuration is not available")
        script = Path(command[-1])
        job = str(len(self.submitted) + 1)
        self._jobs[f"{job}_0"] = self.doing(script.parent / f"{script.stem}-0", len(self.submitted))
        self.submitted.append(command[8])
        return job

    def queue(self, name: str) -> dict[str, Seen]:
        assert name == "trt-compat-r1"
        if self.silent:
            raise InfraError("Slurm does not answer: Connection refused")
        return dict(self._jobs)

    def ended(self, job: str) -> End | None:
        return End(self._jobs[job].state, "0:9", "b", "NodeDown")

    def cancel(self, name: str, jobs: Sequence[str] = ()) -> None:
        assert name == "trt-compat-r1"
        self.cancelled.append(tuple(jobs))
        for job in jobs or self._jobs:
            if not self._jobs[job].ended:
                self._jobs[job] = Seen("CANCELLED")


def record(folder: Path, *names: str) -> None:
    with Store(folder, run="r1") as store:
        for name in names:
            stamps = Stamps(run="r1", when="2026-01-01T00:00:00Z")
            store.append(Outcome(name, "faulty", "a", "one", "done", stamps=stamps), name)


def oversee(
    client: MadeUp, folder: Path, cells: Sequence[Cell], pace: Pace = AT_ONCE
) -> tuple[list[Outcome], str]:
    """Run the cells; return their records in order, and what was said."""
    said: list[str] = []
    submission = Submission(folder / "slurm" / "r1", "trt-compat-r1", ("-m", "harness", "run"), folder)
    with Store(folder / "main", run="r1") as store:
        told = Told(store, lambda *_: None, said.append, None)
        try:
            Overseer(submission, "r1", client, told, pace).run(grouped(cells, {}, "python"))
        finally:
            found = list(Store(folder / "main").outcomes())
    return found, "\n".join(said)


TWO = [cell("a", target("one")), cell("b", target("one"))]
A, B = (each.id for each in TWO)


def test_a_task_that_is_lost_is_submitted_again_for_what_it_had_not_recorded(tmp_path: Path) -> None:
    def doing(folder: Path, before: int) -> Seen:
        record(folder, (A, B)[before])
        return Seen("COMPLETED" if before else "NODE_FAIL", "b")

    client = MadeUp(doing)
    found, said = oversee(client, tmp_path, TWO)
    assert [(each.cell, each.state) for each in found] == [(A, "done"), (B, "done")]
    assert Store(tmp_path / "main").log(str(found[1].log_sha256)) == B
    assert len(client.submitted) == 2
    assert "the task 1_0 in Slurm ended as NODE_FAIL on b (exit code 0:9, NodeDown): submitted again" in said
    assert not (tmp_path / "slurm").exists()
    assert client.cancelled == []


def test_a_task_that_is_lost_three_times_is_infrastructure_for_the_rest_of_its_cells(tmp_path: Path) -> None:
    def doing(folder: Path, before: int) -> Seen:
        if not before:
            record(folder, A)
        return Seen("NODE_FAIL", "b")

    client = MadeUp(doing)
    found, said = oversee(client, tmp_path, TWO)
    assert len(client.submitted) == 3
    assert [(each.cell, each.state) for each in found] == [(A, "done"), (B, "infra_error")]
    assert found[1].reason.startswith(
        "the task 3_0 in Slurm ended as NODE_FAIL on b (exit code 0:9, NodeDown), and so did 2 before it"
    )
    assert found[1].stamps.run == "r1"
    assert found[1].stamps.model_sha256
    assert (tmp_path / "slurm" / "r1" / "1-0" / "task.json").exists()
    assert f"is kept in {tmp_path}/slurm/r1" in said


def test_the_first_of_two_records_of_a_cell_counts(tmp_path: Path) -> None:
    """A node that was given up may have gone on all the while."""

    def doing(folder: Path, _: int) -> Seen:
        record(folder, A, B)
        record(folder, A)
        return Seen("COMPLETED", "b")

    found, _ = oversee(MadeUp(doing), tmp_path, TWO)
    assert [each.cell for each in found] == [A, B]


def test_what_waits_for_what_never_comes_is_cancelled_and_not_run(tmp_path: Path) -> None:
    client = MadeUp(lambda *_: Seen("PENDING", "", "PartitionTimeLimit"))
    found, _ = oversee(client, tmp_path, TWO)
    assert {each.state for each in found} == {"not_run"}
    assert found[0].reason == "Slurm would never start it, nothing in particular: PartitionTimeLimit"
    assert client.cancelled[0] == ("1_0",)
    assert len(client.submitted) == 1


def test_what_was_not_started_on_its_node_and_is_held_is_submitted_again(tmp_path: Path) -> None:
    def doing(folder: Path, before: int) -> Seen:
        if not before:
            return Seen("PENDING", "", "launch failed requeued held")
        record(folder, A, B)
        return Seen("COMPLETED", "b")

    client = MadeUp(doing)
    found, _ = oversee(client, tmp_path, TWO)
    assert {each.state for each in found} == {"done"}
    assert client.cancelled == [("1_0",)]


def test_jobs_that_may_be_refused_are_submitted_before_the_others(tmp_path: Path) -> None:
    """What no node has is known before anything runs; nodes that are away only now are waited for."""

    def doing(folder: Path, _: int) -> Seen:
        record(folder, *Task.read(folder / "task.json").cells)
        return Seen("COMPLETED", "b")

    cells = [cell("a", target(name, slurm=Slurm(constraint=name))) for name in ("sure", "away", "none")]
    client = MadeUp(doing, refused=["--constraint=none"], unsure=["--constraint=away"])
    found, _ = oversee(client, tmp_path, cells)
    assert client.submitted == ["--constraint=away", "--constraint=sure"]
    assert [(each.cell, each.state) for each in found] == [
        ("faulty.a-none", "not_run"),
        ("faulty.a-away", "done"),
        ("faulty.a-sure", "done"),
    ]
    assert found[0].reason == (
        "no node of this Slurm cluster has what it asks for, --constraint=none: "
        "Requested node configuration is not available"
    )


def test_a_silent_controller_is_waited_for_as_long_as_is_said(tmp_path: Path) -> None:
    """What is recorded meanwhile is taken in; when the wait is over the jobs are cancelled all the same."""

    def doing(folder: Path, _: int) -> Seen:
        record(folder, A)
        return Seen("RUNNING", "b")

    client = MadeUp(doing)
    client.silent = True
    with pytest.raises(InfraError, match="Connection refused"):
        oversee(client, tmp_path, TWO)
    assert [each.cell for each in Store(tmp_path / "main").outcomes()] == [A]
    assert client.cancelled == [()]


def test_the_heart_beats_while_slurm_takes_its_time(tmp_path: Path) -> None:
    """A task would end itself while one call of Slurm's takes longer than it has patience."""
    heartbeat = tmp_path / "slurm" / "r1" / "heartbeat"
    beats: list[str] = []

    def doing(folder: Path, before: int) -> Seen:  # noqa: ARG001
        beats.append(heartbeat.read_text())
        assert wait_for(lambda: heartbeat.read_text() not in ("", *beats)), "a beat within a call"
        record(folder, A, B)
        return Seen("COMPLETED", "b")

    oversee(MadeUp(doing), tmp_path, TWO, dataclasses.replace(AT_ONCE, beat=0.01))
    assert beats


def test_whatever_ends_a_run_cancels_its_jobs(tmp_path: Path) -> None:
    def interrupted(_: Path, __: int) -> Seen:
        raise KeyboardInterrupt

    client = MadeUp(interrupted)
    with pytest.raises(KeyboardInterrupt):
        oversee(client, tmp_path, TWO)
    assert client.cancelled == [()]

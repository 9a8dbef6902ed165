"""What a run that was stopped has left on a cluster is taken in and ended."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.plan import all_cells
from harness.record.outcome import Outcome, Stamps
from harness.record.store import Store
from harness.run.slurm import SlurmExecutor
from harness.run.slurm import executor as module
from tests.report import factory

pytestmark = pytest.mark.unit


def test_records_of_tasks_are_taken_in_and_jobs_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []

    class Client:
        def cancel(self, name: str) -> None:
            cancelled.append(name)

        def gone(self, name: str, *_: float) -> bool:
            assert cancelled == [name]
            with Store(late, run="a1") as task:
                task.append(outcomes[2], None)
            return True

    monkeypatch.setattr(module, "Client", Client)
    cells = all_cells(factory.matrix(), (factory.case(),))[:3]
    outcomes = [Outcome.blank(cell, "not_run", "why", Stamps(run="a1")) for cell in cells]
    late = tmp_path / "slurm" / "a1" / "1-2"
    with Store(tmp_path, run="a1") as store:
        taken = store.append(outcomes[0])
        for number, outcome in enumerate(outcomes[:2]):
            with Store(tmp_path / "slurm" / "a1" / f"1-{number}", run="a1") as task:
                task.append(outcome, "a log" if number else None)
        executor = SlurmExecutor(folder=tmp_path / "slurm", run_id="a1", words=())
        executor.take_over(cells, store)
        executor.take_over(cells, store)
    found = list(Store(tmp_path).outcomes())
    assert [each.cell for each in found] == [cell.id for cell in cells], "each once"
    assert found[0] == taken
    assert store.log(str(found[1].log_sha256)) == "a log"
    assert dataclasses.replace(found[1], log_sha256=None) == outcomes[1]
    assert cancelled == ["trt-compat-a1"]
    assert not (tmp_path / "slurm" / "a1").exists()


def test_a_task_that_does_not_end_is_waited_for_by_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it records after its store was taken in would be lost."""

    class Client:
        def cancel(self, _: str) -> None:
            pass

        def gone(self, *_: object) -> bool:
            return False

    monkeypatch.setattr(module, "Client", Client)
    task = tmp_path / "slurm" / "a1" / "1-0"
    task.mkdir(parents=True)
    executor = SlurmExecutor(folder=tmp_path / "slurm", run_id="a1", words=())
    with Store(tmp_path, run="a1") as store, pytest.raises(InfraError, match="squeue --name=trt-compat-a1"):
        executor.take_over((), store)
    assert task.is_dir()

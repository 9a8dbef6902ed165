"""Cells as arrays of Slurm, where its commands are scripts: lines, records, refusals, ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import HandledError, InfraError
from harness.matrix import Slurm, Target
from harness.plan import Cell
from harness.record.outcome import Outcome, Stamps
from harness.record.store import Store
from harness.run import slurm as module
from harness.run.slurm import SlurmExecutor
from tests.processes import put_program
from tests.run.bench import cell
from tests.run.provision.factory import gpu_target, target
from tests.waiting import wait_for

pytestmark = pytest.mark.unit

TWO = [cell("a", target(name="one")), cell("b", target(name="one"))]
A, B = (each.id for each in TWO)
TAKEN = "echo Submitted batch job 7"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_EVERY", "_SETTLE", "_LEAVE"):
        monkeypatch.setattr(module, name, 0.0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a run; on the PATH is a Slurm that answers and has no task."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    program(tmp_path, squeue="true", scancel=f"echo $@ >> {tmp_path}/cancelled")
    return tmp_path / "slurm" / "r1"


def program(folder: Path, **scripts: str) -> None:
    for name, script in scripts.items():
        put_program(folder, name, script)


def executor(folder: Path) -> SlurmExecutor:
    return SlurmExecutor(folder=folder / "slurm", run_id="r1", words=("--via", "venv"))


def record(folder: Path, *names: str) -> None:
    with Store(folder, run="r1") as store:
        for name in names:
            stamps = Stamps(run="r1", when="2026-01-01T00:00:00Z")
            store.append(Outcome(name, "faulty", "a", "one", "done", stamps=stamps), f"log of {name}")


def ran(folder: Path, cells: Sequence[Cell]) -> tuple[dict[str, Outcome], str]:
    """Run cells; return each one's only record, and all that was said."""
    said: list[str] = []
    with Store(folder / "main", run="r1") as store:
        executor(folder).run(cells, store=store, report=lambda *_: None, say=said.append, live=None)
    outcomes = list(Store(folder / "main").outcomes())
    found = {outcome.cell: outcome for outcome in outcomes}
    assert len(found) == len(outcomes), "each cell once"
    return found, "\n".join(said)


@pytest.mark.parametrize(
    ("asks", "options"),
    [
        (gpu_target(), ["--gres=gpu:1"]),
        (target(), []),
        (gpu_target(slurm=Slurm((("gres", None), ("exclusive", "")))), ["--exclusive"]),
        (gpu_target(slurm=Slurm((("mem", "1G"), ("gres", "gpu:h200:2")))), ["--gres=gpu:h200:2", "--mem=1G"]),
    ],
)
def test_a_target_asks_for_a_gpu_that_it_needs_and_for_what_matrix_yaml_says(
    asks: Target, options: list[str]
) -> None:
    assert list(module._asked(asks)) == options


def test_targets_that_ask_the_same_share_a_line_that_a_shell_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alike = (("partition", "gpus"),)
    first, third = target(name="one", slurm=Slurm(alike)), target(name="three", slurm=Slurm(alike, cells=2))
    far = target(name="far", slurm=Slurm((("partition", "boards"),), python="/opt/my python"))
    cells = [cell("a", first), cell("a", far), *(cell(do, third) for do in ("a", "b", "c"))]
    lines = list(executor(tmp_path / "my reports").plan(cells))
    assert lines[:3] == [
        "task 1-0: 1 of the cells of one",
        "task 1-1: 2 of the cells of three",
        "task 1-2: 1 of the cells of three",
    ]
    place = tmp_path / "my reports" / "slurm" / "r1"
    assert lines[4:] == [
        "task 2-0: 1 of the cells of far",
        (
            f"sbatch --partition=boards --wait --job-name=trt-compat-r1 --array=0-0 --requeue --chdir={tmp_path} "
            f"'--output={place}/2-%a/slurm.txt' --open-mode=append "
            "'--wrap=exec '\"'\"'/opt/my python'\"'\"' -m harness run --via venv "
            f"--task '\"'\"'{place}/2'\"'\"'-\"$SLURM_ARRAY_TASK_ID\"'"
        ),
    ]
    assert not (tmp_path / "my reports").exists()


def test_records_are_taken_in_the_first_of_each_cell_and_nothing_is_left(place: Path, tmp_path: Path) -> None:
    """A node that was given up may go on while its task is started again on another."""
    record(tmp_path / "made", A, B, A)
    program(
        tmp_path, sbatch=f"{TAKEN}; cp -r {tmp_path}/made/. {place}/1-0; cp {place}/1-0/task.json {tmp_path}"
    )
    found, said = ran(tmp_path, TWO)
    assert {each.state for each in found.values()} == {"done"}
    assert Store(tmp_path / "main").log(str(found[B].log_sha256)) == f"log of {B}"
    assert json.loads((tmp_path / "task.json").read_text()) == {"run": "r1", "cells": [A, B]}
    assert said == ""
    assert not place.parent.exists()
    assert not (tmp_path / "cancelled").exists()


@pytest.mark.parametrize(
    ("output", "last"),
    [
        ("printf 'one\\nerror: no cases\\n\\n'", "its output ends: error: no cases"),
        (
            "printf 'slurmstepd: error: *** DUE TO TIME LIMIT ***\\ninterrupted\\n'",
            "its output ends: slurmstepd: error: *** DUE TO TIME LIMIT ***",
        ),
        (None, "it wrote nothing into {place}/1-0: do the nodes see this folder?"),
    ],
)
def test_a_task_without_a_record_is_infrastructure(
    place: Path, tmp_path: Path, output: str | None, last: str
) -> None:
    record(tmp_path / "made", A)
    write = f"{output} > {place}/1-0/slurm.txt" if output else "true"
    program(tmp_path, sbatch=f"{TAKEN}; cp -r {tmp_path}/made/. {place}/1-0; {write}; exit 1")
    found, said = ran(tmp_path, TWO)
    assert (found[A].state, found[B].state) == ("done", "infra_error")
    expected = f"the task 1-0 in Slurm ended without its record; {last.format(place=place)}"
    assert found[B].reason == expected
    assert found[B].stamps.model_sha256
    assert f"is kept in {place}" in said


def test_a_refused_job_is_not_run_and_the_others_go_on(place: Path, tmp_path: Path) -> None:
    record(tmp_path / "made", A, B)
    refuse = "echo 'sbatch: error: Batch job submission failed: Invalid feature specification' >&2; exit 1"
    take = f"{TAKEN}; cp -r {tmp_path}/made/. {place}/1-0"
    program(tmp_path, sbatch=f"case $1 in --constraint=none) {refuse};; *) {take};; esac")
    none = cell("a", target(name="none", slurm=Slurm((("constraint", "none"),))))
    found, _ = ran(tmp_path, [*TWO, none])
    assert {found[A].state, found[B].state} == {"done"}
    assert (found[none.id].state, found[none.id].reason) == (
        "not_run",
        "Slurm does not take its job (--constraint=none): Batch job submission failed: Invalid feature specification",
    )


@pytest.mark.parametrize(
    ("scripts", "error", "sentence"),
    [
        (
            {"sbatch": "echo 'sbatch: error: Invalid --time' >&2; exit 255"},
            HandledError,
            r"does not understand .*: Invalid --time; correct `slurm` in matrix\.yaml",
        ),
        (
            {"sbatch": "exit 1", "squeue": "echo 'Connection refused' >&2; exit 1"},
            InfraError,
            "Slurm does not answer: Connection refused",
        ),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_mistake_and_a_silence_end_the_run(
    tmp_path: Path, scripts: dict[str, str], error: type[Exception], sentence: str
) -> None:
    program(tmp_path, **scripts)
    with pytest.raises(error, match=sentence):
        ran(tmp_path, TWO)


def test_a_command_that_hangs_is_a_silence(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    program(tmp_path, sbatch="true", squeue="exec sleep 60")
    with pytest.raises(InfraError, match=r"squeue .* was not done after 0\.1 s"):
        executor(tmp_path).check()
    assert not place.exists()


def test_an_interrupt_cancels_the_tasks_and_keeps_the_records(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "made", A)
    program(
        tmp_path,
        sbatch=f"{TAKEN}; cp -r {tmp_path}/made/. {place}/1-0; touch {tmp_path}/there; exec sleep 60",
    )

    def interrupted(*_: object) -> None:
        assert wait_for((tmp_path / "there").exists)
        raise KeyboardInterrupt

    monkeypatch.setattr(SlurmExecutor, "_give_up", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, TWO)
    assert (tmp_path / "cancelled").read_text() == "--name=trt-compat-r1\n"
    assert {outcome.cell for outcome in Store(tmp_path / "main").outcomes()} == {A}
    assert not place.exists()

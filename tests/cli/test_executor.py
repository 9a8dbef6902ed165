"""`run --executor`, where there is no Slurm; and `run --task`, which is what runs on a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.record.store import Store
from harness.run import local
from tests.cli.test_run import FAILS, WELL, Scripted
from tests.fixtures import Capture, Patch

pytestmark = pytest.mark.unit


def task(folder: Path, *names: str) -> list[str]:
    """Write a task of these cells and return the words that run it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.json").write_text(json.dumps({"run": "r1", "cells": names}))
    return ["run", "--task", str(folder)]


@pytest.fixture
def ran(monkeypatch: Patch) -> list[str]:
    """Let every cell go by a script; return those that were run, in order."""
    names: list[str] = []

    class Noting(Scripted):
        def run(self, cell: Any, **more: bool) -> Any:
            names.append(cell.id)
            return super().run(cell, **more)

    script = {"relu": WELL, "weak": FAILS, "foreign": FAILS}
    monkeypatch.setattr(local, "TargetRunner", lambda target, **_: Noting(target, script))
    return names


def test_without_slurm_it_is_one_sentence_before_anything_is_built_or_written(
    toy: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (toy / "cases" / "toy.py").write_text(
        (toy / "cases" / "toy.py").read_text().replace("def relu():", "def relu():\n    1 / 0")
    )
    assert main(["run", "--executor", "slurm"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no sbatch on" in err
    assert err.count("\n") == 1
    assert not (toy / "reports").exists()


def test_a_dry_run_prints_the_line_and_needs_no_slurm(toy: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["run", "--executor", "slurm", "--dry-run", "--pull", "-k", "relu"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "task 1-0: 1" in out
    assert "sbatch --gres=gpu:1 --wait" in out
    assert f" -m harness run --via auto --matrix {toy}/matrix.yaml --cases {toy}/cases --pull --task " in out
    assert not (toy / "reports").exists()


def test_a_task_records_its_cells_under_the_runs_name_and_writes_no_report(toy: Path, ran: list[str]) -> None:
    words = task(toy / "work" / "1-0", "toy.relu-ort131", "toy.foreign-trt86")
    assert main(words) == 0
    assert ran == ["toy.relu-ort131", "toy.foreign-trt86"]
    folder = toy / "work" / "1-0"
    assert sorted(path.name for path in folder.iterdir()) == ["logs", "records", "task.json"]
    assert [path.name for path in (folder / "records").iterdir()] == ["r1-main.jsonl"]
    assert {outcome.cell for outcome in Store(folder).outcomes()} == set(ran)


def test_a_task_that_starts_again_runs_what_it_has_not_recorded(toy: Path, ran: list[str]) -> None:
    assert main(task(toy / "work" / "1-0", "toy.relu-ort131")) == 0
    assert main(task(toy / "work" / "1-0", "toy.relu-ort131", "toy.foreign-ort131")) == 0
    assert ran == ["toy.relu-ort131", "toy.foreign-ort131"]
    assert main(task(toy / "work" / "1-0", "toy.relu-ort131", "toy.foreign-ort131")) == 0
    assert len(ran) == 2


def test_a_cell_that_is_gone_is_named(toy: Path, ran: list[str], capsys: Capture) -> None:
    assert main(task(toy / "work" / "1-0", "toy.relu-ort131", "toy.renamed-ort131")) == 2
    assert "toy.renamed-ort131 any more:" in capsys.readouterr().err
    assert ran == []


def test_a_file_that_is_no_task_is_one_sentence(toy: Path, capsys: Capture) -> None:
    words = task(toy / "work")
    (toy / "work" / "task.json").write_text('{"run": 1}')
    assert main(words) == 2
    assert "work/task.json: cannot be" in capsys.readouterr().err

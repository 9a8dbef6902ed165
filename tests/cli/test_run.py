"""`run` ends with the right exit code and says what happened; `accept`, `report`, `merge` and `verify` follow on it."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import main
from harness.errors import HandledError
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.run import local
from harness.run.rounds import Recorded, Steps
from tests import needs
from tests.cli import project
from tests.fixtures import Capture, Patch
from tests.models import data

#: Variant to what becomes of it: changes to an outcome that went well.
Script = dict[str, dict[str, Any]]

WELL: dict[str, Any] = {}
FAILS: dict[str, Any] = {"failed_phase": "build", "ran": False}
LOST: dict[str, Any] = {"state": "infra_error", "reason": "the agent went away"}
ABSENT: dict[str, Any] = {"state": "not_run", "reason": "needs an NVIDIA GPU; none found"}
MEANINGLESS: dict[str, Any] = {"state": "not_applicable", "reason": "precision comes from the graph alone"}


class Scripted:
    """Stands for the runner of a target and gives each cell the outcome that a script holds for it."""

    note = "as the script says"
    runs = True

    def __init__(self, target: Target, script: Script) -> None:
        self.target = target
        self._script = script

    def run(self, cell: Cell, **_: bool) -> tuple[Outcome, str]:
        outcome = project.outcome(cell, ran=True, when=f"2026-01-01T00:00:0{len(self._script)}")
        return dataclasses.replace(outcome, **self._script[cell.variant.name]), f"the log of {cell.id}"

    def steps(self, cell: Cell) -> Steps:
        """End with the first step."""
        return Recorded(*self.run(cell))
        yield None

    def abort(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is open."""


Play = Callable[..., int]


@pytest.fixture
def play(toy: Path, monkeypatch: Patch) -> Play:
    """Return a function that runs the toy project by a script and returns the exit code."""

    def played(*words: str, **script: dict[str, Any]) -> int:
        assert Path.cwd() == toy
        monkeypatch.setattr(local, "TargetRunner", lambda target, **_: Scripted(target, script))
        return main(["run", "--target", "ort131", *words])

    return played


def claim(folder: Path, **cells: str) -> None:
    """Write measured.yaml by hand."""
    entry = {"engine": "onnxruntime", "version": "1.31.1", "measured": "2026-01-01", "cells": {"toy": cells}}
    (folder / "cases" / "measured.yaml").write_text(yaml.safe_dump({"schema": 1, "ort131": entry}))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("claims", "fields", "code", "counted"),
    [
        ({}, WELL, 0, "as expected"),
        ({}, FAILS, 0, "new failure"),
        ({"relu": "ok"}, WELL, 0, "as expected"),
        ({"relu": "ok"}, FAILS, 1, "regressed"),
        ({"relu": "build_failed"}, FAILS, 0, "known failure"),
        ({"relu": "build_failed"}, WELL, 0, "fixed"),
        ({}, ABSENT, 3, "not run"),
        ({}, MEANINGLESS, 3, "not applicable"),
        ({}, LOST, 3, "infrastructure trouble"),
    ],
)
def test_exit_code_and_summary_tell_what_happened(  # noqa: PLR0913, PLR0917  (fixtures and parameters)
    toy: Path,
    play: Play,
    capsys: Capture,
    claims: dict[str, str],
    fields: dict[str, Any],
    code: int,
    counted: str,
) -> None:
    if claims:
        claim(toy, **claims)
    assert play("-k", "relu", relu=fields) == code
    out = capsys.readouterr().out
    assert project.counted(out) == {counted: 1}
    if reason := fields.get("reason"):
        assert reason in out
    assert "report: reports/index.html" in out


@pytest.mark.unit
def test_why_nothing_ran_is_what_hindered_and_not_what_does_not_apply(play: Play, capsys: Capture) -> None:
    assert play(relu=ABSENT, weak=MEANINGLESS, foreign=LOST) == 3
    *_, last, report = capsys.readouterr().out.splitlines()
    assert report == "report: reports/index.html"
    assert last.endswith("none found, and 1 other reason")


@pytest.mark.unit
def test_what_came_of_the_cells_is_told_before_the_report_is_made(
    play: Play, capsys: Capture, monkeypatch: Patch
) -> None:
    """The report is of all cells that were ever run; and it is made where nobody reads the answer any more."""
    told: list[str] = []

    def made(*_: object, **__: object) -> None:
        told.append(capsys.readouterr().out)

    monkeypatch.setattr("harness.cli.run.write_report", made)
    assert play("-k", "relu", relu=WELL) == 0
    assert "1 cell on 1 target: " in told[0]
    assert capsys.readouterr().out == "report: reports/index.html\n"

    def gone(*_: object) -> int:
        raise HandledError("nobody reads this")

    monkeypatch.setattr("harness.cli.run._answer", gone)
    assert play("-k", "relu", "--fresh", relu=WELL) == 2
    assert len(told) == 2


@pytest.mark.unit
def test_a_regression_comes_before_infrastructure(toy: Path, play: Play) -> None:
    """A run with both is red for the regression: 1, not 3."""
    claim(toy, relu="ok", weak="ok")
    assert play(relu=LOST, weak=FAILS, foreign=WELL) == 1
    assert play(relu=LOST, weak=WELL, foreign=WELL) == 3


@pytest.mark.unit
def test_a_required_target_that_cannot_run_is_infrastructure(play: Play, capsys: Capture) -> None:
    assert play("-k", "relu", "--require", "ort131", relu=ABSENT) == 3
    assert "needs an NVIDIA" in capsys.readouterr().out
    assert play("-k", "relu", "--require", "ort131", relu=WELL) == 0


@pytest.mark.unit
def test_the_summary_ends_with_what_to_do_and_it_can_be_pasted(play: Play, capsys: Capture) -> None:
    """The `accept` line of a run takes the run's own selection and places, and turns new into expected."""
    assert play("-k", "relu or weak", "--reports", "out here", relu=FAILS, weak=ABSENT) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith("show toy.relu-ort131 --reports 'out here'") for line in lines)
    told = "trt-compat accept -k 'relu or weak' --target ort131 --reports 'out here'"
    assert lines[-2].endswith(told)
    words = ["accept", "-k", "relu or weak", "--target", "ort131", "--reports", "out here"]
    assert main(words) == 0
    capsys.readouterr()
    assert play("-k", "relu", relu=FAILS) == 0
    assert "1 known failure" in capsys.readouterr().out
    assert play("-k", "relu", relu=WELL) == 0
    assert "fixed: 1" in capsys.readouterr().out


@pytest.mark.unit
def test_accept_changes_its_own_lines_alone(toy: Path, play: Play) -> None:
    """Other cells of the target, and targets of another matrix file, keep what was measured of them."""
    claim(toy, weak="crashed", relu="build_failed")
    path = toy / "cases" / "measured.yaml"
    other = {
        "engine": "tensorrt_rtx",
        "version": "1.7.1.116",
        "measured": "2026-01-01",
        "cells": {"a": {"b": "ok"}},
    }
    path.write_text(path.read_text() + yaml.safe_dump({"rtx17": other}))
    assert play("-k", "relu", relu=WELL) == 0
    assert main(["accept", "-k", "relu"]) == 0
    data = yaml.safe_load(path.read_text())
    assert data["ort131"]["cells"] == {"toy": {"relu": "ok", "weak": "crashed"}}
    assert data["rtx17"] == other


@pytest.mark.unit
def test_accept_takes_no_result_of_another_recipe(toy: Path, play: Play, capsys: Capture) -> None:
    assert play("-k", "relu", relu=WELL) == 0
    path = toy / "cases" / "toy.py"
    path.write_text(
        path.read_text().replace('"A Relu", relu', '"A Relu", relu, recipe=Recipe(flags=("FP16",))')
    )
    assert main(["accept", "-k", "relu"]) == 2
    assert "measured is recorded" in capsys.readouterr().err


@pytest.mark.unit
def test_a_dry_run_executes_and_writes_nothing(toy: Path, monkeypatch: Patch, capsys: Capture) -> None:
    """It tells where each target would run, its cells, and which of them mean nothing there."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a dry run runs nothing")

    monkeypatch.setattr(local, "TargetRunner", refuse)
    monkeypatch.setattr(local, "run_cells", refuse)
    monkeypatch.setattr(sys.modules["harness.run.provision.packages"], "_uv", refuse)
    before = sorted(toy.rglob("*"))
    assert main(["run", "--dry-run", "--via", "venv"]) == 0
    assert [path for path in sorted(toy.rglob("*")) if "__pycache__" not in path.parts] == before
    out = capsys.readouterr().out
    assert "ort131 (ONNX Runtime" in out
    assert "toy.weak-ort131 (not applicable)" in out


@pytest.mark.unit
def test_verify_finds_a_changed_report(toy: Path, play: Play, capsys: Capture) -> None:
    """It is silent after `run` and after `report`, and names what was tampered with."""
    assert play("-k", "relu", relu=WELL) == 0
    assert main(["verify"]) == 0
    results = toy / "reports" / "results.json"
    results.write_text(results.read_text().replace('"class":"ok"', '"class":"crashed"', 1))
    capsys.readouterr()
    assert main(["verify"]) == 3
    fault, last = capsys.readouterr().out.splitlines()
    assert (fault.partition(":")[0], last) == ("reports/results.json", "reports: 1 faults")


@pytest.mark.unit
def test_merge_takes_in_other_stores_once(toy: Path, play: Play, capsys: Capture) -> None:
    """The merged report holds the cells of both, their logs came along, and merging again adds nothing."""

    def taken() -> list[list[object]]:
        found = re.findall(r"^(\w+): (\d+) records and (\d+) runs", capsys.readouterr().out, re.MULTILINE)
        return [[folder, int(records), int(runs)] for folder, records, runs in found]

    assert play("-k", "relu", "--reports", "a", relu=WELL) == 0
    assert play("-k", "foreign", "--reports", "b", foreign=FAILS) == 0
    capsys.readouterr()
    assert main(["merge", "a", "b", "--reports", "both"]) == 0
    assert taken() == [["a", 1, 1], ["b", 1, 0]]
    assert main(["merge", "b", "both", "--reports", "both"]) == 0
    assert taken() == [["b", 0, 0], ["both", 0, 0]]
    shutil.rmtree(toy / "a")
    shutil.rmtree(toy / "b")
    assert main(["verify", "--reports", "both"]) == 0
    cells = json.loads((toy / "both" / "results.json").read_text())["cells"]
    ended = {cell["id"]: cell["class"] for cell in cells}
    assert (ended["toy.relu-ort131"], ended["toy.foreign-ort131"]) == ("ok", "build_failed")
    assert len(list(Store(toy / "both").outcomes())) == 2


@pytest.mark.integration
def test_a_real_run_from_nothing_to_accepted(toy: Path, monkeypatch: Patch, capsys: Capture) -> None:
    """The whole way on a real engine: run, accept, expected; a claim changed by hand is a regression, or fixed."""
    needs.network()
    words = ["run", "--via", "venv"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(words) == 0
    out = capsys.readouterr().out
    assert project.counted(out) == {"new failure": 1, "as expected": 1, "not run": 3, "not applicable": 1}
    assert "NVIDIA GPU; none" in out
    assert main(["accept", "--target", "ort131"]) == 0
    assert "accepted into cases/measured.yaml" in capsys.readouterr().out
    assert main([*words, "--target", "ort131"]) == 0
    counted = project.counted(capsys.readouterr().out)
    assert counted == {"known failure": 1, "as expected": 1, "not applicable": 1}
    path = toy / "cases" / "measured.yaml"
    data = yaml.safe_load(path.read_text())
    cells = data["ort131"]["cells"]
    assert cells["toy"]["relu"] == "ok"
    cells["toy"] |= {"relu": "build_failed", "foreign": "ok"}
    path.write_text(yaml.safe_dump(data))
    assert main([*words, "-k", "relu", "--target", "ort131"]) == 0
    assert "toy.relu-ort131: works; measured" in capsys.readouterr().out
    assert main([*words, "-k", "foreign", "--target", "ort131"]) == 1
    assert "toy.foreign-ort131: parse_failed: ONNX" in capsys.readouterr().out
    assert main(["verify"]) == 0


@pytest.mark.unit
def test_a_cell_that_is_flaky_is_named_and_fails_no_merge(toy: Path, play: Play, capsys: Capture) -> None:
    """Two machines of one stack disagree: that says nothing of the engine, whichever came last."""
    claim(toy, relu="ok")
    assert play("-k", "relu", "--reports", "a", relu=WELL) == 0
    assert play("-k", "relu", "--reports", "b", relu=FAILS) == 1
    shutil.rmtree(toy / "b" / "history")
    (record,) = (toy / "b" / "records").iterdir()
    record.write_text(record.read_text().replace('"a-run"', '"another"'))
    assert main(["merge", "b", "--reports", "only"]) == 1
    capsys.readouterr()
    assert main(["merge", "a", "b", "--reports", "both"]) == 0
    out = capsys.readouterr().out
    assert "toy.relu-ort131: build_failed, ok" in out
    assert "regressed" not in out
    assert (toy / "both" / "index.html").exists()


@pytest.mark.unit
def test_a_suite_that_is_run_after_the_cases_leaves_a_report_that_follows(
    toy: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """Its page links to those of the suites."""

    def ran(cells: list[Cell], store: Store, *_: object) -> None:
        for cell in cells:
            store.append(project.outcome(cell))

    project.record(toy, "toy.relu-ort131")
    monkeypatch.setattr("harness.cli.run.run_shown", ran)
    assert main(["report"]) == 0
    assert main(["run", "--suite", str(data.three(toy / "mine")), "--target", "ort131"]) == 0
    assert main(["verify"]) == 0, capsys.readouterr().out

"""Machines with different GPUs: `run` judges its own, `accept` keeps them apart, `merge` holds each against its own."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import main
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.run import local
from tests.cli.test_run import FAILS, WELL, Scripted
from tests.fixtures import Capture, Patch

pytestmark = pytest.mark.unit

T4 = {"gpu": "Tesla T4", "compute_capability": "7.5", "driver": "535.183.01"}
RTX_2080 = {"gpu": "RTX 2080", "compute_capability": "7.5", "driver": "580.1"}
L4 = {"gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "580.95.05"}
NONE: dict[str, str] = {}

Machine = Callable[..., int]


class OnGpu(Scripted):
    """A runner on a machine with a GPU."""

    gpu = NONE
    #: Of two records of one time the file's name, which is a run's, decides.
    seconds = itertools.count(10)

    def run(self, cell: Cell, **more: bool) -> tuple[Outcome, str]:
        """Return the outcome of the script, stamped with the GPU."""
        outcome, log = super().run(cell, **more)
        name = self.gpu.get("gpu", "none").replace(" ", "")
        when = f"2026-01-01T00:00:{next(self.seconds)}"
        stamps = dataclasses.replace(outcome.stamps, environment=self.gpu, run=name, when=when)
        return dataclasses.replace(outcome, stamps=stamps), log


@pytest.fixture
def on(toy: Path, monkeypatch: Patch) -> Machine:
    """Return a function that runs the cell `toy.relu-ort131` on a GPU and returns the exit code."""

    monkeypatch.setattr(OnGpu, "seconds", itertools.count(10))

    def ran(gpu: dict[str, str], relu: dict[str, Any], *words: str) -> int:
        assert Path.cwd() == toy

        def runner(target: Any, **_: Any) -> OnGpu:
            made = OnGpu(target, {"relu": relu})
            made.gpu = gpu
            return made

        monkeypatch.setattr(local, "TargetRunner", runner)
        return main(["run", "--target", "ort131", "-k", "relu", *words])

    return ran


def measured() -> dict[str, Any]:
    """Return what measured.yaml holds of the target."""
    data: dict[str, Any] = yaml.safe_load(Path("cases/measured.yaml").read_text())["ort131"]
    return data


def test_accept_on_one_gpu_leaves_what_is_there_of_another(on: Machine, tmp_path: Path) -> None:
    """Under the target, by compute capability and product; without a GPU where it always was."""
    machines = (L4, WELL, "l4"), (T4, FAILS, "t4"), (RTX_2080, WELL, "rtx"), (NONE, WELL, "none")
    for gpu, relu, folder in machines:
        assert on(gpu, relu, "--reports", str(tmp_path / folder)) == 0
        assert main(["accept", "--reports", str(tmp_path / folder)]) == 0
    found = measured()
    assert found["cells"] == {"toy": {"relu": "ok"}}
    told = {
        (capability, product): (entry["driver"], entry["cells"])
        for capability, products in found["gpus"].items()
        for product, entry in products.items()
    }
    assert told == {
        ("7.5", "RTX 2080"): ("580", {"toy": {"relu": "ok"}}),
        ("7.5", "Tesla T4"): ("535", {"toy": {"relu": "build_failed"}}),
        ("8.9", "NVIDIA L4"): ("580", {"toy": {"relu": "ok"}}),
    }


def test_accept_of_a_merged_folder_takes_every_gpu(on: Machine, tmp_path: Path, capsys: Capture) -> None:
    for gpu, relu, folder in ((L4, WELL, "l4"), (T4, FAILS, "t4")):
        assert on(gpu, relu, "--reports", str(tmp_path / folder)) == 0
    assert main(["merge", str(tmp_path / "l4"), str(tmp_path / "t4"), "--reports", "both"]) == 0
    capsys.readouterr()
    assert main(["accept", "--reports", "both"]) == 0
    assert capsys.readouterr().out.startswith("1 cells accepted")
    assert {key: list(products) for key, products in measured()["gpus"].items()} == {
        "7.5": ["Tesla T4"],
        "8.9": ["NVIDIA L4"],
    }
    assert main(["show", "toy.relu-ort131", "--reports", "both"]) == 0
    out = capsys.readouterr().out
    assert "driver 535) (2026" in out
    assert "NVIDIA L4 (compute" in out
    assert "measured 2026-01-01 on" in out


def test_a_merge_is_red_for_a_regression_on_any_gpu(on: Machine, tmp_path: Path, capsys: Capture) -> None:
    """Whichever is shown as the cell's own."""
    assert on(T4, WELL, "--reports", str(tmp_path / "before")) == 0
    assert main(["accept", "--reports", str(tmp_path / "before")]) == 0
    assert on(T4, FAILS, "--reports", str(tmp_path / "t4")) == 1
    assert on(L4, {**FAILS, "failed_phase": "parse"}, "--reports", str(tmp_path / "l4")) == 0
    capsys.readouterr()
    folders = [str(tmp_path / name) for name in ("t4", "l4")]
    assert main(["merge", *folders, "--reports", "both"]) == 1
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("regressed: ")]
    assert len(told) == 1
    assert told[0].startswith("regressed: toy.relu-ort131 on")

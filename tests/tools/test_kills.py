"""The campaign of kills tells what is wrong with a run that was killed, and finds nothing wrong with a few."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest

from harness.plan import all_cells
from harness.record.outcome import Outcome, Stamps
from harness.record.store import Store
from tests import needs
from tests.report import factory
from tools import kills

CELLS = all_cells(factory.matrix(), (factory.case(),))[:2]


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> kills.Campaign:
    """Return a campaign whose whole run has recorded two cells."""
    monkeypatch.setattr(kills, "_PATIENCE", 0.0)
    monkeypatch.setattr(subprocess, "run", verified)
    (tmp_path / "tmp").mkdir()
    record(tmp_path / "timed", "a", "a")
    return kills.Campaign((), "venv", tmp_path, random.SystemRandom())


def verified(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
    """Stand for `verify`, which finds fault with the report in the folder `report`, and takes seconds."""
    code = int(Path(words[-1]).name == "report")
    return subprocess.CompletedProcess(words, code, "", "results.json is another's")


def record(reports: Path, *runs: str, cells: int = 2) -> None:
    with Store(reports, run="r") as store:
        for cell, run in zip(CELLS[:cells], runs, strict=True):
            store.append(Outcome.blank(cell, "not_run", "why", Stamps(run=run)))


@pytest.mark.unit
def test_what_is_repeated_lost_or_left_over_is_told(campaign: kills.Campaign, tmp_path: Path) -> None:
    found = {
        "lost": "not recorded",
        "twice": "recorded 2 times",
        "runs": "of several runs",
        "part": "left over",
        "scratch": "left over: temporary",
        "report": "verify: results.json is another's",
    }
    record(tmp_path / "lost", "a", cells=1)
    record(tmp_path / "twice", "a", "a")
    record(tmp_path / "twice", "a", cells=1)
    record(tmp_path / "runs", "a", "b")
    record(tmp_path / "part", "a", "a")
    (tmp_path / "part" / "page.part").touch()
    record(tmp_path / "scratch", "a", "a")
    record(tmp_path / "report", "a", "a")
    for name, said in found.items():
        campaign.wrong.clear()
        if name == "scratch":
            (tmp_path / "tmp" / "trt-compat-x").mkdir()
        campaign._look(name)
        assert any(said in line for line in campaign.wrong), (name, campaign.wrong)


@pytest.mark.unit
def test_shared_memory_that_a_run_leaves_is_told(campaign: kills.Campaign) -> None:
    memory = SharedMemory(create=True, size=1)
    try:
        assert f"shared memory /dev/shm/{memory.name}" in campaign.left_over()
    finally:
        memory.close()
        memory.unlink()


@pytest.mark.unit
def test_a_record_that_a_kill_took_away_is_told(campaign: kills.Campaign, tmp_path: Path) -> None:
    record(tmp_path / "run", "a", "a")
    before = campaign._kept("run", campaign._kept("timed", Counter()))
    assert not campaign.wrong
    shutil.rmtree(tmp_path / "run")
    record(tmp_path / "run", "a", cells=1)
    campaign._kept("run", before)
    assert campaign.wrong == [f"run: lost by a kill: {CELLS[1].id}"]


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("via", ["venv", "docker"])
def test_a_few_kills_do_no_harm(via: str) -> None:
    needs.network()
    if via == "docker":
        needs.base_image()
    assert kills.main(["--times", "5", "--via", via]) == 0

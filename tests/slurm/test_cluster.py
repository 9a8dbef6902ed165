"""A run on a real Slurm of two nodes: its results are those of this machine, and its accidents cost only time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from harness.cli import main
from harness.record.store import Store
from tests import needs
from tests.cli import project
from tests.fixtures import Capture
from tests.processes import alive, descendants
from tests.slurm.cluster import Cluster
from tests.slurm.conftest import CELLS, asks
from tests.waiting import PATIENCE, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slurm]

SLURM = ("--executor", "slurm", "--via", "venv")
#: Fields of a cell in results.json that two runs of it agree in.
ALIKE = ("id", "class", "basis", "verdict", "signature", "precision", "accuracy", "reason", "claims")


def records(folder: Path) -> Counter[str]:
    """Return how many records each cell has."""
    return Counter(outcome.cell for outcome in Store(folder / "reports").outcomes())


def outputs(folder: Path) -> str:
    """Return the output of the tasks under way."""
    found = (folder / "reports" / "slurm").glob("*/*/slurm.txt")
    return "\n".join(path.read_text(errors="replace") for path in found)


@pytest.fixture
def running(slurm: Cluster, many: Path) -> Iterator[subprocess.Popen[str]]:
    """Return a run of one task that has recorded some cells and has most of them before it."""
    needs.network()
    process = project.harness(many, "run", *SLURM)
    try:
        assert wait_for(lambda: len(records(many)) > 3 or process.poll() is not None)
        if process.poll() is not None:
            raise AssertionError(f"it ended already: {process.communicate()}\n{slurm.log()}")
        yield process
    finally:
        process.kill()
        process.communicate()
        assert wait_for(lambda: not slurm.queue() or bool(slurm.call("scancel", "--user=root")))


def done(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end of a run; return its exit code and output."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def whole(folder: Path) -> None:
    """Hold a run to have recorded each cell once, all of them done, and to have left no job on the cluster."""
    assert records(folder) == {f"toy.v{number}-ort131": 1 for number in range(CELLS)}
    assert {outcome.state for outcome in Store(folder / "reports").outcomes()} == {"done"}
    assert len({outcome.stamps.run for outcome in Store(folder / "reports").outcomes()}) == 1
    assert not (folder / "reports" / "slurm").exists()


def test_what_no_node_has_is_said_and_nothing_is_submitted(
    slurm: Cluster, toy: Path, capsys: Capture
) -> None:
    """A feature that the cluster lacks, one that no node has beside its GPU, and a partition that it does not know."""
    data = yaml.safe_load((toy / "matrix.yaml").read_text())
    ort = data["targets"].pop("ort131")
    data["targets"] = {
        "feature": ort | {"slurm": {"constraint": "l4t_r99"}},
        "both": ort | {"slurm": {"gres": "gpu:h200:1", "constraint": "l4t_r36"}},
        "partition": ort | {"slurm": {"partition": "nowhere"}},
    }
    (toy / "matrix.yaml").write_text(json.dumps(data))
    assert main(["run", *SLURM, "-k", "relu"]) == 3
    capsys.readouterr()
    reasons = {outcome.target: outcome.reason for outcome in Store(toy / "reports").outcomes()}
    for target, options, why in (
        ("feature", "--constraint=l4t_r99", "Invalid feature specification"),
        ("both", "--gres=gpu:h200:1 --constraint=l4t_r36", "Requested node configuration is not available"),
        ("partition", "--partition=nowhere", "Invalid partition name specified"),
    ):
        assert reasons[target].startswith(f"Slurm does not take its job ({options}): "), reasons
        assert reasons[target].endswith(why)
    assert {outcome.state for outcome in Store(toy / "reports").outcomes()} == {"not_run"}
    assert slurm.queue() == []
    assert not (toy / "reports" / "slurm").exists()


@pytest.mark.long
@pytest.mark.usefixtures("slurm")
def test_two_nodes_give_what_this_machine_gives(toy: Path, capsys: Capture) -> None:
    needs.network()
    asks(toy, trt86={"gres": "gpu:h200:1"}, ort131={"constraint": "l4t_r36", "cells": 1, "mem": "200"})
    assert main(["run", "--via", "venv", "--reports", "here"]) == 0
    here = capsys.readouterr()
    assert main(["run", *SLURM, "--reports", "there"]) == 0
    there = capsys.readouterr()
    # A line that names the reports' folder is another.
    lines = there.out.replace("there", "here").replace(" --reports here", "").splitlines()
    assert lines == here.out.replace(" --reports here", "").splitlines()
    local, remote = (json.loads((toy / folder / "results.json").read_text()) for folder in ("here", "there"))
    for one, other in zip(local["cells"], remote["cells"], strict=True):
        assert {name: one[name] for name in ALIKE} == {name: other[name] for name in ALIKE}
    assert main(["verify", "--reports", "there"]) == 0


@pytest.mark.long
def test_a_node_that_is_lost_costs_time_and_nothing_else(
    slurm: Cluster, many: Path, running: subprocess.Popen[str]
) -> None:
    """Its task goes on on the other node, and none of what it had recorded is run again."""
    ((_, _, node),) = slurm.queue()
    recorded = len(records(many))
    slurm.kill_node(node)
    try:
        assert wait_for(lambda: "of them recorded" in outputs(many).partition("of them recorded")[2])
        again = [int(found) for found in re.findall(r"(\d+) of them recorded", outputs(many))]
        code, _, err = done(running)
    finally:
        slurm.start_node(node)
    assert (code, again[0]) == (0, 0), err
    assert again[-1] >= recorded
    whole(many)
    assert wait_for(lambda: set(slurm.states().values()) == {"idle"}), slurm.states()


@pytest.mark.long
def test_a_controller_that_is_restarted_is_waited_for(
    slurm: Cluster, many: Path, running: subprocess.Popen[str]
) -> None:
    """The tasks run on without it, and their records are taken."""
    slurm.end_controller()
    try:
        before = len(records(many))
        assert wait_for(lambda: len(records(many)) > before + 3 or running.poll() is not None)
    finally:
        slurm.start_controller()
    code, _, err = done(running)
    assert code == 0, err
    whole(many)


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_cancels_the_jobs_and_keeps_the_records(
    slurm: Cluster, many: Path, running: subprocess.Popen[str], number: signal.Signals, code: int
) -> None:
    (manager,) = slurm.managers()
    below = descendants(manager)
    assert below
    running.send_signal(number)
    ended, _, err = done(running)
    assert ended == code, err
    assert slurm.queue() == []
    assert wait_for(lambda: not any(alive(pid) for pid in (manager, *below)))
    found = records(many)
    assert 3 < len(found) < CELLS
    told = re.search(rf"(\d+) of {CELLS} cells are recorded", err)
    assert told is not None, err
    assert int(told[1]) in (len(found) - 1, len(found)), (
        "a record may be kept whose report the interrupt cut off"
    )
    assert set(found.values()) == {1}
    assert not (many / "reports" / "slurm").exists()


@pytest.mark.long
def test_a_killed_run_leaves_its_tasks_and_merge_takes_in_their_records(
    slurm: Cluster, many: Path, running: subprocess.Popen[str]
) -> None:
    running.kill()
    running.communicate()
    assert slurm.queue(), "the task runs on"
    before = len(records(many))
    assert wait_for(lambda: not slurm.queue())
    folders = [str(path.parent) for path in (many / "reports" / "slurm").glob("*/*/records")]
    code, _, err = done(project.harness(many, "merge", *folders))
    assert code == 0, err
    assert len(records(many)) > before


@pytest.mark.long
def test_a_task_that_somebody_cancels_is_not_run_again(
    slurm: Cluster, many: Path, running: subprocess.Popen[str]
) -> None:
    ((job, _, node),) = slurm.queue()
    slurm.call("scancel", job)
    code, out, err = done(running)
    assert code == 3, err
    assert re.search(rf"the task 1-0 in Slurm ended without its record; .* ON {node} CANCELLED AT ", out)
    assert set(records(many).values()) == {1}
    states = Counter(outcome.state for outcome in Store(many / "reports").outcomes())
    assert states.total() == CELLS
    assert states["infra_error"] > 0
    assert "tasks in Slurm" in err

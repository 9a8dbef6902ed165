"""A daemon that goes away in the middle of a run: waited for, and the cell is run again; or said once, and no more."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.run.docker import client
from harness.run.docker.client import MET
from harness.run.provision.model import Unreachable
from harness.run.provision.prepare import prepare
from harness.run.target import Aborted
from harness.words import Class
from tests.run.bench import Bench, cell, run, target
from tests.run.lines import Front, local_socket
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.parametrize("bench", ["docker"], indirect=True)]


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """The daemon of this machine, behind a socket that can go."""
    made = Front(tmp_path / "front.sock", local_socket())
    made.restore()
    monkeypatch.setenv("DOCKER_HOST", made.address)
    yield made
    made.cut()


def back_later(front: Front) -> None:
    """Have the daemon gone for a moment."""
    front.cut()
    threading.Timer(1.0, front.restore).start()


def there(behind: str, name: str | int) -> bool:
    """Tell whether a container exists, whatever DOCKER_HOST says."""
    asked = ["docker", "-H", f"unix://{behind}", "inspect", str(name)]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def test_a_daemon_that_comes_back_costs_no_cell_and_leaves_no_container(bench: Bench, front: Front) -> None:
    """The container of the time before outlives the connection here; it is removed before the next is made."""
    runner = bench.runner(target())
    assert run(runner, "echo").cls is Class.BUILT
    bench.during(lambda: back_later(front))
    assert run(runner, "nap").cls is Class.BUILT
    assert run(runner, "echo").cls is Class.BUILT
    assert len(bench.agents) == 2
    assert not there(front.behind, bench.agents[0])
    runner.close()
    assert not there(front.behind, bench.agents[1])


def test_a_daemon_gone_between_two_cells_or_at_a_start_is_waited_for_too(bench: Bench, front: Front) -> None:
    runner = bench.runner(target())
    assert run(runner, "echo").cls is Class.BUILT
    back_later(front)
    assert run(runner, "echo").cls is Class.BUILT
    other = bench.runner(target("other"))
    back_later(front)
    assert run(other, "echo").cls is Class.BUILT
    other.close()


def test_a_daemon_that_stays_away_is_waited_for_once_by_all(
    bench: Bench, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the target, and of every other, is told at once, and nothing takes a virtual environment instead."""
    monkeypatch.setattr(client, "PATIENCE", 1.0)
    runner = bench.runner(target())
    bench.during(front.cut)
    found = run(runner, "nap")
    assert found.cls is Class.INFRA_ERROR
    gone = "no connection (is the docker daemon running?); it was waited for 1 s"
    assert found.reason == f"Docker does not answer at {front.address}: {gone}"
    # Whoever waited now would do so for a minute.
    monkeypatch.setattr(client, "_PAUSE", 60.0)
    began = time.monotonic()
    assert run(runner, "echo") == found
    assert run(bench.runner(target("other")), "echo").cls is Class.INFRA_ERROR
    with pytest.raises(
        Unreachable, match=r"^needs Docker; Docker does not answer at .*; it was waited for 1 s$"
    ):
        prepare(target("third"), "auto")
    assert time.monotonic() - began < 60.0
    monkeypatch.undo()
    subprocess.run(
        ["docker", "-H", f"unix://{front.behind}", "rm", "-f", str(bench.agents[0])],
        capture_output=True,
        check=True,
    )


def test_a_wait_for_a_daemon_ends_with_the_run(bench: Bench, front: Front) -> None:
    runner = bench.runner(target())
    bench.during(front.cut)

    def interrupt() -> None:
        wait_for(lambda: MET.get(front.address) is not None)
        runner.abort()

    threading.Thread(target=interrupt).start()
    with pytest.raises(Aborted):
        runner.run(cell("nap", runner.target))
    front.restore()


def test_the_minute_is_over_only_for_one_absence(bench: Bench, front: Front) -> None:  # noqa: ARG001
    """A daemon that came back is waited for anew."""
    assert client.wait_for() == ""
    assert MET[front.address] is None
    front.cut()
    assert client.wait_for(needed=lambda: False).startswith("Docker does not answer")
    assert isinstance(MET[front.address], float)
    front.restore()
    assert client.wait_for() == ""
    assert MET[front.address] is None

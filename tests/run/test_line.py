"""The line for a device between processes: first come, first served; one that is killed holds nobody up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.run.gpus import Device
from harness.run.provision.cache import CACHE_VARIABLE

pytestmark = pytest.mark.unit

#: Waits for the device as a build or a run does, then says so.
SCRIPT = """
import sys, time
from harness.run.gpus import Device
device = Device("GPU-7", lambda: True)
with (device.alone() if sys.argv[1] == "run" else device.among_builds()):
    open(sys.argv[2], "a").write(sys.argv[3] + "\\n")
    time.sleep(0.2)
"""


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for each in started:
        each.kill()
        each.wait()


def waiting(tmp_path: Path) -> int:
    return len(list((tmp_path / "cache" / "locks").glob("*.number-*.lock")))


def come(tmp_path: Path, processes: list[subprocess.Popen[bytes]], what: str, name: str) -> None:
    """Start a process, and wait until it stands in the line."""
    before, done = waiting(tmp_path), tmp_path / "order"
    processes.append(subprocess.Popen([sys.executable, "-c", SCRIPT, what, str(done), name]))
    end = time.monotonic() + 60
    while waiting(tmp_path) == before:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_who_comes_first_is_served_first_and_a_killed_one_holds_nobody_up(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    with Device("GPU-7", lambda: True).alone():
        for name in ("build 1", "run 2", "killed 3", "build 4", "run 5", "build 6"):
            come(tmp_path, processes, "run" if "build" not in name else "build", name)
        processes[2].kill()
        processes[2].wait()
    for each in (*processes[:2], *processes[3:]):
        assert each.wait(60) == 0
    order = (tmp_path / "order").read_text().splitlines()
    assert order == ["build 1", "run 2", "build 4", "run 5", "build 6"]
    assert waiting(tmp_path) == 0


def test_a_build_waits_behind_a_run_that_came_before_it_and_gives_up_at_its_time(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    with Device("GPU-7", lambda: True).among_builds():
        come(tmp_path, processes, "run", "run")
        with (
            pytest.raises(InfraError, match=r"for 0\.3 s"),
            Device("GPU-7", lambda: True, wait=0.3).among_builds(),
        ):
            pass
    assert processes[0].wait(60) == 0

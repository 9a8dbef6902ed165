"""Which target gets which GPU, who else is on one, and the line for it: first come, first served."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.run.docker import ALL_GPUS
from harness.run.gpus import Device, Gpus, others_on, parse_others
from harness.run.provision.cache import CACHE_VARIABLE
from tests.processes import put_program

pytestmark = pytest.mark.unit

A, B = "GPU-a", "GPU-b"


def test_the_gpu_that_is_dealt_out_least_is_next() -> None:
    gpus = Gpus()
    assert [gpus.take((A, B)) for _ in range(4)] == [(A,), (B,), (A,), (B,)]
    gpus.give_back((B,))
    gpus.give_back((B,))
    assert [gpus.take((A, B)) for _ in range(3)] == [(B,), (B,), (A,)]


def test_processes_that_deal_from_the_same_gpus_begin_apart() -> None:
    assert [Gpus(first).take((A, B)) for first in range(4)] == [(A,), (B,), (A,), (B,)]


def test_where_no_uuid_is_known_what_came_is_given() -> None:
    gpus = Gpus()
    assert gpus.take(()) == ()
    assert gpus.take(ALL_GPUS) == ALL_GPUS
    gpus.give_back(ALL_GPUS)


def test_threads_get_equally_many() -> None:
    gpus, got = Gpus(), []
    threads = [threading.Thread(target=lambda: got.append(gpus.take((A, B)))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (got.count((A,)), got.count((B,))) == (8, 8)


def test_others_are_read_from_the_lines_of_one_gpu() -> None:
    lines = f"{A}, 12, /usr/bin/python3.11\n{B}, 13, x\n{A}, 14, [Not Found]\n\nNo running processes found\n{A}, 15\n"
    assert parse_others(lines, A) == "python3.11 (pid 12), [Not Found] (pid 14)"
    assert parse_others("", A) == ""
    # As two H200 told of a run under MPS, and of a child that ended just then.
    assert parse_others(f"{A}, 11769, nvidia-cuda-mps-server\n{A}, 5645, [No data]\n", A) == ""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"echo '{A}, 12, x'", "x (pid 12)"),
        (f"echo '{A}, 12, x'; exit 9", ""),
        ("echo Insufficient Permissions", ""),
    ],
)
def test_nvidia_smi_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    """Under WSL2 and in a MIG slice it cannot list processes: then nothing is claimed of them."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    gpu = Device(A, lambda: True)
    assert others_on(gpu) == ""
    put_program(tmp_path, "nvidia-smi", script)
    assert others_on(gpu) == said


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

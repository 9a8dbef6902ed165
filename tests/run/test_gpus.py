"""Which target gets which GPU, and who else is on one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.run.docker import ALL_GPUS
from harness.run.gpus import Device, Gpus, others_on, parse_others
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

"""A function in a child: what it yields comes through, and whatever it does, its caller goes on and is told."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HandledError, InfraError
from harness.run import child
from harness.run.child import ChildFailed, stream
from harness.scratch import reap_scratch
from tests.waiting import wait_for

TOP = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.integration


def counted(most: int) -> Iterator[int]:
    yield from range(most)


def printed() -> Iterator[str]:
    print("on standard output")
    os.write(2, b"on standard error\n")
    yield "said"


def misbehaving(how: str) -> Iterator[str]:
    yield "before"
    if how == "hang":
        while True:
            time.sleep(1)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "exit":
        os._exit(7)
    elif how == "eat":
        yield str(len(bytearray(8 << 30)))
    elif how == "mistake":
        raise HandledError("the user's")
    raise RuntimeError("of ours")


def taken(function: Any, *arguments: Any, **options: Any) -> list[Any]:
    limits: dict[str, Any] = {"seconds": 60, "memory_mib": 1024}
    return list(stream(function, *arguments, **(limits | options)))


def test_what_is_yielded_comes_in_order() -> None:
    assert taken(counted, 5) == [0, 1, 2, 3, 4]


def test_what_is_printed_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    assert taken(printed) == ["said"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("how", "options", "said"),
    [
        ("hang", {"seconds": 1}, r"was not done after 1 s"),
        ("segfault", {}, r"was killed by SIGSEGV"),
        ("exit", {}, r"ended with exit code 7"),
        ("eat", {}, r"needs more than 1024 MiB"),
        ("mistake", {}, r"failed: the user's"),
        ("raise", {}, r"failed: RuntimeError: of ours \(tests/run/test_child\.py:\d+\)"),
    ],
)
def test_a_child_that_fails_says_how_and_what_came_before_is_kept(
    how: str, options: dict[str, Any], said: str
) -> None:
    items = stream(misbehaving, how, **({"seconds": 60, "memory_mib": 1024} | options))
    came: list[str] = []
    with pytest.raises(ChildFailed, match=said):
        came.extend(items)
    # On a busy machine a second may pass before the child has said anything.
    assert came == ["before"] or (how == "hang" and not came)


def test_nobody_who_waits_is_no_child_that_runs() -> None:
    waits = threading.Event()
    threading.Timer(1, waits.set).start()
    began = time.monotonic()
    with pytest.raises(ChildFailed, match="was given up"):
        taken(misbehaving, "hang", seconds=600, needed=lambda: not waits.is_set())
    assert time.monotonic() - began < 60


def test_threads_have_children_side_by_side() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda most: taken(counted, most), range(24))) == [
            list(range(most)) for most in range(24)
        ]


@pytest.fixture
def short() -> Iterator[Path]:
    """Return an empty folder whose path leaves room for a socket's: pytest's own may be too long."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("deep", ["", "d" * 100])
def test_what_a_killed_run_leaves_of_it_is_removed_by_the_next(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: str
) -> None:
    """The fork server's socket lies in a folder, which multiprocessing removes at a process's own end only.

    Where the temporary folder's path leaves no room for a socket, that lies elsewhere, and the next run looks there.
    """
    temporary = tmp_path / deep if deep else short
    temporary.mkdir(exist_ok=True)
    text = (
        "import os, signal\n"
        "from harness import scratch\n"
        f"scratch._SHORT = {str(short)!r}\n"
        "from harness.run.child import stream\n"
        "from tests.run.test_child import counted\n"
        "assert list(stream(counted, 2, seconds=60, memory_mib=64)) == [0, 1]\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", text], env=os.environ | {"TMPDIR": str(temporary)}, check=False, cwd=TOP
    )
    assert ended.returncode == -signal.SIGKILL
    assert list(short.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr("harness.scratch._SHORT", str(short))
    assert wait_for(lambda: bool(reap_scratch()) or not list(short.iterdir()))
    assert not list(short.iterdir())


def test_where_no_place_is_short_enough_a_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("d" * 100)))
    monkeypatch.setattr("harness.scratch._SHORT", str(tmp_path / "none"))
    with pytest.raises(InfraError, match=r"\(No such file or directory\); set TMPDIR to a shorter one$"):
        child._scratch.__wrapped__()


def test_a_process_that_ends_removes_it_without_a_warning(short: Path) -> None:
    text = (
        "from harness.run.child import stream\n"
        "from tests.run.test_child import counted\n"
        "assert list(stream(counted, 2, seconds=60, memory_mib=64)) == [0, 1]\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        env=os.environ | {"TMPDIR": str(short)},
        check=False,
        cwd=TOP,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not list(short.iterdir())

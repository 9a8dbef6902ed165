"""A task on another machine ends when the run that it is of has, however that ended."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import HandledError, InfraError
from harness.run.task import Heartbeat, Pulse, Task, bound
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.unit

TOP = Path(__file__).resolve().parents[2]
#: Works for ever, within the bounds of the task that is named.
_WORKS = """
import sys, time
from pathlib import Path
from harness.run.task import Task, bound
with bound(Task.read(Path(sys.argv[1]))):
    print("works", flush=True)
    time.sleep(600)
"""


def task(folder: Path, patience: float) -> Task:
    made = Task("r1", ("a.b-c",), str(folder / "heartbeat"), patience)
    made.write(folder / "1-0" / "task.json")
    return made


def working(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _WORKS, folder / "1-0" / "task.json"],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() != "works\n":
        raise AssertionError(process.communicate())
    return process


def test_a_task_reads_as_it_was_written(tmp_path: Path) -> None:
    made = task(tmp_path, 1.5)
    assert Task.read(tmp_path / "1-0" / "task.json") == made
    (tmp_path / "bad").write_text('{"run": 1}')
    with pytest.raises(HandledError, match=r"bad: cannot be read as a task"):
        Task.read(tmp_path / "bad")


def test_it_is_terminated_when_no_heartbeat_comes_any_more(tmp_path: Path) -> None:
    """As when the run's process was killed, or its machine is off: nobody says that the run has ended."""
    task(tmp_path, 1.0)
    heartbeat, started = Heartbeat(tmp_path / "heartbeat"), threading.Event()

    def beats() -> None:
        # A busy machine takes longer than a second to start it.
        while not started.wait(0.1):
            heartbeat.beat()

    heartbeat.beat()
    thread = threading.Thread(target=beats)
    thread.start()
    try:
        process = working(tmp_path)
    finally:
        started.set()
        thread.join()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == -15
    assert "the run that this task is of has ended" in said


def test_a_pulse_stops_when_the_text_stays_too_long_or_says_so() -> None:
    """What cannot be read, or is just being written, is no end and no beat."""
    pulse = Pulse("1.0", 0.0, 10.0)
    assert not pulse.stopped("1.0", 9.0)
    assert not pulse.stopped("2.0", 9.5)
    assert not pulse.stopped("2.0", 19.0)
    assert not pulse.stopped("", 19.4)
    assert pulse.stopped("2.0", 19.6)
    assert Pulse("1.0", 0.0, 10.0).stopped("over", 1.0)


def test_what_starts_after_the_end_does_nothing(tmp_path: Path) -> None:
    late = task(tmp_path, 60)
    Heartbeat(tmp_path / "heartbeat").end()
    with pytest.raises(InfraError, match="has ended"), bound(late):
        raise AssertionError("it worked")


def test_what_starts_with_an_old_heartbeat_waits_for_one_that_moves(tmp_path: Path) -> None:
    """The clock of a node may be wrong by any time: an old beat alone says nothing, one that stays does."""
    file = tmp_path / "heartbeat"
    file.write_text("1000.0")
    late = task(tmp_path, 0.2)
    with pytest.raises(InfraError, match="has ended"), bound(late):
        raise AssertionError("it worked")
    file.write_text("1000.0")
    waiting = threading.Event()

    def works() -> None:
        with bound(task(tmp_path, 60)):
            waiting.set()

    thread = threading.Thread(target=works)
    thread.start()
    assert not waiting.wait(0.2)
    file.write_text("1010.0")
    assert wait_for(waiting.is_set)
    thread.join()

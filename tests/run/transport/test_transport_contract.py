"""What every transport promises, asked of each in turn through real agents; and that to a child process."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from harness.errors import InfraError
from harness.run.provision.model import Environment
from harness.run.provision.prepare import start
from harness.run.transport import AgentGoneError, ProcessTransport, agent_environment
from tests import needs
from tests.processes import alive, open_files
from tests.run.provision.factory import target
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.integration

ECHO = """
import os
while data := os.read(0, 1 << 20):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]
"""
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""


class Starter(Protocol):
    """A starter of agents that run some code."""

    def __call__(self, code: str) -> ProcessTransport: ...


@pytest.fixture(params=["venv", "docker"])
def run(request: pytest.FixtureRequest) -> Iterator[Starter]:
    """Start agents through either transport; closes them afterwards."""
    if request.param == "docker":
        environment = Environment(via="docker", target="toy", python="python3", image=needs.base_image())
    else:
        environment = Environment(via="venv", target="toy", python=sys.executable)
    started: list[ProcessTransport] = []

    def starter(code: str) -> ProcessTransport:
        started.append(start(environment, target(), argv=["-c", code]))
        return started[-1]

    yield starter
    for transport in started:
        transport.close()


def receive_all(transport: ProcessTransport) -> bytes:
    """Receive until the end."""
    return b"".join(iter(lambda: transport.receive(PATIENCE), b""))


def test_32_mb_cross_both_ways_unchanged(run: Starter) -> None:
    """Not even a caller that reads nothing before all is sent gets stuck."""
    data = os.urandom(1 << 20) * 32
    transport = run(ECHO)
    transport.send(data)
    got = bytearray()
    while len(got) < len(data):
        got += transport.receive(PATIENCE)
    assert got == data


def test_the_end_is_an_empty_answer_each_time(run: Starter) -> None:
    transport = run("import sys; sys.stdout.write('done'); sys.stdout.flush(); sys.exit(3)")
    assert receive_all(transport) == b"done"
    assert transport.receive(1) == b""
    assert wait_for(lambda: transport.exit_status() is not None)
    status = transport.exit_status()
    assert status is not None
    assert (status.code, status.signal, status.out_of_memory) == (3, None, False)
    assert str(status) == "exited with code 3"


def test_a_silent_agent_is_a_timeout(run: Starter) -> None:
    transport = run("import time; time.sleep(600)")
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"0\.2 s"):
        transport.receive(0.2)
    assert 0.2 <= time.monotonic() - began < PATIENCE
    assert transport.exit_status() is None


def test_only_the_end_of_standard_error_is_kept(run: Starter) -> None:
    code = "import sys; sys.stderr.write('x' * 300_000 + 'last words'); sys.stdout.write('out')"
    transport = run(code)
    assert receive_all(transport) == b"out"
    transport.close()
    assert transport.stderr_tail().endswith("xlast words")
    assert len(transport.stderr_tail()) == 64 << 10


def test_closing_lets_the_agent_end_by_itself(run: Starter) -> None:
    transport = run("import sys; print('up', flush=True); sys.stdin.read(); sys.stderr.write('bye')")
    assert transport.receive(PATIENCE).strip() == b"up"
    transport.close()
    status = transport.exit_status()
    assert status is not None
    assert status.code == 0
    assert "bye" in transport.stderr_tail()


def test_closing_kills_an_agent_that_ignores_every_request(run: Starter) -> None:
    transport = run(STUBBORN)
    assert transport.receive(PATIENCE).strip() == b"deaf"
    transport.close()
    status = transport.exit_status()
    assert status is not None
    assert status.signal == "SIGKILL"
    transport.close()


def test_sending_to_an_agent_that_does_not_read_is_bounded(run: Starter) -> None:
    transport = run("import time; print('up', flush=True); time.sleep(600)")
    transport.receive(PATIENCE)
    with pytest.raises(AgentGoneError, match=r"read nothing for 0\.5 s"):
        transport.send(b"x" * (64 << 20), timeout=0.5)


def test_closing_wakes_a_thread_that_waits_for_output(run: Starter) -> None:
    transport = run("import time; time.sleep(600)")
    got: list[bytes] = []
    waiting = threading.Thread(target=lambda: got.append(transport.receive(2 * PATIENCE)))
    waiting.start()
    transport.close()
    waiting.join(timeout=PATIENCE)
    assert not waiting.is_alive()
    assert got == [b""]


def test_closing_wakes_a_thread_that_is_stuck_sending(run: Starter) -> None:
    """As an interrupted run does: it closes the transport under a cell that is in the middle of a job."""
    transport = run("import time; print('up', flush=True); time.sleep(600)")
    transport.receive(PATIENCE)
    failed: list[Exception] = []

    def send() -> None:
        try:
            transport.send(b"x" * (64 << 20), timeout=2 * PATIENCE)
        except AgentGoneError as error:
            failed.append(error)

    stuck = threading.Thread(target=send)
    stuck.start()
    time.sleep(0.5)
    transport.close()
    stuck.join(timeout=PATIENCE)
    assert not stuck.is_alive()
    assert len(failed) == 1


def test_the_callers_python_variables_stay_out(run: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("TRT_COMPAT_SECRET", "1")
    transport = run("import os; print('PYTHONPATH' in os.environ, 'TRT_COMPAT_SECRET' in os.environ)")
    assert receive_all(transport).split() == [b"False", b"False"]


GRANDCHILD = """
import os, time
child = os.fork()
if child == 0:
    time.sleep(600)
os.write(1, str(child).encode())
os._exit(0)
"""


def test_a_grandchild_neither_hides_the_end_nor_survives_the_close() -> None:
    """A job's process that outlives the agent holds its pipes open."""
    transport = ProcessTransport([sys.executable, "-c", GRANDCHILD])
    child = int(transport.receive(PATIENCE))
    assert transport.receive(PATIENCE) == b""
    assert alive(child)
    transport.close()
    assert wait_for(lambda: not alive(child))


def test_no_scratch_folder_and_no_descriptor_is_left(tmp_path: Path) -> None:
    before = open_files()
    transport = ProcessTransport([sys.executable, "-c", "import os; print(os.getcwd())"])
    scratch = Path(transport.receive(PATIENCE).decode().strip())
    assert scratch.is_dir()
    transport.close()
    assert not scratch.exists()
    assert not open_files() - before
    assert not list(tmp_path.iterdir())


def test_a_python_that_is_not_there_is_an_infrastructure_error() -> None:
    with pytest.raises(InfraError, match="could not be started"):
        ProcessTransport(["/nowhere/python"])


def test_a_crash_leaves_no_core_dump() -> None:
    code = "import sys, resource; sys.stdin.read(1); print(resource.getrlimit(resource.RLIMIT_CORE))"
    transport = ProcessTransport([sys.executable, "-c", code])
    transport.send(b"!")
    assert transport.receive(PATIENCE).strip() == b"(0, 0)"
    transport.close()


@pytest.mark.unit
def test_the_environment_is_what_an_engine_needs_and_its_gpus() -> None:
    caller = {"PATH": "/bin", "LD_LIBRARY_PATH": "/cuda", "PYTHONPATH": "/x", "CUDA_VISIBLE_DEVICES": "0"}
    assert agent_environment(caller, "/scratch", ("GPU-1", "GPU-2")) == {
        "PATH": "/bin",
        "LD_LIBRARY_PATH": "/cuda",
        "LANG": "C.UTF-8",
        "TMPDIR": "/scratch",
        "CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2",
    }
    assert agent_environment(caller, "/scratch", ())["CUDA_VISIBLE_DEVICES"] == "0"

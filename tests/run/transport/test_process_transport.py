"""What only the transport to a child process promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.run.transport import ProcessTransport, agent_environment
from tests.processes import alive, open_files
from tests.waiting import PATIENCE, wait_for

GRANDCHILD = """
import os, time
child = os.fork()
if child == 0:
    time.sleep(600)
os.write(1, str(child).encode())
os._exit(0)
"""


@pytest.mark.integration
def test_a_grandchild_neither_hides_the_end_nor_survives_the_close() -> None:
    """A job's process that outlives the agent holds its pipes open."""
    transport = ProcessTransport([sys.executable, "-c", GRANDCHILD])
    child = int(transport.receive(PATIENCE))
    assert transport.receive(PATIENCE) == b""
    assert alive(child)
    transport.close()
    assert wait_for(lambda: not alive(child))


@pytest.mark.integration
def test_no_scratch_folder_and_no_descriptor_is_left(tmp_path: Path) -> None:
    before = open_files()
    transport = ProcessTransport([sys.executable, "-c", "import os; print(os.getcwd())"])
    scratch = Path(transport.receive(PATIENCE).decode().strip())
    assert scratch.is_dir()
    transport.close()
    assert not scratch.exists()
    assert not open_files() - before
    assert not list(tmp_path.iterdir())


@pytest.mark.integration
def test_a_python_that_is_not_there_is_an_infrastructure_error() -> None:
    with pytest.raises(InfraError, match="could not be started"):
        ProcessTransport(["/nowhere/python"])


@pytest.mark.integration
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

"""The program `docker` as a child: its answers, its silence, and an end in time; a script stands in for it."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.run.docker import DaemonRefused, client, daemon, find_image, met, pull_image
from harness.run.docker.client import ask, run_to_end
from tests.processes import alive, put_program
from tests.waiting import wait_for

pytestmark = pytest.mark.unit

SOCKET = "unix:///run/d.sock"
ABSENT = f"Cannot connect to the Docker daemon at {SOCKET}. Is the docker daemon running?"
INFO = {
    "ServerVersion": "28.0",
    "Name": "here",
    "Architecture": "aarch64",
    "Runtimes": {"nvidia": {}},
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    "DockerRootDir": "/var/lib/docker",
    "SecurityOptions": ["name=seccomp,profile=unconfined"],
}


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what puts a shell script in the place of `docker`."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("DOCKER_HOST", SOCKET)
    monkeypatch.setattr(client, "MET", set())
    return functools.partial(put_program, tmp_path, "docker")


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (f"echo '{ABSENT}' >&2; exit 1", "no connection (is the docker daemon running?)"),
        (f"""echo '{{"ServerErrors": ["{ABSENT}"]}}'""", "no connection (is the docker daemon running?)"),
        ("echo 'error during connect: EOF' >&2; exit 1", "error during connect: EOF"),
        ("echo 'Error response from daemon: busy' >&2; exit 1", "busy"),
    ],
    ids=["28", "20.10", "cut", "refused"],
)
def test_a_daemon_that_does_not_answer_is_one_sentence(
    docker: Callable[[str], None], script: str, sentence: str
) -> None:
    docker(script)
    with pytest.raises(InfraError) as caught:
        daemon()
    assert str(caught.value) == f"Docker does not answer at {SOCKET}: {sentence}"
    assert not met()


def test_a_daemon_is_what_it_says_of_itself(docker: Callable[[str], None]) -> None:
    docker(f"echo '{json.dumps(INFO)}'")
    found = daemon()
    assert (found.version, found.name, found.architecture, found.nvidia_runtime) == (
        "28.0",
        "here",
        "arm64",
        True,
    )
    # Containerd's folder is not named, and an unconfined daemon filters no system calls.
    assert (found.filters, found.desktop) == (False, False)


def test_only_a_missing_image_is_none(docker: Callable[[str], None]) -> None:
    docker("echo 'Error response from daemon: No such image: a:1' >&2; exit 1")
    assert find_image("a:1", "linux/amd64") is None
    docker("echo 'Error response from daemon: layer does not exist' >&2; exit 1")
    with pytest.raises(DaemonRefused, match=r"^layer does not exist$"):
        find_image("a:1", "linux/amd64")


def test_a_pull_tells_each_tenth_of_its_layers_once(docker: Callable[[str], None]) -> None:
    image = json.dumps({"Id": "sha256:1", "Os": "linux", "Architecture": "amd64"})
    lines = [f"{layer:012x}: Pulling fs layer" for layer in range(30)]
    lines += [f"{layer:012x}: Pull complete" for layer in range(30)]
    docker(f"[ $1 = pull ] || exec echo '{image}'\n" + "\n".join(f"echo {line}" for line in lines))
    told: list[str] = []
    assert pull_image("a:1", "linux/amd64", tell=told.append).digest == "sha256:1"
    assert told[-1] == "pulling a:1: 30 of 30 layers"
    assert len(told) == len(set(told)) <= 11


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    began, child = time.monotonic(), tmp_path / "child"
    with pytest.raises(InfraError, match=r"^sh -c .* was not done after 1 s$"):
        run_to_end(["sh", "-c", f"sleep 600 & echo $! > {child}; sleep 600"], 1)
    assert wait_for(lambda: not alive(int(child.read_text())))
    with pytest.raises(InfraError, match="was given up"):
        run_to_end(["sh", "-c", "sleep 600"], 600, needed=lambda: False)
    assert time.monotonic() - began < 60


def test_a_grandchild_with_the_output_in_hand_keeps_nobody_waiting(docker: Callable[[str], None]) -> None:
    docker("sleep 600 & echo answer")
    began = time.monotonic()
    assert ask("version") == "answer\n"
    assert time.monotonic() - began < 60

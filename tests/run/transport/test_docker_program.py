"""What a daemon answers, or does not, through the program `docker`; a script that speaks HTTP stands in for both."""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InfraError
from harness.run.docker import ImageRefused, client, daemon, find_image, met, pull_image
from harness.run.docker.client import DaemonRefused
from harness.run.transport import run_to_end
from tests.processes import alive, put_program
from tests.waiting import wait_for

pytestmark = pytest.mark.unit

SOCKET = "unix:///run/d.sock"
INFO = {
    "ServerVersion": "28.0",
    "Name": "here",
    "Architecture": "aarch64",
    "Runtimes": {"nvidia": {}},
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    "DockerRootDir": "/var/lib/docker",
    "SecurityOptions": ["name=seccomp,profile=unconfined"],
}
#: Answers a request by the first name that is in its path: a status, and JSON in pieces if it is a list, of which None
#: is the daemon's end.
SPEAKS = """
import json, sys
answers = json.load(open(sys.argv[1]))
while request := sys.stdin.buffer.readline():
    while sys.stdin.buffer.readline().strip():
        pass
    status, said = next(answers[name] for name in answers if name in request.decode())
    pieces = [json.dumps(each).encode() for each in (said if isinstance(said, list) else [said]) if each]
    head = "HTTP/1.1 %d X\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n" % status
    body = b"".join(b"%x\\r\\n%s\\r\\n" % (len(piece), piece) for piece in pieces)
    sys.stdout.buffer.write(head.encode() + body)
    if None in said:
        break
    sys.stdout.buffer.write(b"0\\r\\n\\r\\n")
    sys.stdout.flush()
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what puts a shell script in the place of `docker`."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("DOCKER_HOST", SOCKET)
    monkeypatch.setattr(client, "MET", {})
    return functools.partial(put_program, tmp_path, "docker")


@pytest.fixture
def answers(docker: Callable[[str], None], tmp_path: Path) -> Callable[..., None]:
    """Return what makes a daemon answer: by a part of a path, a status and what is said."""

    def put(**given: tuple[int, Any]) -> None:
        (tmp_path / "answers").write_text(json.dumps({**given, "/version": (200, {"ApiVersion": "1.41"})}))
        (tmp_path / "speaks.py").write_text(SPEAKS)
        docker(f"exec {sys.executable} -S {tmp_path}/speaks.py {tmp_path}/answers")

    return put


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo 'failed to open the raw stream connection: dial x' >&2; exit 1", "dial x; does it run"),
        ("echo 'Failed to initialize: context not found' >&2; exit 1", "Failed to initialize: context"),
        ("read line; exit 0", "Error while fetching server API version: "),
    ],
    ids=["absent", "context", "cut"],
)
def test_a_daemon_that_does_not_answer_is_one_sentence(
    docker: Callable[[str], None], script: str, sentence: str
) -> None:
    docker(script)
    with pytest.raises(InfraError) as caught:
        daemon()
    assert str(caught.value).startswith(f"Docker does not answer at {SOCKET}: ")
    assert sentence in str(caught.value)
    assert not met()


def test_a_daemon_that_refuses_or_is_silent_is_one_too(
    answers: Callable[..., None], docker: Callable[[str], None]
) -> None:
    answers(info=(500, {"message": "busy"}))
    with pytest.raises(InfraError, match=r": busy$"):
        daemon()
    docker("exec sleep 600")
    began = time.monotonic()
    with pytest.raises(InfraError, match=r": nothing in 1 s$"):
        client.ask(lambda api: api.info(), seconds=1)
    assert time.monotonic() - began < 60


def test_a_daemon_is_what_it_says_of_itself(answers: Callable[..., None]) -> None:
    answers(info=(200, INFO))
    found = daemon()
    told = (found.version, found.name, found.architecture, found.nvidia_runtime)
    assert told == ("28.0", "here", "arm64", True)
    # Containerd's folder is not named, and an unconfined daemon filters no system calls.
    assert (found.filters, found.desktop) == (False, False)
    assert met()


def test_only_a_missing_image_is_none(answers: Callable[..., None]) -> None:
    answers(images=(404, {"message": "No such image: a:1"}))
    assert find_image("a:1", "linux/amd64") is None
    answers(images=(500, {"message": "layer does not exist"}))
    with pytest.raises(DaemonRefused, match=r"^layer does not exist$"):
        find_image("a:1", "linux/amd64")


def events(*states: str) -> list[dict[str, str]]:
    """Return the events of a pull of thirty layers."""
    return [{"status": "Pulling from a", "id": "1"}] + [
        {"status": state, "id": f"{layer:012x}"} for state in states for layer in range(30)
    ]


@pytest.mark.filterwarnings("ignore:docker-credential-nobodys")
def test_a_pull_tells_each_tenth_of_its_layers_once(
    answers: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a helper for credentials that is not there, as a config.json of Docker Desktop may name one."""
    (tmp_path / "config.json").write_text('{"credsStore": "nobodys"}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    image = {"Id": "sha256:1", "Os": "linux", "Architecture": "amd64"}
    answers(create=(200, events("Pulling fs layer", "Pull complete")), images=(200, image))
    told: list[str] = []
    assert pull_image("a:1", "linux/amd64", tell=told.append).digest == "sha256:1"
    assert told[-1] == "pulling a:1: 30 of 30 layers"
    assert len(told) == len(set(told)) <= 11


def test_a_registry_that_answers_is_told_from_one_that_does_not(answers: Callable[..., None]) -> None:
    for status, said, unreachable in (
        (404, {"message": "no"}, False),
        (500, {"message": "no"}, True),
        (200, [{"status": "Pulling from a", "id": "1"}, {"error": "no"}], False),
    ):
        answers(create=(status, said))
        with pytest.raises(ImageRefused, match=r"^no$") as caught:
            pull_image("a:1", "linux/amd64")
        assert (caught.value.unreachable, caught.value.begun) == (unreachable, False)


@pytest.mark.parametrize(
    "said",
    [
        'Head "https://r.example/v2/a/manifests/1": no basic auth credentials',
        'Head "https://r.example/v2/a/manifests/1": unauthorized',
        "Get https://r.example/v2/a/manifests/1: unauthorized: incorrect username or password",
        'Head "https://r.example/v2/a/manifests/1": denied: Your authorization token has expired.',
    ],
)
def test_a_registry_that_wants_a_login_of_docker_20_10_has_answered(
    answers: Callable[..., None], said: str
) -> None:
    answers(create=(500, {"message": "dial tcp: lookup denied.example: no such host"}))
    with pytest.raises(ImageRefused) as caught:
        pull_image("denied.example/a:1", "linux/amd64")
    assert caught.value.unreachable
    answers(create=(500, {"message": said}))
    with pytest.raises(ImageRefused, match=r"wants a `docker login`$") as caught:
        pull_image("r.example/a:1", "linux/amd64")
    assert not caught.value.unreachable


def test_a_pull_that_fails_in_its_middle_is_told_from_a_daemon_that_goes(
    answers: Callable[..., None],
) -> None:
    begun = events("Pulling fs layer")
    answers(create=(200, [*begun, {"error": "unknown blob"}]))
    with pytest.raises(ImageRefused, match=r"^unknown blob$") as caught:
        pull_image("a:1", "linux/amd64")
    assert caught.value.begun
    answers(create=(200, [*begun, {"error": "write /x: no space left on device"}]))
    with pytest.raises(InfraError, match=r"^the disk of the Docker daemon is full: "):
        pull_image("a:1", "linux/amd64")
    answers(create=(200, [*begun, None]))
    with pytest.raises(InfraError, match=rf"^Docker does not answer at {SOCKET}: the line broke off$"):
        pull_image("a:1", "linux/amd64")


def test_a_pull_that_nobody_waits_for_is_given_up(docker: Callable[[str], None]) -> None:
    docker("exec sleep 600")
    began = time.monotonic()
    with pytest.raises(InfraError, match="was given up"):
        pull_image("a:1", "linux/amd64", needed=lambda: False)
    assert time.monotonic() - began < 60


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    began, child = time.monotonic(), tmp_path / "child"
    with pytest.raises(InfraError, match=r"^sh -c .* was not done after 1 s$"):
        run_to_end(["sh", "-c", f"sleep 600 & echo $! > {child}; sleep 600"], 1)
    assert wait_for(lambda: not alive(int(child.read_text())))
    assert run_to_end(["sh", "-c", "sleep 600 & echo answer"]).stdout == "answer\n"
    assert time.monotonic() - began < 60


def test_the_library_waits_until_a_daemon_is_asked() -> None:
    """It takes a sixth of a second, which `--help` does without."""
    asked = "import harness.cli.main, harness.run.local, sys; print('docker' in sys.modules)"
    assert run_to_end([sys.executable, "-c", asked]).stdout == "False\n"

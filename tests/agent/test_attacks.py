"""Each way of harm in the table is tried for real; after each the agent serves the next job, which finds nothing."""

from __future__ import annotations

import json
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.agent import leftovers
from harness.agent.bootstrap import ARGUMENTS
from harness.agent.protocol import BROKEN
from harness.run.docker import DockerTransport, Options
from harness.run.session import Event, Session
from harness.run.transport import Transport
from tests import needs
from tests.agent.attack_table import ATTACKS, Attack
from tests.agent.test_enemy import as_nobody
from tests.agent.test_serve import ask, end, heard

ADAPTER = {"harness/agent/engines/attacks.py": (Path(__file__).parent / "attacks.py").read_bytes()}

#: What a job may take here, where a thousand forks count the pages that they share a thousand times, and what a
#: container has: the pages that they do not share, and the kernel's of each, filled 1 GiB before the last of them.
CONTAINER_MIB = 4096
MUCH_MIB = 64 << 10
NOBODY = pwd.getpwnam("nobody").pw_uid


class Field:
    """Where attacks are made: a warm agent, and another one where the one before was lost."""

    def __init__(self, via: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.via, self._monkeypatch = via, monkeypatch
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        if self._session is not None and not self._session._transport.alive():
            self.close()
        self._session = self._session or Session(
            self._open(), engine="fake", adapter="attacks", extra=ADAPTER
        )
        return self._session

    def _open(self) -> Transport:
        if self.via == "venv":
            return as_nobody(self._monkeypatch)
        image = needs.base_image()
        options = Options(image, "linux/amd64", "python3", ARGUMENTS, CONTAINER_MIB, untrusted=True)
        return DockerTransport(options, target="attacked")

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def field(via: str) -> Iterator[Field]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = Field(via, monkeypatch)
        yield made
        made.close()


@pytest.fixture(scope="module")
def container() -> Iterator[Field]:
    yield from field("docker")


@pytest.fixture(scope="module")
def venv() -> Iterator[Field]:
    """Yield an agent on this machine, on which nothing that nobody shares outlives these tests."""
    before, files = _ipc(), _shared()
    yield from field("venv")
    for kind, number in _ipc() - before:
        leftovers._remove_ipc(kind, number)
    for path in _shared() - files:
        leftovers.remove(path)


def _shared() -> set[str]:
    return {str(path) for path in Path("/dev/shm").iterdir() if path.lstat().st_uid == NOBODY}


def _ipc() -> set[tuple[str, int]]:
    """Return what there is of System V and nobody made."""
    rows = ((kind, row) for kind in ("shm", "sem", "msg") for row in leftovers.system_v(kind))
    return {(kind, row["id"]) for kind, row in rows if row["cuid"] == NOBODY}


def came_of(events: list[Event]) -> tuple[str, list[str]]:
    """Return how the job ended, and what was let through where it got to tell that."""
    ended = end(events)
    if ended["kind"] != "finished":
        return str(ended["detail"]), []
    (said,) = heard(events, "message")
    return "", json.loads(said.message["text"])


def judge(attack: Attack, wanted: str, events: list[Event]) -> None:
    ended, through = came_of(events)
    assert not [event for event in heard(events, "message") if event.message["text"] == "of the next"]
    if wanted == "its own crash":
        half = "exit code 0 before its job was done"
        assert ended.startswith(BROKEN) or (attack.do == "forge_half" and half in ended)
        return
    if wanted != "not promised":
        assert (ended, through) == ("", [])


def params(where: str) -> list[object]:
    """Return the attacks that are tried there."""
    return [
        pytest.param(attack, id=attack.do.replace(" ", "-"))
        for attack in ATTACKS
        if not getattr(attack, where).endswith("not tried")
    ]


@pytest.mark.integration
@pytest.mark.docker
@pytest.mark.parametrize("attack", params("container"))
def test_in_a_container_it_is_held(container: Field, attack: Attack) -> None:
    # Of a field another agent is had as soon as this one has gone.
    agent = container.session
    judge(attack, attack.container, ask(agent, attack.do, memory_mib=MUCH_MIB))
    assert came_of(ask(agent, "found")) == ("", [])
    assert agent is container.session


@pytest.mark.integration
@pytest.mark.parametrize("attack", params("venv"))
def test_in_a_virtual_environment_what_is_promised_is_held(venv: Field, attack: Attack) -> None:
    """The rest is tried as well, but for what would harm this machine: whatever came of it, the next job runs."""
    judge(attack, attack.venv, ask(venv.session, attack.do, memory_mib=MUCH_MIB))
    assert came_of(ask(venv.session, "call"))[0] == ""

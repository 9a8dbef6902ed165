"""A process of an untrusted model is refused the machine's files, network and powers, and more than its share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.agent.bootstrap import ARGUMENTS
from harness.run.docker import DockerTransport, Options
from harness.run.session import Session
from tests import needs
from tests.agent.test_serve import ask, end, heard

pytestmark = [pytest.mark.integration, pytest.mark.docker]

ADAPTER = {"harness/agent/engines/confined.py": (Path(__file__).parent / "confined.py").read_bytes()}
#: Memory of the container, and of a job in it: a thousand forks count the pages that they share a thousand times.
CONTAINER_MIB, JOB_MIB = 4096, 64 << 10


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    image = needs.base_image()
    options = Options(image, "linux/amd64", "python3", ARGUMENTS, CONTAINER_MIB, untrusted=True)
    session = Session(
        DockerTransport(options, target="confined"), engine="fake", adapter="confined", extra=ADAPTER
    )
    yield session
    session.close()


def attempted(session: Session, do: str) -> dict[str, list[str]]:
    events = ask(session, do, memory_mib=JOB_MIB)
    assert end(events)["kind"] == "finished", events[-1]
    (message,) = heard(events, "message")
    found: dict[str, list[str]] = json.loads(message.message["text"])
    return found


@pytest.mark.parametrize(
    "do", ["calls", "network", "root", "write", "machine", "big_file", "many_files", "shared_memory", "fork"]
)
def test_an_attempt_is_refused_and_the_agent_serves_the_next_job(session: Session, do: str) -> None:
    """A path that is not there (ENOENT) would pass for ever: something of each attempt was really refused."""
    made = attempted(session, do)
    assert made["through"] == []
    assert do in {"network", "fork"} or set(made["refused"]) - {"ENOENT"}
    assert attempted(session, "nothing") == {"through": [], "refused": []}

"""A child that fails costs exactly its own job, in a virtual environment as in a container."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent.bootstrap import ARGUMENTS, pack
from harness.errors import InfraError
from harness.session import AgentLost, Event, Job, Session
from harness.transport import Transport
from harness.transport.process import ProcessTransport

pytestmark = pytest.mark.integration

FAULTY = {"harness/agent/engines/faulty.py": (Path(__file__).parent / "faulty.py").read_bytes()}


def start_session(transport: Transport, engine: str = "fake") -> Session:
    return Session(transport, engine=engine, adapter="faulty", extra=FAULTY, hello_timeout=60)


@pytest.fixture
def session() -> Iterator[Session]:
    transport = ProcessTransport([sys.executable, *ARGUMENTS])
    session = start_session(transport)
    yield session
    session.close()


def ask(session: Session, do: str, body: bytes = b"", **limits: Any) -> list[Event]:
    job = Job(
        kind="run",
        timeout_s=limits.get("timeout_s", 20),
        memory_mib=limits.get("memory_mib", 2048),
        recipe={"do": do},
        parts=(("body", body),) if body else (),
    )
    return list(session.run(job))


def end(events: list[Event]) -> dict[str, Any]:
    assert [event.type for event in events].count("end") == 1
    return events[-1].message


def heard(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.type == kind]


def native(events: list[Event]) -> str:
    return "".join(event.message["text"] for event in heard(events, "native"))


@pytest.mark.parametrize(
    ("do", "limits", "kind", "detail"),
    [
        ("segfault", {}, "signalled", "killed by SIGSEGV"),
        ("abort", {}, "signalled", "killed by SIGABRT"),
        ("hang", {"timeout_s": 1}, "timed_out", "not finished after 1 s"),
        ("eat", {"memory_mib": 300}, "out_of_memory", "used more than 300 MiB"),
        ("raise", {}, "exited", "the process ended with exit code 1"),
        ("exit", {}, "exited", "the process ended with exit code 7"),
        ("half", {}, "exited", "the process ended with exit code 9"),
    ],
)
def test_a_failing_child_is_named_for_what_it_did_and_the_next_job_runs(
    session: Session, do: str, limits: dict[str, Any], kind: str, detail: str
) -> None:
    events = ask(session, do, **limits)
    assert (end(events)["kind"], end(events)["detail"]) == (kind, detail)
    # What it said before it died is kept.
    assert heard(events, "message")[0].message["text"] == f"about to {do}"
    after = ask(session, "echo", b"still here")
    assert end(after)["kind"] == "finished"
    assert heard(after, "echo")[0].body == b"still here"


def test_what_a_native_library_prints_is_captured_and_does_not_break_the_stream(session: Session) -> None:
    said = native(ask(session, "print"))
    assert "native stdout" in said
    assert "native stderr" in said
    assert "python stdout" in said


def test_the_last_words_of_a_crash_are_captured(session: Session) -> None:
    assert "terminate called after throwing" in native(ask(session, "abort"))
    assert "Segmentation fault" in native(ask(session, "segfault"))


def test_a_hanging_child_says_in_which_call_it_hangs(session: Session) -> None:
    assert "do_hang" in native(ask(session, "hang", timeout_s=1))


def test_a_flood_on_stderr_is_cut_off_at_a_mebibyte(session: Session) -> None:
    events = ask(session, "flood")
    assert end(events)["kind"] == "finished"
    assert len(native(events)) <= 1 << 20


def test_a_process_left_behind_neither_delays_the_end_nor_survives_it(session: Session) -> None:
    start = time.monotonic()
    events = ask(session, "orphan")
    assert end(events)["kind"] == "finished"
    assert heard(events, "done")
    assert time.monotonic() - start < 10


def test_thirty_two_mebibytes_go_there_and_back(session: Session) -> None:
    body = os.urandom(1 << 20) * 32
    assert heard(ask(session, "echo", body), "echo")[0].body == body


def test_peak_memory_is_the_childs_own(session: Session) -> None:
    small = end(ask(session, "echo", b"x"))["peak_rss_bytes"]
    large = end(ask(session, "eat", memory_mib=600))["peak_rss_bytes"]
    assert small < 200 << 20 < 500 << 20 < large


def test_an_engine_that_does_not_load_is_infrastructure_with_its_own_words() -> None:
    transport = ProcessTransport([sys.executable, *ARGUMENTS])
    with pytest.raises(InfraError, match="no engine called absent"):
        start_session(transport, engine="absent")
    transport.close()


def test_an_agent_killed_from_outside_is_lost_not_a_crash_of_the_engine(session: Session) -> None:
    transport = session._transport
    assert isinstance(transport, ProcessTransport)
    os.kill(transport.pid, 9)
    with pytest.raises(AgentLost, match="killed by SIGKILL"):
        ask(session, "echo")


def test_the_packed_agent_is_the_same_bytes_each_time() -> None:
    assert pack() == pack()


def test_the_agent_ends_when_its_host_goes(session: Session) -> None:
    transport = session._transport
    job = Job(kind="run", timeout_s=60, memory_mib=2048, recipe={"do": "hang"})
    transport.send(job.frame())
    time.sleep(0.3)
    start = time.monotonic()
    session.close()
    assert not transport.alive()
    assert time.monotonic() - start < 5

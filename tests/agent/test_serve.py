"""A child that fails costs exactly its own job, in a virtual environment as in a container."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent import serve, watch
from harness.agent.bootstrap import ARGUMENTS, pack
from harness.errors import InfraError
from harness.run.docker import DockerTransport, Options
from harness.run.session import AgentLost, Event, Job, Session
from harness.run.transport import ProcessTransport
from tests import needs
from tests.run.bench import identity, kill
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.integration

FAULTY = {"harness/agent/engines/faulty.py": (Path(__file__).parent / "faulty.py").read_bytes()}


def start_session(transport: ProcessTransport, engine: str = "fake") -> Session:
    return Session(transport, engine=engine, adapter="faulty", extra=FAULTY)


#: The container's limit; the jobs of these tests ask for more or less than it.
CONTAINER_MIB = 1024


def open_transport(via: str) -> ProcessTransport:
    if via != "docker":
        python = sys.executable if via == "process" else needs.oldest_python()
        return ProcessTransport([python, *ARGUMENTS])
    options = Options(needs.base_image(), "linux/amd64", "python3", ARGUMENTS, CONTAINER_MIB)
    return DockerTransport(options, target="faulty")


@pytest.fixture(params=["process", "python3.8", "docker"])
def via(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session(via: str) -> Iterator[Session]:
    session = start_session(open_transport(via))
    yield session
    session.close()


def who(session: Session) -> str | int:
    """Name the container or process that the agent is in."""
    return identity(session._transport)


def ask(session: Session, do: str, body: bytes = b"", **limits: Any) -> list[Event]:
    job = Job(
        kind="run",
        timeout_s=limits.get("timeout_s", PATIENCE),
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


def look(session: Session) -> dict[str, Any]:
    """Return a job's view of its folders and of itself."""
    seen: dict[str, Any] = json.loads(heard(ask(session, "look"), "message")[-1].message["text"])
    return seen


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
        ("odd_signal", {}, "signalled", "killed by signal 40"),
        ("leave", {}, "exited", "the process ended with exit code 0 before its job was done"),
    ],
)
def test_a_failing_child_is_named_for_what_it_did_and_the_next_job_runs(
    session: Session, do: str, limits: dict[str, Any], kind: str, detail: str
) -> None:
    before = who(session)
    events = ask(session, do, **limits)
    assert (end(events)["kind"], end(events)["detail"]) == (kind, detail)
    # Its words before its death are kept.
    assert heard(events, "message")[0].message["text"] == f"about to {do}"
    assert_still_serving(session, before)


def assert_still_serving(session: Session, before: str | int) -> None:
    after = ask(session, "echo", b"still here")
    assert end(after)["kind"] == "finished"
    assert heard(after, "plan")[0].body == b"still here"
    assert who(session) == before
    assert not session.lost


def test_a_child_is_the_kernels_first_choice_however_small_it_is(session: Session) -> None:
    """The agent may have grown larger by then; 1000 is the most that a process can be offered with."""
    assert look(session)["score"] == 1000


@pytest.mark.parametrize("via", ["docker"], indirect=True)
def test_a_sigkill_from_elsewhere_is_no_memory_limit_even_after_one(session: Session) -> None:
    """The kernel's count of processes killed at the limit is compared with the one before the job."""
    ask(session, "gulp", memory_mib=4 * CONTAINER_MIB)
    said = end(ask(session, "suicide"))
    assert (said["kind"], said["detail"]) == ("signalled", "killed by SIGKILL")


def test_what_a_job_leaves_in_the_temporary_folder_is_gone_with_it(session: Session) -> None:
    assert end(ask(session, "litter"))["kind"] == "signalled"
    seen = look(session)
    assert seen["own"] == []
    assert len([name for name in seen["all"] if name.startswith("job-")]) == 1
    assert seen["here"]


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


def test_what_threads_say_at_once_arrives_whole(session: Session) -> None:
    """A builder logs from several threads, and a frame that is longer than a pipe takes several writes."""
    events = ask(session, "chatter")
    said = [event.message["text"].split()[:2] for event in events if event.type == "message"][1:]
    assert sorted(said) == sorted([str(number), str(count)] for number in range(8) for count in range(20))
    assert events[-1].message["kind"] == "finished"


def test_a_flood_on_stderr_is_cut_off_at_a_mebibyte(session: Session) -> None:
    events = ask(session, "flood")
    assert end(events)["kind"] == "finished"
    assert len(native(events)) <= 1 << 20


def test_a_process_left_behind_neither_delays_the_end_nor_survives_it(session: Session) -> None:
    start = time.monotonic()
    events = ask(session, "orphan")
    assert end(events)["kind"] == "finished"
    assert heard(events, "fact")
    assert time.monotonic() - start < PATIENCE


def test_a_process_that_left_group_session_and_parent_is_gone_with_its_job(session: Session) -> None:
    before = who(session)
    stays = heard(ask(session, "stay"), "message")[-1].message["text"]
    assert isinstance(before, str) or not Path(f"/proc/{stays}").exists()
    assert_still_serving(session, before)


@pytest.mark.parametrize("via", ["process"], indirect=True)
def test_memory_is_that_of_all_processes_of_a_job(session: Session) -> None:
    ended = end(ask(session, "breed", memory_mib=400))
    assert (ended["kind"], ended["detail"]) == ("out_of_memory", "used more than 400 MiB")


@pytest.mark.parametrize("via", ["docker"], indirect=True)
def test_files_that_a_job_leaves_in_a_containers_memory_are_gone_with_it(session: Session) -> None:
    """A second job leaves them again, under the same names."""
    for _ in range(2):
        assert end(ask(session, "clutter"))["kind"] == "finished"
    assert len(look(session)["all"]) == 1


def test_a_process_that_starts_a_program_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between fork and exec all its pages are there twice."""
    sizes = iter([100, 200, 100, 200, 200])
    monkeypatch.setattr(watch, "descendants", lambda: [next(sizes)])
    monkeypatch.setattr(watch, "resident_bytes", lambda size: size)
    watched = watch.Watch.__new__(watch.Watch)
    watched.peak, watched._whole = 0, 0
    peaks = []
    for _ in range(5):
        watched._look_at_all()
        peaks.append(watched.peak)
    assert peaks == [0, 100, 100, 100, 200]


def test_without_the_kernels_list_of_children_they_are_found_by_their_parent() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert child.pid in watch._by_parent(os.getpid())
            assert child.pid in watch.descendants()
        finally:
            child.kill()


def test_peak_memory_is_the_childs_own(session: Session) -> None:
    small = end(ask(session, "echo", b"x"))["peak_rss_bytes"]
    large = end(ask(session, "eat", memory_mib=600))["peak_rss_bytes"]
    assert small < 200 << 20 < 500 << 20 < large


def test_an_engine_that_does_not_load_is_infrastructure_with_its_own_words(via: str) -> None:
    transport = open_transport(via)
    with pytest.raises(InfraError, match="no engine called absent"):
        start_session(transport, engine="absent")
    transport.close()


def test_an_agent_long_dead_is_lost_too(session: Session) -> None:
    """Sending to it fails, while to one just killed only receiving does."""
    kill(who(session))
    assert wait_for(lambda: session._transport.exit_status() is not None)
    with pytest.raises(AgentLost, match="killed by SIGKILL"):
        ask(session, "echo", b"x" * (8 << 20))


def test_the_packed_agent_is_the_same_bytes_each_time() -> None:
    assert pack() == pack()


def test_the_agent_ends_when_its_host_goes(session: Session) -> None:
    """At the end of its input, in the middle of a job, and before it is asked with a signal."""
    transport = session._transport
    job = Job(kind="run", timeout_s=2 * PATIENCE, memory_mib=2048, recipe={"do": "hang"})
    transport.send(job.frame(b"any id of a job."))
    assert transport.receive(PATIENCE)
    assert isinstance(transport, ProcessTransport)
    transport._stdin.close()
    assert wait_for(lambda: transport.exit_status() is not None)
    assert str(transport.exit_status()) == "exited with code 0"


#: Prints how many MiB of a block of 64 MiB a process has back after it was freed.
FREED = """
import ctypes
from harness.agent.serve import keep_memory
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
keep_memory()
held = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
block, before = libc.malloc(ctypes.c_size_t(64 << 20)), held()
ctypes.memset(block, 1, 64 << 20)
libc.free(ctypes.c_void_p(block))
print(held() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_freed_memory_stays_for_the_next_engine() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 32


def test_an_older_c_library_takes_the_largest_block_that_it_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """glibc 2.31 refuses more than 32 MiB, by 0."""
    taken: dict[int, int] = {}

    def mallopt(option: int, value: int) -> int:
        if option == serve.M_MMAP_THRESHOLD and value > 32 << 20:
            return 0
        taken[option] = value
        return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    serve.keep_memory()
    assert taken == {serve.M_TRIM_THRESHOLD: serve.KEPT_BYTES, serve.M_MMAP_THRESHOLD: 32 << 20}

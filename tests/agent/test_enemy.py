"""A job that means harm costs its own cell: it sees nothing of the agent, leaves nothing, and the next runs."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent import family, leftovers
from harness.agent.bootstrap import ARGUMENTS
from harness.agent.watch import Watch
from harness.run.session import AgentLost, Session
from harness.run.transport.process import ProcessTransport
from tests.agent.test_serve import ask, end, heard, native, open_transport
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

HOSTILE = {"harness/agent/engines/hostile.py": (Path(__file__).parent / "hostile.py").read_bytes()}
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")


def as_nobody(monkeypatch: pytest.MonkeyPatch) -> ProcessTransport:
    """Start an agent as a user who is not root: root sees everything, whatever a process says of itself."""
    who = NOBODY if os.geteuid() == 0 else ()
    if who and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv to run an agent that is not root's")
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([*who, python, "-c", ""], capture_output=True, check=False).returncode == 0:
            break
    else:
        pytest.skip("no Python here is nobody's to start")
    # Which limits whose process has is not asked by every root alike.
    monkeypatch.setattr(resource, "prlimit", lambda *_: None)
    transport = ProcessTransport([*who, python, *ARGUMENTS])
    scratch = Path(transport._scratch.name)
    scratch.chmod(0o777)
    scratch.parent.chmod(0o711)
    # Else what the jobs leave would be left in the machine's own folder, and the tests would look elsewhere.
    tell = [*who, python, "-c", "import tempfile; print(tempfile.gettempdir(), end='')"]
    found = subprocess.run(tell, capture_output=True, text=True, env={"TMPDIR": str(scratch)}, check=True)
    assert found.stdout == str(scratch)
    return transport


@pytest.fixture(params=["nobody", "docker"])
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    transport = as_nobody(monkeypatch) if request.param == "nobody" else open_transport(request.param)
    session = Session(transport, engine="fake", adapter="hostile", extra=HOSTILE)
    yield session
    session.close()


in_a_venv = pytest.mark.parametrize("session", ["nobody"], indirect=True)


def told(session: Session, do: str, **limits: Any) -> Any:
    """Return what a job told of its doings, which it did to the end."""
    events = ask(session, do, **limits)
    assert end(events)["kind"] == "finished", events[-1]
    (said,) = heard(events, "message")
    return json.loads(said.message["text"])


def test_a_job_opens_nothing_of_the_agents_and_writes_none_of_its_code(session: Session) -> None:
    # What everybody may read of any process is nobody's secret.
    assert told(session, "spy") == []
    assert told(session, "rewrite") == []


def test_a_job_is_the_kernels_first_choice_though_its_own_file_says_it_is_roots(session: Session) -> None:
    assert told(session, "score") == 1000


@in_a_venv
def test_a_process_that_left_group_session_and_parent_is_gone_with_its_job(session: Session) -> None:
    stays = told(session, "stay")
    assert not Path(f"/proc/{stays}").exists()
    assert told(session, "nothing") == 0


@in_a_venv
def test_memory_is_that_of_all_processes_of_a_job(session: Session) -> None:
    said = end(ask(session, "breed", memory_mib=400))
    assert (said["kind"], said["detail"]) == ("out_of_memory", "used more than 400 MiB")


def system_v(kind: str) -> set[int]:
    return {row["id"] for row in leftovers.system_v(kind)}


@in_a_venv
def test_shared_memory_of_a_job_is_removed_and_what_may_be_anothers_is_told_of(session: Session) -> None:
    """Of semaphores and queues the kernel does not say who made them."""
    events = ask(session, "leave_memory")
    memory, semaphores, queue = json.loads(heard(events, "message")[0].message["text"])
    try:
        assert memory not in system_v("shm")
        assert {semaphores} <= system_v("sem")
        assert {queue} <= system_v("msg")
        assert f"is left alone, because whose it is cannot be known: semaphores {semaphores}" in native(
            events
        )
    finally:
        leftovers._remove_ipc("sem", semaphores)
        leftovers._remove_ipc("msg", queue)


def test_shared_memory_that_nobody_has_attached_counts_as_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n"
    line = f" 0 7 600 9 41 41 %d {os.getuid()} 0 {os.getuid()} 0 0 0 0 4096 0\n"
    monkeypatch.setattr(leftovers, "system_v", lambda _: iter(()))
    before = leftovers.Leftovers()
    monkeypatch.undo()

    def listing(attached: int) -> None:
        names = rows.split()
        row = dict(zip(names, map(int, (line % attached).split()), strict=True))
        monkeypatch.setattr(leftovers, "system_v", lambda _: iter([{**row, "id": row["shmid"]}]))

    listing(0)
    assert before.unattached({41}) == 4096
    assert before.unattached({42}) == 0
    listing(1)
    assert before.unattached({41}) == 0


def test_folders_however_deep_are_removed_and_the_agent_goes_on(session: Session) -> None:
    told(session, "dig")
    assert told(session, "nothing") == 0
    transport = session._transport
    if isinstance(transport, ProcessTransport):
        assert not list(Path(transport._scratch.name).iterdir())


@in_a_venv
@pytest.mark.parametrize("how", ["starve", "slow"])
def test_an_agent_whose_limits_a_job_has_changed_serves_no_other(session: Session, how: str) -> None:
    """The kernel lets every process of a user do that; the next cell gets a new agent."""
    told(session, how)
    assert wait_for(lambda: not session._transport.alive())
    with pytest.raises(AgentLost, match="has left processes, or changed the limits of the agent"):
        ask(session, "nothing")


def test_a_process_that_starts_a_program_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between fork and exec all its pages are there twice."""
    monkeypatch.setattr("harness.agent.watch.descendants", list)
    watch = Watch.__new__(Watch)
    watch.pids, watch.peak, watch._whole = set(), 0, 0
    sizes = iter([100, 200, 100, 200, 200])

    class Nothing:
        def unattached(self, _: object) -> int:
            return next(sizes)

    watch._left = Nothing()  # type: ignore[assignment]
    peaks = []
    for _ in range(5):
        watch._look_at_all()
        peaks.append(watch.peak)
    assert peaks == [0, 100, 100, 100, 200]


def test_without_the_kernels_list_of_children_they_are_found_by_their_parent() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert child.pid in family._by_parent(os.getpid())
            assert child.pid in family.descendants()
        finally:
            child.kill()


def test_what_others_can_change_of_an_agent_is_looked_at() -> None:
    before = family.conditions()
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0 if soft else hard and 4096, hard))
        assert (family.conditions() != before) == (resource.getrlimit(resource.RLIMIT_CORE) != (soft, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))

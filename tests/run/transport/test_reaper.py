"""Which containers the reaper removes, and which processes it takes for gone; the daemon is a stand-in."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InfraError
from harness.run.docker import client, reaper
from harness.run.docker.client import DaemonRefused
from harness.run.docker.reaper import OWNER_LABEL, labels, reap, this_process

pytestmark = pytest.mark.unit

NEVER = "0001-01-01T00:00:00Z"


@dataclass
class Container:
    """A container, and how the daemon answers to its removal."""

    name: str
    owner: tuple[str, ...]
    running: bool = True
    finished: str = NEVER
    refusal: tuple[str, int] | None = None
    removed: bool = False

    def inspected(self) -> dict[str, Any]:
        state = {"Running": self.running, "FinishedAt": self.finished}
        labels = {OWNER_LABEL: " ".join(self.owner)}
        return {"Name": f"/{self.name}", "Config": {"Labels": labels}, "State": state}


@dataclass
class Api:
    """Docker's library, as far as the reaper asks it."""

    known: dict[str, Container]

    def containers(self, *, all: bool, filters: dict[str, str]) -> list[dict[str, str]]:  # noqa: A002
        assert all, "those that ended as well"
        assert filters == {"label": "trt-compat.owner"}
        return [{"Id": name} for name in (*self.known, "vanished")]

    def inspect_container(self, name: str) -> dict[str, Any]:
        if name == "vanished":
            raise DaemonRefused("no such container", 404)
        return self.known[name].inspected()

    def remove_container(self, name: str, *, v: bool, force: bool) -> None:
        assert force
        assert v, "its anonymous volumes would be left"
        if refusal := self.known[name].refusal:
            raise DaemonRefused(*refusal)
        self.known[name].removed = True


def reaped(monkeypatch: pytest.MonkeyPatch, *containers: Container) -> tuple[str, ...]:
    """Return the names that the reaper says it removed, which are those it did remove."""
    api = Api({each.name: each for each in containers})

    def ask(question: Callable[[Api], Any], host: str) -> Any:
        assert host == "ssh://orin"
        return question(api)

    monkeypatch.setattr(reaper, "ask", ask)
    monkeypatch.setattr(client, "ask", ask)
    names = reap("ssh://orin")
    assert list(names) == [each.name for each in containers if each.removed]
    return names


def ago(**past: float) -> str:
    """Return a time as the daemon writes it."""
    return f"{dt.datetime.now(dt.timezone.utc) - dt.timedelta(**past):%Y-%m-%dT%H:%M:%S}.618845579Z"


@pytest.mark.parametrize(
    ("owner", "container", "orphaned"),
    [
        ({}, {}, False),
        ({}, {"running": False, "ended": {"hours": 9}}, False),
        ({"started": "1"}, {}, True),  # its pid is another's by now
        ({"pid": str(2**22 + 1)}, {}, True),
        ({"namespace": "pid:[1]", "started": "1"}, {}, False),
        ({"host": "elsewhere", "started": "1"}, {}, False),
        ({"host": "elsewhere"}, {"ended": {"hours": 9}}, False),  # started again
        ({"host": "elsewhere"}, {"running": False, "ended": {"minutes": 61}}, True),
        ({"host": "elsewhere"}, {"running": False, "ended": {"minutes": 58}}, False),
        ({"host": "elsewhere"}, {"running": False}, False),  # not started yet
        ({"started": ""}, {}, False),  # where it was not known, nobody can tell
        ({"started": ""}, {"running": False, "ended": {"days": 9}}, True),
        (None, {}, False),
        (None, {"running": False, "ended": {"days": 9}}, True),
    ],
)
def test_what_is_orphaned(
    monkeypatch: pytest.MonkeyPatch, owner: dict[str, Any] | None, container: dict[str, Any], orphaned: bool
) -> None:
    """`owner` is how it differs from this process; None is what another version wrote.

    `ended` is how long ago the container did: counted from now, as these rows are read minutes before they are tried.
    """
    if "ended" in container:
        container = {**container, "finished": ago(**container["ended"])}
        del container["ended"]
    label = ("other", "12") if owner is None else this_process()._replace(**owner)
    found = reaped(monkeypatch, Container("toy", label, **container))
    assert found == (("toy",) if orphaned else ())


def orphan(name: str, refusal: tuple[str, int] | None = None) -> Container:
    return Container(name, this_process()._replace(started="1"), refusal=refusal)


def test_one_living_container_or_one_that_another_reaper_takes_hides_no_orphan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, gone, going, mine, last = (
        orphan("first"),
        orphan("gone", ("no such container", 404)),
        orphan("going", ("its removal is already in progress", 409)),
        Container("mine", this_process()),
        orphan("last"),
    )
    assert reaped(monkeypatch, first, gone, going, mine, last) == ("first", "last")


def test_a_daemon_that_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InfraError, match="driver failed"):
        reaped(monkeypatch, orphan("first", ("driver failed to remove root filesystem", 500)))


def test_the_labels_are_those_that_others_filter_by() -> None:
    here = this_process()
    assert labels("rtx17", "r1") == {
        "trt-compat": "container",
        "trt-compat.owner": f"{here.host} {here.namespace} {here.pid} {here.started}",
        "trt-compat.run": "r1",
        "trt-compat.target": "rtx17",
    }


def test_a_process_is_known_by_its_start_whatever_it_is_called() -> None:
    """The name stands in brackets before the times, and may hold anything."""
    name = Path("/proc/self/comm")
    here, before = this_process(), name.read_bytes()
    name.write_bytes(b"a) R 1 2 \xe9")
    try:
        assert this_process() == here
    finally:
        name.write_bytes(before)


def test_a_process_that_ended_is_gone_though_nobody_waited_for_it() -> None:
    tick = 1 / os.sysconf("SC_CLK_TCK")
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = reaper._started(child.pid)
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = reaper._started(child.pid)
    child.communicate()
    assert before - tick <= int(started) * tick <= after
    assert zombie == ""
    assert reaper._started(child.pid) == ""


def test_where_there_is_no_proc_containers_are_labelled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "_PROC", Path("/nowhere"))
    bare = this_process()
    assert (bare.namespace, bare.started) == ("-", "")
    assert reaped(monkeypatch, Container("mine", bare)) == ()

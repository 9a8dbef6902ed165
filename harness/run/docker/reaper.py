"""Removes containers whose harness was killed by SIGKILL.

The labels of a container name the process that owns it; the container goes if that process is gone. An owner on another
machine, or in another container, cannot be looked up: its container goes an hour after it ended, as a living owner
would have removed it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import os
import socket
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from harness.run.docker.client import DaemonRefused, ask, find

PROJECT_LABEL = "trt-compat"
OWNER_LABEL = "trt-compat.owner"
RUN_LABEL = "trt-compat.run"
TARGET_LABEL = "trt-compat.target"
_FOREIGN_GRACE = dt.timedelta(hours=1)
_PROC = Path("/proc")
_MACHINE = Path("/etc/machine-id")


class Owner(NamedTuple):
    """A process so named that no other can be taken for it: a pid is reused, a start time with it is not."""

    host: str
    namespace: str
    pid: str
    started: str


def this_process() -> Owner:
    """Return the owner that containers started here name."""
    return Owner(_host(), _namespace(), str(os.getpid()), _started(os.getpid()))


def labels(target: str, run: str) -> dict[str, str]:
    """Return the labels of a container started by this process."""
    return {
        PROJECT_LABEL: "container",
        OWNER_LABEL: " ".join(this_process()),
        RUN_LABEL: run,
        TARGET_LABEL: target,
    }


def reap(host: str = "") -> tuple[str, ...]:
    """Remove this project's orphaned containers and return their names; raises InfraError without a daemon."""
    removed = []
    for each in ask(lambda api: api.containers(all=True, filters={"label": OWNER_LABEL}), host):
        container = inspect(each["Id"], host)
        if container and _orphaned(container) and remove(each["Id"], host):
            removed.append(str(container["Name"]).lstrip("/"))
    return tuple(removed)


def remove(name: str, host: str = "") -> bool:
    """Remove a container, with its volumes; False if it is gone already, or another reaper is at it."""
    try:
        ask(lambda api: api.remove_container(name, v=True, force=True), host)
    except DaemonRefused as error:
        if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
            return False
        raise
    return True


def inspect(name: str, host: str = "") -> dict[str, Any]:
    """Return a container as the daemon describes it, {} for one that is gone."""
    return find(lambda api: api.inspect_container(name), host) or {}


def _orphaned(container: dict[str, Any]) -> bool:
    words, here = str(container["Config"]["Labels"][OWNER_LABEL]).split(" "), this_process()
    # Without /proc no process has a start time, and a reused pid looks like the owner.
    if words[:2] == [here.host, here.namespace] and len(words) == len(here) and words[3]:
        return _started(int(words[2])) != words[3]
    # As text: "2026-11-20T10:19:51.618845579Z", or year 1 for one that has not ended.
    latest = f"{dt.datetime.now(dt.timezone.utc) - _FOREIGN_GRACE:%Y-%m-%dT%H:%M:%S}"
    return not container["State"]["Running"] and "0002" < container["State"]["FinishedAt"] < latest


def _host() -> str:
    """Return a name for this machine: on a shared daemon two may have the same host name, as boards often do."""
    with contextlib.suppress(OSError):
        # The id itself is not to leave the machine (man machine-id).
        return f"{socket.gethostname()}-{hashlib.sha256(_MACHINE.read_bytes()).hexdigest()[:8]}"
    return socket.gethostname()


def _namespace() -> str:
    try:
        return (_PROC / "self/ns/pid").readlink().name
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; "" for a missing one, or a zombie."""
    try:
        # The name of the process stands before, in brackets, and may be any bytes.
        fields = (_PROC / f"{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return ""
    state, start = fields[0], fields[19]
    return "" if state == "Z" else start

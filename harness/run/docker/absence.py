"""Waits for a daemon that has answered before and is gone: it is being restarted, or the line to it was cut."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from harness.errors import InfraError
from harness.run.docker.client import MET, address, connection

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds that a daemon is waited for, by all that wait for it together: who comes after that waits no more.
PATIENCE = 60.0
#: Seconds that an answer may take, and between two questions: the first and the longest.
_ANSWER = 10
_FIRST, _LONGEST = 0.1, 5.0
_LOOK = 0.2
_LOCK = threading.Lock()


def met(host: str = "") -> bool:
    """Tell whether the daemon has answered this process before."""
    return address(host) in MET


def wait_for(host: str = "", needed: Callable[[], bool] = lambda: True) -> str:
    """Wait until the daemon answers, as long as `needed` says so; return why it does not, "" where it does."""
    pause = _FIRST
    while said := _silent(host):
        if _away(address(host)) > PATIENCE:
            return f"{said}; it was waited for {PATIENCE:g} s"
        end = time.monotonic() + pause
        while time.monotonic() < end:
            if not needed():
                return said
            time.sleep(min(_LOOK, pause))
        pause = min(2 * pause, _LONGEST)
    return ""


def _silent(host: str) -> str:
    try:
        with connection(_ANSWER, host) as client:
            client.ping()
    except InfraError as error:
        return str(error)
    return ""


def _away(where: str) -> float:
    """Return for how many seconds the daemon has been gone; it answers again when `connect` says so."""
    with _LOCK:
        since = MET.get(where)
        if since is None:
            since = MET[where] = time.monotonic()
    return time.monotonic() - since

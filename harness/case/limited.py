"""Ends code that loops for ever, where this is the thread that signals come to."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class TookTooLong(BaseException):
    """The time is up; no Exception, for the code that is ended may catch those."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the code within after so many seconds, and again each second until it heeds that.

    What a native library does not return from is not ended, nor what runs in another thread than the main one. An
    alarm that was set before goes off when it would have.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    done = False

    def ring(*_: object) -> None:
        if not done:
            raise TookTooLong

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        try:
            yield
        finally:
            # It may ring in this very line; from the next one on it is not heard.
            done = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001), interval)

"""The container of the cell after this one, started while this one runs: untrusted cells have one each."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from harness.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.run.session import Session
    from harness.run.transport import Transport


class Spare:
    """A live agent that has done nothing yet, in the making; it is taken once, or dropped."""

    def __init__(self, start: Callable[[], Transport], greet: Callable[[Transport], Session]) -> None:
        self._start, self._greet = start, greet
        self._lock = threading.Lock()
        self._dropped = False
        self._transport: Transport | None = None
        self._session: Session | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._make, name="spare", daemon=True)
        self._thread.start()

    def _make(self) -> None:
        try:
            transport = self._start()
            with self._lock:
                self._transport, dropped = transport, self._dropped
            if dropped:
                self._close()
            else:
                self._session = self._greet(transport)
        except Exception as error:  # noqa: BLE001  (told to whoever takes it)
            self._failure = error
            self._close()

    def take(self) -> tuple[Transport, Session]:
        """Return the stream to the agent and the agent, which are the caller's to end; raises what its start raised."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if self._transport is None or self._session is None:
            raise InfraError("the container of the next cell was given up")
        return self._transport, self._session

    def drop(self) -> None:
        """End it, whether it is there yet or not, and wait until it has ended."""
        with self._lock:
            self._dropped = True
        self._close()
        self._thread.join()

    def _close(self) -> None:
        transport = self._transport
        if transport is not None:
            # What cannot be ended now is ended by the next run's reaper.
            with contextlib.suppress(InfraError):
                transport.close()

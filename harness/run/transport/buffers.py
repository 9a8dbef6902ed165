"""What a transport's pump fills and its owner empties: the agent's output, and the end of its complaints."""

from __future__ import annotations

import threading
import time
from collections import deque

#: Bytes of agent output held for a reader that has not come; past it the pump waits, and so does the agent.
INBOX_BYTES = 1 << 30
#: Bytes of the agent's standard error that are kept: its end, which is where the reason is.
TAIL_BYTES = 64 << 10


class Inbox:
    """A bounded queue of bytes between the thread that reads the agent and the one that asks."""

    def __init__(self, limit: int = INBOX_BYTES) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._ended = False
        self._changed = threading.Condition()

    def put(self, data: bytes) -> None:
        """Append data; waits while the queue is full, drops the data once the queue has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._held < self._limit)
            if not self._ended:
                self._chunks.append(data)
                self._held += len(data)
                self._changed.notify_all()

    def end(self) -> None:
        """Say that nothing more will come; what is held can still be read."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def ended(self) -> bool:
        """True once nothing more will come."""
        return self._ended

    def get(self, timeout: float | None) -> bytes:
        """Return the oldest chunk, or b"" at the end; raises TimeoutError after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._chunks or self._ended, timeout):
                raise TimeoutError(f"the agent said nothing for {timeout:g} s")
            if not self._chunks:
                return b""
            chunk = self._chunks.popleft()
            self._held -= len(chunk)
            self._changed.notify_all()
            return chunk


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        """Append data and forget all but the last `limit` bytes."""
        with self._lock:
            self._kept += data
            del self._kept[: -self._limit]

    def text(self) -> str:
        """Return what is kept; bytes that are not UTF-8 are replaced."""
        with self._lock:
            return self._kept.decode("utf-8", "replace")


class Deadline:
    """A point in time that several waits share."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())

    def passed(self) -> bool:
        """Return whether no time is left."""
        return self.left() == 0.0

"""A line on a terminal that says what is being done, from two seconds on, and makes way for whatever is printed."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

from harness.text import clip, visible

if TYPE_CHECKING:
    from types import TracebackType

#: Seconds after which a step is told, and between two looks at how long it has taken.
_PATIENCE, _TICK = 2.0, 0.5
_WIPE = "\r\x1b[K"


class Doing:
    """Tells on a terminal what is being done; as a context. Where standard error is none, nothing is told.

    What is printed meanwhile goes through `say`, or the line would stand in it.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = stream or sys.stderr
        # What the line is made of is visible, and the stream would write its own escapes out.
        stream = getattr(stream, "rich_proxied_file", stream)
        self._stream = stream if stream.isatty() else None
        self._lock, self._over = threading.Lock(), threading.Event()
        self._text, self._since, self._shown = "", time.monotonic(), False
        self._teller = threading.Thread(target=self._tell, name="doing", daemon=True)

    def now(self, text: str) -> None:
        """Say what is begun; the same text again goes on."""
        with self._lock:
            if text != self._text:
                self._text, self._since = text, time.monotonic()

    def say(self, line: str, *, error: bool = False) -> None:
        """Print a line on standard output, or on standard error."""
        with self._lock:
            self._wipe()
            print(line, file=sys.stderr if error else sys.stdout, flush=True)

    def __enter__(self) -> Doing:  # noqa: PYI034  (Self is Python 3.11)
        if self._stream is not None:
            self._teller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._teller.is_alive():
            self._teller.join()
        with self._lock:
            self._wipe()

    def _tell(self) -> None:
        while not self._over.wait(_TICK):
            with self._lock:
                taken = time.monotonic() - self._since
                if self._text and taken >= _PATIENCE and self._stream is not None:
                    width = shutil.get_terminal_size().columns
                    text = " ".join(visible(f"{self._text} ({taken:.0f} s)").split())
                    self._stream.write(_WIPE + clip(text, max(20, width - 1)))
                    self._stream.flush()
                    self._shown = True

    def _wipe(self) -> None:
        if self._shown and self._stream is not None:
            self._stream.write(_WIPE)
            self._stream.flush()
            self._shown = False

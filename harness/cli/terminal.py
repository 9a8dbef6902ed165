"""Lines on a terminal: of engines and files only their visible characters, and a line on the work in progress."""

from __future__ import annotations

import shutil
import textwrap
import threading
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from harness.text import visible


def printer(console: Console) -> Callable[[str], None]:
    """Return a function that prints a line on rich's console, which knows its own markup alone."""

    def say(text: str) -> None:
        console.print(visible(text), highlight=False, markup=False, soft_wrap=True)

    return say


#: Characters of a line, whatever the terminal has.
_NARROWEST, _WIDEST = 60, 120


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Return a text in lines, each behind its indent; names, links and numbers stay in one piece, however long."""
    return textwrap.wrap(
        text,
        max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns)),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


#: Seconds between two lines of a log.
BEAT = 30.0


class Heartbeat:
    """Says on standard error every half minute how far the work is, in a log that is no terminal; as a context."""

    def __init__(
        self, status: Callable[[], str], say: Callable[[str], None], *, seconds: float = BEAT
    ) -> None:
        self._status, self._say, self._seconds = status, say, seconds
        self._ended, self._thread = threading.Event(), threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            if text := self._status():
                self._say(text)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


class Doing:
    """Shows the work in progress on a terminal; as a context. A log gets a line on it every half minute.

    Lines meanwhile go through `say`, or the line would stand in it.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._spinner, self._console = Spinner("line"), console or Console(stderr=True)
        # Redirected, standard output would be printed on standard error.
        self._live = Live(
            self._spinner,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._text, self._begun = Text(), time.monotonic()
        self._beat = None if self._console.is_terminal else Heartbeat(self._status, printer(self._console))

    def _status(self) -> str:
        return f"{time.monotonic() - self._begun:.0f} s: {self._text}" if self._text else ""

    def now(self, text: str) -> None:
        """Show the work that begins, "" to stop."""
        self._text = Text(" ".join(visible(text).split()))
        # One line alone: started again, rich wipes as many lines as it had before, even those printed since.
        self._text.truncate(max(self._console.width - 3, 1), overflow="ellipsis")
        self._spinner.update(text=self._text)
        if self._text:
            self._live.start()
        else:
            self._live.stop()

    def tried(self, target: str, count: int) -> None:
        """Show a try of a model on a target."""
        self.now(f"try {count}, on {target}")

    def say(self, line: str) -> None:
        """Print a line on standard output."""
        self._live.stop()
        print(line, flush=True)
        if self._text:
            self._live.start()

    def __enter__(self) -> Doing:  # noqa: PYI034  (Self is Python 3.11)
        if self._beat:
            self._beat.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        if self._beat:
            self._beat.__exit__()

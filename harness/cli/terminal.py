"""Lines on a terminal: of engines and files only their visible characters, and a line on the work in progress."""

from __future__ import annotations

import shutil
import textwrap
import threading
import time
from collections.abc import Callable

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


class Doing:
    """Shows the work in progress on a terminal; as a context. A log gets a line on it every half minute.

    Lines meanwhile go through `say`, or the line would stand in it.
    """

    def __init__(self, console: Console | None = None, *, beat: float = BEAT) -> None:
        self._spinner, self._console, self._beat = Spinner("line"), console or Console(stderr=True), beat
        # Redirected, standard output would be printed on standard error.
        self._live = Live(
            self._spinner,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._text, self._begun, self._ended = Text(), time.monotonic(), threading.Event()

    def _tell(self) -> None:
        while not self._ended.wait(self._beat):
            if self._text:
                printer(self._console)(f"{time.monotonic() - self._begun:.0f} s: {self._text}")

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
        if not self._console.is_terminal:
            threading.Thread(target=self._tell, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._ended.set()

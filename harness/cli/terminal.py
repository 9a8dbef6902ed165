"""Lines on a terminal: of engines and files only their visible characters, and a line on the work in progress."""

from __future__ import annotations

import shutil
import sys
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
#: Seconds between the words on work that goes on.
_OFTEN = 30.0


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


class Doing:
    """Shows the work in progress; as a context. Without a terminal it is told once it takes longer than half a minute.

    Lines meanwhile go through `say`, or the line would stand in it.
    """

    def __init__(self) -> None:
        self._spinner, self._console = Spinner("line"), Console(stderr=True)
        # Redirected, standard output would be printed on standard error.
        self._live = Live(
            self._spinner,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._text, self._since = Text(), time.monotonic()
        self._over = threading.Event()

    def now(self, text: str) -> None:
        """Show the work that begins, "" to stop."""
        self._text, self._since = Text(" ".join(visible(text).split())), time.monotonic()
        # One line alone: started again, rich wipes as many lines as it had before, even those printed since.
        self._text.truncate(max(self._console.width - 3, 1), overflow="ellipsis")
        self._spinner.update(text=self._text)
        if self._text:
            self._live.start()
        else:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print a line on standard output."""
        self._live.stop()
        print(line, flush=True)
        if self._text:
            self._live.start()

    def __enter__(self) -> Doing:  # noqa: PYI034  (Self is Python 3.11)
        if not self._console.is_terminal:
            threading.Thread(target=self._tell, name="progress", daemon=True).start()
        return self

    def _tell(self) -> None:
        """Tell, every half minute, of work that goes on: whoever reads a log sees that it does."""
        while not self._over.wait(_OFTEN):
            seconds = time.monotonic() - self._since
            if self._text and seconds > _OFTEN:
                print(f"{self._text.plain} ({seconds:.0f} s)", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._live.stop()

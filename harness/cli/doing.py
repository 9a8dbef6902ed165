"""A line on a terminal that says what is being done and makes way for whatever is printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from harness.text import visible

if TYPE_CHECKING:
    from types import TracebackType


class Doing:
    """Tells on a terminal what is being done; as a context. Where standard error is none, nothing is told.

    What is printed meanwhile goes through `say`, or the line would stand in it.
    """

    def __init__(self) -> None:
        self._spinner, self._console = Spinner("line"), Console(stderr=True)
        # Redirected, what goes to standard output would be printed on standard error.
        self._live = Live(
            self._spinner,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._text = Text()

    def now(self, text: str) -> None:
        """Say what is begun, "" for nothing."""
        self._text = Text(" ".join(visible(text).split()))
        # Of one line alone: started again, rich wipes as many lines as it had before, and what was printed since.
        self._text.truncate(max(self._console.width - 3, 1), overflow="ellipsis")
        self._spinner.update(text=self._text)
        if self._text:
            self._live.start()
        else:
            self._live.stop()

    def say(self, line: str, *, error: bool = False) -> None:
        """Print a line on standard output, or on standard error."""
        self._live.stop()
        print(line, file=sys.stderr if error else sys.stdout, flush=True)
        if self._text:
            self._live.start()

    def __enter__(self) -> Doing:  # noqa: PYI034  (Self is Python 3.11)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

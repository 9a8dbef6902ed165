"""What the verbs print: the text of engines, models and files with every hidden character written out."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO, cast

from harness.text import visible

if TYPE_CHECKING:
    from rich.console import Console


class _Visible:
    """A stream that hands on what can be seen: no escape of an engine's reaches a terminal, by whichever print.

    Rich, whose own colours are to reach it, finds the stream itself by `rich_proxied_file`; what it is to print goes
    through `printer`.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the stream has)
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Make whatever is written to standard output and error within visible."""
    out, err = (cast("TextIO", _Visible(stream)) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


def printer(console: Console) -> Callable[[str], None]:
    """Return what prints a line on rich's console, which knows its own markup alone."""

    def say(text: str) -> None:
        console.print(visible(text), highlight=False, markup=False, soft_wrap=True)

    return say

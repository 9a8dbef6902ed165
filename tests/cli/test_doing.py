"""The line that says what is being done: on a terminal alone, and out of the way of what is printed."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from harness.cli.main import visible_output
from harness.cli.terminal import Doing

pytestmark = pytest.mark.unit


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


def test_the_line_is_wiped_before_anything_is_printed(
    capsys: pytest.CaptureFixture[str], terminal: Terminal
) -> None:
    with redirect_stderr(terminal), visible_output(), Doing() as doing:
        doing.now("try 3, on \x1b]0;title\x07 [bold]rtx17")
        doing.say("found")
        doing.now("")
        told = terminal.getvalue()
        doing.say("found more")
    assert capsys.readouterr().out == "found\nfound more\n"
    assert "try 3, on ⟨U+001B⟩]0;title⟨U+0007⟩ [bold]rtx17" in told
    assert told.endswith("\x1b[2K"), "it is gone"
    assert terminal.getvalue() == told, "and nothing is shown for nothing"


def test_it_is_one_line_however_long(capsys: pytest.CaptureFixture[str], terminal: Terminal) -> None:
    """Of several, the next would wipe lines that were printed since."""
    with redirect_stderr(terminal), visible_output(), Doing() as doing:
        doing.now("word " * 100)
        doing.say("found")
        doing.now("next")
    assert "found" in capsys.readouterr().out
    last = terminal.getvalue().rpartition("\x1b[?25l")[2]
    assert last.count("\x1b[1A") == 1, "up by itself alone"


def test_where_there_is_no_terminal_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Doing() as doing:
        doing.now("anything")
        doing.say("out")
        doing.say("err", error=True)
    assert tuple(capsys.readouterr()) == ("out\n", "err\n")

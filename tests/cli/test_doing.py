"""The line that says what is being done: on a terminal alone, late, and out of the way of what is printed."""

from __future__ import annotations

import io
import sys
import time

import pytest

from harness.cli import doing as module
from harness.cli.doing import Doing
from tests.waiting import wait_for

pytestmark = pytest.mark.unit


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    monkeypatch.setattr(module, "_TICK", 0.01)


def test_what_takes_long_is_told_and_wiped_before_anything_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal = Terminal()
    with Doing(terminal) as doing:
        doing.now("try 3, on \x1b[2Jrtx17")
        assert wait_for(lambda: "try 3" in terminal.getvalue())
        doing.say("found")
        told = terminal.getvalue()
        assert told.endswith("\r\x1b[K")
        doing.now("")
    assert capsys.readouterr().out == "found\n"
    assert terminal.getvalue().startswith("\r\x1b[Ktry 3, on ")
    assert "\x1b[2J" not in told


def test_what_is_quick_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 3600.0)
    terminal = Terminal()
    with Doing(terminal) as doing:
        doing.now("quick")
        time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_where_there_is_no_terminal_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Doing() as doing:
        doing.now("anything")
        time.sleep(0.1)
        doing.say("out")
        doing.say("err", error=True)
    assert tuple(capsys.readouterr()) == ("out\n", "err\n")
    assert sys.stderr is not None

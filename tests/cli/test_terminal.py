"""No text of an engine, a model or a file reaches a terminal as it is: it could clear it, or write as if typed."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import io
import re
import signal
import sys
import threading
from contextlib import redirect_stderr
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from harness.cli import main
from harness.cli.main import visible_output
from harness.cli.terminal import Doing, printer
from harness.errors import HandledError, InfraError
from harness.judge.cell import judge_cell
from harness.plan import all_cells, find
from harness.pytest_plugin import CellFailed, CellItem
from harness.record.outcome import End, Latency, Layer, Message, Node, ParserError
from harness.run import local
from harness.words import Verdict
from tests.cli.test_faults import VERBS
from tests.cli.test_run import Scripted
from tests.fixtures import Capture, Patch
from tests.pytest_plugin.test_outcomes import reported
from tests.report import factory

pytestmark = pytest.mark.unit

module = importlib.import_module("harness.cli.main")
#: Sets the title, clears the screen, asks for the cursor's place, goes back to the line's start, turns text round.
HOSTILE = "bad\x1b]0;title\x07\x1b[2J\x1b[6n\r\x9b31m\u202etxt\udc80"
#: Everything but tab, line end and what can be seen.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")
POISONED: dict[str, Any] = {
    "error": HOSTILE,
    "failed_phase": "build",
    "parser_errors": (ParserError(HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
    "messages": (Message("ERROR", HOSTILE), Message("WARNING", HOSTILE)),
    "native_output": HOSTILE,
    "end": End("signalled", HOSTILE, signal=HOSTILE),
    "nodes": (Node(HOSTILE, "Conv"),),
    "layers": (Layer(HOSTILE, HOSTILE, "fp32", onnx_nodes=(HOSTILE,)),),
    "latency": Latency((1.0,), 1, "monotonic", HOSTILE, before={HOSTILE: HOSTILE}),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: Patch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_prints_what_cannot_be_seen(monkeypatch: Patch, capsys: Capture, verb: str) -> None:
    """By whichever way it prints: this is held where all of them go through."""

    def says(_: argparse.Namespace) -> int:
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        sys.stdout.writelines([HOSTILE])
        raise (HandledError, InfraError, KeyError)[len(verb) % 3](HOSTILE)

    known = module._loaded
    monkeypatch.setattr(module, "_loaded", lambda name: (known(name)[0], says))
    main(VERBS[verb])
    captured = capsys.readouterr()
    for stream in captured:
        assert "bad⟨U+001B⟩]0;title⟨U+0007⟩" in stream
        assert not CONTROL.search(stream)


@pytest.mark.parametrize("state", ["done", "infra_error", "not_run"])
def test_a_hostile_record_is_shown_in_what_can_be_seen(
    toy: Path, monkeypatch: Patch, capsys: Capture, state: str
) -> None:
    poisoned = {"relu": {**POISONED, "state": state, "reason": HOSTILE}}
    monkeypatch.setattr(local, "TargetRunner", lambda target, **_: Scripted(target, poisoned))
    monkeypatch.setattr(Scripted, "note", HOSTILE)
    seen = ""
    for words in (
        ["run", "--target", "ort131", "-k", "toy and relu"],
        ["show", "toy.relu-ort131"],
        ["list"],
        ["verify"],
        ["diff", "trt86", "ort131"],
        ["diff", "reports", "reports"],
        ["accept"],
        ["merge", str(toy / "reports")],
        ["doctor"],
    ):
        main(words)
        captured = capsys.readouterr()
        assert not CONTROL.search(captured.out + captured.err), words
        seen += captured.out + captured.err
    assert "⟨U+001B⟩]0;title" in seen


def test_rich_prints_its_own_colours_and_nobody_elses() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard")
    printer(console)(HOSTILE)
    assert not CONTROL.search(stream.getvalue())
    console.print("ours", style="bold")
    assert "\x1b[1mours" in stream.getvalue()


def test_rich_finds_the_stream_itself(capsys: Capture) -> None:
    with visible_output():
        assert sys.stdout.isatty() is False
        Console(force_terminal=True, color_system="standard").print("ours", style="bold")
    assert capsys.readouterr().out == "\x1b[1mours\x1b[0m\n"


@pytest.mark.usefixtures("toy")
def test_the_line_of_a_run_moves_on_a_terminal(monkeypatch: Patch) -> None:
    """Its own escapes reach it, and those of a cell's reason do not."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    poisoned = {"relu": {**POISONED, "state": "done"}}
    monkeypatch.setattr(local, "TargetRunner", lambda target, **_: Scripted(target, poisoned))
    monkeypatch.setattr(Scripted, "note", HOSTILE)
    main(["run", "--target", "ort131", "-k", "toy and relu", "--fresh"])
    seen = terminal.getvalue()
    assert "\x1b[2K" in seen
    assert "bad⟨U+001B⟩]0;title⟨U+0007⟩" in seen
    assert "\x1b]0;" not in seen


def test_pytest_prints_a_failed_cell_in_what_can_be_seen() -> None:
    cell = find(all_cells(factory.matrix(), (factory.case(),)), "conv_silu.qdq-rtx14")
    judged = judge_cell(cell, dataclasses.replace(factory.build_failure("qdq", "rtx14"), **POISONED))
    item: Any = object.__new__(CellItem)
    item.judged = judged
    item.cell = judged.cell
    params = SimpleNamespace(dir=Path())
    item.config = SimpleNamespace(invocation_params=params, getoption=lambda _: None)
    item.path = Path("matrix.yaml")
    told = item.repr_failure(SimpleNamespace(value=CellFailed(judged)))
    assert "⟨U+001B⟩" in told
    assert not CONTROL.search(told)
    fixed = SimpleNamespace(judgement=SimpleNamespace(verdict=Verdict.FIXED, sentence=HOSTILE))
    assert not CONTROL.search(reported(fixed).wasxfail)


def test_the_line_is_wiped_before_anything_is_printed(capsys: Capture, terminal: Terminal) -> None:
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


def test_it_is_one_line_however_long(capsys: Capture, terminal: Terminal) -> None:
    """Of several, the next would wipe lines that were printed since."""
    with redirect_stderr(terminal), visible_output(), Doing() as doing:
        doing.now("word " * 100)
        doing.say("found")
        doing.now("next")
    assert "found" in capsys.readouterr().out
    last = terminal.getvalue().rpartition("\x1b[?25l")[2]
    assert last.count("\x1b[1A") == 1, "up by itself alone"


def test_where_there_is_no_terminal_nothing_is_told(capsys: Capture) -> None:
    with Doing() as doing:
        doing.now("anything")
        doing.say("out")
    assert tuple(capsys.readouterr()) == ("out\n", "")


@pytest.mark.parametrize(
    ("number", "handler", "code"),
    [
        (signal.SIGTERM, signal.SIG_DFL, 143),
        (signal.SIGHUP, signal.SIG_DFL, 129),
        (signal.SIGHUP, signal.SIG_IGN, 0),
    ],
)
def test_a_terminal_that_closes_ends_a_command_but_for_nohup(
    monkeypatch: Patch, number: signal.Signals, handler: signal.Handlers, code: int
) -> None:
    """And the handlers of whoever called are put back."""

    def signalled(_: list[str]) -> int:
        signal.raise_signal(number)
        return 0

    monkeypatch.setattr(module, "_run", signalled)
    before = signal.signal(number, handler)
    try:
        assert main(["list"]) == code
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_a_log_that_is_no_terminal_is_told_how_far_the_work_is() -> None:
    """And nothing as long as there is no work."""
    twice = threading.Event()

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            if self.getvalue().count("3 of 9 cells"):
                twice.set()
            return super().write(text)

    log = Log()
    with Doing(Console(file=log), beat=0.001) as doing:
        doing.now("3 of 9 cells")
        assert twice.wait(60)
    assert re.fullmatch(r"(\d+ s: 3 of 9 cells\n)+", log.getvalue())

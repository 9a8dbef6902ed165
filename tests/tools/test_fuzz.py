"""The campaign: what it counts, what it keeps, what it says; and that a planted fault is found, where atheris is."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import needs
from tests.fuzz import corpus, targets
from tests.fuzz.targets import TARGETS, Target, TooLong
from tools.fuzz import __main__ as command
from tools.fuzz import ledger
from tools.fuzz.campaign import Fuzzed
from tools.fuzz.found import keep, sentence
from tools.fuzz.ledger import Entry
from tools.fuzz.page import fuzzing_page

pytestmark = pytest.mark.unit


def reading(read: Callable[[bytes], object], *promises: type[Exception]) -> Target:
    return Target("planted", "", lambda: read, lambda: iter(()), promises)


def escaping(data: bytes) -> None:
    json.loads(data)


def test_what_is_promised_is_swallowed_and_nothing_else() -> None:
    reading(escaping, ValueError).run(b"{")
    with pytest.raises(ValueError, match="Expecting"):
        reading(escaping, KeyError).run(b"{")


def test_an_input_without_end_is_ended_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the reader takes every exception for its own; time that others take does not count."""
    monkeypatch.setattr(targets, "SECONDS", 0.2)

    def spin(_: bytes) -> None:
        while True:
            with contextlib.suppress(Exception):
                time.monotonic()

    with pytest.raises(TooLong):
        reading(spin).run(b"")
    reading(lambda _: time.sleep(0.5)).run(b"")


def test_an_input_that_takes_too_much_memory_is_refused_it() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MemoryError):
        reading(lambda _: bytearray(2 * targets.MEMORY)).run(b"")
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_the_shortest_input_of_a_finding_is_kept(tmp_path: Path) -> None:
    """Findings that come from one place are one, whatever they say."""
    for data in (b"{12345", b"{1", b"{123"):
        try:
            escaping(data)
        except ValueError as error:
            keep(tmp_path, data, error)
            said = sentence(error)
    assert said == "JSONDecodeError in tests.tools.test_fuzz.escaping: json.loads(data)"
    path, told = sorted(tmp_path.iterdir())
    assert (path.read_bytes(), told.read_text()) == (b"{1", f"{said}\n")


def test_what_libfuzzer_says_is_counted() -> None:
    """Edges that another process had found before are none that this one is thanked for."""
    fuzzed = Fuzzed("history")
    for line in (
        "#3\tINITED cov: 25 ft: 27 corp: 1/1b exec/s: 0 rss: 65Mb",
        "#9\tNEW    cov: 25 ft: 28 corp: 2/3b lim: 9 exec/s: 0 rss: 65Mb L: 2/2 MS: 3 Custom-",
        "#12\tRELOAD cov: 30 ft: 33 corp: 2/3b lim: 9 exec/s: 0 rss: 65Mb",
    ):
        fuzzed.hear(line)
    assert fuzzed.new_edge == 0
    fuzzed.hear("#19\tNEW    cov: 31 ft: 34 corp: 2/3b lim: 9 exec/s: 0 rss: 65Mb L: 2/2 MS: 1 Custom-")
    assert fuzzed.new_edge > 0
    fuzzed.hear("stat::number_of_executed_units: 2942")
    fuzzed.over()
    fuzzed.hear("#7\tpulse  cov: 27 ft: 29 corp: 3/5b lim: 9 exec/s: 170 rss: 65Mb")
    fuzzed.over()
    assert (fuzzed.inputs, fuzzed.edges, fuzzed.features) == (2949, 31, 34)


def test_quiet_time_adds_up_until_an_edge_is_new() -> None:
    """And a target is done after half an hour of it."""
    quiet = Entry(inputs=10, seconds=1000, quiet_s=1000, edges=5)
    assert not quiet.done
    both = quiet.and_then(quiet)
    assert (both.inputs, both.quiet_s, both.done) == (20, 2000, True)
    news = both.and_then(dataclasses.replace(quiet, quiet_s=3, last_new_edge="2026-01-02", edges=6))
    assert (news.quiet_s, news.done, news.edges, news.last_new_edge) == (3, False, 6, "2026-01-02")


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    entry = Entry(inputs=3, findings={"abc": ("2026-01-02", "KeyError")})
    ledger.write({"history": entry}, tmp_path / "ledger.json")
    found = ledger.read(tmp_path / "ledger.json")
    assert found == {**dict.fromkeys(TARGETS, Entry()), "history": entry}


def test_the_page_has_a_line_for_each_target() -> None:
    page = fuzzing_page()
    assert all(f"\n| `{name}` | {target.what} | " in page for name, target in TARGETS.items())


def test_what_is_kept_is_small_and_of_a_target() -> None:
    """A clone carries it; a finding of a target that is gone would be replayed by nobody."""
    packed = list(corpus.CORPUS.glob("*"))
    assert {path.name for path in packed} <= {f"{name}.tar.xz" for name in TARGETS}
    assert sum(path.stat().st_size for path in packed) <= corpus.MOST_PACKED
    assert all(sum(map(len, corpus.kept(name))) <= corpus.MOST for name in TARGETS)
    assert {path.name for path in corpus.FINDINGS.iterdir()} <= set(TARGETS)
    known = ledger.read()
    for name in TARGETS:
        assert {path.name for path in corpus.findings(name)} == set(known[name].findings)


def test_of_too_much_the_shortest_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MOST", 10)
    corpus.keep("history", [b"1234567", b"12345", b"123", b"123"], tmp_path)
    assert corpus.kept("history", tmp_path) == [b"123", b"12345"]


def test_a_mistake_is_a_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.main(["histroy"]) == 2
    assert capsys.readouterr().err.startswith("fuzz: there is no target 'histroy'; known: frames, ")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert command.main([]) == 2
    assert capsys.readouterr().err.startswith("fuzz: atheris is not installed")


def test_what_a_campaign_wrote_elsewhere_is_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs are counted with those before, what it found and kept is here then; also of one that was ended early."""
    here, there = tmp_path / "here", tmp_path / "there"
    monkeypatch.setattr(corpus, "CORPUS", here / "corpus")
    monkeypatch.setattr(corpus, "FINDINGS", here / "findings")
    monkeypatch.setattr(ledger, "FILE", here / "ledger.json")
    corpus.keep("history", [b"1"])
    ledger.write({"history": Entry(inputs=1)})
    assert command.take(there) == 2
    corpus.keep("history", [b"22"], there / "corpus")
    (there / "work" / "log").mkdir(parents=True)
    (there / "work" / "log" / "a").write_bytes(b"333")
    finding = there / "findings" / "log" / "abc"
    finding.parent.mkdir(parents=True)
    finding.write_bytes(b"4444")
    finding.with_name("abc.txt").write_text("KeyError\n")
    ledger.write(
        {"history": Entry(inputs=2), "log": Entry(findings={"abc": ("d", "w")})}, there / "ledger.json"
    )
    assert command.take(there) == 0
    assert (corpus.kept("history"), corpus.kept("log")) == ([b"1", b"22"], [b"333"])
    assert [path.read_bytes() for path in corpus.findings("log")] == [b"4444"]
    assert (ledger.read()["history"].inputs, ledger.read()["log"].findings) == (3, {"abc": ("d", "w")})


@pytest.mark.long
def test_a_campaign_finds_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A few seconds of a small reader: inputs are counted, edges seen, and the corpus comes back."""
    needs.atheris()
    code = command.main(["--seconds", "6", "--jobs", "1", "--out", str(tmp_path), "slurm"])
    assert (code, "| slurm |" in capsys.readouterr().out) == (0, True)
    found = ledger.read(tmp_path / "ledger.json")["slurm"]
    assert found.inputs > 10
    assert found.edges > 10
    assert corpus.kept("slurm", tmp_path / "corpus")

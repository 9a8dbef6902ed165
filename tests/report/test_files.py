"""The files of a report: well formed whatever strangers write, whole or not there, the same for the same records."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from harness.errors import HandledError, InfraError
from harness.known.listed import State
from harness.report import FILES, writer
from harness.report.labels import MARKS, NOT_YET
from harness.report.summary import LIMIT_BYTES, summary
from harness.report.writer import write_report
from harness.text import milliseconds, tail, visible
from harness.words import Class, Verdict
from tests.report import factory
from tests.report.poison import HIDDEN, HOSTILE, everywhere

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_text_leaves_the_other_files_well_formed(kind: str) -> None:
    """results.json parses, and the summary is bounded and has no live markup."""
    for results in (factory.results(hostile=HOSTILE[kind]), everywhere(HOSTILE[kind])):
        json.loads(writer.results_json(results).encode())
        text = summary(results)
        assert len(text.encode()) <= LIMIT_BYTES
        assert not re.search(r"(?<!\\)<\w|(?<!\\)\]\(|@\w", re.sub("`[^`\n]*`", "", text))
        assert not HIDDEN.search(text)


def test_every_class_has_its_own_letters_and_shape() -> None:
    """States can be told apart with no colour at all."""
    looks = [(mark.letters, mark.shape) for mark in MARKS.values()]
    assert set(MARKS) == {*Class, NOT_YET, Verdict.FAILS_WHEN_RUN, *State} - {State.UNKNOWN, State.CLEAR}
    assert len({letters for letters, _ in looks}) == len(looks)


def test_summary_leads_with_the_regression_and_its_counts_add_up() -> None:
    """A reader of a CI job sees the worst first."""
    text = summary(factory.results())
    assert "**Regressed: 1.**" in text.splitlines()[2]
    numbers = [int(found) for found in re.findall(r"^\| [A-Z][^|*]* \| (\d+) \|$", text, re.MULTILINE)]
    assert sum(numbers) == 32
    assert "`conv_silu.qdq-rtx17`" in text.partition("## Regressed (1)")[2].partition("##")[0]


def test_summary_says_so_when_nothing_is_wrong() -> None:
    """Green is told in words too."""
    fine = factory.outcome("qdq", "rtx15")
    text = summary(factory.assemble(factory.matrix(), (factory.case(),), {fine.cell: fine}))
    assert "**No regression" in text


def test_summary_is_cut_where_it_would_grow_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CI system refuses a summary that is too long."""
    monkeypatch.setattr("harness.report.summary.LIMIT_BYTES", 900)
    text = summary(factory.results())
    assert len(text.encode()) <= 900
    assert "*Cut here;" in text.splitlines()[-1]


def test_same_results_same_files(tmp_path: Path) -> None:
    """No clock, no random order, no trace of this machine."""
    for name in ("a", "b"):
        written = write_report(factory.results(), tmp_path / name)
        assert [path.name for path in written] == [*FILES]
    for file in ("index.html", "results.json", "summary.md"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_failing_write_leaves_the_old_report_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk must not publish half a page."""
    write_report(factory.results(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(InfraError, match="No space left on device"):
        write_report(factory.results(hostile="x"), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    """The user gets the fault and its cure, not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(HandledError, match="give another folder"):
        write_report(factory.results(), tmp_path / "file")


def test_visible_writes_out_what_cannot_be_seen() -> None:
    """A reader sees that a character is there, and which."""
    assert visible("a\u202eb\x00c\udcff") == "a⟨U+202E⟩b⟨U+0000⟩c⟨U+DCFF⟩"
    assert visible("\x1b[1;31mred\x1b[0m\r\nplain\ttext") == "red\nplain\ttext"


def test_tail_keeps_the_end_from_a_line_start() -> None:
    """The end of a log has the reason."""
    assert tail("one\ntwo\nthree", 8) == "…\nthree"
    assert tail("short", 8) == "short"
    assert tail("x" * 20, 8) == "…\n" + "x" * 8


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0 µs"),
        (0.0432, "43.2 µs"),
        (0.09996, "100 µs"),
        (0.1, "0.1 ms"),
        (1.25, "1.25 ms"),
        (10.25, "10.3 ms"),
        (999.9, "1000 ms"),
        (1000.5, "1001 ms"),
        (1499.6, "1500 ms"),
        (12345678.5, "12345679 ms"),
        (math.inf, "inf ms"),
    ],
)
def test_a_time_has_three_digits_and_halves_go_up_as_in_the_script(value: float, said: str) -> None:
    assert milliseconds(value) == said

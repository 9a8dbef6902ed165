"""What the benchmark suite makes of samples, and how it tells processes and functions apart; nothing is measured."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.suite import __main__ as suite
from benchmarks.suite.figures import Figure, Limit, Section, evenly, ratios
from benchmarks.suite.machine import Machine, memory_mib
from benchmarks.suite.memory import split
from benchmarks.suite.running import Ran, Run, Setting, ran
from benchmarks.suite.sampling import Samples
from benchmarks.suite.sampling import table as profile_table
from benchmarks.suite.second_run import Round
from benchmarks.suite.synthetic import MEASURED, ONE, TARGETS, write
from benchmarks.suite.table import MARKER, NoMarker, markdown, shown, with_section
from harness.case import load_cases
from harness.errors import InfraError
from harness.matrix import load_matrix
from harness.plan import all_cells, select
from harness.record.outcome import Outcome, Stamps

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
MACHINE = Machine(2, "a processor", 24_105, "3.11.7", "0123456789ab", 0.1, "2026-01-02")


def cell(when: str = "2026-01-02T00:00:10.000+00:00", **phases: float) -> Outcome:
    return Outcome("c[v]-t", "c", "v", "t", state="done", phases=phases, stamps=Stamps(when=when))


def made(*cells: Outcome) -> Run:
    """Return a run that began at midnight and took 20 seconds."""
    return Run(Ran(0, 1767312000.0, 0.5, 20.0, 30.0, 100.0, ""), cells)


def test_median_and_limit_are_of_the_samples() -> None:
    """The middle sample counts, whatever the order; a limit is kept at its very value."""
    figure = Figure("a", "x", (9.0, 1.0, 2.0), Limit(2))
    assert (figure.median, figure.passed) == (2.0, True)
    assert replace(figure, samples=(9.0, 1.0, 2.1)).passed is False
    assert replace(figure, limit=Limit(2, least=True)).passed is True
    assert replace(figure, limit=Limit(3, least=True)).passed is False
    assert replace(figure, limit=None).passed is None


def test_a_figure_has_samples() -> None:
    """A figure without a sample is none."""
    with pytest.raises(ValueError, match="speed: no sample"):
        Figure("speed", "x", ())


def test_ratios_are_of_the_same_round() -> None:
    """A round's samples are divided by each other, and rounds that do not match are a mistake."""
    assert ratios((6.0, 9.0), (2.0, 4.5)) == (3.0, 2.0)
    with pytest.raises(ValueError, match="zip"):
        ratios((1.0,), (1.0, 2.0))


def test_a_sample_is_spread_over_all() -> None:
    """So many are taken, from the whole row; all where there are not so many."""
    names = tuple(f"{number}" for number in range(10))
    assert evenly(names, 4) == ("0", "2", "5", "7")
    assert evenly(names, 10) == evenly(names, 99) == names


def test_a_run_is_split_by_its_records() -> None:
    """The engines' phases are added up; first and last record are counted from the start."""
    run = made(
        cell("2026-01-02T00:00:14.500+00:00", parse=0.25, build=1.0),
        cell("2026-01-02T00:00:02.000+00:00", build=2.0),
    )
    assert (run.engine_seconds, run.first_record, run.last_record) == (3.25, 2.0, 14.5)


def test_what_a_change_does_not_touch_is_counted() -> None:
    """Of the runs after a change, cells of the changed case and target are the ones that may run."""
    mish, other = replace(cell(), case="mish"), replace(cell(), target="rtx17")
    third = replace(cell(), target="rtx16")
    found = Round(made(cell()), made(mish), made(mish, mish, other), made(mish, third, other, other, other))
    assert found.beyond() == (1, 1, 2)


def test_the_table_says_what_was_held() -> None:
    """Each figure is a row with median, spread, limit and whether it was held; notes follow."""
    figures = (
        Figure("first", "x", (1.5, 1.0, 2.0), Limit(1.15)),
        Figure("a|b", "models/s", (5.0,), Limit(4, least=True)),
        Figure("plain", "s", (123.4,)),
    )
    text = markdown([Section("a", "all", figures, ("a note.",)), Section("b", "other", skipped="no daemon")])
    assert text.splitlines()[2:] == [
        "| a | first | 1.50 x | 1 to 2 | at most 1.15 x | **miss** |",
        "| a | a\\|b | 5 models/s | 5 to 5 | at least 4 models/s | pass |",
        "| a | plain | 123 s | 123 to 123 |  |  |",
        "| b | other: skipped, no daemon |  |  |  |  |",
        "",
        "- a: a note.",
    ]
    assert text.splitlines()[0].count("|") == text.splitlines()[2].count("|")


def test_a_small_size_judges_nothing() -> None:
    """Where the size proves nothing, no limit is called held or missed."""
    section = Section("a", "all", (Figure("first", "x", (1.5,), Limit(1.15)),))
    text = markdown([section], judged=False)
    assert "not judged" in text
    assert "miss" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.123, "0.12"), (9.99, "9.99"), (12.34, "12.3"), (1234.5, "1234"), (4.0, "4")],
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    """A figure is printed with the digits that it is read by."""
    assert shown(value) == text


def test_the_history_is_appended() -> None:
    """A page keeps what it has, and gets the new section at its end; one without the marker is refused."""
    page = f"# Page\n\n{MARKER}\n"
    once = with_section(page, "2026-01-02", "first\n")
    assert once == f"# Page\n\n{MARKER}\n\n### 2026-01-02\n\nfirst\n"
    assert with_section(once, "2026-01-03", "second") == f"{once}\n### 2026-01-03\n\nsecond\n"
    with pytest.raises(NoMarker):
        with_section("# Page\n", "2026-01-02", "first")


def test_the_page_of_the_figures_has_the_marker() -> None:
    """The page that the suite writes into has a place for it, and a line for each measurement."""
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert with_section(page, "2026-01-02", "figures").startswith(page.rstrip())
    assert [
        line.split(" | ")[0].strip("| `") for line in page.splitlines() if line.startswith("| `")
    ] == list(suite.MEASUREMENTS)


def test_the_machine_is_described_and_not_named() -> None:
    """Cores, processor and memory are said; a load at the start is called what it is."""
    assert MACHINE.line() == (
        "2 cores, a processor, 23.5 GiB of memory; Python 3.11.7; harness 0123456789ab; load 0.1 at the start."
    )
    assert replace(MACHINE, load=0.6).line().endswith("load 0.6 at the start: **not a quiet machine**.")
    assert memory_mib("MemTotal:       24683724 kB\nMemFree: 1 kB\n") == 24105


def test_processes_are_told_apart() -> None:
    """Agents and what they start are on one side, the host and its helpers on the other; strangers on neither."""
    parents = {10: 1, 11: 10, 12: 11, 20: 10, 21: 20, 22: 21, 99: 1}
    assert split(10, parents, {20, 99}.__contains__) == ({20, 21, 22}, {10, 11, 12})


def test_cpu_time_is_the_function_s_and_its_callers() -> None:
    """Time is added to the innermost function, and once to each that called it, even where it calls itself."""
    samples = Samples()
    samples.add(1.0, ["f", "g", "g", "main"])
    samples.add(3.0, ["g", "main"])
    samples.add(0.0, ["idle"])
    assert samples.to_json() == {"own": {"f": 1.0, "g": 3.0}, "whole": {"f": 1.0, "g": 4.0, "main": 4.0}}
    text = profile_table(samples.to_json())
    assert text.splitlines()[4:] == [
        "| `g` | 75.0% | 100.0% |",
        "| `f` | 25.0% | 25.0% |",
        "| `main` | 0.0% | 100.0% |",
    ]
    assert profile_table({"own": {}, "whole": {}}) == "No sample was taken.\n"


def test_a_sample_is_of_what_was_interrupted() -> None:
    """The function that runs when a sample is taken is named, not the one that takes it."""
    samples = Samples()
    samples.take(sys._getframe())
    taken = [name for name in samples.to_json()["own"] if name.startswith("tests/tools/test_bench.py:")]
    assert taken == ["tests/tools/test_bench.py:test_a_sample_is_of_what_was_interrupted"]
    assert not [name for name in samples.to_json()["whole"] if name.endswith(":take")]


def test_a_synthetic_matrix_is_one(tmp_path: Path) -> None:
    """It loads, has as many cells as were asked for, and its expression selects one."""
    write(tmp_path, 2_000)
    matrix = load_matrix(tmp_path / "matrix.yaml")
    cases = load_cases(tmp_path / "cases")
    cells = all_cells(matrix, cases)
    assert (len(matrix.targets), len(cells)) == (TARGETS, 2_000)
    assert [found.id for found in select(cells, ONE)] == ["case0000[variant07]-t001"]
    measured = {claim.targets for claim in cases[0].variants[0].expectations if claim.grade == "measured"}
    assert len(measured) == MEASURED


def test_trouble_of_one_measurement_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What fails is said in its row, the rest is measured, and the exit code is that of trouble."""

    def trouble(_: Setting) -> Section:
        raise InfraError("the daemon went away")

    def works(setting: Setting) -> Section:
        return Section("e", "works", (Figure("rounds", "", (float(setting.times),), Limit(0)),))

    page = tmp_path / "page.md"
    page.write_text(f"{MARKER}\n", encoding="utf-8")
    monkeypatch.setattr(suite, "MEASUREMENTS", {"c": ("broken", trouble), "e": ("works", works)})
    monkeypatch.setattr("sys.argv", ["suite", "--times", "3", "--write", str(page)])
    assert suite.main() == 3
    printed = capsys.readouterr().out
    assert "| c | broken: failed, the daemon went away |" in printed
    assert "| e | rounds | 3  | 3 to 3 | at most 0  | **miss** |" in printed
    assert page.read_text(encoding="utf-8").endswith(printed.strip() + "\n")
    monkeypatch.setattr("sys.argv", ["suite", "--times", "3", "--only", "e"])
    assert suite.main() == 1
    monkeypatch.setattr("sys.argv", ["suite", "--times", "3", "--only", "e", "--small"])
    assert suite.main() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--small", "--write", "{page}"], "figures of a small size are none to keep"),
        (["--write", "{page}"], "no line is <!-- runs"),
        (["--write", "{page}.not"], "No such file"),
    ],
)
def test_a_page_is_looked_at_before_anything_is_measured(
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """A page that cannot take figures is refused with one sentence."""
    page = tmp_path / "page.md"
    page.write_text("# Page\n", encoding="utf-8")
    monkeypatch.setattr(suite, "MEASUREMENTS", {})
    monkeypatch.setattr("sys.argv", ["suite", *(word.format(page=page) for word in words)])
    assert suite.main() == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_memory_is_that_of_the_program_and_not_of_the_one_that_starts_it() -> None:
    """What wait4 tells is at least what the starting process had at its peak: a vfork's child begins with it."""
    held = b"x" * 300_000_000
    words = [sys.executable, "-c", "import time; held = b'x' * 60_000_000; time.sleep(0.3)"]
    assert 60 < ran(words).peak_mb < 200
    del held

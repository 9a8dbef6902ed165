"""The closing summary stays short, whatever the number of cells."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.case import Expectation, Link, load_cases
from harness.cli.summary import advice, summarise
from harness.judge.cell import Judged, judge_cell
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.record.outcome import End, Message, Outcome, ParserError
from harness.words import Class
from tests.cli import project

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def cells() -> tuple[Cell, ...]:
    """Return every cell of the shipped matrix."""
    cases = tuple(
        dataclasses.replace(
            case, variants=tuple(dataclasses.replace(variant, expectations=()) for variant in case)
        )
        for case in load_cases(project.TOP / "cases")
    )
    return all_cells(load_matrix(project.TOP / "matrix.yaml"), cases)


def judged(cell: Cell, **fields: Any) -> Judged:
    outcome = Outcome(cell.id, cell.case.name, cell.variant.name, cell.target.name, **fields)
    return judge_cell(cell, outcome)


def fails(cell: Cell, text: str) -> Judged:
    return judged(
        cell, state="done", end=End("finished"), failed_phase="build", messages=(Message("ERROR", text),)
    )


def test_thousands_of_cells_that_did_not_run_take_a_line_a_reason(cells: tuple[Cell, ...]) -> None:
    """Each reason is told once, with its number of cells and its targets."""
    gpu = "needs an NVIDIA GPU; none found (nvidia-smi is not installed)"
    jetson = "needs a Jetson with Jetson Linux >=35.2,<36"
    results = [
        judged(cell, state="not_run", reason=jetson if cell.target.platform == "jetson" else gpu)
        for cell in cells
    ]
    lines = list(summarise(results))
    assert len(lines) == 4
    targets = {cell.target.name for cell in cells}
    assert lines[0] == f"{len(cells)} cells on {len(targets)} targets: {len(cells)} not run"
    assert lines[1] == f"not run: {len(cells)}"
    assert gpu in lines[2]
    assert "trt86, trt92" in lines[2]
    assert f"{jetson}: l4t85, l4t86, l4t103" in lines[3]
    assert [int(line.split()[0]) for line in lines[2:]] == [
        sum((cell.target.platform == "jetson") is board for cell in cells) for board in (False, True)
    ]


def test_counts_add_up_and_the_worst_comes_first(cells: tuple[Cell, ...]) -> None:
    first, second, third, fourth = cells[:4]
    results = [
        judged(first, state="done", end=End("finished"), ran=True),
        judged(second, state="not_applicable", reason="x"),
        judged(third, state="infra_error", reason="the daemon went away"),
        fails(fourth, "no"),
    ]
    lines = list(summarise(results))
    assert project.counted(lines[0]) == {
        "new failure": 1,
        "infrastructure trouble": 1,
        "as expected": 1,
        "not applicable": 1,
    }
    assert lines[1].endswith(": 1 ok, 1 build_failed")
    assert lines[2] == "new failures: 1"
    assert lines[3].startswith(f"  {fourth.id}: build_failed: ")


def test_a_long_list_is_told_by_cause(cells: tuple[Cell, ...]) -> None:
    """Sixteen failures of one kind are one line; fifteen are named."""
    named = list(summarise([fails(cell, "no") for cell in cells[:15]]))
    assert sum(f"  {cell.id}: " in line for cell in cells[:15] for line in named) == 15
    told = list(summarise([fails(cell, "no") for cell in cells[:16]]))
    assert told[2] == "new failures: 16"
    assert len(told) == 4
    assert told[3].startswith("    16  build_failed, no")


def test_causes_without_end_are_cut_short(cells: tuple[Cell, ...]) -> None:
    results = [
        judged(cell, state="infra_error", reason=f"reason {number}") for number, cell in enumerate(cells[:30])
    ]
    lines = list(summarise(results))
    assert len(lines) == 2 + 20 + 1
    assert lines[-1].split()[:3] == ["10", "by", "10"]


def test_no_line_runs_on(cells: tuple[Cell, ...]) -> None:
    """What an engine says may be long and of many lines; a line of the list is neither."""
    lines = list(summarise([fails(cells[0], "word\n" * 500)]))
    assert max(map(len, lines)) < 300
    assert lines[3].endswith("…")
    assert not [line for line in lines if "\n" in line]


def test_where_nothing_is_news_there_is_nothing_to_do(cells: tuple[Cell, ...]) -> None:
    fine = judged(cells[0], state="done", end=End("finished"), ran=True)
    assert not list(advice([fine], "accept", []))
    show, accept = advice([fails(cells[0], "no")], "ACCEPT", ["--reports", "x"])
    assert show.endswith(f"trt-compat show {cells[0].id} --reports x")
    assert accept.endswith(": ACCEPT")


def test_a_listed_cell_leads_with_its_diagnosis(cells: tuple[Cell, ...]) -> None:
    """The known cause and its place stand where the raw text stood, and what was claimed behind them."""
    wrong = Expectation.reported(Class.OK, "", Link("https://example.org", "a report"))
    variant = dataclasses.replace(cells[0].variant, expectations=(wrong,))
    claimed = dataclasses.replace(cells[0], variant=variant)
    refused: dict[str, Any] = {
        "state": "done",
        "end": End("finished"),
        "failed_phase": "parse",
        "parser_errors": (ParserError("false", "UNSUPPORTED_NODE", "/shift", "BitShift"),),
    }
    lines = list(summarise([judged(claimed, **refused), judged(cells[1], **refused)]))
    known = "parse_failed: Bit arithmetic, at BitShift node '/shift'"
    assert f"  {claimed.id}: {known}; fails to parse; reported in a report: works" in lines
    assert f"  {cells[1].id}: {known}" in lines

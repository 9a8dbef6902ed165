"""The past of cells as a report has it: each seeded change is told for what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.history.runs import Entry, RunRecord, subject_of
from harness.report import summary as past
from harness.report.model import RunView
from harness.report.results import assemble
from harness.report.summary import summary
from harness.words import Class
from tests.history.seeded import OTHER, STACK, day
from tests.report import factory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.history import CellHistory
    from harness.history.runs import Stack
    from harness.record.outcome import Outcome
    from harness.report import Results

pytestmark = pytest.mark.unit

OK, BUILD, BUILT = Class.OK, Class.BUILD_FAILED, Class.BUILT
NIGHTS = 20

Night = tuple[Class, float | None]


def seeded(
    nights: Mapping[str, Sequence[Night]],
    stacks: Sequence[Stack] | None = None,
    last: str = "r1",
    tonight: Outcome | None = None,
) -> Results:
    """Return the results of `factory.outcomes()` with a past: one run a night, the last of them theirs."""
    prepared = factory.outcomes()
    count = len(next(iter(nights.values())))
    records = []
    for number in range(count):
        cells = {key: _entry(prepared[key], *found[number]) for key, found in nights.items()}
        stack = stacks[number] if stacks else STACK
        run = last if number == count - 1 else f"night{number}"
        records.append(RunRecord(run, day(number), (stack,), cells))
    outcomes = factory.outcomes() | ({tonight.cell: tonight} if tonight else {})
    return assemble(factory.matrix(), (factory.case(),), outcomes, records)


def _entry(outcome: Outcome, cls: Class, median: float | None) -> Entry:
    subject = subject_of(outcome.stamps.model_sha256, outcome.stamps.recipe_sha256)
    return Entry(outcome.case, outcome.variant, outcome.target, cls, subject, 0, None, median)


def classes(*found: Class) -> list[Night]:
    return [(each, None) for each in found]


def of(results: Results, variant: str = "qdq", on: str = "rtx15") -> CellHistory:
    found = results.cell("conv_silu", variant, on).past
    assert found
    return found


CELL = "conv_silu.qdq-rtx15"
TIMED = "conv_silu.qdq-ort131"


def test_a_new_failure_says_since_when_and_what_was_before() -> None:
    """The date is the first question."""
    results = seeded({"conv_silu.qdq-rtx14": classes(BUILT, BUILT, BUILD, BUILD, BUILD)})
    found = of(results, on="rtx14")
    assert (found.event, found.since, found.before) == ("new_failure", day(2), BUILT)
    (entry,) = past.news(results)
    assert (entry.when, entry.kind, [one.id for one, _ in entry.cells]) == (
        day(2), "new_failure", ["conv_silu.qdq-rtx14"],
    )  # fmt: skip


def test_a_changed_stack_is_named_and_may_be_the_cause() -> None:
    """Not every change is the engine's."""
    stacks = [STACK] * 3 + [OTHER] * 3
    results = seeded({CELL: classes(BUILD, BUILD, BUILD, BUILT, BUILT, BUILT)}, stacks)
    assert of(results).with_stack
    assert "may be the cause" in past.news(results)[0].cells[0][1]


@pytest.mark.parametrize("state", ["not_run", "infra_error"])
def test_a_cell_that_was_not_judged_this_time_keeps_its_past(state: Any) -> None:
    """As where a runner is offline: that it was not run tonight is nothing that its runs found."""
    tonight = factory.outcome("qdq", "rtx15", state=state, reason="no runner", layers=(), end=None)
    broke = seeded({CELL: classes(BUILT, BUILD, BUILD, BUILD)}, last="night3", tonight=tonight)
    assert not broke.cell("conv_silu", "qdq", "rtx15").measured
    assert [text for _, text in past.news(broke)[0].cells] == [
        "Build failed since 2026-01-02 03:00 UTC; worked until then (built)."
    ]


@pytest.mark.parametrize(("last", "kind"), [(1.3, ["slower"]), (0.7, ["faster"]), (1.05, [])])
def test_latency_is_news_where_it_leaves_all_runs_before(last: float, kind: list[str]) -> None:
    nights: list[Night] = [(OK, level) for level in (*[1.0] * (NIGHTS - 1), last)]
    assert [entry.kind for entry in past.news(seeded({TIMED: nights}))] == kind


def test_cells_that_changed_alike_stand_together_the_latest_run_first() -> None:
    """A new driver changes hundreds of cells in one night."""
    results = seeded(
        {
            CELL: classes(BUILD, BUILD, BUILT, BUILT, BUILT),
            "conv_silu.qdq-rtx16": classes(BUILD, BUILD, BUILT, BUILT, BUILT),
            "conv_silu.qdq-between-rtx16": classes(BUILD, BUILT, BUILT, BUILT, BUILT),
        }
    )
    found = past.news(results)
    assert [(entry.when, entry.kind, len(entry.cells)) for entry in found] == [
        (day(2), "fixed", 2),
        (day(1), "fixed", 1),
    ]


def test_summary_tells_what_the_last_night_changed() -> None:
    """The job page is read every morning; older changes are on the page."""
    changed = {
        CELL: classes(BUILD, BUILD, BUILD, BUILT),
        "conv_silu.qdq-rtx16": classes(BUILT, BUILT, BUILT, BUILT),
    }
    text = summary(seeded(changed, [STACK] * 3 + [OTHER]))
    assert "## Changed in the last 24 hours of runs (1)" in text
    assert "`conv_silu.qdq-rtx15`: stopped failing" in text
    older = seeded({CELL: classes(BUILD, BUILT, BUILT, BUILT, BUILT)})
    assert "Changed in the last" not in summary(older)


def test_summary_of_a_run_at_the_beginning_of_time_is_written() -> None:
    """A machine without a clock may stamp anything, and no day is before that one."""
    results = replace(seeded({CELL: classes(BUILT)}), runs=(RunView("r1", "0001-01-01T00:00:00+00:00"),))
    assert "Changed in the last" not in summary(results)

"""What the page says of the runs of the past: each seeded change is told for what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.history.runs import Entry, RunRecord, subject_of
from harness.report import past
from harness.report.compare.steps import Steps
from harness.report.counts import clusters
from harness.report.exports.markdown import summary
from harness.report.model import RunView
from harness.report.page.cells import facts
from harness.report.page.panel import cell_evidence
from harness.report.results import assemble
from harness.words import Class
from tests.history.seeded import OTHER, STACK, day, timed
from tests.report import factory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.history.runs import Stack
    from harness.record.outcome import Outcome
    from harness.report import Results
    from harness.report.model import CellView

pytestmark = pytest.mark.unit

OK, BUILD, BUILT = Class.OK, Class.BUILD_FAILED, Class.BUILT
NIGHTS = 20

Night = tuple[Class, tuple[float, ...]]


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


def _entry(outcome: Outcome, cls: Class, samples: tuple[float, ...]) -> Entry:
    subject = subject_of(outcome.stamps.model_sha256, outcome.stamps.recipe_sha256)
    where = (outcome.case, outcome.variant, outcome.target)
    return Entry(*where, cls, subject, 0, None, *_figures(samples))


def _figures(samples: tuple[float, ...]) -> tuple[float | None, tuple[float, ...]]:
    return (sorted(samples)[len(samples) // 2] if samples else None), samples


def classes(*found: Class) -> list[Night]:
    return [(each, ()) for each in found]


def latencies(shape: Callable[[int], float]) -> list[Night]:
    return [(OK, run.samples_ms) for run in timed(7, NIGHTS, shape)]


def cell(results: Results, variant: str = "qdq", on: str = "rtx15") -> CellView:
    return results.cell("conv_silu", variant, on)


CELL = "conv_silu.qdq-rtx15"
TIMED = "conv_silu.qdq-ort131"


def test_a_new_failure_says_since_when_and_what_was_before() -> None:
    """The date is the first question."""
    results = seeded({"conv_silu.qdq-rtx14": classes(BUILT, BUILT, BUILD, BUILD, BUILD)})
    found = cell(results, on="rtx14")
    assert past.history_words(found) == ("new_failure",)
    assert past.sentences(found) == ("Build failed since 2026-01-03 03:00 UTC; worked until then (built).",)
    (entry,) = past.news(results)
    assert (entry.when, entry.kind, [one.id for one, _ in entry.cells]) == (
        day(2), "new_failure", ["conv_silu.qdq-rtx14"],
    )  # fmt: skip


def test_a_fix_says_since_when() -> None:
    """And that it failed until then."""
    results = seeded({CELL: classes(BUILD, BUILD, BUILT, BUILT, BUILT)})
    assert past.history_words(cell(results)) == ("fixed",)
    assert past.sentences(cell(results)) == (
        "Built since 2026-01-03 03:00 UTC; failed until then (build failed).",
    )


def test_a_flaky_cell_is_marked_in_its_corner_and_named_in_full() -> None:
    """Nobody should decide on the class that it happens to have."""
    results = seeded({CELL: classes(BUILT, BUILD, BUILT, BUILT, BUILD, BUILT)})
    found = cell(results)
    assert found.flaky == (BUILD, BUILT)
    assert past.corner(found) == "~"
    assert past.sentences(found)[0].startswith(
        "Flaky since 2026-01-02 03:00 UTC: build failed and built on the same stack;"
    )
    assert past.news(results)[0].when == day(1)
    looks = facts(results, Steps(results))["looks"]["rows"]
    assert any(look.corner == "~" and "Flaky" in look.words and look.past == ("flaky",) for look in looks)


def test_a_changed_stack_is_named_and_may_be_the_cause() -> None:
    """Not every change is the engine's."""
    stacks = [STACK] * 3 + [OTHER] * 3
    results = seeded({CELL: classes(BUILD, BUILD, BUILD, BUILT, BUILT, BUILT)}, stacks)
    assert past.sentences(cell(results)) == (
        "Built since 2026-01-04 03:00 UTC; failed until then (build failed).",
        (
            "The stack changed 2026-01-04 03:00 UTC (image or packages): latencies from before it are not compared. "
            "The result changed in that very run, so the stack may be the cause."
        ),
    )
    assert "may be the cause" in past.news(results)[0].cells[0][1]


def test_a_cell_run_once_says_so_and_is_no_news() -> None:
    """One run has nothing to be compared with."""
    results = seeded({CELL: classes(BUILT)})
    assert past.sentences(cell(results)) == ("Run once, 2026-01-01 03:00 UTC.",)
    assert past.news(results) == ()
    assert past.history_words(cell(results)) == ("first",)


@pytest.mark.parametrize("state", ["not_run", "infra_error"])
def test_a_cell_that_was_not_judged_this_time_keeps_what_its_past_says(state: Any) -> None:
    """As where a runner is offline: that it was not run tonight is nothing that its runs found."""
    tonight = factory.outcome("qdq", "rtx15", state=state, reason="no runner", layers=(), end=None)
    steady = seeded({CELL: classes(BUILT, BUILT)}, last="night1", tonight=tonight)
    assert not cell(steady).measured
    assert past.sentences(cell(steady)) == ("Built in every run since 2026-01-01 03:00 UTC.",)
    broke = seeded({CELL: classes(BUILT, BUILD, BUILD, BUILD)}, last="night3", tonight=tonight)
    said = "Build failed since 2026-01-02 03:00 UTC; worked until then (built)."
    assert past.sentences(cell(broke))[0] == said
    assert [text for _, text in past.news(broke)[0].cells] == [said]


def test_samples_that_are_no_time_make_no_change_of_latency() -> None:
    """By how much a median of 0 rose cannot be said."""
    none, one = (OK, (0.0,) * 20), (OK, (1.0,) * 20)
    found = cell(seeded({TIMED: [*[none] * 13, one]}), on="ort131")
    assert past.sentences(found)[-1].startswith("Whether its latency changed is inconclusive: 1 timed run ")


def test_a_cell_never_run_has_no_past() -> None:
    """Nothing is made up for it."""
    results = seeded({CELL: classes(BUILT)})
    never = cell(results, on="trt102")
    assert (past.sentences(never), past.history_words(never), past.corner(never)) == ((), (), "")
    assert "past" not in cell_evidence(never, results.cases[0].variants[0], results.runs)


@pytest.mark.parametrize(
    ("shape", "word", "corner", "said"),
    [
        (lambda number: 1.3 if number >= 10 else 1.0, "slower", "▼", "Its latency went from "),
        (lambda number: 0.7 if number >= 10 else 1.0, "faster", "▲", "Its latency went from "),
        (lambda number: 1.0 + 0.02 * number, "slower", "▼", "Its latency drifts from "),
        (lambda number: 2.0 if number == 9 else 1.0, "spike", "", "The run of 2026-01-10 03:00 UTC stands out: "),
        (lambda _: 1.0, None, "", "Its latency is steady over 20 timed runs on this stack."),
    ],
    ids=["step", "faster", "drift", "spike", "steady"],
)  # fmt: skip
def test_latency_is_told_for_what_it_did(
    shape: Callable[[int], float], word: str | None, corner: str, said: str
) -> None:
    """A step, a drift and a spike are not the same, and nothing is not a change."""
    results = seeded({TIMED: latencies(shape)})
    found = cell(results, on="ort131")
    assert past.history_words(found) == (("steady", word) if word else ("steady",))
    assert past.corner(found) == corner
    assert past.sentences(found)[-1].startswith(said)
    assert [entry.kind for entry in past.news(results)] == ([word] if word else [])


def test_what_came_and_went_says_that_it_is_back() -> None:
    """Two changes that undo each other are no reason to worry, and leave no mark; the filter finds both."""
    results = seeded({TIMED: latencies(lambda number: 1.3 if 8 <= number < 14 else 1.0)})
    found = cell(results, on="ort131")
    assert past.history_words(found) == ("steady", "slower", "faster")
    assert past.corner(found) == ""
    assert past.sentences(found)[-1] == "It is about what it was before it first changed."
    last, first = past.news(results)
    assert last.cells[0][1].endswith("It is about what it was before it first changed.")
    assert "before it first changed" not in first.cells[0][1]


def test_too_few_runs_are_inconclusive() -> None:
    """An answer too: it says how many are needed."""
    results = seeded({TIMED: latencies(lambda number: 1.5 if number >= 3 else 1.0)[:5]})
    assert past.sentences(cell(results, on="ort131"))[-1] == (
        "Whether its latency changed is inconclusive: 5 timed runs on this stack, 12 are needed."
    )
    assert past.news(results) == ()


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


def test_evidence_has_the_strip_the_medians_and_the_runs_that_changed() -> None:
    """What the panel draws."""
    results = seeded(
        {TIMED: latencies(lambda number: 1.3 if number >= 10 else 1.0)}, [OTHER] * 2 + [STACK] * 18
    )
    made = cell_evidence(cell(results, on="ort131"), results.cases[0].variants[0], results.runs)["past"]
    assert made["strip"][0] == ["2026-01-01 03:00", "ok", 1]
    assert made["strip"][-1] == ["2026-01-20 03:00", "ok", 0]
    assert [when for when, _ in made["medians"]] == [when for when, _, other in made["strip"] if not other]
    assert made["changes"] == ["2026-01-11 03:00"]


def test_clusters_say_when_they_were_first_seen() -> None:
    """A cause that is years old is another matter than last night's."""
    results = seeded({"conv_silu.qdq-rtx14": classes(BUILT, BUILD, BUILD, BUILD)})
    seen = {cluster.first_seen for cluster in clusters(results) if cell(results, on="rtx14") in cluster.cells}
    assert seen == {day(1)}
    assert not any(cluster.ever for cluster in clusters(results) if cluster.first_seen)
    always = seeded({"conv_silu.qdq-rtx14": classes(BUILD, BUILD)})
    assert all(cluster.ever for cluster in clusters(always) if cluster.first_seen)
    assert {cluster.first_seen for cluster in clusters(factory.results())} == {""}


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

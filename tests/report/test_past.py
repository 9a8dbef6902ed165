"""The past of cells as a report has it: each seeded change is named rightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.history import CellHistory, Entry, RunRecord, subject_of
from harness.record.outcome import Outcome
from harness.report.model import Results
from harness.words import Class
from tests.history.seeded import STACK, day
from tests.report import factory

pytestmark = pytest.mark.unit

BUILD, BUILT = Class.BUILD_FAILED, Class.BUILT


def seeded(
    nights: Mapping[str, Sequence[Class]], last: str = "r1", tonight: Outcome | None = None
) -> Results:
    """Return the results of `factory.outcomes()` with a past: one run a night, the last of them theirs."""
    prepared = factory.outcomes()
    count = len(next(iter(nights.values())))
    records = []
    for number in range(count):
        cells = {key: _entry(prepared[key], found[number]) for key, found in nights.items()}
        run = last if number == count - 1 else f"night{number}"
        records.append(RunRecord(run, day(number), (STACK,), cells))
    outcomes = factory.outcomes() | ({tonight.cell: tonight} if tonight else {})
    return factory.assemble(factory.matrix(), (factory.case(),), outcomes, records)


def _entry(outcome: Outcome, cls: Class) -> Entry:
    subject = subject_of(outcome.stamps.model_sha256, outcome.stamps.recipe_sha256)
    return Entry(outcome.case, outcome.variant, outcome.target, cls, subject, 0, None, None)


def of(results: Results, variant: str = "qdq", on: str = "rtx15") -> CellHistory:
    found = results.cell("conv_silu", variant, on).past
    assert found
    return found


CELL = "conv_silu.qdq-rtx15"


def test_a_cell_has_the_past_of_its_runs() -> None:
    """The date is the first question."""
    found = of(seeded({"conv_silu.qdq-rtx14": [BUILT, BUILT, BUILD, BUILD, BUILD]}), on="rtx14")
    assert (found.event, found.since, found.before) == ("new_failure", day(2), BUILT)


@pytest.mark.parametrize("state", ["not_run", "infra_error"])
def test_a_cell_that_was_not_judged_this_time_keeps_its_past(state: Any) -> None:
    """As with a runner that is offline: a night without a run is no finding of its runs."""
    tonight = factory.outcome("qdq", "rtx15", state=state, reason="no runner", layers=(), end=None)
    broke = seeded({CELL: [BUILT, BUILD, BUILD, BUILD]}, last="night3", tonight=tonight)
    assert not broke.cell("conv_silu", "qdq", "rtx15").measured
    assert (of(broke).event, of(broke).since) == ("new_failure", day(1))

"""Classes over time: a new failure, a fix, a flaky cell and a changed stack are each told for what they are."""

from __future__ import annotations

import dataclasses

import pytest

from harness.history import CellHistory, histories
from harness.history.latency import NEEDED
from harness.history.runs import Entry, RunRecord
from harness.words import Class
from tests.history.seeded import CELL, OTHER, STACK, day, runs, timed

pytestmark = pytest.mark.unit

OK, BUILD, CRASH = Class.OK, Class.BUILD_FAILED, Class.CRASHED


def past(records: tuple[RunRecord, ...]) -> CellHistory:
    """Return the history of the one cell."""
    return histories(records)[CELL]


def test_a_first_run_has_no_past() -> None:
    """Nothing can be said to have changed."""
    found = past(runs([BUILD]))
    assert (found.event, found.since, found.first_seen) == ("first", day(0), day(0))


def test_a_failure_that_comes_and_stays_is_new_from_its_first_run_on() -> None:
    """On the same stack it takes three runs to believe it."""
    found = past(runs([OK] * 5 + [BUILD] * 3))
    assert (found.event, found.since, found.first_seen, found.flaky) == ("new_failure", day(5), day(5), ())
    assert not found.with_stack
    assert past(runs([OK] * 5 + [BUILD] * 2)).event == "flaky"


def test_a_fix_says_since_when() -> None:
    """And that there was something to fix."""
    found = past(runs([BUILD] * 4 + [OK] * 3))
    assert (found.event, found.fixed_since, found.first_seen) == ("fixed", day(4), None)
    assert past(runs([OK] * 4)).fixed_since is None


def test_one_failure_after_another_is_a_change() -> None:
    """It is neither new that the cell fails, nor fixed; but this failure is new."""
    found = past(runs([BUILD] * 4 + [CRASH] * 3))
    assert (found.event, found.first_seen) == ("changed", day(4))


def test_a_failure_that_was_there_before_says_when_first() -> None:
    """It was fixed in between, on another stack."""
    stacks = [STACK] * 6 + [OTHER] * 3
    found = past(runs([BUILD, BUILD, BUILD, OK, OK, OK, BUILD, BUILD, BUILD], stacks))
    assert (found.event, found.since, found.first_seen) == ("new_failure", day(6), day(0))


def test_what_comes_and_goes_on_one_stack_is_flaky() -> None:
    """Also while it happens to hold still."""
    found = past(runs([OK, BUILD, OK, OK, BUILD, OK, OK, OK, OK]))
    assert (found.event, found.flaky, found.flaky_since) == ("flaky", (BUILD, OK), day(1))
    assert past(runs([OK, OK])).flaky_since is None


def test_what_was_flaky_long_ago_is_no_more() -> None:
    """Twenty runs that agree outweigh it."""
    assert past(runs([OK, BUILD, *[OK] * 20])).event != "flaky"


def test_a_class_that_changes_with_the_stack_is_not_flaky() -> None:
    """The stack may be the cause, and one run is enough to say so."""
    found = past(runs([OK] * 5 + [BUILD], [STACK] * 5 + [OTHER]))
    assert (found.event, found.with_stack, found.stack_since, found.flaky) == (
        "new_failure",
        True,
        day(5),
        (),
    )


def test_a_stack_that_changes_alone_is_told() -> None:
    """Latency before it is not compared with latency after."""
    found = past(runs([OK] * 8, [STACK] * 5 + [OTHER] * 3))
    assert (found.event, found.stack_since, found.with_stack) == ("steady", day(5), False)


def test_two_machines_of_two_stacks_do_not_make_a_cell_flaky() -> None:
    """One has a newer driver; each agrees with itself."""
    driver = dataclasses.replace(STACK, driver="580.1")
    found = past(runs([OK, BUILD] * 4, [STACK, driver] * 4))
    assert (found.event, found.flaky) == ("new_failure", ())


def test_another_model_or_recipe_begins_anew() -> None:
    """A failure of last year's model says nothing of this one, and does not make it flaky."""
    old, new = runs([BUILD] * 4, subject="old"), runs([OK] * 6, subject="new")[4:]
    found = past((*old, *new))
    assert (found.event, found.since, found.fixed_since) == ("steady", day(4), None)
    assert histories(old, {CELL: "new"}) == {}


def test_the_strip_names_the_last_runs_by_their_place() -> None:
    """Runs without the cell are passed over."""
    empty = RunRecord("other", day(1))
    records = runs([OK] * 30)
    found = past((records[0], empty, *records[1:]))
    assert len(found.strip) == 20
    assert found.strip[-1] == (30, OK)


def _timed_runs(count: int, changed: int) -> tuple[RunRecord, ...]:
    series = timed(11, count, lambda number: 1.3 if number >= changed else 1.0)
    return tuple(
        RunRecord(
            f"r{number}",
            day(number),
            (STACK if number < changed else OTHER,),
            {CELL: Entry("conv_silu", "qdq", "rtx17", OK, "m-r", 0, None, sorted(samples)[25], samples)},
        )
        for number, samples in enumerate(series)
    )


def test_latency_is_compared_on_one_stack_alone() -> None:
    """A step that comes with another image is the image's and no regression of the cell."""
    found = past(_timed_runs(2 * NEEDED + 1, NEEDED))
    assert found.latency is not None
    assert (found.latency.change, found.latency.runs) == (None, NEEDED)
    assert found.stack_since == day(NEEDED)


def test_a_changed_stack_says_what_of_it_changed_and_what_was_before() -> None:
    """The reader has to judge whether that is the cause."""
    found = past(runs([OK] * 3 + [BUILD] * 3, [STACK] * 3 + [OTHER] * 3))
    assert (found.before, found.with_stack, found.stack_changed) == (OK, True, ("image",))
    assert found.elsewhere == (0, 1, 2)
    same = past(runs([OK] * 3))
    assert (same.before, same.stack_changed, same.elsewhere) == (None, (), ())


def test_a_later_run_that_does_not_speak_for_the_cell_is_no_change() -> None:
    """A machine without a GPU that only builds what another machine ran: the run still speaks."""
    records = runs([OK, OK, Class.BUILT], [STACK, STACK, OTHER])
    found = histories(records, shown={CELL: "r1"})[CELL]
    assert (found.event, found.since, found.elsewhere) == ("steady", day(0), (2,))
    assert past(records).event == "changed"


def test_medians_are_those_of_the_present_stack() -> None:
    """Of another stack they are another machine's."""
    records = tuple(
        dataclasses.replace(
            record,
            cells={CELL: dataclasses.replace(record.cells[CELL], median_ms=0.5 + number, samples_ms=(0.5,))},
        )
        for number, record in enumerate(runs([OK] * 3, [OTHER, STACK, STACK]))
    )
    assert past(records).medians_ms == ((1, 1.5), (2, 2.5))


T4 = dataclasses.replace(STACK, device="Tesla T4", compute_capability="7.5")
L4 = dataclasses.replace(STACK, device="NVIDIA L4", compute_capability="8.9")


def test_what_another_gpu_found_is_no_past_of_this_one() -> None:
    """A T4 that fails between an L4's successes is neither flaky nor a failure that came and went."""
    records = runs([OK, BUILD, OK, BUILD], [L4, T4, L4, T4])
    (t4, l4) = (histories(records, shown={CELL: run})[CELL] for run in ("r3", "r2"))
    assert (t4.event, t4.since, t4.first_seen, t4.flaky) == ("steady", day(1), day(1), ())
    assert (l4.event, l4.since, l4.fixed_since, l4.flaky) == ("steady", day(0), None, ())
    assert t4.stack_since is l4.stack_since is None
    assert [number for number, _ in t4.strip] == [0, 1, 2, 3]
    assert (t4.elsewhere, l4.elsewhere) == ((0, 2), (1, 3))


def test_the_same_gpu_under_another_driver_is_another_stack_of_its_past() -> None:
    newer = dataclasses.replace(T4, driver="580.95")
    found = histories(runs([OK, BUILD], [T4, newer]), shown={CELL: "r1"})[CELL]
    assert (found.event, found.stack_changed, found.with_stack) == ("new_failure", ("driver",), True)


def test_a_gpu_after_a_machine_without_one_goes_on_with_its_past() -> None:
    """A target that was only built, and is then run, has one past."""
    bare = dataclasses.replace(STACK, device="Xeon", driver="")
    found = histories(runs([Class.BUILT, OK], [bare, T4]))[CELL]
    assert (found.event, found.before) == ("changed", Class.BUILT)


def test_records_of_before_the_compute_capability_was_kept_are_of_the_same_stack() -> None:
    """Of the same device, that is; one that was only ever named stays known by its name."""
    old = dataclasses.replace(L4, compute_capability="")
    found = past(runs([OK, OK, OK], [old, L4, L4]))
    assert (found.event, found.since, found.stack_since, found.elsewhere) == ("steady", day(0), None, ())
    two = dataclasses.replace(L4, compute_capability="9.0")
    assert past(runs([BUILD, OK], [two, L4])).event == "first"


def test_a_step_between_two_gpus_is_no_change_of_latency() -> None:
    """Half as fast by the device, not by the day."""
    shown = {CELL: f"r{2 * NEEDED}"}
    records = tuple(
        dataclasses.replace(each, stacks=(T4 if number < NEEDED else L4,))
        for number, each in enumerate(_timed_runs(2 * NEEDED + 1, NEEDED))
    )
    found = histories(records, shown=shown)[CELL]
    assert found.latency is not None
    assert (found.latency.change, found.latency.runs) == (None, NEEDED)

"""Latency changes that were sown in are found for what they are, and noise is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from harness.history.latency import NEEDED, Timed, judge_latency
from tests.history.seeded import day, timed

pytestmark = pytest.mark.unit


def verdicts(times: int, count: int, shape: Callable[[int], float] = lambda _: 1.0) -> Counter[str]:
    """Return how often each verdict is given to series that differ in their noise alone."""
    found = (judge_latency(f"cell-{seed}", timed(1000 * count + seed, count, shape)) for seed in range(times))
    return Counter(result.verdict for result in found if result)


def test_noise_is_rarely_taken_for_a_change() -> None:
    """The rate is bounded at 1 %; 5 of 150 would be a chance of 2 in 100."""
    found = verdicts(150, 20)
    assert found["steady"] >= 135
    assert found["step"] + found["drift"] + found["spike"] <= 4


def test_a_run_s_own_bias_is_not_a_change_however_many_samples_it_has() -> None:
    """Each run differs from the last beyond all doubt of its samples, and the cell is steady."""
    runs = [
        Timed(
            each.run,
            each.when,
            tuple(0.05 + 0.001 * ((7 * number) % 5) + 1e-6 * index for index in range(50)),
        )
        for number, each in enumerate(timed(1, 20))
    ]
    found = judge_latency("cell", runs)
    assert found is not None
    assert found.verdict == "steady"


@pytest.mark.parametrize("count", [NEEDED, 20, 40])
def test_a_step_is_found_where_it_is(count: int) -> None:
    """Ten per cent, five times the noise between runs: the run, and the medians on both sides."""
    found = judge_latency("cell", timed(count, count, lambda number: 1.1 if number >= count // 2 else 1.0))
    assert found is not None
    assert found.verdict == "step"
    (change,) = found.changes
    # A run that happens to be slow beside the step may be counted to it.
    assert change.when in (day(count // 2 - 1), day(count // 2), day(count // 2 + 1))
    assert change.after_ms / change.before_ms == pytest.approx(1.1, abs=0.03)
    assert change.p is not None
    assert change.p <= 0.01


@pytest.mark.long
def test_steps_are_rarely_missed() -> None:
    """A test that never says anything has no false alarms either."""
    assert verdicts(12, 20, lambda number: 1.1 if number >= 10 else 1.0)["step"] >= 11
    assert verdicts(12, 20, lambda number: 1.1 if number >= 17 else 1.0)["step"] >= 8


def test_up_and_back_again_is_two_steps() -> None:
    """A single division in two does not see it."""
    found = [
        judge_latency("cell", timed(seed, 30, lambda number: 1.15 if 10 <= number < 20 else 1.0))
        for seed in range(8)
    ]
    exact = [result for result in found if result and [each.run for each in result.changes] == ["r10", "r20"]]
    assert len(exact) >= 6


def test_one_wild_run_is_a_spike_and_no_step() -> None:
    """It names the run, and the stretch it sticks out of."""
    found = judge_latency("cell", timed(4, 20, lambda number: 2.0 if number == 12 else 1.0))
    assert found is not None
    assert (found.verdict, [change.run for change in found.changes]) == ("spike", ["r12"])
    assert found.changes[0].p is None
    assert verdicts(12, 20, lambda number: 2.0 if number == 12 else 1.0)["spike"] >= 11


@pytest.mark.long
def test_a_slow_drift_is_no_step() -> None:
    """Half a per cent a run: no run is to blame."""
    found = judge_latency("cell", timed(5, 30, lambda number: 1 + 0.005 * number))
    assert found is not None
    assert found.verdict == "drift"
    change = found.changes[0]
    assert change.after_ms / change.before_ms == pytest.approx(1.145, abs=0.04)
    assert verdicts(12, 30, lambda number: 1 + 0.005 * number)["drift"] >= 10


def test_too_few_runs_are_inconclusive_however_clear_the_step_looks() -> None:
    """No order of so few runs is rare enough."""
    found = judge_latency("cell", timed(6, NEEDED - 1, lambda number: 3.0 if number >= 5 else 1.0))
    assert found is not None
    assert (found.verdict, found.runs, found.changes) == ("inconclusive", NEEDED - 1, ())
    assert judge_latency("cell", []) is None


def test_the_same_runs_get_the_same_answer() -> None:
    """results.json is the same bytes from one day to the next."""
    runs = timed(7, 30, lambda number: 1.05 if number >= 20 else 1.0)
    assert judge_latency("cell", runs) == judge_latency("cell", runs)

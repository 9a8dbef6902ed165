"""The last run's median against those before it on one stack: a change is larger than all that is known of them."""

from __future__ import annotations

import pytest

from harness.history.latency import LEAST, MOST, NEEDED, judge_latency

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("now", "change"),
    [(1.0, None), (1.0 + LEAST, None), (1.25, "slower"), (0.8, "faster"), (1.0 - LEAST, None)],
)
def test_a_change_is_beyond_the_least_and_beyond_every_run_before(now: float, change: str | None) -> None:
    found = judge_latency([1.0] * NEEDED + [now])
    assert found
    assert (found.before_ms, found.now_ms, found.runs, found.change) == (1.0, now, NEEDED, change)


def test_runs_that_vary_as_much_make_no_change() -> None:
    """One of the runs before was as slow."""
    found = judge_latency([1.0, 1.0, 1.3, 1.0, 1.0, 1.25])
    assert found
    assert found.change is None


def test_too_few_runs_say_nothing_and_old_ones_are_left_out() -> None:
    assert judge_latency([]) is None
    assert judge_latency([1.0] * (NEEDED - 1) + [9.0]) is None
    found = judge_latency([9.0] * 50 + [1.0] * MOST + [1.0])
    assert found
    assert (found.before_ms, found.runs) == (1.0, MOST)

"""The timed loop: how long it warms up, how many samples it takes, and that nothing disturbs it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.agent import timed
from harness.run.session import Timing

pytestmark = pytest.mark.unit


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls = 0

    def work(self, seconds: float) -> Callable[[], float]:
        def once() -> float:
            self.now += seconds
            self.calls += 1
            return seconds * 1000

        return once


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def timing(**changes: float) -> dict[str, Any]:
    rule = {"warmup_s": 0.2, "iterations": 100, "window_s": 0.1, "most": 500, "budget_s": 10.0}
    return {**rule, **changes}


@pytest.mark.parametrize(
    ("seconds", "samples"),
    [
        (0.000_01, 500),  # short runs: no more than `most`
        (0.000_5, 200),  # until the window is filled
        (0.01, 100),  # the least number, though the window was filled long before
        (0.25, 40),  # the budget cuts even the least number
        (60.0, 1),  # a run that outlasts the budget is one sample
    ],
)
def test_samples_end_where_the_rule_says(clock: Clock, seconds: float, samples: int) -> None:
    found, _ = timed.sample(clock.work(seconds), timing())
    assert abs(len(found) - samples) <= 1
    assert set(found) == {round(seconds * 1000, 6)}


@pytest.mark.parametrize(("seconds", "calls"), [(0.001, 200), (0.05, 4), (3.0, 1)])
def test_warm_up_is_by_time_and_at_least_one_run(clock: Clock, seconds: float, calls: int) -> None:
    """A count would end before a short run has raised the clocks."""
    found, warmup = timed.sample(clock.work(seconds), timing())
    assert abs(warmup - calls) <= 1
    assert clock.calls == warmup + len(found)


def test_even_no_warm_up_is_one_run(clock: Clock) -> None:
    """The first run pays for what the later ones find ready."""
    _, warmup = timed.sample(clock.work(0.001), timing(warmup_s=0.0))
    assert warmup == 1


def test_the_hosts_default_gives_a_hundred_samples_or_ten_seconds(clock: Clock) -> None:
    found, _ = timed.sample(clock.work(0.05), vars(Timing()))
    assert len(found) == 100
    found, _ = timed.sample(clock.work(0.5), vars(Timing()))
    assert len(found) == 20


def test_the_cycle_collector_rests_while_samples_are_taken() -> None:
    """It would put its pause into one sample of many."""
    states: set[bool] = set()

    def once() -> float:
        states.add(gc.isenabled())
        return 0.0

    assert gc.isenabled()
    timed.sample(once, timing(warmup_s=0.0, window_s=0.0, iterations=5))
    assert states == {False}
    assert gc.isenabled()


def test_the_collector_comes_back_after_a_failure() -> None:
    def once() -> float:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        timed.sample(once, timing())
    assert gc.isenabled()


def test_a_sleep_is_timed_as_what_it_is() -> None:
    """On a real clock: 2 ms of sleep is never less, and every sample is what was measured."""
    measured = []

    def once() -> float:
        start = time.perf_counter()
        time.sleep(0.002)
        measured.append((time.perf_counter() - start) * 1000)
        return measured[-1]

    found, warmup = timed.sample(once, timing(warmup_s=0.01, window_s=0.05, iterations=20))
    assert len(found) >= 20
    assert warmup >= 1
    assert min(found) >= 2.0
    assert list(found) == [round(each, 6) for each in measured[warmup:]]

"""Samples -> statistics, and when they are too noisy to compare."""

from __future__ import annotations

import random

import pytest

from harness.judge.timing import Statistics, contended, interval, statistics

pytestmark = pytest.mark.unit


def run(count: int, spread: float, seed: int, *, middle: float = 1.0) -> list[float]:
    """Return normal samples with this interquartile range over the median."""
    generator = random.Random(seed)  # noqa: S311
    return [generator.gauss(middle, middle * spread / 1.349) for _ in range(count)]


def test_median_tail_and_spread_are_of_measured_samples() -> None:
    samples = [float(value) for value in range(1, 101)]
    random.Random(0).shuffle(samples)  # noqa: S311
    found = statistics(samples)
    assert (found.median, found.p95) == (50.5, 95.0)
    assert found.spread == pytest.approx(50 / 50.5)


@pytest.mark.parametrize("count", [1, 19])
def test_few_samples_are_no_measurement(count: int) -> None:
    assert str(count) in statistics([1.0] * count).noise
    assert statistics([1.0] * 20).noise == ""


def test_a_run_whose_second_half_is_slower_is_not_stationary() -> None:
    """Heat, clocks or another program: no number of samples mends that."""
    found = statistics([1.0] * 50 + [1.1] * 50)
    assert "10%" in found.noise
    faster = "the second half of the samples is 9% faster than the first"
    assert statistics([1.1] * 50 + [1.0] * 50).noise == faster
    assert statistics([1.0] * 50 + [1.04] * 50).noise == ""
    # The middle one of an odd number belongs to the second half.
    assert "100% slower" in statistics([1.0] * 10 + [2.0] * 11).noise


@pytest.mark.parametrize(("drift", "said"), [(1.12, "the samples spread by"), (1.16, "the second half")])
def test_a_drift_is_held_against_the_scatter_of_half_the_samples(drift: float, said: str) -> None:
    """At this spread two times 50 samples differ by 14 % by chance."""
    found = statistics([0.8, 1.2] * 25 + [0.8 * drift, 1.2 * drift] * 25)
    assert found.noise.startswith(said)


def test_noise_is_not_taken_for_drift() -> None:
    """Few stationary runs are said to drift."""
    drifted = [statistics(run(100, 0.15, seed=seed)).noise for seed in range(500)]
    assert sum("second half" in noise for noise in drifted) / 500 < 0.08


def test_a_wide_spread_is_noise_unless_there_are_samples_enough() -> None:
    wide = [0.5, 1.5] * 50
    assert "26%" in statistics(wide).noise
    assert "would not show" in statistics(run(100, 0.5, seed=1)).noise
    assert statistics(run(100, 0.02, seed=1)).noise == ""
    assert statistics(run(10_000, 0.5, seed=1)).noise == ""


@pytest.mark.parametrize(
    ("count", "spread", "noisy"),
    [(100, 0.19, False), (100, 0.20, True), (500, 0.43, False), (500, 0.44, True)],
)
def test_the_widest_spread_that_passes_is_the_documented_one(
    count: int, spread: float, *, noisy: bool
) -> None:
    """docs/gpu.md names these."""
    even = [1 + spread * (2 * index / (count - 1) - 1) for index in range(count)]
    found = statistics([*even[::2], *even[1::2]])
    assert found.spread == pytest.approx(spread, rel=0.02)
    assert ("would not show" in found.noise) is noisy


def test_samples_of_no_time_at_all_divide_by_nothing() -> None:
    """A clock can be coarser than the work."""
    assert statistics([0.0] * 30) == Statistics(30, 0.0, 0.0, 0.0, "")


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="no samples"):
        statistics([])


@pytest.mark.parametrize(("count", "low"), [(3, 0), (12, 1), (20, 3), (21, 4), (100, 35), (101, 36)])
def test_the_interval_is_of_the_ranks_that_a_table_of_order_statistics_has(count: int, low: int) -> None:
    """As many samples are left out above as below, whatever their order."""
    assert interval([float(each) for each in range(count)][::-1]) == (low, count - 1 - low)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {}, ""),
        ({"temperature_c": "40"}, {"temperature_c": "41"}, ""),
        ({"other_processes": "python (pid 7)"}, {}, "others used the GPU: python (pid 7)"),
        ({}, {"other_processes": "python (pid 8)"}, "others used the GPU: python (pid 8)"),
        (
            {"other_processes": "a (pid 1)"},
            {"other_processes": "b (pid 2)"},
            "others used the GPU: a (pid 1)",
        ),
    ],
)
def test_others_on_the_gpu_at_either_end_are_told(
    before: dict[str, str], after: dict[str, str], said: str
) -> None:
    assert contended(before, after) == said

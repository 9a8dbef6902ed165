"""Statistics of a latency's samples: middle, tail, spread, and whether they carry a comparison at all; pure.

The samples of a latency have a long tail to one side: the hardware bounds how fast a run can be, and much makes one
slower. So the middle is the median, the spread is the interquartile range over the median, and the tail is told apart
from both; a mean and a standard deviation would mix the three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import NamedTuple

from harness.record.outcome import OTHERS, Latency

#: The change of a median that samples must be able to show, or they are noise: below it a user's engine is as fast as
#: it was.
WORTH_TELLING = 0.05
#: The variation of one machine from run to run, by the clock of the samples: a single run a side cannot tell it from a
#: change. For a GPU by launches: up to 0.44 between two builds of one network (8.6.1, an H100, small graphs, builds
#: between the timings); by a CUDA graph: up to 0.32 in 700 pairs of the same precisions (10.6.0, four H200); for a CPU:
#: up to 0.20 in 33 pairs of runs of one stack, on two cores that others used too.
RUN_TO_RUN = {"cuda_events": 0.45, "cuda_graph": 0.35, "monotonic": 0.25}
#: The least samples for quartiles; 20 leave five in each quarter.
_ENOUGH = 20
#: Standard error of a median in interquartile ranges over the square root of the count, for samples that are near
#: normal about their middle: 1.2533 (median against mean) / 1.3490 (interquartile range of a normal distribution).
_MEDIAN_ERROR = 1.2533 / 1.3490
#: Standard errors by which two medians differ by chance in one of twenty pairs of runs.
_CONFIDENCE = 1.96
#: Confidence of one interval; two intervals then both enclose their medians with 99 %.
_ENCLOSES = 0.995


@dataclass(frozen=True)
class Statistics:
    """Median and 95th percentile in milliseconds.

    spread: the interquartile range over the median.
    noise: why the samples allow no comparison, "" if they do.
    """

    count: int
    median: float
    p95: float
    spread: float
    noise: str


def statistics(samples: Sequence[float]) -> Statistics:
    """Return the statistics of samples in the order taken; raises ValueError for no samples.

    Percentiles are nearest rank: each is a sample that was measured.
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    middle = median(ordered)
    low, high = percentile(ordered, 0.25), percentile(ordered, 0.75)
    half = len(samples) // 2
    first, second = (median(samples[:half]), median(samples[half:])) if half else (middle, middle)
    spread, drift = _ratio(high - low, middle), _ratio(second, first, none=1.0)
    return Statistics(
        count=len(samples),
        median=middle,
        p95=percentile(ordered, 0.95),
        spread=spread,
        noise=_noise(len(samples), spread, drift),
    )


def contended(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return a sentence on others on the GPU at either end of a timed run, "" if it had the GPU alone."""
    others = before.get(OTHERS) or after.get(OTHERS)
    return f"others used the GPU: {others}" if others else ""


class Bounds(NamedTuple):
    """A median in milliseconds, and the interval that holds it."""

    median: float
    low: float
    high: float


def bounds(latency: Latency) -> Bounds | None:
    """Return the bounds of a latency's median; None if its samples allow no comparison."""
    if not latency.samples_ms or latency.clock not in RUN_TO_RUN:
        return None
    found = statistics(latency.samples_ms)
    low, high = interval(latency.samples_ms)
    quiet = not (contended(latency.before, latency.after) or found.noise)
    return Bounds(found.median, low, high) if quiet and 0 < low <= high < math.inf else None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the sample of sorted samples that this share of them, above 0, does not exceed, by nearest rank."""
    return ordered[math.ceil(share * len(ordered)) - 1]


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return an interval that encloses the median with about 99.5 %, from order statistics; no shape is assumed.

    The samples must be enough for it, which those without noise are: of fewer than 9 even the extremes lie too close.
    """
    ordered = sorted(samples)
    count = len(ordered)
    reach = NormalDist().inv_cdf(0.5 + _ENCLOSES / 2) * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - reach))
    return ordered[low], ordered[count - 1 - low]


def _noise(count: int, spread: float, drift: float) -> str:
    """Say why a run is too noisy to show a change of WORTH_TELLING.

    A drift between the halves, beyond their scatter, does not come from the engine. If it is as large as WORTH_TELLING,
    the run was not stationary (clocks, heat, another program) and more samples would not help. If the middle half of
    the samples spreads so far that two such runs differ by more than that by chance, there were too few samples for
    this machine. Samples are taken for independent: a disturbance that outlasts many of them shows as drift or not at
    all.
    """
    if count < _ENOUGH:
        return f"{count} samples are too few to judge"
    change = abs(drift - 1)
    if change > max(WORTH_TELLING, _by_chance(spread, count / 2)):
        return f"the second half of the samples is {change:.0%} {'slower' if drift > 1 else 'faster'} than the first"
    least = _by_chance(spread, count)
    if least > WORTH_TELLING:
        return f"the samples spread by {spread:.0%}: a change under {least:.0%} would not show"
    return ""


def _by_chance(spread: float, count: float) -> float:
    """Return the relative difference that the medians of two such runs exceed in one of twenty pairs."""
    return _CONFIDENCE * math.sqrt(2) * _MEDIAN_ERROR * spread / math.sqrt(count)


def _ratio(value: float, base: float, *, none: float = 0.0) -> float:
    return value / base if base else none

"""Whether a cell's latency changed between runs of one stack: steady, a step, a drift, a spike, or inconclusive.

The unit of replication is the run. Samples within one run share a clock state, a memory layout and a neighbourhood, so
their spread says little of the spread between runs, and a test that took them for independent would find a change every
night. Therefore:

- each run becomes the deciles of its raw samples, in ranks among the samples of all runs: no shape is assumed, and one
  wild run weighs no more than its rank;
- the best division in two, else in three (up and back again), is searched exactly, by `ruptures` (Truong, Oudre and
  Vayatis, Signal Processing 167, 2020);
- it is held against the best divisions of the same runs in random order, whole runs permuted, and each part is divided
  further as long as that holds: E-divisive (Matteson and James, JASA 109, 2014) with runs in place of samples. That
  bounds the rate of false steps at `ALPHA` for runs that are exchangeable, whatever their distribution;
- runs that rise or fall steadily are told from runs that step by which of the two fits the medians better, and by
  whether they go on rising between the steps (the stratified Mann-Kendall test of Hirsch and Slack, 1984).

Fewer than `NEEDED` runs reach `ALPHA` in this test by luck or not at all, however large the step: the answer is then
"inconclusive".
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from random import Random
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: The largest p of a step that is reported; with one above it and at most `DOUBT` a cell is inconclusive, else steady.
ALPHA, DOUBT = 0.01, 0.05
#: Runs on each side of a step; a shorter excursion is a spike.
LEAST = 3
#: 2 · 6! 6! / 12! = 0.0022 < ALPHA / 2: so rarely does a random order divide as well as a clear step. For 11 runs it is
#: 0.0043, which `_ORDERS` orders cannot always tell from ALPHA / 2, and for 10 it is 0.0079.
NEEDED = 12
#: The latest runs that are looked at.
MOST = 60
#: Random orders of the runs, unless it is clear earlier.
_ORDERS = 1999
#: Orders at least as divided as the real one after which there is nothing to find (Besag and Clifford, 1991).
_ENOUGH = 20
#: A run is a spike beyond this many robust standard deviations from the others of its stretch.
_SPIKE = 8.0
#: A change must exceed this share as well: an untuned machine varies by less from day to day.
_LEAST_SPIKE = 0.05
_DECILES = np.arange(0.1, 0.91, 0.1)
_MAD = 1.4826

LatencyVerdict = Literal["steady", "step", "drift", "spike", "inconclusive"]


@dataclass(frozen=True)
class Timed:
    """One run's raw samples, in milliseconds."""

    run: str
    when: str
    samples_ms: tuple[float, ...]


@dataclass(frozen=True)
class LatencyChange:
    """One change: from the run `run` on, the median was `after_ms`; before it, `before_ms`.

    `p` is the chance of a division this clear among runs that did not change; None for a spike, which is one run.
    """

    run: str
    when: str
    before_ms: float
    after_ms: float
    p: float | None


@dataclass(frozen=True)
class LatencyHistory:
    """What can be said of `runs` runs on one stack, and the changes, the oldest first."""

    verdict: LatencyVerdict
    runs: int
    changes: tuple[LatencyChange, ...] = ()


def judge_latency(key: str, timed: Sequence[Timed]) -> LatencyHistory | None:
    """Return what the runs of one cell on one stack say, the oldest first; None where nothing was timed.

    `key` seeds the random orders, so that the same runs get the same answer.
    """
    if not timed:
        return None
    runs = list(timed[-MOST:])
    if len(runs) < NEEDED:
        return LatencyHistory("inconclusive", len(runs))
    # Python promises the sequence of random() for a seed in every version, NumPy none for its permutations.
    random = Random(zlib.crc32(key.encode()))  # noqa: S311
    medians = np.array([median(run.samples_ms) for run in runs])
    steps, doubtful = _steps(runs, random)
    drift = _drift(runs, medians, steps)
    if drift:
        return LatencyHistory("drift", len(runs), (drift,))
    spikes = _spikes(runs, medians, [0, *(at for at, _ in steps), len(runs)])
    if steps:
        return LatencyHistory(
            "step", len(runs), tuple(sorted((*_changes(runs, medians, steps), *spikes), key=_time))
        )
    if spikes:
        return LatencyHistory("spike", len(runs), spikes)
    return LatencyHistory("inconclusive" if doubtful else "steady", len(runs))


def _time(change: LatencyChange) -> str:
    return change.when


def _steps(runs: Sequence[Timed], random: Random) -> tuple[list[tuple[int, float]], bool]:
    """Return the steps, each with its p, and whether there is doubt, which counts where there is no step."""
    found: list[tuple[int, float]] = []
    doubtful = False
    parts = [(0, len(runs))]
    while parts:
        low, high = parts.pop()
        features = _features(runs[low:high])
        for cuts in (1, 2):
            if high - low < (cuts + 1) * LEAST:
                continue
            at, gain = _divide(features, cuts)
            # Two tests are made, so each may be wrong half as often.
            p = 2 * _chance(features, cuts, gain, random)
            if p <= ALPHA:
                found += [(low + cut, p) for cut in at]
                parts += list(pairwise([low, *(low + cut for cut in at), high]))
                break
            doubtful = doubtful or p <= DOUBT
    return sorted(found), doubtful


def _features(runs: Sequence[Timed]) -> NDArray[np.float64]:
    """Return the deciles of each run's ranks, one row a run."""
    from scipy.stats import rankdata  # noqa: PLC0415  (half a second, which most reports need not spend)

    ranks = rankdata(np.concatenate([run.samples_ms for run in runs]))
    ends = np.cumsum([len(run.samples_ms) for run in runs])[:-1]
    return np.array([np.quantile(part, _DECILES) for part in np.split(ranks, ends)]) / len(ranks)


def _divide(features: NDArray[np.float64], cuts: int) -> tuple[list[int], float]:
    """Return the best division and by how much it lowers the squared distance to the mean."""
    from ruptures import KernelCPD  # noqa: PLC0415

    at = [int(cut) for cut in KernelCPD(min_size=LEAST).fit(features).predict(n_bkps=cuts)]
    return at[:-1], _scatter(features) - sum(map(_scatter, np.split(features, at[:-1])))


def _scatter(features: NDArray[np.float64]) -> float:
    return float(((features - features.mean(axis=0)) ** 2).sum())


def _chance(features: NDArray[np.float64], cuts: int, gain: float, random: Random) -> float:
    """Return the share of random orders of the runs that divide as well as the real one."""
    as_good = 0
    for tried in range(1, _ORDERS + 1):
        as_good += _divide(_shuffled(features, random), cuts)[1] >= gain * (1 - 1e-9)
        if as_good >= _ENOUGH:
            return as_good / tried
    return (as_good + 1) / (_ORDERS + 1)


def _shuffled(features: NDArray[np.float64], random: Random) -> NDArray[np.float64]:
    keys = [random.random() for _ in features]
    return features[sorted(range(len(keys)), key=keys.__getitem__)]


def _drift(
    runs: Sequence[Timed], medians: NDArray[np.float64], steps: Sequence[tuple[int, float]]
) -> LatencyChange | None:
    """Return the change from the first to the last run where a line explains the medians better than steps do.

    Both models are fitted in the logarithm by least absolute deviations, and compared by the Bayesian information
    criterion, in which a step costs two parameters: its place and its size.
    """
    from scipy.stats import kendalltau, theilslopes  # noqa: PLC0415

    order = np.arange(len(runs))
    p = float(kendalltau(order, medians).pvalue)
    # Without steps the trend is a second chance to be wrong, so it has to be the clearer.
    if not p <= (ALPHA if steps else ALPHA / 10):
        return None
    logs = np.log(medians)
    slope, intercept, _, _ = theilslopes(logs, order)
    line = intercept + slope * order
    flat = np.concatenate(
        [np.full(len(part), np.median(part)) for part in np.split(logs, [at for at, _ in steps])]
    )
    better = _criterion(logs - line, 2) < _criterion(logs - flat, 1 + 2 * len(steps))
    goes_on = _trend(logs, steps) * np.sign(slope) > NormalDist().inv_cdf(1 - ALPHA)
    if not better and not goes_on:
        return None
    before, after = np.exp(line[0]), np.exp(line[-1])
    return _told(runs[0], float(before), float(after), p)


def _told(run: Timed, before: float, after: float, p: float | None) -> LatencyChange:
    """Return a change in as many digits as mean something: the last ones differ from one library's build to another."""
    short = None if p is None else float(f"{p:.3g}")
    return LatencyChange(run.run, run.when, float(f"{before:.5g}"), float(f"{after:.5g}"), short)


def _trend(logs: NDArray[np.float64], steps: Sequence[tuple[int, float]]) -> float:
    """Return by how many standard deviations the medians rise between the steps; negative where they fall."""
    total = variance = 0.0
    for part in np.split(logs, [at for at, _ in steps]):
        count = len(part)
        total += float(np.tril(np.sign(np.subtract.outer(part, part))).sum())
        variance += count * (count - 1) * (2 * count + 5) / 18
    return total / sqrt(variance)


def _criterion(residuals: NDArray[np.float64], parameters: int) -> float:
    count = len(residuals)
    scale = max(float(np.abs(residuals).mean()), 1e-9)
    return float(2 * count * np.log(scale) + parameters * np.log(count))


def _spikes(
    runs: Sequence[Timed], medians: NDArray[np.float64], bounds: Sequence[int]
) -> tuple[LatencyChange, ...]:
    found = []
    for low, high in pairwise(bounds):
        part = medians[low:high]
        middle = float(np.median(part))
        spread = _MAD * float(np.median(np.abs(part - middle)))
        for run, value in zip(runs[low:high], part, strict=True):
            if abs(value - middle) > max(_SPIKE * spread, _LEAST_SPIKE * middle):
                found.append(_told(run, middle, float(value), None))
    return tuple(found)


def _changes(
    runs: Sequence[Timed], medians: NDArray[np.float64], steps: Sequence[tuple[int, float]]
) -> list[LatencyChange]:
    bounds = [0, *(at for at, _ in steps), len(runs)]
    middles = [float(np.median(medians[low:high])) for low, high in pairwise(bounds)]
    return [
        _told(runs[at], before, after, p)
        for (at, p), (before, after) in zip(steps, pairwise(middles), strict=True)
    ]

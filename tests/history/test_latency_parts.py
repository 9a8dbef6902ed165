"""Each part of the look at latencies against figures worked out by hand; `test_latency.py` looks at the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.history import latency
from harness.history.latency import LatencyChange, LatencyHistory, Timed, judge_latency
from tests.history.seeded import day

pytestmark = pytest.mark.unit

#: Told apart by what stands in its place: the length of the part and the number of cuts -> the chance.
Chance = Callable[[int, int], float]


def runs(medians: Iterable[float]) -> list[Timed]:
    return [Timed(f"r{number}", day(number), (float(each),)) for number, each in enumerate(medians)]


def levels(text: str) -> list[Timed]:
    """Return one run a letter: a is 1 ms, b is 2 ms."""
    return runs([ord(letter) - ord("a") + 1 for letter in text])


def judged(monkeypatch: pytest.MonkeyPatch, timed: Sequence[Timed], chance: Chance) -> LatencyHistory:
    """Return what is said of the runs where random orders divide as well as the real one that often."""

    def stand_in(features: NDArray[np.float64], cuts: int, gain: float, _: Random) -> float:
        return chance(len(features), cuts) if gain > 1e-6 else 1.0

    monkeypatch.setattr(latency, "_chance", stand_in)
    found = judge_latency("cell", timed)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "clear", "at"),
    [
        ("aaaaaabbbbbb", {(12, 1)}, [6]),
        ("aaaaaaaaabbb", {(12, 1)}, [9]),
        ("aaaaaaaaaabb", {(12, 1)}, [9]),  # three runs a side, at least
        ("aaaabbbbaaaa", {(12, 2)}, [4, 8]),
        ("aaaabbbbaaaa", {(12, 1), (12, 2)}, [4]),  # in three only where not in two
        # Each part is divided further: of six runs in two, of nine in three, of fewer not at all.
        ("aaaaaacccddd", {(12, 1), (6, 1)}, [6, 9]),
        ("aaaaaaadddee", {(12, 1), (5, 1), (7, 1)}, [7]),
        ("hhhhhhhhhaaabbbaaa", {(18, 1), (9, 2)}, [9, 12, 15]),
        ("aaabbbaaahhhhhhhhh", {(18, 1), (9, 2)}, [3, 6, 9]),
        ("hhhhhhhhhaaabbaaa", {(17, 1), (8, 2)}, [9]),
    ],
)
def test_where_runs_are_divided(
    monkeypatch: pytest.MonkeyPatch, text: str, clear: set[tuple[int, int]], at: list[int]
) -> None:
    found = judged(monkeypatch, levels(text), lambda count, cuts: 0.001 if (count, cuts) in clear else 1.0)
    assert found.verdict == "step"
    assert [change.run for change in found.changes if change.p] == [f"r{each}" for each in at]


@pytest.mark.parametrize(
    ("one", "two", "verdict"),
    [
        (0.005, 1.0, "step"),
        (0.0051, 1.0, "inconclusive"),
        (0.025, 1.0, "inconclusive"),
        (0.0251, 1.0, "steady"),
        (1.0, 0.005, "step"),
        (1.0, 0.025, "inconclusive"),
        (1.0, 0.0251, "steady"),
        (0.02, 0.005, "step"),
    ],
)
def test_each_of_two_tests_may_be_wrong_half_as_often(
    monkeypatch: pytest.MonkeyPatch, one: float, two: float, verdict: str
) -> None:
    """Whole, 1 % for a step and 5 % for doubt."""
    found = judged(monkeypatch, levels("aaabbbbbbaaa"), lambda _, cuts: {1: one, 2: two}[cuts])
    assert (found.verdict, found.runs) == (verdict, 12)
    assert {change.p for change in found.changes} == ({0.01} if verdict == "step" else set())


def never(_: int, __: int) -> float:
    return 1.0


def test_twelve_runs_are_needed_and_the_last_sixty_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, levels("a" * 11), never) == LatencyHistory("inconclusive", 11)
    assert judged(monkeypatch, levels("a" * 12), never) == LatencyHistory("steady", 12)
    assert judged(monkeypatch, levels("b" + "a" * 60), never) == LatencyHistory("steady", 60)
    assert judged(monkeypatch, levels("b" + "a" * 59), never).verdict == "spike"


def test_a_change_says_from_what_to_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first, spikes among the steps."""
    timed = runs([1, 3, 1.02, 1.02, 1, 1, 1, 2, 7.1234567, 2, 2, 2])
    found = judged(monkeypatch, timed, lambda count, cuts: 0.001234567 if (count, cuts) == (12, 1) else 1.0)
    assert found.changes == (
        LatencyChange("r1", day(1), 1.0, 3.0, None),
        LatencyChange("r7", day(7), 1.0, 2.0, 0.00247),
        LatencyChange("r8", day(8), 2.0, 7.1235, None),
    )


@pytest.mark.parametrize(
    ("medians", "spikes"),
    [
        # Where the others agree, by more than 5 %, either way.
        ([100] * 6 + [105, 95], []),
        ([100] * 6 + [105.01, 94.99], [6, 7]),
        # Else by more than eight robust standard deviations: 8 · 1.4826 · 2.
        ([98, 102] * 5 + [100, 123.7, 76.3], []),
        ([98, 102] * 5 + [100, 123.8, 76.2], [11, 12]),
        # Of its own stretch: `|` is at six.
        ([100] * 6 + [200] * 3 + [209, 211], [10]),
    ],
)
def test_a_spike_sticks_out_of_its_stretch(medians: list[float], spikes: list[int]) -> None:
    bounds = [0, 6, 11] if len(medians) == 11 else [0, len(medians)]
    found = latency._spikes(runs(medians), np.array(medians), bounds)
    assert [change.run for change in found] == [f"r{each}" for each in spikes]


def test_a_run_is_the_deciles_of_its_ranks() -> None:
    found = latency._features([Timed("r0", "", tuple(range(11))), Timed("r1", "", tuple(range(50, 61)))])
    assert found * 22 == pytest.approx(np.array([range(2, 11), range(13, 22)]))


@pytest.mark.parametrize(
    ("column", "cuts", "at", "gain"),
    [
        ([0] * 4 + [1] * 5, 1, [4], 20 / 9),
        ([0] * 3 + [2] * 4 + [0] * 3, 2, [3, 7], 9.6),
        ([0] * 9 + [3], 1, [7], 8.1 - 6),
    ],
)
def test_the_best_division_lowers_the_scatter_most(
    column: list[float], cuts: int, at: list[int], gain: float
) -> None:
    """Each column has its own mean: one that is the same throughout adds nothing."""
    features = np.array([[each, 5.0, -each] for each in column])
    found, lowered = latency._divide(features, cuts)
    assert found == at
    assert lowered == pytest.approx(2 * gain)


@pytest.mark.parametrize(
    ("gains", "chance"),
    [
        ([0.9] * 80 + [1.0] * 20, 0.2),  # twenty as good are enough
        ([1.1] * 20, 1.0),
        ([0.9] * 1999, 1 / 2000),  # the real order is one of them
        ([0.9] * 1980 + [1.0] * 19, 20 / 2000),
        ([1 - 1e-12] * 20, 1.0),  # the same but for rounding
        ([1 - 1e-7] * 1999, 1 / 2000),
    ],
)
def test_the_chance_is_the_share_of_orders_that_divide_as_well(
    monkeypatch: pytest.MonkeyPatch, gains: list[float], chance: float
) -> None:
    waiting = iter(gains)
    monkeypatch.setattr(latency, "_divide", lambda *_: ([], 2 * next(waiting)))
    assert latency._chance(np.zeros((12, 9)), 1, 2.0, Mock(random=float)) == chance
    assert next(waiting, None) is None


def test_whole_runs_are_put_in_another_order() -> None:
    rows = np.array([[0, 1], [2, 3], [4, 5], [6, 7]])
    random = Mock(random=iter([0.5, 0.1, 0.9, 0.3]).__next__)
    assert latency._shuffled(rows, random).tolist() == [[2, 3], [6, 7], [0, 1], [4, 5]]


NO_STEP: list[tuple[int, float]] = []
STEP = [(6, 0.01)]
#: Twelve medians by rank, with Kendall's p in three sizes.
CLEAR = [1, 0, 4, 2, 5, 7, 6, 3, 10, 9, 8, 11]  # 0.00097
FAIR = [3, 2, 1, 0, 4, 8, 9, 6, 5, 7, 11, 10]  # 0.0088
JUST_NOT = [10, *range(8, -1, -1), 9, *range(11, 20)]  # 0.0011
FAINT = [5, 4, 3, 2, 1, 0, 11, 10, 9, 8, 7, 6]


@pytest.mark.parametrize(
    ("ranks", "steps", "drifts"),
    [
        (CLEAR, NO_STEP, True),
        (CLEAR, STEP, True),
        (FAIR, NO_STEP, False),
        (FAIR, STEP, True),
        (FAINT, STEP, False),
        (JUST_NOT, NO_STEP, False),
        (JUST_NOT, STEP, True),
        ([0] * 12, NO_STEP, False),
        # Rising by its ranks, and yet flat along most of it: the median slope is none.
        ([0] * 20 + [1] * 7, NO_STEP, False),
    ],
)
def test_a_drift_without_steps_has_to_be_the_clearer(
    ranks: list[int], steps: list[tuple[int, float]], drifts: bool
) -> None:
    medians = 1 + 0.01 * np.array(ranks)
    assert (latency._drift(runs(medians), medians, steps) is not None) is drifts


def test_a_drift_goes_from_the_line_s_begin_to_its_end() -> None:
    medians = np.exp(0.01 * np.arange(20))
    # 2 / 20!, which is the chance of the one order that rises throughout and of the one that falls.
    change = LatencyChange("r0", day(0), 1.0, 1.2092, 8.22e-19)
    assert latency._drift(runs(medians), medians, NO_STEP) == change


@pytest.mark.parametrize(
    ("criteria", "trend", "drifts"),
    [
        ([1.0, 2.0], 0.0, True),
        ([1.0, 1.0], 0.0, False),
        ([2.0, 1.0], 2.32, False),  # the quantile is 2.326
        ([2.0, 1.0], 2.33, True),
        ([2.0, 1.0], -2.33, False),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_drift_fits_better_than_the_steps_or_goes_on_between_them(
    monkeypatch: pytest.MonkeyPatch, criteria: list[float], trend: float, drifts: bool, sign: int
) -> None:
    """The line has two parameters; two steps have three levels and two places."""
    logs = sign * np.array([0.0, 0, 0, 1, 2, 1, 1, 1, 3, 3, 3, 3])
    met: list[tuple[list[float], int]] = []

    def criterion(residuals: NDArray[np.float64], parameters: int) -> float:
        met.append((residuals.tolist(), parameters))
        return criteria[len(met) - 1]

    monkeypatch.setattr(latency, "_criterion", criterion)
    monkeypatch.setattr(latency, "_trend", lambda *_: sign * trend)
    medians = np.exp(logs)
    found = latency._drift(runs(medians), medians, [(3, 0.01), (8, 0.01)])
    assert (found is not None) is drifts
    (on_line, two), (on_steps, five) = met
    assert (two, five) == (2, 5)
    # Theil and Sen: the median slope, through the median of both.
    assert on_line == pytest.approx(list(logs - sign * (1 + 41 / 140 * (np.arange(12) - 5.5))))
    assert on_steps == pytest.approx([0, 0, 0, 0, sign, 0, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("logs", "cuts", "trend"),
    [
        ([0, 1, 2, 3, 4, 5], [], 15 / (6 * 5 * 17 / 18) ** 0.5),
        ([5, 4, 3, 2, 1, 0], [], -15 / (6 * 5 * 17 / 18) ** 0.5),
        ([0, 2, 1, 3], [], 4 / (4 * 3 * 13 / 18) ** 0.5),
        ([0, 0, 1], [], 2 / (3 * 2 * 11 / 18) ** 0.5),
        # What happens at the step counts for nothing.
        ([0, 1, 2, 10, 11, 12, 13], [3], 9 / ((3 * 2 * 11 + 4 * 3 * 13) / 18) ** 0.5),
        ([0, 1, 2, 12, 11, 10], [3], 0),
    ],
)
def test_a_trend_is_counted_between_the_steps(logs: list[float], cuts: list[int], trend: float) -> None:
    """The statistic of Mann and Kendall, which Hirsch and Slack sum over strata."""
    assert latency._trend(np.array(logs), [(cut, 0.01) for cut in cuts]) == pytest.approx(trend)


@pytest.mark.parametrize(
    ("residuals", "parameters", "criterion"),
    [
        ([1, -1, 1, -1], 3, 3 * np.log(4)),
        ([0.5, -0.25, 0, 0.25], 2, 8 * np.log(0.25) + 2 * np.log(4)),
        ([0, 0], 2, 4 * np.log(1e-9) + 2 * np.log(2)),  # a perfect fit is not infinitely good
    ],
)
def test_the_criterion_is_that_of_absolute_deviations(
    residuals: list[float], parameters: int, criterion: float
) -> None:
    assert latency._criterion(np.array(residuals), parameters) == pytest.approx(criterion)

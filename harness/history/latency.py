"""The last run's latency against the runs before it on the same stack: slower, faster, or neither; pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Runs before the last one without which no change is told.
NEEDED = 5
#: Runs that the last one is held against, the latest of them.
MOST = 20
#: A change is told beyond this part of the median: an untuned machine varies by less from day to day.
LEAST = 0.1


@dataclass(frozen=True)
class LatencyHistory:
    """The last run's median, and that of the `runs` before it, in milliseconds; `change` is None for neither."""

    now_ms: float
    before_ms: float
    runs: int
    change: Literal["slower", "faster"] | None = None


def judge_latency(medians_ms: Sequence[float]) -> LatencyHistory | None:
    """Return how the last of the medians of runs on one stack compares, the oldest first; None where they are too few.

    It is a change where it differs from the median of the runs before by more than `LEAST`, and from each of them.
    """
    *earlier, now = medians_ms[-MOST - 1 :] or [0.0]
    if len(earlier) < NEEDED:
        return None
    before = median(earlier)
    if now > max(*earlier, before * (1 + LEAST)):
        return LatencyHistory(now, before, len(earlier), "slower")
    if now < min(*earlier, before * (1 - LEAST)):
        return LatencyHistory(now, before, len(earlier), "faster")
    return LatencyHistory(now, before, len(earlier))

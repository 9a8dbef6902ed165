"""How often the latency history errs, on seeded series: `python -m benchmarks.latency_rates [SERIES]`.

The figures in docs/results.md are this program's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

from harness.history.latency import judge_latency
from tests.history.seeded import timed


def _rates(name: str, series: int, count: int, shape: Callable[[int], float]) -> None:
    found = [
        judge_latency(f"cell-{seed}", timed(1000 * count + seed, count, shape)) for seed in range(series)
    ]
    verdicts = Counter(result.verdict for result in found if result)
    print(f"{name}, {count} runs, {series} series: {dict(sorted(verdicts.items()))}", flush=True)


def _between(low: int, high: int, factor: float) -> Callable[[int], float]:
    return lambda at: factor if low <= at < high else 1.0


def main() -> None:
    """Print a line for each kind of series."""
    series = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    few = max(1, series // 10)
    for count in (12, 20, 60):
        _rates("no change", series, count, lambda _: 1.0)
    for count in (12, 20, 30):
        _rates("10 % step in the middle", few, count, _between(count // 2, count, 1.1))
        _rates("one run twice as slow", few, count, _between(count // 2, count // 2 + 1, 2.0))
    _rates("10 % step before the last 3", few, 20, _between(17, 20, 1.1))
    for count in (20, 30):
        _rates("0.5 % drift a run", few, count, lambda at: 1 + 0.005 * at)
    _rates("15 % up and back", few, 30, _between(10, 20, 1.15))


if __name__ == "__main__":
    main()

"""The timed run: warm-up, then samples until there are enough of them or the time is up.

The same loop for every engine, so that latencies differ by engine and not by how they were taken. Nothing but the run
itself happens between two samples: no sensor is read and Python's cycle collector is off.
"""

import gc
import time
from typing import Any, Callable, Dict, List, Tuple


def sample(once: Callable[[], float], timing: Dict[str, Any]) -> Tuple[List[float], int]:
    """Return the milliseconds that each call of `once` reports, in order, and how many calls warmed up before.

    `timing`: `warmup_s` seconds of warm-up; then at least `iterations` samples and `window_s` seconds of them, at most
    `most` samples and `budget_s` seconds, whichever comes first. A call that outlasts the budget is one sample.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        warmup = _warm_up(once, timing["warmup_s"])
        return _samples(once, timing), warmup
    finally:
        if collecting:
            gc.enable()


def _warm_up(once: Callable[[], float], seconds: float) -> int:
    # By time and not by count: clocks take their tens of milliseconds to rise however short a run is.
    until = time.monotonic() + seconds
    calls = 0
    while calls == 0 or time.monotonic() < until:
        once()
        calls += 1
    return calls


def _samples(once: Callable[[], float], timing: Dict[str, Any]) -> List[float]:
    samples: List[float] = []
    start = time.monotonic()
    while True:
        # To the nanosecond: below that there is no clock, only digits to store.
        samples.append(round(once(), 6))
        passed = time.monotonic() - start
        enough = len(samples) >= timing["iterations"] and passed >= timing["window_s"]
        if enough or len(samples) >= timing["most"] or passed >= timing["budget_s"]:
            return samples

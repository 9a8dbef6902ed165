"""How far an engine's outputs are from the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness.record.outcome import Accuracy
from harness.run.numbers.wire import Array

if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST = float(np.finfo(np.float64).max)


def compare(expected: Mapping[str, Array], actual: Mapping[str, Array | None]) -> tuple[Accuracy, ...]:
    """Return one Accuracy for each reference output, in the reference's order.

    An output that is missing or has another shape has `shape_matches` False, and figures of 0 that mean nothing. An
    output that is all zero in the reference has no magnitude: `max_rel` is then absolute, and the cosine 1 if the
    output is zero too, else 0. Positions where the reference itself is not finite are left out.
    """
    return tuple(_compare(name, wanted, actual.get(name)) for name, wanted in expected.items())


def _compare(name: str, expected: Array, actual: Array | None) -> Accuracy:
    if actual is None or actual.shape != expected.shape:
        return Accuracy(name, max_abs=0.0, max_rel=0.0, cosine=0.0, shape_matches=False)
    # float64 holds every value of the types compared but INT64 and UINT64 beyond 2^53, of which it hides the last
    # digits alone.
    wanted, got = expected.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    comparable = np.isfinite(wanted)
    not_finite = int(np.count_nonzero(comparable & ~np.isfinite(got)))
    comparable &= np.isfinite(got)
    wanted, got = wanted[comparable], got[comparable]
    if not wanted.size:
        return Accuracy(
            name, max_abs=0.0, max_rel=0.0, cosine=0.0 if not_finite else 1.0, not_finite=not_finite
        )
    # Figures are written to JSON, which has no infinity, and extremes of float64 leave it.
    with np.errstate(over="ignore"):
        max_abs = min(float(np.max(np.abs(got - wanted))), _LARGEST)
    magnitude = float(np.max(np.abs(wanted)))
    return Accuracy(
        name,
        max_abs=max_abs,
        max_rel=min(max_abs / magnitude, _LARGEST) if magnitude else max_abs,
        cosine=_cosine(wanted, got),
        not_finite=not_finite,
    )


def _cosine(left: Array, right: Array) -> float:
    # Scaled first: squares of float32 extremes leave float64.
    scale = float(np.max(np.abs(left))), float(np.max(np.abs(right)))
    if not all(scale):
        return 1.0 if not any(scale) else 0.0
    left, right = left / scale[0], right / scale[1]
    cosine = float(left @ right) / float(np.sqrt((left @ left) * (right @ right)))
    return min(1.0, max(-1.0, cosine))

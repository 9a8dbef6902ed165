"""Samples of one quantity, their median and spread, and the limit that they are held to."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Limit:
    """What a median may be at most, or with `least` must be at least."""

    value: float
    least: bool = False

    def holds(self, value: float) -> bool:
        """Tell whether a value keeps to it."""
        return value >= self.value if self.least else value <= self.value


@dataclass(frozen=True)
class Figure:
    """One quantity, measured so many times."""

    what: str
    unit: str
    samples: tuple[float, ...]
    limit: Limit | None = None

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(f"{self.what}: no sample")

    @property
    def median(self) -> float:
        """Return the median of the samples."""
        return median(self.samples)

    @property
    def passed(self) -> bool | None:
        """Return whether the median keeps to the limit, None where there is none."""
        return None if self.limit is None else self.limit.holds(self.median)


@dataclass(frozen=True)
class Section:
    """What one measurement found; `notes` are sentences.

    `skipped` says why nothing was measured: the machine lacks what it needs, or with `failed` something went wrong.
    """

    letter: str
    title: str
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: str = ""
    failed: bool = False


def ratios(over: Sequence[float], under: Sequence[float]) -> tuple[float, ...]:
    """Return the ratio of each pair of samples that were taken in the same round."""
    return tuple(first / second for first, second in zip(over, under, strict=True))


def evenly(items: Sequence[str], count: int) -> tuple[str, ...]:
    """Return so many of the items, spread over the whole row; all where there are no more."""
    if len(items) <= count:
        return tuple(items)
    return tuple(items[index * len(items) // count] for index in range(count))

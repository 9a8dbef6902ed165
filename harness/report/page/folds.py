"""Which rows the page folds into one: a sweep, and variants of one kind that end alike on every target; pure."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.report.model import VariantView

_SWEEP = "sweep:"
#: Two rows in one save a line and cost a click.
_FEWEST = 3


class Fold(NamedTuple):
    """Rows by their numbers, what their names have in common, and why they belong together."""

    rows: tuple[int, ...]
    name: str
    said: str


def folds(variants: Sequence[VariantView], ends: Sequence[Sequence[str]]) -> list[Fold]:
    """Return the folds in the order of their first rows; `ends` are what is known of each row on each target.

    A sweep is folded whatever its rows end as. Others only where they end alike wherever they stand, are of one role in
    one case, and their names begin with the same word.
    """
    found: dict[tuple[object, ...], list[int]] = {}
    for row, variant in enumerate(variants):
        sweep = _sweep(variant)
        alike = (variant.role, variant.name.partition("-")[0], tuple(ends[row]))
        found.setdefault((variant.case, sweep) if sweep else (variant.case, *alike), []).append(row)
    return list(_folds(variants, [rows for rows in found.values() if len(rows) >= _FEWEST]))


def _folds(variants: Sequence[VariantView], groups: Sequence[Sequence[int]]) -> Iterator[Fold]:
    for rows in groups:
        names = [variants[row].name for row in rows]
        sweep = _sweep(variants[rows[0]])
        shared = "".join(
            each[0] for each in takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False))
        )
        name = f"{shared}…" if sweep else ", ".join(names)
        yield Fold(tuple(rows), name, f"sweep of {sweep}" if sweep else "alike on every target")


def _sweep(variant: VariantView) -> str:
    """Return what a variant sweeps, "" where it sweeps nothing."""
    return next((tag.removeprefix(_SWEEP) for tag in variant.tags if tag.startswith(_SWEEP)), "")

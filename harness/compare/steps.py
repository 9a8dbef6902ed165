"""What a step does to each variant: once for each pair of different knowns of a row, and for two columns of reports."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.compare.kinds import Kind, Pair, like_with_like
from harness.words import Class

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.case import Expectation
    from harness.known.model import Known
    from harness.known.view import VariantView


@dataclass(frozen=True)
class RowSteps:
    """The steps of one row: `known` numbers its different knowns, a column each.

    `kinds` are those that differ: number before, number after, kind, detail. `open` are numbers before and after of
    which both are known and not told apart.
    """

    known: tuple[int, ...]
    kinds: tuple[tuple[int, int, Kind, str], ...]
    open: tuple[tuple[int, int], ...] = ()


def row_steps(variant: VariantView, cells: Sequence[Known]) -> RowSteps:
    """Return what each step between two columns does to a variant; `cells` are in the columns' order."""
    numbers: dict[object, int] = {}
    known = tuple(numbers.setdefault(_compared(variant, cell), len(numbers)) for cell in cells)
    first = {number: cells[at] for at, number in reversed(list(enumerate(known)))}
    ends = itertools.product(range(len(numbers)), repeat=2)
    pairs = {(old, new): pair_of(variant, first[old], first[new]) for old, new in ends}
    found = [
        (old, new, kind, pair.detail(kind))
        for (old, new), pair in pairs.items()
        if old != new
        for kind in pair.kinds()
    ]
    return RowSteps(known, tuple(found), tuple(ends for ends, pair in pairs.items() if pair.open))


def pair_of(variant: VariantView, old: Known, new: Known) -> Pair:
    """Return both sides of one variant of one report, on one GPU where GPUs took part."""
    claims = claim_of(variant, old), claim_of(variant, new)
    return like_with_like(Pair(variant.wanted, old, new, claims))


def claim_of(variant: VariantView, cell: Known) -> Expectation | None:
    """Return the claim that a cell stands on, None where it stands on a record or on nothing."""
    return None if cell.claim is None else variant.claims[cell.claim]


def _compared(variant: VariantView, cell: Known) -> object:
    """Return all of a cell that a step looks at."""
    return (
        cell.stands,
        cell.cls is Class.NOT_APPLICABLE,
        cell.basis,
        cell.claim,
        cell.signature,
        cell.nodes(variant.wanted),
        tuple(cell.other.items()),
        cell.latency and (cell.latency.low, cell.latency.high, cell.latency.stack),
        cell.gpu,
        cell.by_gpu[1:],
        cell.demanded,
    )


def used_details(rows: Iterable[RowSteps]) -> dict[str, int]:
    """Return a number for each detail of rows, "" first."""
    found = {"": 0}
    for row in rows:
        for *_, detail in row.kinds:
            found.setdefault(detail, len(found))
    return found

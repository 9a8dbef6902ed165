"""Counts and clusters: the numbers that the page and the summary agree on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.known.advice import shared_advice
from harness.report.labels import BUCKETS, MARKS, UNEXPECTED, bucket
from harness.text import listed
from harness.words import GOOD, UNJUDGED, Class, Grade

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.known.model import Advice, Known, OnGpu
    from harness.report.model import Results


def counts(results: Results) -> dict[str, int]:
    """Return the number of cells by bucket, in the buckets' order; they add up to the number of cells."""
    found = Counter(bucket(cell) for cell in results.cells)
    return {key: found[key] for key in BUCKETS}


def nobody_ran(results: Results) -> str:
    """Say of which families no target was ever run, and how many reports speak of them; "" where there is none."""
    ran = {cell.target for cell in results.cells if cell.basis is Grade.MEASURED}
    families: dict[str, set[str]] = {}
    for target in results.targets:
        families.setdefault(target.family, set()).add(target.id)
    unrun = {family: ids for family, ids in families.items() if not ids & ran}
    ids = {target for every in unrun.values() for target in every}
    reports = {
        (cell.case, cell.variant, cell.claims[0])
        for cell in results.cells
        if cell.target in ids and cell.basis is Grade.REPORTED
    }
    if not unrun:
        return ""
    many = len(reports)
    spoken = (
        f"{many} reported claims speak"
        if many > 1
        else "1 reported claim speaks"
        if many
        else "no report speaks"
    )
    return f"{_families(list(unrun))}: nobody has run {'these' if len(ids) > 1 else 'this'} yet; {spoken} of them."


def _families(families: list[str]) -> str:
    """Return names as a reader lists them, neighbours of one product as a range: "TensorRT 8 to 11 and Jetson"."""
    groups: dict[str, list[str]] = {}
    for family in families:
        name, _, number = family.rpartition(" ")
        groups.setdefault(name if name and number.isdigit() else family, []).append(number)
    told = [
        f"{name} {numbers[0]}{f' to {numbers[-1]}' if len(numbers) > 1 else ''}"
        if name not in families
        else name
        for name, numbers in groups.items()
    ]
    return listed(told)


@dataclass(frozen=True)
class Cluster:
    """Failures of one cause: a diagnosis, or a class where no diagnosis fits.

    `advice` is that of the first cell, None where no diagnosis fits: its texts may name that cell's nodes. `first_seen`
    is the UTC time of the first run that failed so, "" where no run of the past is kept.
    """

    title: str
    advice: Advice | None
    cells: tuple[Known, ...]

    @property
    def first_seen(self) -> str:
        """Return the earliest time at which one of the cells first failed as it does."""
        seen = [cell.past.first_seen for cell in self.cells if cell.past and cell.past.first_seen]
        return min(seen, default="")

    @property
    def ever(self) -> bool:
        """Tell whether the cells failed in all runs kept, so that they may have failed before the first of them."""
        return all(cell.past.event in ("first", "steady") for cell in self.cells if cell.past)


def clusters(results: Results) -> tuple[Cluster, ...]:
    """Return the measured failures grouped by diagnosis, the largest group first."""
    return cluster(cell for cell in results.cells if cell.measured and cell.cls not in GOOD)


def attention(results: Results) -> dict[str, tuple[Cluster, ...]]:
    """Return the news by bucket, worst first and only where there is some, each grouped by cause."""
    found = {key: [cell for cell in results.cells if bucket(cell) == key] for key in UNEXPECTED}
    return {key: cluster(cells) for key, cells in found.items() if cells}


def cluster(cells: Iterable[Known]) -> tuple[Cluster, ...]:
    """Return cells grouped by diagnosis or else by class, diagnosed ones first, then the largest group."""
    groups: dict[str, list[Known]] = {}
    for cell in cells:
        groups.setdefault(cell.signature or f"\0{cell.cls}", []).append(cell)
    made = [_cluster(found) for _, found in sorted(groups.items())]
    return tuple(sorted(made, key=lambda made: (made.advice is None, -len(made.cells), made.title)))


def _cluster(cells: list[Known]) -> Cluster:
    first = cells[0]
    if first.diagnosis is None:
        name = MARKS[first.cls].name
        return Cluster(name if first.cls in GOOD else f"{name}, no known signature", None, tuple(cells))
    shared = shared_advice([cell.diagnosis for cell in cells if cell.diagnosis])
    return Cluster(shared.title, shared, tuple(cells))


def disagreement(results: Sequence[OnGpu]) -> str:
    """Return how GPUs disagree, in words; "" where all that was judged ended alike, save that some only built."""
    silent = UNJUDGED | {Class.NEEDS_GPU_TO_BUILD}
    judged = [(name, each) for name, each in named(results) if each.cls not in silent]
    ends = {Class.OK if each.cls in GOOD else (each.cls, each.signature) for _, each in judged}
    told = "; ".join(f"{MARKS[each.cls].name.lower()} on {name}" for name, each in judged)
    return told if len(ends) > 1 else ""


def named(results: Sequence[OnGpu]) -> list[tuple[str, OnGpu]]:
    """Return each result with its GPU for readers: the product, and the driver where a product is there twice."""
    products = [each.gpu for each in results]
    return [
        (f"{each.gpu}, driver {each.driver}" if products.count(each.gpu) > 1 else each.gpu or "no GPU", each)
        for each in results
    ]

"""Cells: every variant on every target, in the order of the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.errors import HandledError
from harness.words import GOOD, UNJUDGED, Basis, Class, to_do

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.case import Case, Expectation, Variant
    from harness.matrix import Matrix, Target


@dataclass(frozen=True)
class Cell:
    """One variant on one target; `id` is `case.variant-target`, also its pytest id; nothing takes it apart.

    `earlier` are the targets of an earlier version of the same engine, platform, GPU generation and provider.
    """

    id: str
    case: Case
    variant: Variant
    target: Target
    earlier: tuple[str, ...] = ()


def all_cells(matrix: Matrix, cases: Iterable[Case]) -> tuple[Cell, ...]:
    """Return all cells, ordered by case, variant and target, each as its source lists them.

    The targets of an untrusted case are untrusted. Raises HandledError where two cells would have one id.
    """
    earlier = {target.name: _earlier(matrix, target) for target in matrix}
    usual = tuple(matrix)
    untrusted = tuple(each if each.untrusted else replace(each, untrusted=True) for each in usual)
    cells = {}
    for case in cases:
        for variant in case:
            for target in untrusted if case.untrusted else usual:
                cell_id = f"{case.name}.{variant.name}-{target.name}"
                if cell_id in cells:
                    raise HandledError(f"two cells are called {cell_id}; rename a variant or a target")
                cells[cell_id] = Cell(cell_id, case, variant, target, earlier[target.name])
    return tuple(cells.values())


def _earlier(matrix: Matrix, target: Target) -> tuple[str, ...]:
    return tuple(
        other.name
        for other in matrix
        if series(other) == series(target) and Version(other.version) < Version(target.version)
    )


def series(target: Target) -> tuple[object, ...]:
    """Return what targets have in common whose versions make one row."""
    return target.engine, target.platform, target.compute_capability, target.provider


def claims_about(cell: Cell, compute_capability: str | None = None) -> tuple[Expectation, ...]:
    """Return the claims that stand in this cell on a GPU of this compute capability; None is any, "" is none.

    One of something alike stands in none, nor does one of a source that names no version.
    Where it is either, the GPU generation that the target builds for counts, if it declares one. That a build needs a
    GPU says nothing where there is one.
    """
    target = cell.target
    return tuple(
        expectation
        for expectation in cell.variant.expectations
        if expectation.stands
        and not (compute_capability and expectation.outcome is Class.NEEDS_GPU_TO_BUILD)
        and expectation.covers(
            target=target.name,
            engine=target.engine,
            version=target.version,
            platform=target.platform,
            compute_capability=compute_capability or target.compute_capability or compute_capability,
        )
    )


#: A version that lacks an API, or asks for a GPU, has not shown the failure that others report.
SHOWS_NO_FAILURE = GOOD | UNJUDGED | {Class.API_REMOVED, Class.NEEDS_GPU_TO_BUILD}


def failed_before(cell: Cell, compute_capability: str | None = None) -> str:
    """Return where the variant was measured failing, on this target or an earlier version of its platform; or "".

    On a GPU, what was measured without one or on one of the same compute capability counts.
    """
    here = (None, compute_capability or cell.target.compute_capability)
    found = [
        claim
        for claim in cell.variant.expectations
        if claim.compute_capability in here and _shows_failure(claim, cell)
    ]
    if not found:
        return ""
    last = max(found, key=_measured_on)
    return f"{last.note} to {to_do(last.outcome)}"


def _shows_failure(claim: Expectation, cell: Cell) -> bool:
    if claim.basis is not Basis.MEASURED or claim.outcome in SHOWS_NO_FAILURE:
        return False
    if not (claim.versions or "").startswith("==") or claim.engine is not cell.target.engine:
        return False
    if {cell.target.name, *cell.earlier}.isdisjoint(claim.targets):
        return False
    return _measured_on(claim) <= Version(cell.target.version)


def _measured_on(claim: Expectation) -> Version:
    return Version((claim.versions or "").removeprefix("=="))

"""Cells: every variant on every target, in the order of the report.

Also the claims that hold in a cell, the targets that reproduce a claimed failure, and the cells that do not apply.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from packaging.version import Version

from harness.case import Case, Expectation, Recipe, Typing, Variant
from harness.errors import HandledError
from harness.matrix import Matrix, Target
from harness.text import listed
from harness.words import SHOWS_NO_FAILURE, Basis, Class, to_do


@dataclass(frozen=True)
class Cell:
    """One variant on one target; `id` is `case.variant-target`, also its pytest id, and is never taken apart.

    `earlier` are the targets of an earlier version of the same engine, platform, GPU generation and provider.
    """

    id: str
    case: Case
    variant: Variant
    target: Target
    earlier: tuple[str, ...] = ()


def all_cells(matrix: Matrix, cases: Iterable[Case]) -> tuple[Cell, ...]:
    """Return all cells, ordered by case, variant and target, each as its source lists them.

    The targets of an untrusted case are untrusted. Raises HandledError if two cells would have one id.
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
    """Return the key of targets whose versions make one row."""
    return target.engine, target.platform, target.compute_capability, target.provider


def claims_about(cell: Cell, compute_capability: str | None = None) -> tuple[Expectation, ...]:
    """Return the claims that stand in this cell on a GPU of this compute capability; None is any, "" is none.

    A claim about a sibling, from a source without versions, or about a GPU that the target does not run on (a GeForce
    is no Jetson) never stands. Without a compute capability the one that the target builds for counts, if declared. A
    claim that a build needs a GPU does not stand on a machine that has one.
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
        and _has_gpu(target, expectation)
    )


def _has_gpu(target: Target, claim: Expectation) -> bool:
    return claim.compute_capability is None or target.needs.compute_capability_fits(claim.compute_capability)


def failed_before(cell: Cell, compute_capability: str | None = None) -> str:
    """Return the place of a measured failure of the variant on this target or an earlier version of it, or "".

    On a GPU, a measurement without one or on one of the same compute capability counts.
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


def reproduced_on(
    cells: Iterable[Cell], seen: Mapping[str, Collection[Class]] | None = None
) -> tuple[str, ...] | None:
    """Return the targets on which a variant was measured to fail as claimed; None without a claim of a failure.

    `cells` are those of the variant, `seen` the classes that were measured in each, beside the accepted ones.
    """
    found = []
    claimed = False
    for cell in cells:
        claims = claims_about(cell)
        failures = {claim.outcome for claim in claims if claim.basis is not Basis.MEASURED} - SHOWS_NO_FAILURE
        measured = {claim.outcome for claim in claims if claim.basis is Basis.MEASURED}
        claimed = claimed or bool(failures)
        if not failures.isdisjoint({*measured, *(seen or {}).get(cell.id, ())}):
            found.append(cell.target.name)
    return tuple(found) if claimed else None


def reproduced_said(targets: Collection[str] | None) -> str:
    """Return the targets of `reproduced_on` in words; "" where nobody claims a failure."""
    if targets is None:
        return ""
    return f"on {', '.join(targets)}" if targets else "nowhere yet"


def inapplicable_because(cell: Cell) -> str | None:
    """Return why a cell does not apply to its target, or None if it is to be run.

    A removed API is not decided here: it is run, and the agent reports which name is missing.
    """
    recipe, traits = cell.variant.recipe, cell.target.traits
    if recipe.libraries and not traits.takes_plugins:
        names = ", ".join(library.name for library in recipe.libraries)
        return f"{traits.product} takes no plugins of TensorRT's, and this recipe asks for those of {names}"
    if not traits.graph_alone:
        return None
    lacking = _outside_the_graph(recipe)
    if not lacking:
        return None
    reason = (
        f"{traits.product} takes precision from the graph alone, and this recipe asks for {listed(lacking)}"
    )
    twin = _same_graph(cell.case, cell.variant)
    return f"{reason}; {cell.case.name}.{twin.name} is the same graph without that" if twin else reason


def _outside_the_graph(recipe: Recipe) -> list[str]:
    """Name the requests of a recipe that the graph does not hold."""
    lacking = []
    if recipe.typing is Typing.WEAK:
        lacking.append(f"weak typing ({', '.join(recipe.flags)})" if recipe.flags else "weak typing")
    if recipe.typing is Typing.STRONG:
        lacking.append("a strongly typed network")
    if recipe.calibrator:
        lacking.append(f"{recipe.calibrator.kind} calibration")
    if recipe.parser_flags:
        lacking.append(f"parser flags ({', '.join(name for name, _ in recipe.parser_flags)})")
    if recipe.mark_outputs:
        lacking.append("inner tensors marked as outputs")
    if recipe.plugin:
        lacking.append(f"the plugin {recipe.plugin.op}")
    return lacking


def _same_graph(case: Case, variant: Variant) -> Variant | None:
    """Find the variant that builds the same bytes and has no wish beside the graph."""
    return next(
        (
            other
            for other in case
            if not _outside_the_graph(other.recipe)
            and (mine := _model_hash(variant))
            and _model_hash(other) == mine
        ),
        None,
    )


@functools.cache
def _model_hash(variant: Variant) -> str:
    """Return the hash of a model, "" if it cannot be built."""
    try:
        return variant.model_sha256()
    except HandledError:
        return ""

"""Says where a variant was measured to fail as claimed: only there does a claim hold for its reduction; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.plan.cells import SHOWS_NO_FAILURE, claims_about
from harness.words import Basis, Class

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from harness.plan.cells import Cell


def reproduced_on(
    cells: Iterable[Cell], seen: Mapping[str, Collection[Class]] | None = None
) -> tuple[str, ...] | None:
    """Return the targets on which a variant was measured to fail as others claim; None where nobody claims a failure.

    `cells` are those of the variant, `seen` the classes that were measured in each, beside what was accepted.
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
    """Return what `reproduced_on` found, in words; "" where nobody claims a failure."""
    if targets is None:
        return ""
    return f"on {', '.join(targets)}" if targets else "nowhere yet"

"""The variants to use in place of one that does not work, on the same target; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.layers.datatype import NARROW
from harness.words import GOOD, Basis, Class, Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.known.model import Known
    from harness.known.view import VariantView

    #: Variants with their cells on one target, by `case.variant`.
    Column = Mapping[str, tuple[VariantView, Known]]

#: Variants named.
_MOST = 2


def instead(column: Column, variant: VariantView, cell: Known, proofs: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the workarounds of a variant that hold on a target: measured, else reported, else untried ones.

    `proofs` are the variants that the advice of its signature names. () where it works, or where all are known to fail.
    """
    if cell.stands is None or cell.stands in GOOD:
        return ()
    every = _candidates(column, variant, cell, proofs)
    for basis in (Basis.MEASURED, Basis.REPORTED):
        works = [other.id for other, known in every if known.stands in GOOD and known.basis is basis]
        if works:
            return tuple(works[:_MOST])
    untried = [other.id for other, known in every if known.cls is Class.NOT_RUN]
    return tuple(untried[:_MOST])


def _candidates(
    column: Column, variant: VariantView, cell: Known, proofs: Sequence[str]
) -> list[tuple[VariantView, Known]]:
    """Return the workarounds of a variant or of its counterparts, then the proofs of its signature.

    A call that is gone is not needed by the twin that has its precision in the graph. A variant that gives up the
    narrow types of another is no help where these are lost.
    """
    own = {other.name: other for other, _ in column.values() if other.case == variant.case}
    family = [variant.name]
    while (name := own[family[-1]].counterpart) in own and name not in family:
        family.append(name)
    roles = {Role.WORKAROUND, Role.TWIN} if cell.stands is Class.API_REMOVED else {Role.WORKAROUND}
    near = [
        other.id
        for other in own.values()
        if other.role in roles and (other.counterpart in family or other.name in family)
    ]
    names = dict.fromkeys([*near, *(proof for proof in proofs if proof in column)])
    found = [column[name] for name in names if name != variant.id]
    narrow = cell.stands is Class.PRECISION_LOST and _narrow(variant)
    return [each for each in found if _narrow(each[0]) or not narrow]


def _narrow(variant: VariantView) -> bool:
    return any(want in NARROW for _, want in variant.wanted)

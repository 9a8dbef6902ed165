"""Ways round a cell that does not work: the variants that were measured to help on its target; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.known.model import Known, TargetView, VariantView
from harness.layers.operators import MOVING, MULTIPLYING
from harness.text import listed
from harness.words import GOOD, SHOWS_NO_FAILURE, Basis, Class, Precision, Role

#: The most ways round that a cell names.
_MOST = 2
#: Variants with their cells on one target, by `case.variant`.
OnTarget = Mapping[str, tuple[VariantView, Known]]
#: What a variant may ask for without asking for less than FP32.
_PLAIN = frozenset(
    {Precision.FP32, Precision.TF32, Precision.INT32, Precision.INT64, Precision.BOOL, Precision.UNKNOWN}
)
#: Operators that do the same, by one of them.
_PLAIN_OF = {
    **dict.fromkeys(("QLinearConv", "ConvInteger"), "Conv"),
    **dict.fromkeys(("Gemm", "QLinearMatMul", "MatMulInteger"), "MatMul"),
}


class Ways(NamedTuple):
    """Ids of the variants to use meanwhile; `tried` is "" if they were measured on the target itself, else in words."""

    ids: tuple[str, ...] = ()
    tried: str = ""


def ways_round(
    column: OnTarget,
    variant: VariantView,
    cell: Known,
    proofs: Sequence[str] = (),
    elsewhere: Mapping[str, Sequence[str]] | None = None,
) -> Ways:
    """Return the ways round a cell that fails: those measured to work there, else reported to, else tried elsewhere.

    `proofs` are the variants that its signature's advice names; `elsewhere` has the versions that variants were
    measured to work on, of those that fail on no version. A way that failed on the target is none.
    """
    if cell.stands is None or cell.stands in GOOD:
        return Ways()
    every = _candidates(column, variant, cell, proofs)
    for basis, tried in ((Basis.MEASURED, ""), (Basis.REPORTED, "reported")):
        works = [other.id for other, known in every if known.stands in GOOD and known.basis is basis]
        if works:
            return Ways(tuple(works[:_MOST]), tried)
    untried = [
        (other.id, tuple((elsewhere or {}).get(other.id, ())))
        for other, known in every
        if known.cls is Class.NOT_RUN and not known.basis
    ]
    versions = next((where for _, where in untried if where), ())
    alike = tuple(name for name, where in untried if where == versions and where)
    return Ways(alike[:_MOST], f"tried on {listed(versions)} alone") if alike else Ways()


def tried_elsewhere(
    targets: Sequence[TargetView], rows: Sequence[tuple[VariantView, Sequence[Known]]]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return by engine and variant the versions it was measured to work on, of variants that never failed there."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for variant, row in rows:
        tried: dict[str, list[tuple[str, bool]]] = {}
        for target, cell in zip(targets, row, strict=True):
            if cell.basis is Basis.MEASURED and cell.stands not in SHOWS_NO_FAILURE - GOOD:
                tried.setdefault(target.engine, []).append((target.short, cell.stands in GOOD))
        for engine, every in tried.items():
            if all(works for _, works in every):
                versions = tuple(dict.fromkeys(version for version, _ in every))
                found.setdefault(engine, {})[variant.id] = versions
    return found


def _candidates(
    column: OnTarget, variant: VariantView, cell: Known, proofs: Sequence[str]
) -> list[tuple[VariantView, Known]]:
    """Return the workarounds of a variant and of counterparts that fail too, then the fitting proofs of its signature.

    The twin with its precision in the graph does not need a removed call. A workaround that gives up the types that a
    variant asks for is no help where these are lost, and elsewhere only if none keeps them.
    """
    own = {other.name: other for other, _ in column.values() if other.case == variant.case}
    family, failing = [variant.name], [variant.name]
    while (name := own[family[-1]].counterpart) in own and name not in family:
        family.append(name)
        # A workaround of what works here helps against another trouble.
        if column[own[name].id][1].stands in GOOD:
            break
        failing.append(name)
    roles = {Role.WORKAROUND, Role.TWIN} if cell.stands is Class.API_REMOVED else {Role.WORKAROUND}
    near = [
        other.id
        for other in own.values()
        if other.role in roles and (other.counterpart in failing or other.name in family)
    ]
    fitting = [name for name in proofs if name in column and _fits(column, variant, cell, column[name][0])]
    found = [column[name] for name in dict.fromkeys([*near, *fitting]) if name != variant.id]
    keeping = [each for each in found if _agree(each[0], variant)]
    strict = cell.stands is Class.PRECISION_LOST and _types(variant)
    return keeping if keeping or strict else found


def _fits(column: OnTarget, variant: VariantView, cell: Known, proof: VariantView) -> bool:
    """Tell whether a proof is about the operator that fails, and unless it is of the same case, about its types."""
    place = _PLAIN_OF.get(name := cell.diagnosis.place.partition(" ")[0], name) if cell.diagnosis else ""
    failing = {place} if place in _operators(variant) else _subject(variant)
    pair = [other for other, _ in column.values() if other.case == proof.case and _paired(other, proof)]
    about = set[str]().union(*map(_operators, pair))
    return bool(failing & about) and (variant.case == proof.case or _agree(variant, proof))


def _agree(one: VariantView, two: VariantView) -> bool:
    """Tell whether two variants ask for a type in common, or both for none below FP32."""
    return bool(_types(one) & _types(two)) or _types(one) == _types(two)


def _paired(one: VariantView, two: VariantView) -> bool:
    return two.name in (one.name, one.counterpart) or two.counterpart == one.name


def _operators(variant: VariantView) -> set[str]:
    return {_PLAIN_OF.get(node.op, node.op) for node in variant.graph.nodes}


def _subject(variant: VariantView) -> set[str]:
    """Return the operators that a variant is about: those that want a precision, else that multiply, else compute."""
    wanted, every = dict(variant.wanted), _operators(variant)
    asked = {_PLAIN_OF.get(node.op, node.op) for node in variant.graph.nodes if node.name in wanted}
    return asked or every & MULTIPLYING or every - MOVING


def _types(variant: VariantView) -> frozenset[Precision]:
    """Return the types coarser than FP32 that a variant asks for, by its nodes, else by builder flags."""
    flags = {str(flag).lower() for flag in variant.recipe.get("flags") or ()}
    asked = {kind for _, kind in variant.wanted} or {kind for kind in Precision if str(kind) in flags}
    return frozenset(asked) - _PLAIN

"""What to use meanwhile where a variant does not work: the workarounds that hold on the same target, and says who."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.layers.datatype import NARROW
from harness.report.claimed import source
from harness.report.compare.sides import NOT_RUN
from harness.words import GOOD, Class, Grade, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.compare.sides import Side
    from harness.report.model import VariantView

    Candidate = tuple[VariantView, Side]

#: Variants named as what to use meanwhile.
_MOST = 2


class _Remedy(NamedTuple):
    """A variant that may help, and what is known of it; `proof` says that a diagnosis of another case names it."""

    variant: VariantView
    side: Side
    proof: bool

    @property
    def name(self) -> str:
        return f"{self.variant.case}.{self.variant.name}"

    def told(self) -> str:
        """Return what it does with its own evidence: "c.a builds (INT8 1/1), measured on NVIDIA L4"."""
        side = self.side
        chip = f" ({side.chip})" if side.chip else ""
        where = f" on {side.gpu[1]}" if side.gpu else ""
        if side.claim and side.claim.source:
            where = f" in {source(side.claim)}"
        return f"{self.name} {side.does()}{chip}, {side.graded}{where}{self.because()}"

    def because(self) -> str:
        """Say why a variant of another case is named."""
        return "; named because it puts the advice to the test" if self.proof else ""


class Meanwhile:
    """What to use in place of each variant on one target; each is looked up once, however many steps lead there."""

    def __init__(self, rows: Sequence[Candidate], target: str) -> None:
        """Take all variants with what is known of them on the target, and what that is called."""
        self._rows = rows
        self._target = target
        self._by_id = {f"{variant.case}.{variant.name}": (variant, one) for variant, one in rows}
        self._by_case: dict[str, dict[str, Candidate]] = {}
        for variant, one in rows:
            self._by_case.setdefault(variant.case, {})[variant.name] = variant, one
        self._told: dict[int, str] = {}

    def of(self, row: int) -> str:
        """Name the workarounds of a variant that hold: measured ones, or else reported ones, or else untried ones."""
        if row not in self._told:
            self._told[row] = self._name(self._candidates(*self._rows[row]))
        return self._told[row]

    def _name(self, every: Sequence[_Remedy]) -> str:
        if not every:
            return "no workaround of it is known here"
        good = [remedy for remedy in every if remedy.side.cls in GOOD]
        for grade in (Grade.MEASURED, Grade.REPORTED):
            works = [remedy.told() for remedy in good if remedy.side.grade is grade]
            if works:
                return "; ".join(works[:_MOST])
        untried = [remedy for remedy in every if remedy.side.cls is None and remedy.side.why == NOT_RUN]
        if untried:
            names = ", ".join(f"{remedy.name}{remedy.because()}" for remedy in untried[:_MOST])
            return f"a workaround is known that nobody has tried on {self._target}: {names}"
        proven = all(remedy.side.grade is Grade.MEASURED for remedy in every)
        return (
            f"none of {len(every)} known here {'works' if proven else 'is known to work'} on {self._target}"
        )

    def _candidates(self, wanting: VariantView, side: Side) -> list[_Remedy]:
        """Return the workarounds of a variant or of what it is read against, then what its diagnosis is proven by.

        A call that is gone is not needed by the twin that has its precision in the graph. What gives up the narrow
        types of a variant is no help where these are what it lost.
        """
        own = self._by_case[wanting.case]
        family = [wanting.name]
        while (name := own[family[-1]][0].counterpart) in own and name not in family:
            family.append(name)
        roles = {Role.WORKAROUND, Role.TWIN} if side.cls is Class.API_REMOVED else {Role.WORKAROUND}
        near = [
            _Remedy(variant, one, proof=False)
            for name, (variant, one) in own.items()
            if variant.role in roles and (variant.counterpart in family or name in family)
        ]
        proofs = [
            _Remedy(variant, one, proof=variant.case != wanting.case)
            for variant, one in (self._by_id[proof] for proof in side.proofs if proof in self._by_id)
        ]
        found = {remedy.name: remedy for remedy in (*proofs, *near) if remedy.variant is not wanting}
        order = dict.fromkeys(remedy.name for remedy in (*near, *proofs))
        narrow = side.cls is Class.PRECISION_LOST and _narrow(wanting)
        return [
            found[name] for name in order if name in found and (_narrow(found[name].variant) or not narrow)
        ]


def _narrow(variant: VariantView) -> bool:
    return any(want in NARROW for _, want in variant.wanted)

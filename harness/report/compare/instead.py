"""What to use meanwhile where a variant does not work: the workarounds that hold on the same target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.words import GOOD, Grade, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.compare.sides import Side
    from harness.report.model import VariantView

    Candidate = tuple[VariantView, Side]

#: Variants named as what to use meanwhile.
_MOST = 2


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
        """Name the workarounds of a variant that hold: measured ones, or else those claimed to."""
        if row not in self._told:
            self._told[row] = self._name(self._candidates(*self._rows[row]))
        return self._told[row]

    def _name(self, every: Sequence[Candidate]) -> str:
        if not every:
            return "no workaround of it is known here"
        good = [(variant, one) for variant, one in every if one.cls in GOOD]
        works = [(variant, one) for variant, one in good if one.grade is Grade.MEASURED]
        if good:
            return "; ".join(f"{_full(variant)} {one.told()}" for variant, one in (works or good)[:_MOST])
        proven = all(one.grade is Grade.MEASURED for _, one in every)
        return (
            f"none of {len(every)} known here {'works' if proven else 'is known to work'} on {self._target}"
        )

    def _candidates(self, wanting: VariantView, side: Side) -> list[Candidate]:
        """Return the workarounds of a variant or of what it is read against, then what its diagnosis is proven by."""
        own = self._by_case[wanting.case]
        family = [wanting.name]
        while (name := own[family[-1]][0].counterpart) in own and name not in family:
            family.append(name)
        near = [
            (variant, one)
            for name, (variant, one) in own.items()
            if variant.role is Role.WORKAROUND and (variant.counterpart in family or name in family)
        ]
        proofs = [self._by_id[proof] for proof in side.proofs if proof in self._by_id]
        found = {
            _full(variant): (variant, one) for variant, one in (*near, *proofs) if variant is not wanting
        }
        return list(found.values())


def _full(variant: VariantView) -> str:
    return f"{variant.case}[{variant.name}]"

"""All steps between the columns of one report: each column is known once, and what to use on it looked up once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.report.compare.instead import Meanwhile
from harness.report.compare.pairs import Step, known, pairs
from harness.report.compare.upgrade import judged
from harness.words import GOOD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report.compare.pairs import Key, Pair
    from harness.report.compare.sides import Side
    from harness.report.compare.upgrade import Upgrade
    from harness.report.model import Results


#: Pairs that are kept for the steps to come: a kilobyte each.
_MOST_KEPT = 50_000


class Steps:
    """Judges any step of a report; rows and columns are numbered as the report has them."""

    def __init__(self, results: Results, names: Mapping[str, str] | None = None) -> None:
        """Take the results, and what to call each target where that is not its id."""
        self.results = results
        called = {target.id: (names or {}).get(target.id, "") for target in results.targets}
        # Of a variant many columns know the same: what two of them make of one another is judged once.
        self._sides: dict[tuple[Key, Side], Side] = {}
        self._pairs: dict[tuple[int, int, int], Pair] = {}
        self.known = [replace(each, sides=self._shared(each.sides)) for each in known(results, called)]
        self._keys = [(variant.case, variant.name) for case in results.cases for variant in case.variants]
        self._meanwhile = [
            Meanwhile(
                [(variant, each.side(key, variant)) for key, variant in each.variants.items()], each.called
            )
            for each in self.known
        ]

    def _shared(self, sides: Mapping[Key, Side]) -> dict[Key, Side]:
        """Return sides with one object for all of a variant that are the same."""
        return {key: self._sides.setdefault((key, one), one) for key, one in sides.items()}

    def step(self, before: int, after: int, names: tuple[str, str] | None = None) -> tuple[Step, Upgrade]:
        """Return both sides of every variant, and what becomes of them.

        `names` is what the rows call the two columns, where that is not their names.
        """
        if len(self._pairs) > _MOST_KEPT:
            self._pairs.clear()
        old, new = self.known[before], self.known[after]
        step = Step(old, new, pairs(old, new, self._pairs), names)
        return step, judged(step, self._meanwhile[after])

    def instead(self, row: int, column: int) -> str:
        """Return what to use in place of a variant that does not work on a column; "" where it does."""
        one = self.known[column].sides.get(self._keys[row])
        found = one and one.cls
        return self._meanwhile[column].of(row) if found and found not in GOOD else ""

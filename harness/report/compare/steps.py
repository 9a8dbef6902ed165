"""All steps between the columns of one report: each column is known once, and what to use on it looked up once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.compare.instead import Meanwhile
from harness.report.compare.pairs import Step, known, pairs
from harness.report.compare.upgrade import judged
from harness.words import GOOD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report.compare.upgrade import Upgrade
    from harness.report.model import Results


class Steps:
    """Judges any step of a report; rows and columns are numbered as the report has them."""

    def __init__(self, results: Results, names: Mapping[str, str] | None = None) -> None:
        """Take the results, and what to call each target where that is not its id."""
        self.results = results
        self.known = known(
            results, {target.id: (names or {}).get(target.id, "") for target in results.targets}
        )
        self._keys = [(variant.case, variant.name) for case in results.cases for variant in case.variants]
        self._meanwhile = [
            Meanwhile(
                [(variant, each.side(key, variant)) for key, variant in each.variants.items()], each.called
            )
            for each in self.known
        ]

    def step(self, before: int, after: int) -> tuple[Step, Upgrade]:
        """Return both sides of every variant, and what becomes of them."""
        old, new = self.known[before], self.known[after]
        step = Step(old, new, pairs(old, new))
        return step, judged(step, self._meanwhile[after])

    def instead(self, row: int, column: int) -> str:
        """Return what to use in place of a variant that does not work on a column; "" where it does."""
        side = self.known[column].sides.get(self._keys[row])
        found = side and side.cls
        return self._meanwhile[column].of(row) if found and found not in GOOD else ""

"""All steps between the columns of one report: each column is known once, and what to use on it looked up once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.compare.instead import Meanwhile
from harness.report.compare.pairs import Step, known, pairs
from harness.report.compare.upgrade import judged
from harness.words import GOOD, Grade

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report.compare.pairs import Known
    from harness.report.compare.upgrade import Upgrade
    from harness.report.model import Results


class Steps:
    """Judges any step of a report, with guesses and without; rows and columns are numbered as the report has them."""

    def __init__(self, results: Results, names: Mapping[str, str] | None = None) -> None:
        """Take the results, and what to call each target where that is not its id."""
        self.results = results
        called = {target.id: (names or {}).get(target.id, "") for target in results.targets}
        self.known = known(results, called)
        self.guessing = [
            every if _guesses(every) else plain
            for plain, every in zip(self.known, known(results, called, guesses=True), strict=True)
        ]
        self._keys = [(variant.case, variant.name) for case in results.cases for variant in case.variants]
        self._meanwhile = {
            guesses: [
                Meanwhile(
                    [(variant, each.side(key, variant)) for key, variant in each.variants.items()],
                    each.called,
                    guesses=guesses,
                )
                for each in self.guessing
            ]
            for guesses in (False, True)
        }

    def step(self, before: int, after: int, *, guesses: bool = False) -> tuple[Step, Upgrade]:
        """Return both sides of every variant, and what becomes of them."""
        columns = self.guessing if guesses else self.known
        old, new = columns[before], columns[after]
        step = Step(old, new, pairs(old, new))
        return step, judged(step, self._meanwhile[guesses][after])

    def guessed(self, before: int, after: int) -> bool:
        """Tell whether guesses can make a difference to a step."""
        return self.guessing[before].guesses or self.guessing[after].guesses

    def instead(self, row: int, column: int, *, guesses: bool = False) -> str:
        """Return what to use in place of a variant that does not work on a column; "" where it does."""
        side = (self.guessing if guesses else self.known)[column].sides.get(self._keys[row])
        found = side and side.cls
        return self._meanwhile[guesses][column].of(row) if found and found not in GOOD else ""


def _guesses(column: Known) -> bool:
    return any(one.grade is Grade.GUESSED for one in column.sides.values())

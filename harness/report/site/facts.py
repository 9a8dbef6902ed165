"""What is known of each variant on each target, with its grade and source, and that in clauses along the versions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.judge.diagnosis import load_signatures
from harness.report.advice import general_advice
from harness.report.claimed import built_but, drawn, says
from harness.report.labels import MARKS, drawn_as
from harness.words import GOOD, PREDICATE, UNJUDGED, Class, Grade, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.case import Expectation
    from harness.judge.diagnosis import Signature
    from harness.report.model import Advice, CellView, TargetView, VariantView


@dataclass(frozen=True)
class Fact:
    """What is known of a variant on one target; `cls` and `grade` are None where nothing is.

    `graded` is the grade for readers, `said` the result as a predicate. `claim` is what is claimed, where the cell
    itself was not measured; `advice` the cause of a failure, where it is known.
    """

    target: TargetView
    cell: CellView
    cls: Class | None = None
    grade: Grade | None = None
    graded: str = ""
    said: str = ""
    claim: Expectation | None = None
    advice: Advice | None = None

    @property
    def measured(self) -> bool:
        """Tell whether it was measured, in a run that is shown here or in an earlier one."""
        return self.grade is Grade.MEASURED

    @property
    def guessed(self) -> bool:
        """Tell whether nobody measured or reported it."""
        return self.grade is Grade.GUESSED

    @property
    def unknown(self) -> Fact:
        """Return the same cell as if nothing were known of it."""
        return Fact(self.target, self.cell)

    @property
    def good(self) -> bool:
        """Tell whether the engine does what is asked of it."""
        return self.cls in GOOD

    @property
    def mark(self) -> str:
        """Return the class of the style sheet for the result."""
        if self.cls in GOOD:
            return "good"
        return "lost" if self.cls in (Class.PRECISION_LOST, Class.INACCURATE) else "bad"

    @property
    def letters(self) -> str:
        """Return the letters of the result."""
        if self.cls is None:
            return ""
        return MARKS[drawn_as(self.cell) if self.cell.measured else self.cls].letters


def fact(target: TargetView, cell: CellView, variant: VariantView) -> Fact:
    """Return what is known of a cell: measured, or else claimed, or else nothing.

    Of what was only built, and is known to fail when it is run, that is what is claimed.
    """
    fails = cell.verdict is Verdict.FAILS_WHEN_RUN
    if cell.measured and not fails:
        said = PREDICATE[cell.cls] + (f", {cell.chip}" if cell.chip else "")
        # "observed once" or "disputed", where somebody else's measurement is all or contradicts.
        graded = next((each.trust for each in cell.by_gpu if each.trust), str(Grade.MEASURED))
        return Fact(target, cell, cell.cls, Grade.MEASURED, graded, said, advice=cell.diagnosis)
    claim = variant.expectations[cell.claims[0]] if cell.claims else None
    if cell.cls is Class.NOT_APPLICABLE or claim is None or claim.outcome in UNJUDGED:
        return Fact(target, cell)
    advice = None if claim.outcome in GOOD else general_advice(claim.signature)
    graded = "measured before" if claim.grade is Grade.MEASURED else claim.graded
    said = built_but(claim) if fails else says(claim)
    return Fact(target, cell, drawn(claim), claim.grade, graded, said, claim, advice)


@cache
def signatures() -> dict[str, Signature]:
    """Return the known causes of failures by their ids, in the order in which they are tried."""
    return {signature.id: signature for signature in load_signatures()}


def apart(target: TargetView) -> str:
    """Return what sets a target's series apart within its family: "SM 7.5", "arm64", or ""."""
    return "" if target.platform == "jetson" else target.series.partition(", ")[2]


def product(target: TargetView) -> str:
    """Return what the versions of a target's series are versions of: "TensorRT for RTX, SM 7.5"."""
    return ", ".join(filter(None, (target.product, apart(target))))


@dataclass(frozen=True)
class Clause:
    """What is known alike of neighbouring versions of a series; `next` says that it follows its predecessor at once."""

    first: Fact
    last: Fact
    next: bool

    @property
    def versions(self) -> str:
        """Return the versions: "1.4 to 1.6"."""
        return " to ".join(dict.fromkeys((self.first.target.short, self.last.target.short)))


@dataclass(frozen=True)
class Line:
    """What is known of a variant along one series of versions."""

    product: str
    clauses: tuple[Clause, ...]

    @property
    def one_grade(self) -> bool:
        """Tell whether all of it is equally sure, and so has to be told once."""
        return len({clause.first.graded for clause in self.clauses}) == 1


def lines(facts: Iterable[Fact]) -> tuple[Line, ...]:
    """Return what is known along each series, those of which nothing is known left out; of one variant.

    A side series ("RTX, SM 7.5") has only what is not the same on its main one at the same version.
    """
    series: dict[str, list[Fact]] = {}
    for each in facts:
        if each.cell.cls is not Class.NOT_APPLICABLE:
            series.setdefault(each.target.series, []).append(each)
    found = []
    for name, every in series.items():
        main = {
            each.target.version: each for each in series.get(name.partition(",")[0], ()) if each not in every
        }
        own = [each for each in every if not _alike(each, main.get(each.target.version))]
        clauses = _clauses(sorted(own, key=lambda each: Version(each.target.version)))
        if clauses:
            found.append(Line(product(every[0].target), tuple(clauses)))
    return tuple(found)


def _alike(each: Fact, main: Fact | None) -> bool:
    return main is not None and (each.cls, each.said, each.graded) == (main.cls, main.said, main.graded)


def _clauses(facts: Sequence[Fact]) -> list[Clause]:
    found: list[Clause] = []
    follows = False
    for (cls, *_), group in groupby(facts, key=lambda each: (each.cls, each.said, each.graded)):
        run = list(group)
        if cls is not None:
            found.append(Clause(run[0], run[-1], follows))
        follows = cls is not None
    return found

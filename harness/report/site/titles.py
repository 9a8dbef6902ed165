"""What a page is called, for a search engine and for a tab: from what is measured or reported, never from a guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.engines import ENGINES
from harness.report.site.facts import lines
from harness.text import clip
from harness.words import GOOD, Class, Engine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.report.model import CaseView, VariantView
    from harness.report.site.facts import Clause, Fact, Line

#: A search engine shows some sixty characters of a title and a hundred and sixty of a description.
LONGEST_TITLE, LONGEST_DESCRIPTION = 150, 300
#: Clauses of one series that a title tells.
_CLAUSES = 2


def verdict(facts: Iterable[Fact]) -> str:
    """Return how a variant fares on the series that has most to tell, with the grade; "" where nobody knows.

    "fails to build on TensorRT 10.0 to 10.1, fixed in 10.2 (reported by users)". A guess is nothing known.
    """
    known = lines(each.unknown if each.guessed else each for each in facts)
    return _phrase(min(known, key=_rank)) if known else ""


def title_of(variant: VariantView, facts: Iterable[Fact]) -> str:
    """Return the title of a variant's page."""
    return _titled(variant.title, verdict(facts))


def title_of_case(case: CaseView, facts: Iterable[Iterable[Fact]]) -> str:
    """Return the title of a case's page: what is known of that of its variants that has most to tell."""
    known = [line for one in facts for line in lines(each.unknown if each.guessed else each for each in one)]
    return _titled(case.title, _phrase(min(known, key=_rank)) if known else "")


def _titled(subject: str, said: str) -> str:
    subject = subject.rstrip(".")
    if not said:
        return clip(f"{subject}: nobody has measured or reported it yet", LONGEST_TITLE)
    return f"{clip(subject, max(40, LONGEST_TITLE - len(said) - 2))}: {said}"


def _rank(line: Line) -> tuple[int, int]:
    """Return how much a series has to tell: a failure, then a call that is gone, then that it works.

    Of equals TensorRT comes first, as in the table of engines.
    """
    seen = {clause.first.cls for clause in line.clauses}
    place = list(ENGINES).index(Engine(line.clauses[0].first.target.engine))
    if seen - GOOD - {Class.API_REMOVED}:
        return 0, place
    return (1 if Class.API_REMOVED in seen else 2), place


def _phrase(line: Line) -> str:
    """Say the first failure and what came next, or the first two clauses where none failed."""
    bad = next((at for at, clause in enumerate(line.clauses) if not clause.first.good), 0)
    at = max(0, bad - 1) if bad == len(line.clauses) - 1 else bad
    told = line.clauses[at : at + _CLAUSES]
    grades = [clause.first.graded for clause in told]
    if len(set(grades)) == 1:
        words = [_clause(line.product, *pair) for pair in zip((None, *told), told, strict=False)]
        return f"{', '.join(words)} ({grades[0]})"
    return ", ".join(
        f"{_clause(line.product, before, clause)} ({clause.first.graded})"
        for before, clause in zip((None, *told), told, strict=False)
    )


def _clause(product: str, before: Clause | None, clause: Clause) -> str:
    if before is None:
        return f"{clause.first.said} on {product} {clause.versions}"
    if not before.first.good and clause.first.good and clause.next:
        return f"fixed in {clause.first.target.short}"
    return f"{clause.first.said} on {clause.versions}"

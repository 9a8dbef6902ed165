"""Holds a class against what is claimed of it.

When several claims cover a target the surest one is judged: measured before reported, a summary after other reports,
before guessed; among equals the first in the variant's list. A guess that is contradicted is a guess that was wrong,
never a regression. Nor is a precision that was lost by what the graph asks for, where a
source claims the cell and nobody wished for that precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.words import GOOD, UNJUDGED, Class, Grade, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.case import Expectation
    from harness.judge.classify import Classification

#: Surest first.
_SUREST = (Grade.MEASURED, Grade.REPORTED, Grade.GUESSED)


@dataclass(frozen=True)
class Judgement:
    """A verdict, the claim it rests on, and the sentence a reader gets."""

    verdict: Verdict
    expectation: Expectation | None
    sentence: str


def judge(
    classification: Classification, expectations: Sequence[Expectation], signature: str | None = None
) -> Judgement:
    """Hold a class against the claims that cover its target; `signature` is the id of its diagnosis.

    A failure of the expected class with another signature than the claimed one is `new`: another failure
    hides behind the same class.
    """
    claim = surest(expectations)
    cls = classification.cls
    if cls in UNJUDGED:
        verdict = Verdict.INFRA if cls is Class.INFRA_ERROR else Verdict.NOT_RUN
        return Judgement(verdict, claim, classification.reason)
    if claim is None:
        return _unclaimed(classification)
    if claim.outcome in UNJUDGED:
        return Judgement(
            Verdict.EXPECTED if cls in GOOD else Verdict.NEW,
            claim,
            f"claimed to end as {claim.outcome}, yet it ran here and ended as {cls}",
        )
    if cls in GOOD:
        return _good(classification, claim)
    return _failing(classification, claim, signature)


def surest(expectations: Sequence[Expectation]) -> Expectation | None:
    """Return the claim that is judged, or None."""
    return min(
        expectations,
        key=lambda claim: (_SUREST.index(claim.grade), claim.kind == "summary"),
        default=None,
    )


def _unclaimed(classification: Classification) -> Judgement:
    if classification.cls in GOOD:
        return Judgement(
            Verdict.EXPECTED,
            None,
            f"nothing is claimed about this cell; it {_does(classification)}" + _doubt(classification),
        )
    return Judgement(
        Verdict.NEW,
        None,
        f"nothing is claimed about this cell; it ended as {classification.cls}: {classification.reason}",
    )


def _good(classification: Classification, claim: Expectation) -> Judgement:
    if claim.outcome in GOOD:
        return Judgement(
            Verdict.EXPECTED, claim, f"{_does(classification)}, as {_said(claim)}" + _doubt(classification)
        )
    if claim.outcome is Class.PRECISION_LOST and classification.unverified:
        return Judgement(
            Verdict.NEW,
            claim,
            f"{_said(claim)} to lose precision; whether it still does is open{_doubt(classification)}",
        )
    # Only a run shows numbers and run-time failures: an engine that was built and not run has disproved
    # nothing.
    if classification.cls is Class.BUILT and claim.outcome in _ONLY_A_RUN_SHOWS:
        return Judgement(
            Verdict.NOT_RUN,
            claim,
            f"{_said(claim)} to end as {claim.outcome}; it builds here, and only a run would show",
        )
    if claim.grade is Grade.GUESSED:
        return Judgement(
            Verdict.NEW,
            claim,
            f"{_does(classification)}; the guess that it ends as {claim.outcome} was wrong",
        )
    return Judgement(
        Verdict.FIXED, claim, f"{_does(classification)}; {_said(claim)} to end as {claim.outcome}"
    )


def _does(classification: Classification) -> str:
    return "works" if classification.cls is Class.OK else "builds"


#: Failures that a machine without a GPU cannot reproduce, where a cell is only built.
_ONLY_A_RUN_SHOWS = frozenset({Class.INACCURATE, Class.LOAD_FAILED, Class.RUN_FAILED})


def _failing(classification: Classification, claim: Expectation, signature: str | None) -> Judgement:
    cls, reason = classification.cls, classification.reason
    if claim.outcome is cls:
        if claim.signature and signature and claim.signature != signature:
            return Judgement(
                Verdict.NEW,
                claim,
                f"ends as {cls} as {_said(claim)}, but by {signature} instead of {claim.signature}",
            )
        verdict = Verdict.EXPECTED if cls is Class.API_REMOVED else Verdict.KNOWN_FAILURE
        return Judgement(verdict, claim, f"ends as {cls}, as {_said(claim)}")
    if claim.grade is Grade.GUESSED:
        return Judgement(
            Verdict.NEW,
            claim,
            f"ended as {cls}; the guess that it ends as {claim.outcome} was wrong: {reason}",
        )
    if _asked_by_the_graph_alone(classification, claim):
        return Judgement(
            Verdict.NEW,
            claim,
            f"ended as {cls} by what the graph asks for, where nobody named a precision; "
            f"{_said(claim)} to end as {claim.outcome}: {reason}",
        )
    # A cell that is claimed to work, if in another precision, no longer works at all.
    if claim.outcome in GOOD or claim.outcome is Class.PRECISION_LOST:
        return Judgement(
            Verdict.REGRESSED, claim, f"ended as {cls}; {_said(claim)} to end as {claim.outcome}: {reason}"
        )
    return Judgement(
        Verdict.NEW,
        claim,
        f"fails in another way than claimed: {cls}; {_said(claim)} to end as {claim.outcome}: {reason}",
    )


def _asked_by_the_graph_alone(classification: Classification, claim: Expectation) -> bool:
    """Tell a precision that nobody named from one that the claim is about: a source says "works" of what it looked at.

    A measurement was judged by the same graph, and is held.
    """
    lost = classification.cls is Class.PRECISION_LOST and classification.derived
    return lost and claim.grade is not Grade.MEASURED


def _said(claim: Expectation) -> str:
    if claim.source is None:
        return claim.note if claim.grade is Grade.MEASURED else f"guessed ({claim.note})"
    how = f"{claim.grade} from" if claim.grade is Grade.GUESSED else f"{claim.grade} in"
    summary = "a summary of " if claim.kind == "summary" else ""
    return f"{how} {summary}{claim.source.title or claim.source.url}"


def _doubt(classification: Classification) -> str:
    if not classification.unverified:
        return ""
    return f"; the precision of {', '.join(classification.unverified)} could not be verified"

"""Holds a class against the claims about it; docs/results.md has the rules in short.

A claim is about levels: an engine builds, runs, gives the right numbers, and keeps the precision wanted. It is
held to its own level alone: "it builds" is not broken by a lost precision. A failure that is claimed and does not
happen is `fixed` if it was measured to happen on this target or an earlier version of it, and else `not_reproduced`.

A build that needs a GPU is held only against claims from a machine without one, or that say the same: whoever says that
it builds had one. An engine that was only built, and is known elsewhere not to run or to give wrong numbers, is
`fails_when_run`: it is no failure that shows here, and no engine to rely on.

When several claims cover a target the surest one is judged: measured before reported, one of the graph before one of
a whole model, a summary after other reports; among equals the first in the variant's list. A precision that was lost,
and that the graph alone asks for, is no regression against a source's claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from harness.case import Expectation
from harness.case.floor import Asked
from harness.judge.classify import Classification
from harness.judge.signatures import fits_claim
from harness.words import CLASSES, GOOD, PREDICATE, UNJUDGED, Basis, Class, Level, Part, Verdict, to_do

#: Each is reached after those before it.
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class Judgement:
    """A verdict, the claim it rests on, and the sentence a reader gets.

    part: what of a cell regressed.
    gained: nodes that run as asked, and did not when the cell was accepted.
    """

    verdict: Verdict
    expectation: Expectation | None
    sentence: str
    part: Part | None = None
    gained: tuple[Asked, ...] = ()


def judge(
    classification: Classification,
    expectations: Sequence[Expectation],
    signature: str | None = None,
    *,
    failed_before: str = "",
) -> Judgement:
    """Hold a class against the claims that cover its target; `signature` is the id of its diagnosis.

    A failure of the expected class with another signature than the claimed one is `new`: another failure hides behind
    the same class. `failed_before` is the place of a measured failure on this target or an earlier version.
    """
    cls = classification.cls
    claim, told = surest(expectations), _told_of_a_run(expectations)
    about_a_run = cls in GOOD | UNJUDGED or _broken(classification) in ("runs", "right numbers")
    if claim and claim.outcome in GOOD and about_a_run:
        claim = told or claim
    if cls in UNJUDGED:
        verdict = Verdict.INFRA if cls is Class.INFRA_ERROR else Verdict.NOT_RUN
        return Judgement(verdict, claim, classification.reason)
    if claim is None:
        return _unclaimed(classification)
    if cls is Class.BUILT and claim is told:
        return Judgement(Verdict.FAILS_WHEN_RUN, claim, _only_built(claim))
    if claim.outcome in UNJUDGED:
        verdict = Verdict.EXPECTED if cls in GOOD else Verdict.NEW
        said = f"{_said(claim)}: {PREDICATE[claim.outcome]}; yet it ran here, and {PREDICATE[cls]}"
    elif cls in GOOD:
        verdict, said = _good(classification, claim, failed_before)
    elif cls is Class.NEEDS_GPU_TO_BUILD and not _without_gpu(claim):
        verdict = Verdict.NOT_RUN
        said = f"{PREDICATE[cls]}; {_said(claim)} to {_ends(claim)}, and only a machine with a GPU would show"
    else:
        verdict, said = _failing(classification, claim, signature)
    return Judgement(verdict, claim, said)


def surest(expectations: Sequence[Expectation]) -> Expectation | None:
    """Return the claim that is judged, or None."""
    return min(
        expectations,
        key=lambda claim: (claim.basis is Basis.REPORTED, claim.scope == "model", claim.kind == "summary"),
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
        f"nothing is claimed about this cell; it {PREDICATE[classification.cls]}: {classification.reason}",
    )


def _told_of_a_run(expectations: Sequence[Expectation]) -> Expectation | None:
    """Return the claim by which a built engine fails when it is run, if any.

    A measured build does not speak about a run.
    """
    claim = surest([each for each in expectations if _reaches_a_run(each)])
    return claim if claim and claim.outcome not in GOOD else None


def _reaches_a_run(claim: Expectation) -> bool:
    if claim.outcome in GOOD:
        return "runs" in _held(claim)
    return claim.outcome not in UNJUDGED and _failing_level(claim) in ("runs", "right numbers")


def _only_built(claim: Expectation) -> str:
    return f"{_said(claim)} to {_ends(claim)}; it builds here, and only a run would show"


def _good(classification: Classification, claim: Expectation, failed_before: str) -> tuple[Verdict, str]:
    does, said = _does(classification), f"{_said(claim)} to {_ends(claim)}"
    if claim.outcome in GOOD:
        return Verdict.EXPECTED, f"{does}, as {_said(claim)}" + _doubt(classification)
    if claim.outcome is Class.PRECISION_LOST and classification.unverified:
        return Verdict.NEW, f"{said}; whether it still does is open{_doubt(classification)}"
    # Only a run shows numbers and run-time failures: an engine that was built and not run has disproved nothing.
    if classification.cls is Class.BUILT and _failing_level(claim) not in ("builds", "precision"):
        return Verdict.NOT_RUN, _only_built(claim)
    if failed_before or claim.basis is Basis.MEASURED:
        return Verdict.FIXED, f"{does}; {failed_before or said}"
    return Verdict.NOT_REPRODUCED, f"{does}; {said}, which was measured nowhere and does not show here"


def _failing(
    classification: Classification, claim: Expectation, signature: str | None
) -> tuple[Verdict, str]:
    cls, reason = classification.cls, classification.reason
    broken, does = _broken(classification), PREDICATE[cls]
    if claim.outcome is cls and claim.level in (None, broken):
        return _as_claimed(cls, claim, signature)
    said = f"{_said(claim)} to {_ends(claim)}"
    if broken not in _held(claim) and claim.outcome in GOOD:
        return Verdict.NEW, f"{does}; {said}, which it does: {reason}"
    if broken not in _held(claim):
        return Verdict.NEW, f"{does}, which is another way than claimed; {said}: {reason}"
    # A source's "works" covers only the parts it looked at. A measurement was judged by the same graph, and is held.
    if broken == "precision" and classification.derived and claim.basis is not Basis.MEASURED:
        named = "by what the graph asks for, where nobody named a precision"
        return Verdict.NEW, f"{does} {named}; {said}: {reason}"
    return Verdict.REGRESSED, f"{does}; {said}: {reason}"


def _as_claimed(cls: Class, claim: Expectation, signature: str | None) -> tuple[Verdict, str]:
    if claim.signature and signature and not fits_claim(signature, claim.signature):
        told = f"{PREDICATE[cls]} as {_said(claim)}, but by {signature} instead of {claim.signature}"
        return Verdict.NEW, told
    verdict = Verdict.EXPECTED if cls is Class.API_REMOVED else Verdict.KNOWN_FAILURE
    return verdict, f"{PREDICATE[cls]}, as {_said(claim)}"


def _without_gpu(claim: Expectation) -> bool:
    """Tell whether a claim is about machines without a GPU: it says so, or was measured on one."""
    measured = claim.basis is Basis.MEASURED and claim.compute_capability is None
    return measured or claim.outcome is Class.NEEDS_GPU_TO_BUILD


def _broken(classification: Classification) -> Level:
    """Return the level that a failing class breaks."""
    return CLASSES[classification.cls].breaks or ("runs" if classification.built else "builds")


def _failing_level(claim: Expectation) -> Level | None:
    """Return the level at which a claim says that it fails; None if the claim leaves it open, as a crash may.

    A measurement without a level comes from a machine that only builds.
    """
    told = claim.level or CLASSES[claim.outcome].breaks
    return told or ("builds" if claim.basis is Basis.MEASURED else None)


def _held(claim: Expectation) -> tuple[Level, ...]:
    """Return the levels that a claim says are reached.

    A claim of a failure implies the levels below it. One of a lost precision implies right numbers only if it was
    measured: a source that looks at types may not have looked at numbers. A built engine has its precision, and has not
    run.
    """
    if claim.outcome is Class.BUILT:
        return ("builds",) if claim.level == "builds" else ("builds", "precision")
    if claim.outcome is Class.OK:
        return LEVELS[: LEVELS.index(claim.level or "precision") + 1]
    level = _failing_level(claim)
    below = LEVELS[: LEVELS.index(level)] if level else ()
    return below if claim.basis is Basis.MEASURED else below[:2]


def _does(classification: Classification) -> str:
    return "works" if classification.cls is Class.OK else "builds"


#: The infinitive of a claim of the class `ok` at each level.
_REACHES: dict[Level, str] = {
    "builds": "build",
    "runs": "run",
    "right numbers": "run with the right numbers",
    "precision": "work in the precision wanted",
}


def _ends(claim: Expectation) -> str:
    """Return a claim as an infinitive."""
    if claim.outcome is Class.OK and claim.level:
        return _REACHES[claim.level]
    return f"{to_do(claim.outcome)}{' when it is run' if claim.level == 'runs' else ''}"


def _said(claim: Expectation) -> str:
    if claim.source is None:
        return claim.note
    summary = "a summary of " if claim.kind == "summary" else ""
    return f"{claim.basis} in {summary}{claim.source.title or claim.source.url}"


def _doubt(classification: Classification) -> str:
    if not classification.unverified:
        return ""
    return f"; the precision of {', '.join(classification.unverified)} could not be verified"

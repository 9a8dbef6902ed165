"""Holds a class against the claims about it, and a cell against what was accepted of it (docs/results.md, in short).

A claim is about levels: an engine builds, runs, gives the right numbers, and keeps the precision wanted. It is
held to its own level alone: "it builds" is not broken by a lost precision. A failure that is claimed and does not
happen is `fixed` if it was measured to happen on this target or an earlier version of it, and else `not_reproduced`.

A build that needs a GPU is held only against claims from a machine without one, or that say the same: whoever says that
it builds had one. An engine that was only built, and is known elsewhere not to run or to give wrong numbers, is
`fails_when_run`: it is no failure that shows here, and no engine to rely on.

When several claims cover a target the surest one is judged: measured before reported, one of the graph before one of
a whole model, a summary after other reports; among equals the first in the variant's list. A precision that was lost,
and that the graph alone asks for, is no regression against a source's claim.

Beyond its class a cell is held to what was accepted of it: precision node by node, and latency. Fewer nodes asked for,
or more that lost their precision, are a regression, whatever the class; a loss that is a toss-up alone varies. The
latency is held to the same GPU's name alone, and to what one machine does from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from harness.case import Expectation, Variant
from harness.case.floor import Asked, Missing, Side, gained, missing, named
from harness.judge.classify import Classification, Wish
from harness.judge.reasons import Reason
from harness.judge.signatures import fits_claim
from harness.judge.timing import RUN_TO_RUN, bounds
from harness.record.outcome import Outcome
from harness.record.speaking import Gpu, took_part
from harness.text import milliseconds
from harness.words import (
    CLASSES,
    FINISHED,
    GOOD,
    PREDICATE,
    UNJUDGED,
    Basis,
    Class,
    Level,
    Part,
    Precision,
    Verdict,
    claimed,
)

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
    cls, told = classification.cls, _told_of_a_run(expectations)
    claim = surest(expectations)
    if claim and claim.outcome in GOOD and _about_a_run(classification):
        claim = told or claim
    if cls in UNJUDGED:
        verdict = Verdict.INFRA if cls is Class.INFRA_ERROR else Verdict.NOT_RUN
        return Judgement(verdict, claim, classification.reason)
    if claim is None:
        return _unclaimed(classification)
    if cls is Class.BUILT and claim is told:
        return Judgement(Verdict.FAILS_WHEN_RUN, claim, _only_built(claim))
    if cls in GOOD:
        return Judgement(*_good(classification, claim, failed_before))
    return Judgement(*_failing(classification, claim, signature))


def _about_a_run(classification: Classification) -> bool:
    unhurt = classification.cls in GOOD | UNJUDGED
    return unhurt or _broken(classification) in ("runs", "right numbers")


def surest(expectations: Sequence[Expectation]) -> Expectation | None:
    """Return the claim that is judged, or None."""
    return min(
        expectations,
        key=lambda claim: (claim.basis is Basis.REPORTED, claim.scope == "model", claim.kind == "summary"),
        default=None,
    )


def _unclaimed(classification: Classification) -> Judgement:
    cls, good = classification.cls, classification.cls in GOOD
    told = _doubt(classification) if good else f": {classification.reason}"
    sentence = f"nothing is claimed about this cell; it {PREDICATE[cls]}{told}"
    return Judgement(Verdict.EXPECTED if good else Verdict.NEW, None, sentence)


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
    return f"{_told(claim)}; it builds here, and only a run would show"


def _good(
    classification: Classification, claim: Expectation, failed_before: str
) -> tuple[Verdict, Expectation, str]:
    does, said = PREDICATE[classification.cls], _told(claim)
    if claim.outcome in UNJUDGED:
        return Verdict.EXPECTED, claim, f"{does}; {said}"
    if claim.outcome in GOOD:
        return Verdict.EXPECTED, claim, f"{does}, as {_said(claim)}" + _doubt(classification)
    if claim.outcome is Class.PRECISION_LOST and classification.unverified:
        return Verdict.NEW, claim, f"{said}; whether it still does is open{_doubt(classification)}"
    # Only a run shows numbers and run-time failures: an engine that was built and not run has disproved nothing.
    if classification.cls is Class.BUILT and _failing_level(claim) not in ("builds", "precision"):
        return Verdict.NOT_RUN, claim, _only_built(claim)
    if failed_before or claim.basis is Basis.MEASURED:
        return Verdict.FIXED, claim, f"{does}; {failed_before or said}"
    return Verdict.NOT_REPRODUCED, claim, f"{does}; {said}, which was measured nowhere and does not show here"


def _failing(
    classification: Classification, claim: Expectation, signature: str | None
) -> tuple[Verdict, Expectation, str]:
    cls, broken, said = classification.cls, _broken(classification), _told(claim)
    unjudged = claim.outcome in UNJUDGED
    if cls is Class.NEEDS_GPU_TO_BUILD and not (unjudged or _without_gpu(claim)):
        return Verdict.NOT_RUN, claim, f"{PREDICATE[cls]}; {said}, and only a machine with a GPU would show"
    if claim.outcome is cls and claim.level in (None, broken):
        return _as_claimed(cls, claim, signature)
    # A source's "works" covers only the parts it looked at. A measurement was judged by the same graph, and is held.
    by_graph = broken == "precision" and classification.derived and claim.basis is not Basis.MEASURED
    new = unjudged or by_graph or broken not in _held(claim)
    sentence = f"{PREDICATE[cls]}; {said}: {classification.reason}"
    return Verdict.NEW if new else Verdict.REGRESSED, claim, sentence


def _as_claimed(cls: Class, claim: Expectation, signature: str | None) -> tuple[Verdict, Expectation, str]:
    if claim.signature and signature and not fits_claim(signature, claim.signature):
        told = f"{PREDICATE[cls]} as {_said(claim)}, but by {signature} instead of {claim.signature}"
        return Verdict.NEW, claim, told
    verdict = Verdict.EXPECTED if cls is Class.API_REMOVED else Verdict.KNOWN_FAILURE
    return verdict, claim, f"{PREDICATE[cls]}, as {_said(claim)}"


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


def _told(claim: Expectation) -> str:
    """Return a claim with its source: "reported by users in issue 3640: fails to build"."""
    when = " when it is run" if claim.level == "runs" and claim.outcome is not Class.OK else ""
    return f"{_said(claim)}: {claimed(claim.outcome, claim.level)}{when}"


def _said(claim: Expectation) -> str:
    if claim.source is None:
        return claim.note
    summary = "a summary of " if claim.kind == "summary" else ""
    return f"{claim.basis} in {summary}{claim.source.title or claim.source.url}"


def _doubt(classification: Classification) -> str:
    if not classification.unverified:
        return ""
    return f"; the precision of {', '.join(classification.unverified)} could not be verified"


@dataclass(frozen=True)
class Seen:
    """What was seen of a cell: its outcome and class, its wish, why nodes ran coarser, and the GPU that took part."""

    outcome: Outcome
    classification: Classification
    wish: Wish
    reasons: Sequence[Reason] = ()
    gpu: Gpu | None = None

    @property
    def product(self) -> str:
        """Return the GPU's name, "" without one."""
        return self.gpu.product if self.gpu else ""

    @property
    def side(self) -> Side:
        """Return what the cell asks for, and what it lost."""
        asked = asked_of(self.outcome, self.wish.nodes)
        lost = frozenset(each.node for each in self.classification.lost)
        names = frozenset(node.name for node in self.outcome.nodes)
        return Side(asked, lost, frozenset(self.classification.unverified), names)

    @property
    def tossed(self) -> frozenset[str]:
        """Return the nodes that another build may run as asked."""
        return frozenset(each.node for each in self.reasons if each.toss_up)


def asked_of(outcome: Outcome, wished: Mapping[str, Precision]) -> tuple[Asked, ...]:
    """Return the nodes that are wished in a precision, with their operators."""
    ops = {node.name: node.op for node in outcome.nodes}
    return tuple(Asked(node, ops.get(node, ""), precision) for node, precision in wished.items())


def against(judgement: Judgement, variant: Variant, claims: Sequence[Expectation], seen: Seen) -> Judgement:
    """Return a judgement that holds the cell to its nearest measured claim, and to what the variant asked for then."""
    claim = next((each for each in claims if each.basis is Basis.MEASURED), None)
    cls = seen.classification.cls
    if claim is None or cls in UNJUDGED:
        return judgement
    judgement = replace(judgement, part=_part(judgement, cls))
    # A record without nodes does not tell what the graph asks for.
    told = seen.wish.demanded and bool(seen.outcome.nodes)
    found = _by_nodes(judgement, claim, variant.accepted, seen) if told else judgement
    return found if _bad(found, cls) else _latency(found, claim, seen)


def _part(judgement: Judgement, cls: Class) -> Part | None:
    if judgement.verdict is not Verdict.REGRESSED:
        return None
    return "precision" if cls is Class.PRECISION_LOST else "class"


def _bad(judgement: Judgement, cls: Class) -> bool:
    return judgement.verdict is Verdict.REGRESSED or (judgement.verdict is Verdict.NEW and cls not in GOOD)


def _by_nodes(
    judgement: Judgement, claim: Expectation, accepted: Sequence[Asked] | None, seen: Seen
) -> Judgement:
    # A loss that was accepted without its nodes does not tell which others were kept.
    named_then = claim.nodes or claim.outcome is not Class.PRECISION_LOST
    both = named_then and {claim.outcome, seen.classification.cls} <= FINISHED
    before, now = _accepted(claim, accepted or ()), seen.side
    lacks = missing(before, now) if both else missing(before, now)._replace(lost=())
    if any(lacks):
        return _worse(judgement, claim, lacks, seen)
    more = gained(before, now) if both and accepted is not None else ()
    if more and judgement.verdict in (Verdict.EXPECTED, Verdict.KNOWN_FAILURE):
        told = f"{judgement.sentence}; keeps more than was accepted: {named(more)}"
        return replace(judgement, sentence=told, gained=more)
    return judgement


def _worse(judgement: Judgement, claim: Expectation, lacks: Missing, seen: Seen) -> Judgement:
    tossed = not lacks.unasked and seen.tossed.issuperset(each.node for each in lacks.lost)
    if tossed and seen.classification.cls is Class.PRECISION_LOST:
        sentence = f"{named(lacks.lost)} was a toss-up, and another build may keep it; {judgement.sentence}"
        return Judgement(Verdict.VARIES, judgement.expectation, sentence)
    sentence, known = f"{lacks}; {judgement.sentence}", judgement.expectation or claim
    own = claim.product in ("", seen.product)
    if own or lacks.unasked or judgement.verdict is Verdict.REGRESSED:
        return Judgement(Verdict.REGRESSED, known, sentence, judgement.part or "precision")
    return Judgement(Verdict.NEW, known, sentence)


def _accepted(claim: Expectation, asked: Sequence[Asked]) -> Side:
    lost = frozenset(claim.nodes) if claim.outcome in FINISHED else frozenset()
    return Side(tuple(asked), lost, frozenset(claim.untold), frozenset(each.node for each in asked) | lost)


def _latency(judgement: Judgement, claim: Expectation, seen: Seen) -> Judgement:
    """Call a cell regressed that is slower, beyond both intervals and the runs of one machine, on the same GPU."""
    latency = seen.outcome.latency
    like = latency is not None and (latency.clock == "cuda_graph") == claim.graph
    same = like and claim.product and claim.product == seen.product
    found = bounds(latency) if latency and same and claim.ms and _is_right(seen.classification.cls) else None
    least = found.low / claim.ms[-1] - 1 if found else 0.0
    if found is None or latency is None or least <= RUN_TO_RUN[latency.clock]:
        return judgement
    medians = f"{milliseconds(claim.ms[0])} → {milliseconds(found.median)}"
    sentence = f"slower than was accepted: median {medians}, by {least:.0%} at least; {judgement.sentence}"
    return Judgement(Verdict.REGRESSED, claim, sentence, "latency")


def accepted_ms(cls: Class, outcome: Outcome) -> tuple[float, ...]:
    """Return the latency to accept: median, least and most, to four digits; () if there is none to hold others to."""
    held = outcome.latency if took_part(outcome) and _is_right(cls) else None
    found = bounds(held) if held else None
    return tuple(float(f"{each:.4g}") for each in found) if found else ()


def _is_right(cls: Class) -> bool:
    """Tell whether a latency means something: the time of an engine that fails or errs is no speed."""
    return cls in FINISHED and cls is not Class.INACCURATE

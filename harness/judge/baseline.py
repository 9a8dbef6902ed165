"""Holds a judged cell against what was accepted of it beyond its class: precision node by node, and latency; pure.

Fewer nodes asked for, or more that lost their precision, are a regression, whatever the class; a loss that is a toss-up
alone varies. The latency is held to the same GPU's name alone, and to what one machine does from run to run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.case import Expectation, Variant
from harness.case.floor import Asked, Missing, Side, gained, missing, named
from harness.judge.classify import Classification, Wish
from harness.judge.reasons import Reason
from harness.judge.timing import RUN_TO_RUN, bounds
from harness.judge.verdict import Judgement
from harness.record.outcome import Outcome
from harness.record.speaking import Gpu, took_part
from harness.text import milliseconds
from harness.words import FINISHED, GOOD, UNJUDGED, Basis, Class, Part, Precision, Verdict


@dataclass(frozen=True)
class Seen:
    """What was seen of a cell: its outcome and class, its wish, why nodes ran coarser, and the GPU that took part."""

    outcome: Outcome
    classification: Classification
    wish: Wish
    reasons: Sequence[Reason] = ()
    gpu: Gpu | None = None

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
    found = _precision(judgement, claim, variant.accepted, seen) if told else judgement
    return found if _bad(found, cls) else _latency(found, claim, seen)


def _part(judgement: Judgement, cls: Class) -> Part | None:
    if judgement.verdict is not Verdict.REGRESSED:
        return None
    return "precision" if cls is Class.PRECISION_LOST else "class"


def _bad(judgement: Judgement, cls: Class) -> bool:
    return judgement.verdict is Verdict.REGRESSED or (judgement.verdict is Verdict.NEW and cls not in GOOD)


def _precision(
    judgement: Judgement, claim: Expectation, accepted: Sequence[Asked] | None, seen: Seen
) -> Judgement:
    # A loss that was accepted without its nodes does not tell which others were kept.
    named_then = bool(claim.nodes) or claim.outcome is not Class.PRECISION_LOST
    cls, finished = seen.classification.cls, claim.outcome in FINISHED and named_then
    before, now = _accepted(claim, accepted or ()), seen.side
    lacks = missing(before, now)
    lost = lacks.lost if finished and cls in FINISHED else ()
    if lost and cls is Class.PRECISION_LOST and _all(lost, seen.tossed) and not lacks.unasked:
        sentence = f"{named(lost)} was a toss-up, and another build may keep it; {judgement.sentence}"
        return Judgement(Verdict.VARIES, judgement.expectation, sentence)
    if lacks.unasked or lost:
        own = not claim.product or (seen.gpu is not None and seen.gpu.product == claim.product)
        worse = own or lacks.unasked or judgement.verdict is Verdict.REGRESSED
        verdict = Verdict.REGRESSED if worse else Verdict.NEW
        part: Part = judgement.part or "precision"
        sentence = f"{Missing(lacks.unasked, lost)}; {judgement.sentence}"
        return Judgement(verdict, judgement.expectation or claim, sentence, part if worse else None)
    more = gained(before, now) if accepted is not None and finished and cls in FINISHED else ()
    if more and judgement.verdict in (Verdict.EXPECTED, Verdict.KNOWN_FAILURE):
        told = f"{judgement.sentence}; keeps more than was accepted: {named(more)}"
        return replace(judgement, sentence=told, gained=more)
    return judgement


def _accepted(claim: Expectation, asked: Sequence[Asked]) -> Side:
    lost = frozenset(claim.nodes) if claim.outcome in FINISHED else frozenset()
    return Side(tuple(asked), lost, frozenset(claim.untold), frozenset(each.node for each in asked) | lost)


def _all(nodes: Sequence[Asked], among: Collection[str]) -> bool:
    return all(each.node in among for each in nodes)


def _latency(judgement: Judgement, claim: Expectation, seen: Seen) -> Judgement:
    """Call a cell regressed that is slower, beyond both intervals and the runs of one machine, on the same GPU."""
    latency = seen.outcome.latency
    same = seen.gpu is not None and bool(claim.product) and seen.gpu.product == claim.product
    like = latency is not None and (latency.clock == "cuda_graph") == claim.graph
    if not (same and latency and like and claim.ms and _is_right(seen.classification.cls)):
        return judgement
    found = bounds(latency)
    if found is None or found.low / claim.ms[-1] <= 1 + RUN_TO_RUN[latency.clock]:
        return judgement
    least = found.low / claim.ms[-1] - 1
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

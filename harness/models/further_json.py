"""The answers of `harness.models.further` as plain data: what results.json, its page and programs are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.models.bench import works
from harness.models.check import coverage
from harness.record.from_json import fields_of

if TYPE_CHECKING:
    from harness.judge.cell import Judged
    from harness.models.blockers import Blocker, Blockers
    from harness.models.further import Further
    from harness.models.ladder import Ladder
    from harness.models.leave_float import LeftFloat
    from harness.models.workarounds import Tried, Workarounds


def as_json(found: Further) -> dict[str, Any]:
    """Return an entry of results.json's `further`; a question that was not asked is null."""
    cell = found.before.cell
    return {
        "cell": cell.id,
        "variant": cell.variant.name,
        "model": cell.variant.title,
        "target": cell.target.name,
        "blockers": _blockers(found.blockers) if found.blockers else None,
        "ladder": _ladder(found.ladder) if found.ladder else None,
        "leave_float": _left(found.left) if found.left else None,
        "workarounds": _workarounds(found.workarounds) if found.workarounds else None,
    }


def became(judged: Judged | None) -> dict[str, Any] | None:
    """Return what became of a model that was tried, in short."""
    if judged is None:
        return None
    kept = coverage(judged) if judged.outcome.layers else None
    return {
        "class": str(judged.classification.cls),
        "signature": judged.signature,
        "reason": judged.classification.reason,
        "precision": str(kept[0]) if kept else None,
        "kept": kept[1] if kept else 0,
        "wanted": kept[2] if kept else 0,
    }


def _blockers(found: Blockers) -> dict[str, Any]:
    return {
        "found": [_blocker(each) for each in found.found],
        "end": found.end,
        "cut_as_well": list(found.behind),
        "tries": found.tries,
        "seconds": round(found.seconds, 3),
    }


def _blocker(found: Blocker) -> dict[str, Any]:
    cause = found.diagnosis
    return {
        "nodes": list(found.nodes),
        "operator": found.operator,
        "named": found.named,
        "after_cut": found.after_cut,
        "class": str(found.cls),
        "reason": found.reason,
        "signature": cause.id if cause else None,
        "title": cause.title if cause else "",
        "cause": cause.cause if cause else "",
        "advice": cause.advice if cause else "",
    }


def _ladder(found: Ladder) -> dict[str, Any]:
    return {
        "as_it_is": became(found.as_it_is),
        "without_qdq": became(found.without),
        "in_fp16": became(found.in_half),
        "at_fault": str(found.fault),
    }


def _left(found: LeftFloat) -> dict[str, Any]:
    return {
        "nodes": list(found.nodes),
        "of": list(found.of),
        "helps": found.judged is not None and works(found.judged),
        "least": found.least and found.judged is not None,
        "became": became(found.judged),
        "tries": found.tries,
        "seconds": round(found.seconds, 3),
    }


def _workarounds(found: Workarounds) -> dict[str, Any]:
    best = found.best
    return {
        "best": best.rewrite.name if best else None,
        "tried": [_tried(each) for each in found.tried],
        "nothing_to_change": [each.name for each in found.unfit],
        "seconds": round(found.seconds, 3),
    }


def _tried(found: Tried) -> dict[str, Any]:
    return {
        "name": found.rewrite.name,
        "title": found.rewrite.title,
        "costs": found.rewrite.cost,
        "proof": list(found.rewrite.proof),
        "gain": found.gain,
        "became": became(found.judged),
        "outputs": [fields_of(each) for each in found.numbers],
        "uncompared": found.uncompared,
    }

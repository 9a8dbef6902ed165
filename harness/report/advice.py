"""A diagnosis as readers get it: that of an outcome, or in general, for a failure that is only claimed."""

from __future__ import annotations

from functools import cache

from harness.judge.diagnosis import Diagnosis, in_general, load_signatures
from harness.report.model import Advice
from harness.text import clip


def advice_of(found: Diagnosis) -> Advice:
    """Return the diagnosis for readers; the last tactic refused is the nearest the engine comes to a reason."""
    last = f" The engine's last word: {clip(found.skipped_tactic, 300)}" if found.skipped_tactic else ""
    return Advice(
        found.id,
        found.title,
        found.cause + last,
        found.advice,
        found.advice_variants,
        found.links,
        found.place,
    )


def general_advice(signature: str | None) -> Advice | None:
    """Return what is known of a signature whatever the model; None for none, and for one of another version."""
    return _general().get(signature or "")


@cache
def _general() -> dict[str, Advice]:
    return {signature.id: advice_of(in_general(signature)) for signature in load_signatures()}

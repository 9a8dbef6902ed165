"""A claim as readers get it: the class that it is drawn as, what it says, who says so and where; and in exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.known.gpus import GENERATIONS
from harness.text import clip
from harness.words import PREDICATE, Class

if TYPE_CHECKING:
    from harness.case import Expectation, Level

#: What a claim of the class `ok` says at each level: who says "it builds" has not said "it works".
_AT_LEVEL: dict[Level, str] = {
    "builds": "builds",
    "runs": "runs",
    "right numbers": "gives the right numbers",
    "precision": "works in the precision wanted",
}
_LONGEST_NOTE = 200


def drawn(claim: Expectation) -> Class:
    """Return the class that a claim is shown as: "it builds" is no word on what the engine does when it is run."""
    return Class.BUILT if claim.outcome is Class.OK and claim.level == "builds" else claim.outcome


def says(claim: Expectation) -> str:
    """Return what a claim says, as a predicate, with the GPUs that it is about where it is not about every one."""
    plain = _AT_LEVEL[claim.level] if claim.outcome is Class.OK and claim.level else PREDICATE[claim.outcome]
    return f"{plain}{_on_gpus(claim)}"


def _on_gpus(claim: Expectation) -> str:
    """Return the generation that a claim is about, and which GPUs that is: " on SM 12.0 (RTX 50)"; "" for all."""
    capability = claim.compute_capability
    if not capability:
        return ""
    known = next((f" ({each.examples})" for each in GENERATIONS if each.capability == capability), "")
    return f" on SM {capability}{known}"


def built_but(claim: Expectation) -> str:
    """Return what an engine does that was only built, and fails when it is run as a claim says, as a predicate."""
    return f"{PREDICATE[Class.BUILT]}, but {says(claim)}"


def on_precision(claim: Expectation) -> bool:
    """Tell whether a claim says anything of the precision: not that something builds, runs or gives right numbers."""
    return claim.outcome is not Class.OK or claim.level in (None, "precision")


def source(claim: Expectation) -> str:
    """Return what the source of a claim is called, "" where it has none."""
    return (claim.source.title or claim.source.url) if claim.source else ""


def seen_by(claim: Expectation) -> str:
    """Return where a claim comes from and what is noted there: "reported by users in TensorRT issue 3640: on Orin"."""
    note = clip(claim.note, _LONGEST_NOTE)
    if not claim.source:
        return note
    where = f"{claim.provenance} in {source(claim)}"
    return f"{where}: {note}" if note else where

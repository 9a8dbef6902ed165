"""A diagnosis as readers get it: that of an outcome, or in general, for a failure that is only claimed."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from harness.judge.diagnosis import Diagnosis, in_general, load_signatures
from harness.known.model import Advice
from harness.text import clip

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What only a failure fills in, where a title goes on without it.
_BLANK = re.compile(r", <\w+>(?:,|$)")


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


def shared_advice(every: Sequence[Advice]) -> Advice:
    """Return what is told of one signature's cells together: in general, where each is told of nodes of its own."""
    first = every[0]
    texts = {(each.title, each.cause) for each in every}
    return first if len(texts) == 1 else general_advice(first.id) or first


def general_advice(signature: str | None) -> Advice | None:
    """Return what is known of a signature whatever the model; None for none, and for one of another version."""
    return _general().get(signature or "")


def without_blanks(title: str) -> str:
    """Return a title without what only a failure fills in, where it can do without."""
    return _BLANK.sub("", title)


@cache
def _general() -> dict[str, Advice]:
    return {signature.id: advice_of(in_general(signature)) for signature in load_signatures()}

"""How the models of a suite end on two sides -> what the step from one to the other fixed and broke; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.words import GOOD, UNJUDGED, Class

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Turned:
    """A model that ends otherwise after than before; each is a class, and a signature behind it where there is one."""

    model: str
    before: str
    after: str


@dataclass(frozen=True)
class Step:
    """What a step does, each list by model.

    `fixed` fail before and work after, `broken` the other way round, `otherwise` fail on both sides in another way.
    `compared` is how many were judged on both sides, and `apart` how many on one of them alone.
    """

    fixed: tuple[Turned, ...] = ()
    broken: tuple[Turned, ...] = ()
    otherwise: tuple[Turned, ...] = ()
    compared: int = 0
    apart: int = 0

    @property
    def sentence(self) -> str:
        """Return the step in figures."""
        found = (
            f"{len(self.broken)} broken, {len(self.fixed)} fixed, {len(self.otherwise)} fail in another way"
        )
        apart = f", {self.apart} judged on one side alone" if self.apart else ""
        return f"{found}, of {self.compared} models{apart}"


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> Step:
    """Return what a step does; both sides say how each model ended.

    That one side only built what the other ran as well is no change: the machine had no GPU.
    """
    left, right = _judged(before), _judged(after)
    turned = [
        Turned(model, left[model], right[model])
        for model in sorted(left.keys() & right.keys())
        if left[model] != right[model]
    ]
    return Step(
        fixed=tuple(each for each in turned if not _good(each.before) and _good(each.after)),
        broken=tuple(each for each in turned if _good(each.before) and not _good(each.after)),
        otherwise=tuple(each for each in turned if not _good(each.before) and not _good(each.after)),
        compared=len(left.keys() & right.keys()),
        apart=len(left.keys() ^ right.keys()),
    )


def how(cls: Class, signature: str | None) -> str:
    """Return how a model ended, as both sides of a comparison have it."""
    return f"{cls} {signature}" if signature else str(cls)


def class_of(ended: str) -> Class:
    """Return the class of how a model ended."""
    return Class(ended.partition(" ")[0])


def _judged(side: Mapping[str, str]) -> dict[str, str]:
    return {model: ended for model, ended in side.items() if class_of(ended) not in UNJUDGED}


def _good(ended: str) -> bool:
    return class_of(ended) in GOOD

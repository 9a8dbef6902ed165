"""What is reported of a version and no variant here shows, defects and calls that are gone: a step meets it too."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from harness.judge.diagnosis import load_signatures
from harness.report.advice import general_advice, without_blanks
from harness.report.claimed import seen_by
from harness.words import Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.compare.pairs import Step


class Trouble(NamedTuple):
    """A signature that is reported of a version, by its id, with what to do and who reports it."""

    id: str
    title: str
    advice: str
    seen: str


def troubles(step: Step) -> tuple[Trouble, ...]:
    """Return what is reported of the new side's version, not of the old one's, and is shown by no variant."""
    before, after = (
        _reported_of(view.engine, view.id, view.version, view.platform)
        for view in (step.before.view, step.after.view)
    )
    shown = {pair.new.signature for pair in step.pairs} if after else ()
    return tuple(one for one in after.values() if one.id not in shown and one.id not in before)


def counted(found: Sequence[Trouble], after: str) -> str:
    """Say of how many there are, behind the headline of a step; "" where there is none."""
    many = f"{len(found)} more trouble{'s are' if len(found) > 1 else ' is'}"
    return f" {many} reported of {after} that no variant here shows." if found else ""


@cache
def _reported_of(engine: str, target: str, version: str, platform: str) -> dict[str, Trouble]:
    """Return by signature what is reported of a target, which is the same in every step from and to it."""
    where = {"target": target, "version": version, "platform": platform}
    found = {}
    for signature in load_signatures():
        claims = [claim for claim in signature.reported if claim.covers(engine=Engine(engine), **where)]
        said = general_advice(signature.id)
        if claims and said:
            seen = "; ".join(map(seen_by, claims))
            found[signature.id] = Trouble(signature.id, without_blanks(said.title), said.advice, seen)
    return found

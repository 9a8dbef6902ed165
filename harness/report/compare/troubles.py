"""What is reported of a version and no variant here shows, defects and calls that are gone: a step meets it too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.judge.diagnosis import load_signatures
from harness.report.advice import general_advice
from harness.report.claimed import seen_by
from harness.words import Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.case import Expectation
    from harness.report.compare.pairs import Step
    from harness.report.model import TargetView


class Trouble(NamedTuple):
    """A signature that is reported of a version, by its id, with what to do and who reports it."""

    id: str
    title: str
    advice: str
    seen: str


def troubles(step: Step) -> tuple[Trouble, ...]:
    """Return what is reported of the new side's version, not of the old one's, and is shown by no variant."""
    shown = {pair.new.signature for pair in step.pairs}
    found = []
    for signature in load_signatures():
        if not signature.reported or signature.id in shown:
            continue
        after, before = (
            [claim for claim in signature.reported if _is_of(claim, column.view)]
            for column in (step.after, step.before)
        )
        said = general_advice(signature.id)
        if after and not before and said:
            found.append(Trouble(signature.id, said.title, said.advice, "; ".join(map(seen_by, after))))
    return tuple(found)


def counted(found: Sequence[Trouble], after: str) -> str:
    """Say of how many there are, behind the headline of a step; "" where there is none."""
    many = f"{len(found)} more trouble{'s are' if len(found) > 1 else ' is'}"
    return f" {many} reported of {after} that no variant here shows." if found else ""


def _is_of(claim: Expectation, target: TargetView) -> bool:
    where = {"target": target.id, "version": target.version, "platform": target.platform}
    return claim.covers(engine=Engine(target.engine), **where)

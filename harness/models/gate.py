"""The verdict of a check, for a CI: which targets decide, what of them is not known, and what is wrong there; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from harness.known.listed import State
from harness.matrix import Target
from harness.models.answers import Answer, ModelStep, Trouble
from harness.words import PREDICATE, Class

_MOST = 3


def deciding(targets: Iterable[Target], named: Collection[str] = ()) -> tuple[str, ...]:
    """Return the targets that decide, in the matrix's order: those that are named, else the newest of each engine."""
    every = list(targets)
    if named:
        return tuple(each.name for each in every if each.name in named)
    newest: dict[str, Target] = {}
    for each in every:
        first = newest.setdefault(each.engine, each)
        if Version(each.version) > Version(first.version):
            newest[each.engine] = each
    return tuple(each.name for each in every if newest[each.engine] is each)


@dataclass(frozen=True)
class GateVerdict:
    """The sentence on what decided; it is `broken` by a trouble to fail on, or `unknown`, as something is missing."""

    sentence: str
    broken: bool = False
    unknown: bool = False


def verdict(  # noqa: PLR0913  (all that a command line says of it)
    answers: Sequence[Answer],
    steps: Sequence[ModelStep],
    *,
    decides: Sequence[str],
    required: Collection[str] = (),
    fail_on: Collection[Trouble] = (),
    allow_left_out: bool = False,
) -> GateVerdict:
    """Return the verdict of answers on the targets that decide, or of the steps from one to another."""
    asked = [each for each in answers if each.target in decides]
    names = ", ".join(decides)
    if steps:
        worse = [
            (each.after, found) for each in steps if not _doubted(each) and (found := each.worse & {*fail_on})
        ]
    else:
        worse = [
            (each, found) for each in asked if not each.made_up and (found := each.troubles & {*fail_on})
        ]
    if worse:
        return GateVerdict(f"decided by {_first(_said(*each) for each in worse)}", broken=True)
    if not any(each.ran for each in asked):
        return GateVerdict(f"not decided: nothing that was asked ran, of {names}", unknown=True)
    lacking = [each for each in asked if _lacks(each, required, strictly=bool(steps))]
    if lacking:
        return GateVerdict(f"not decided: {_first(map(_missing, lacking))}", unknown=True)
    left = [each for each in answers if each.left_out]
    many = f"{len(left)} of {len(answers)} builds were left out by --seconds: {_first(map(_of, left))}"
    if left and not allow_left_out:
        return GateVerdict(f"not decided: {many}", unknown=True)
    doubted = [each for each in asked if each.made_up and each.troubles & {*fail_on}]
    if doubted:
        return GateVerdict(f"not decided: made-up sizes, {_first(map(_of, doubted))}", unknown=True)
    wrong = ", ".join(sorted(fail_on)) or "nothing to fail on"
    return GateVerdict(
        f"decided by {names}: none of {wrong}{'' if steps else f', of {_models(asked)}'}{_also(left, many)}"
    )


def _also(left: Sequence[Answer], many: str) -> str:
    return f"; {many}" if left else ""


def _models(asked: Sequence[Answer]) -> str:
    many = len({each.judged.cell.variant.name for each in asked})
    return f"{many} model{'s' * (many != 1)}"


def _doubted(step: ModelStep) -> bool:
    return bool(step.before.made_up or step.after.made_up)


def _lacks(answer: Answer, required: Collection[str], *, strictly: bool) -> bool:
    """Tell whether a deciding answer is missing: the machinery failed, or nothing is known without a run."""
    if answer.ran or answer.left_out:
        return False
    infra = answer.judged.classification.cls is Class.INFRA_ERROR
    return infra or strictly or answer.target in required or answer.static.state is State.UNKNOWN


def _of(answer: Answer) -> str:
    return f"{answer.model} on {answer.target}"


def _missing(answer: Answer) -> str:
    return f"{_of(answer)} {PREDICATE[answer.judged.classification.cls]}"


def _said(answer: Answer, found: Collection[Trouble]) -> str:
    how = "is blocked" if answer.blocked else PREDICATE[answer.judged.classification.cls]
    return f"{answer.target}: {answer.model} {how} ({', '.join(sorted(found))})"


def _first(every: Iterable[str]) -> str:
    told = list(every)
    return "; ".join(told[:_MOST]) + (f"; and {len(told) - _MOST} more" if len(told) > _MOST else "")

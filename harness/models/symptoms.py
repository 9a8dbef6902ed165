"""What a bisection looks at: whether a judged model is as on the good end or as on the bad one; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import HandledError
from harness.layers.datatype import same_precision
from harness.models.bisect import Answer
from harness.models.check import engine_made, median_ms
from harness.suggest import did_you_mean
from harness.words import GOOD, PREDICATE, Class, Precision, said

if TYPE_CHECKING:
    from harness.judge.cell import Judged

_FORMS = "class, signature, numbers, slower:5% and int8:NODE"
_SLOWER = re.compile(r"slower:(\d+(?:\.\d+)?)%?")


@dataclass(frozen=True)
class Told:
    """A target's answer and why."""

    answer: Answer
    why: str


@dataclass(frozen=True)
class Symptom:
    """What is looked at: `kind` is class, signature, numbers, slower or precision; the rest belongs to one of them."""

    kind: str
    node: str = ""
    precision: Precision = Precision.UNKNOWN
    share: float = 0.0

    @property
    def timed(self) -> bool:
        """Tell whether it is about how long the model takes."""
        return self.kind == "slower"

    def told(self, judged: Judged, good: Judged, bad: Judged) -> Told:
        """Return what a target says, held against the two ends."""
        return _KINDS[self.kind](self, judged, good, bad)


def parse_symptom(text: str) -> Symptom:
    """Return the symptom that a text names; raises HandledError where it names none."""
    if text in ("class", "signature", "numbers"):
        return Symptom(text)
    slower = _SLOWER.fullmatch(text)
    if slower:
        return Symptom("slower", share=float(slower[1]) / 100)
    word, _, node = text.partition(":")
    if node and word in {str(each) for each in Precision}:
        return Symptom("precision", node=node, precision=Precision(word))
    raise HandledError(f"--symptom {text!r}: is none; there are {_FORMS}")


def check_node(symptom: Symptom, nodes: list[str], label: str) -> None:
    """Raise HandledError where the symptom is about a node that the model does not have."""
    if symptom.node and symptom.node not in nodes:
        raise HandledError(f"{label}: has no node {symptom.node!r}; {did_you_mean(symptom.node, nodes)}")


def agreed(told: Sequence[Told]) -> Told:
    """Return what several looks at a target say: neither where they do not agree, as on a busy machine."""
    if len({each.answer for each in told}) == 1:
        return told[0]
    return Told(Answer.SKIP, f"{len(told)} runs do not agree: {'; '.join(each.why for each in told)}")


def _class(_: Symptom, judged: Judged, good: Judged, bad: Judged) -> Told:
    return _alike(judged, good, bad, lambda each: (_group(each), ""))


def _signature(_: Symptom, judged: Judged, good: Judged, bad: Judged) -> Told:
    return _alike(judged, good, bad, lambda each: (_group(each), each.signature or ""))


def _alike(judged: Judged, good: Judged, bad: Judged, key: Callable[[Judged], tuple[Class, str]]) -> Told:
    words = f"{judged.classification.cls} {judged.signature or ''}".strip()
    if key(judged) == key(good):
        return Told(Answer.GOOD, words)
    if key(judged) == key(bad):
        return Told(Answer.BAD, words)
    return Told(
        Answer.SKIP, f"{words}: neither as on {good.cell.target.name} nor as on {bad.cell.target.name}"
    )


def _group(judged: Judged) -> Class:
    """Return a class, the good ones as one: a machine without a GPU builds what another runs."""
    return Class.OK if judged.classification.cls in GOOD else judged.classification.cls


def _numbers(_: Symptom, judged: Judged, __: Judged, ___: Judged) -> Told:
    if judged.classification.cls is Class.INACCURATE:
        return Told(Answer.BAD, judged.classification.reason)
    if judged.outcome.accuracy:
        return Told(Answer.GOOD, "numbers agree with the reference")
    return Told(
        Answer.SKIP, f"no numbers were compared: {judged.outcome.uncompared or judged.classification.reason}"
    )


def _precision(symptom: Symptom, judged: Judged, _: Judged, __: Judged) -> Told:
    got = judged.precision.get(symptom.node, Precision.UNKNOWN)
    if not engine_made(judged):
        return Told(
            Answer.SKIP, f"{PREDICATE[judged.classification.cls]}: no layer says what the node runs in"
        )
    if got is Precision.UNKNOWN:
        return Told(Answer.SKIP, "no layer says what the node runs in")
    answer = Answer.GOOD if same_precision(symptom.precision, got) else Answer.BAD
    return Told(answer, f"{symptom.node} ran in {said(got)}")


def _slower(symptom: Symptom, judged: Judged, good: Judged, _: Judged) -> Told:
    took, before = median_ms(judged), median_ms(good)
    if took is None or before is None:
        return Told(Answer.SKIP, f"was not timed: {judged.classification.reason}")
    words = f"{took:.4g} ms, where {before:.4g} ms is good"
    return Told(Answer.BAD if took > before * (1 + symptom.share) else Answer.GOOD, words)


_KINDS: dict[str, Callable[[Symptom, Judged, Judged, Judged], Told]] = {
    "class": _class,
    "signature": _signature,
    "numbers": _numbers,
    "precision": _precision,
    "slower": _slower,
}

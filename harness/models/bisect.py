"""Finds between which two of a row of targets a symptom of a model changed; pure functions of judged cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.layers.datatype import same_precision
from harness.matrix import Target
from harness.models.answers import engine_made
from harness.plan import series
from harness.text import did_you_mean
from harness.words import GOOD, PREDICATE, Class, Precision, Word, said

_SERIES = ("engine", "platform", "compute capability", "provider")
_FORMS = "class, signature, numbers or int8:NODE"


class Reply(Word):
    """The answer of a target; SKIP is neither."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class Edge:
    """The last good of a row and the first bad; `skipped` are all that said neither.

    `between` are those of them that lie between the two.
    """

    good: str
    bad: str
    skipped: tuple[str, ...] = ()
    between: tuple[str, ...] = ()


def bisect(row: Sequence[str], ask: Callable[[str], Reply]) -> Edge:
    """Return the edge in a row whose first is good and whose last is bad; `ask` answers for those between.

    One that says neither is passed over for its nearest neighbour.
    """
    good, bad = 0, len(row) - 1
    skipped: list[int] = []
    while rest := [index for index in range(good + 1, bad) if index not in skipped]:
        middle = (good + bad) / 2
        index = min(rest, key=lambda each: (abs(each - middle), each))
        answer = ask(row[index])
        if answer is Reply.SKIP:
            skipped.append(index)
        elif answer is Reply.GOOD:
            good = index
        else:
            bad = index
    between = tuple(row[index] for index in range(good + 1, bad))
    return Edge(row[good], row[bad], tuple(row[index] for index in sorted(skipped)), between)


def row_of(targets: Iterable[Target], good: Target, bad: Target) -> tuple[Target, ...]:
    """Return the targets from the good one to the bad one, by version; raises HandledError if no row leads there."""
    if good.name == bad.name:
        raise HandledError(f"--good and --bad are both {good.name}; name two targets")
    if series(good) != series(bad):
        differs = next(
            name for name, one, other in zip(_SERIES, series(good), series(bad), strict=True) if one != other
        )
        raise HandledError(
            f"{good.name} and {bad.name} are of another {differs}, so that no row of versions leads from one to the "
            "other; name two of one series"
        )
    rest = [each for each in targets if series(each) == series(good)]
    rest.sort(key=lambda each: Version(each.version))
    first, last = sorted((rest.index(good), rest.index(bad)))
    found = rest[first : last + 1]
    return tuple(found if found[0] == good else found[::-1])


@dataclass(frozen=True)
class Told:
    """A target's answer and why."""

    reply: Reply
    why: str


@dataclass(frozen=True)
class Symptom:
    """The difference that is sought: `kind` is class, signature, numbers or precision, which is that of a node."""

    kind: str
    node: str = ""
    precision: Precision = Precision.UNKNOWN

    def told(self, judged: Judged, good: Judged, bad: Judged) -> Told:
        """Return the answer of a target, compared with the two ends."""
        if self.kind in ("class", "signature"):
            return _alike(judged, good, bad, by_cause=self.kind == "signature")
        if self.kind == "numbers":
            return _numbers(judged)
        return _precision(self.node, self.precision, judged)


def parse_symptom(text: str) -> Symptom:
    """Return the symptom that a text names; raises HandledError for any other."""
    if text in ("class", "signature", "numbers"):
        return Symptom(text)
    word, _, node = text.partition(":")
    if node and word in {str(each) for each in Precision}:
        return Symptom("precision", node=node, precision=Precision(word))
    raise HandledError(f"--symptom {text!r} is no symptom; give {_FORMS}")


def check_node(symptom: Symptom, nodes: list[str], label: str) -> None:
    """Raise HandledError if the symptom is about a node that the model does not have."""
    if symptom.node and symptom.node not in nodes:
        raise HandledError(f"{label}: has no node {symptom.node!r}; {did_you_mean(symptom.node, nodes)}")


def _alike(judged: Judged, good: Judged, bad: Judged, *, by_cause: bool) -> Told:
    def key(each: Judged) -> tuple[Class, str]:
        # The good ones are one: a machine without a GPU only builds a model that another runs.
        cls = each.classification.cls
        return Class.OK if cls in GOOD else cls, (each.signature or "") if by_cause else ""

    words = f"{judged.classification.cls} {judged.signature or ''}".strip()
    if key(judged) == key(good):
        return Told(Reply.GOOD, words)
    if key(judged) == key(bad):
        return Told(Reply.BAD, words)
    return Told(
        Reply.SKIP, f"{words}: neither as on {good.cell.target.name} nor as on {bad.cell.target.name}"
    )


def _numbers(judged: Judged) -> Told:
    if judged.classification.cls is Class.INACCURATE:
        return Told(Reply.BAD, judged.classification.reason)
    if judged.outcome.accuracy:
        return Told(Reply.GOOD, "numbers agree with the reference")
    return Told(
        Reply.SKIP, f"no numbers were compared: {judged.outcome.uncompared or judged.classification.reason}"
    )


def _precision(node: str, wanted: Precision, judged: Judged) -> Told:
    got = judged.precision.get(node, Precision.UNKNOWN)
    if not engine_made(judged):
        return Told(
            Reply.SKIP, f"{PREDICATE[judged.classification.cls]}: no layer says what the node runs in"
        )
    if got is Precision.UNKNOWN:
        return Told(Reply.SKIP, "no layer says what the node runs in")
    answer = Reply.GOOD if same_precision(wanted, got) else Reply.BAD
    return Told(answer, f"{node} ran in {said(got)}")

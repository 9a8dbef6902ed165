"""Tells whether a smaller model shows the same failure: pure functions of judged models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.errors import HandledError
from harness.judge import complaints
from harness.judge.cell import Judged
from harness.models.check import changes
from harness.record.outcome import Accuracy
from harness.words import GOOD, PREDICATE, Class, said

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(frozen=True)
class Sought:
    """The outcome of a model on one target, as far as it has to stay so.

    `signature`, `operator`, `line` (the error, without the names of nodes and without numbers) and `text` (which the
    engine has to say somewhere) are "" if they may be any. A good class stands for every good one.
    """

    cls: Class
    signature: str = ""
    operator: str = ""
    line: str = ""
    text: str = ""

    def shown_by(self, judged: Judged) -> bool:
        """Tell whether another model shows the same."""
        cls = judged.classification.cls
        if self.cls in GOOD:
            return cls in GOOD
        return (
            cls is self.cls
            and self.signature in ("", judged.signature)
            and self.operator in ("", judged.diagnosis.operator if judged.diagnosis else "")
            and (not self.line or self.line in failures(judged))
            and (not self.text or says(judged, self.text))
        )

    def __str__(self) -> str:
        cause = " at ".join(filter(None, (self.signature, self.operator)))
        told = ", ".join(filter(None, (cause, self.line, self.text and f"saying {self.text!r}")))
        return f"{PREDICATE[self.cls]} ({told})" if told else PREDICATE[self.cls]


def sought(judged: Judged, keep: str) -> Sought:
    """Return the part of a failure that has to stay: "class", "signature", or a text that the engine says.

    "signature" is that and its operator; without a signature, the class and the error. Raises HandledError
    if the model does not fail, or does not say the text.
    """
    cls, target = judged.classification.cls, judged.cell.target.name
    if cls in GOOD:
        raise HandledError(
            f"the model {PREDICATE[cls]} on {target}: there is nothing to keep; name the target where it does not, "
            "or two that differ with --differs A,B"
        )
    if keep == "class":
        return Sought(cls)
    if keep == "signature":
        found = judged.diagnosis
        # A cause that the graph alone tells is as near to another one as to this.
        line = failures(judged)[0] if found is None or cls is Class.PRECISION_LOST else ""
        return Sought(cls, found.id if found else "", found.operator if found else "", line)
    if not says(judged, keep):
        raise HandledError(
            f"--keep {keep!r}: the engine says nothing like it on {target}, where the model {PREDICATE[cls]}: "
            f"{judged.classification.reason[:200]}"
        )
    return Sought(cls, text=keep)


def failures(judged: Judged) -> tuple[str, ...]:
    """Return the errors, a line each, without names of nodes and numbers, which change with the model around them.

    Of lost precision these are the operators, with the type wanted and the type they ran in.
    """
    found = judged.classification
    if found.cls is Class.PRECISION_LOST:
        ops = {node.name: node.op for node in judged.outcome.nodes}
        lines = (
            f"{ops.get(node, '')} ran in {said(got)}, not {said(want)}" for node, want, got in found.lost
        )
        return tuple(dict.fromkeys(lines))
    if found.cls is Class.INACCURATE:
        return tuple(dict.fromkeys(map(_wrong, judged.outcome.accuracy)))
    return (_anonymous(judged, found.reason),)


def says(judged: Judged, text: str) -> bool:
    """Tell whether an engine said a text, in whatever place."""
    outcome = judged.outcome
    readers = (complaints.errors, complaints.refusals, complaints.warnings, complaints.native)
    places = ((judged.classification.reason,), *(read(outcome) for read in readers))
    return any(text in each for place in places for each in place)


def named(judged: Judged) -> tuple[str, ...]:
    """Return the nodes that a failure is about, as far as it tells."""
    nodes = [node.name for node in judged.outcome.nodes]
    lost = [each.node for each in judged.classification.lost]
    place = judged.diagnosis.node if judged.diagnosis else ""
    told = f"{place} {judged.classification.reason}"
    return tuple(dict.fromkeys([*lost, *(name for name in nodes if _stands_in(name, told))]))


@dataclass(frozen=True)
class Shown:
    """All that a smaller model has to show: its outcome by target, and for two targets how nodes change."""

    sides: Mapping[str, Sought]
    change: tuple[str, str, str] | None = None

    def shown(self, look: Callable[[str], Judged]) -> bool:
        """Tell whether a model shows it; `look` returns its outcome on a target."""
        seen: dict[str, Judged] = {}
        # The side that fails tells most candidates apart, so that the other one is seldom asked.
        for target in sorted(self.sides, key=lambda name: self.sides[name].cls in GOOD):
            seen[target] = look(target)
            if not self.sides[target].shown_by(seen[target]):
                return False
        return self.change is None or self.change in _changes(*(seen[target] for target in self.sides))

    def __str__(self) -> str:
        told = "; ".join(f"{sought} on {target}" for target, sought in self.sides.items())
        return f"{told}; {' '.join(self.change)}" if self.change else told


def failing(judged: Judged, keep: str) -> Shown:
    """Return the failure on one target; raises as `sought` does."""
    return Shown({judged.cell.target.name: sought(judged, keep)})


def differing(one: Judged, other: Judged, keep: str) -> Shown:
    """Return the difference of two targets; raises HandledError if there is none."""
    both = (one, other)
    kept = [
        Sought(cls) if (cls := judged.classification.cls) in GOOD else sought(judged, keep) for judged in both
    ]
    sides = dict(zip((judged.cell.target.name for judged in both), kept, strict=True))
    if not (kept[0].shown_by(other) and kept[1].shown_by(one)):
        return Shown(sides)
    changed = _changes(one, other)
    if not changed:
        names = " and ".join(sides)
        raise HandledError(
            f"--differs: the model fares alike on {names}: it {kept[0]}; name two targets that differ"
        )
    return Shown(sides, changed[0])


def _changes(one: Judged, other: Judged) -> tuple[tuple[str, str, str], ...]:
    ops = {node.name: node.op for node in one.outcome.nodes}
    return tuple(
        dict.fromkeys(
            (ops[change.node], f"from {said(str(change.before))}", f"to {said(str(change.after))}")
            for change in changes(one, other)
        )
    )


def _stands_in(name: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w/]){re.escape(name)}(?![\w/])", text))


def _anonymous(judged: Judged, text: str) -> str:
    for name in sorted((node.name for node in judged.outcome.nodes), key=len, reverse=True):
        text = re.sub(rf"(?<![\w/]){re.escape(name)}[\w/.:]*", "", text)
    return " ".join(_NUMBER.sub("#", _QUOTED.sub("", text)).split())


def _wrong(accuracy: Accuracy) -> str:
    if not accuracy.shape_matches:
        return "an output of another shape"
    return "values that are no numbers" if accuracy.not_finite else "numbers that are off"

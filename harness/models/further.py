"""Asks of a model beyond itself: of parts of it, without its Q/DQ, and rewritten; the answers by target."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import onnx

from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.layers.asked import asked
from harness.layers.operators import MULTIPLYING
from harness.models.blockers import Blocker, Blockers, blamed, blockers
from harness.models.check import coverage, ran, troubles, untold, works
from harness.models.own.data import Given
from harness.models.own.model import OwnModel
from harness.models.rewrites import unquantised
from harness.models.trying import Bench, Tries
from harness.models.workarounds import Tried, Workarounds, workarounds
from harness.text import did_you_mean
from harness.words import OF_A_NODE

_AUTO = "auto"
#: Where a search ends with what it has.
MOST_TRIES, MOST_SECONDS = 100, 120.0


@dataclass(frozen=True)
class LeftFloat:
    """Nodes left in floating point, the model of that and its outcome; none where nothing helps.

    `of` are all that are quantised. `least` says that none of the nodes can be spared; else the search was cut short.
    """

    nodes: tuple[str, ...]
    of: tuple[str, ...]
    model: onnx.ModelProto | None
    judged: Judged | None
    least: bool
    tries: int
    seconds: float


@dataclass(frozen=True)
class Questions:
    """The questions to ask; `leave_float` is "auto", nodes with commas between, or "" for nothing."""

    blockers: bool = True
    leave_float: str = ""
    workarounds: bool = False

    def named(self, model: OwnModel) -> tuple[str, ...]:
        """Return the nodes that are to be left in floating point, none for "auto"; raises HandledError for others."""
        if self.leave_float in ("", _AUTO):
            return ()
        named = tuple(filter(None, (each.strip() for each in self.leave_float.split(","))))
        known = quantised_nodes(graph_of(model))
        for name in named:
            if name not in known:
                what = did_you_mean(name, known) if known else "none of its nodes is quantised"
                raise HandledError(f"--leave-float {name!r}: is no quantised node of {model.label}; {what}")
        return named


@dataclass(frozen=True)
class Further:
    """The answers for one model on one target, None where not asked; `before` is the whole model's outcome.

    A question is not asked of a target that has no such trouble: blockers where the model fails to build, the last two
    where it fails or loses its precision.
    """

    before: Judged
    blockers: Blockers | None = None
    left: LeftFloat | None = None
    workarounds: Workarounds | None = None

    @property
    def target(self) -> str:
        """Return the target's name."""
        return self.before.cell.target.name

    @property
    def answered(self) -> bool:
        """Tell whether anything was asked."""
        return any((self.blockers, self.left, self.workarounds))


@dataclass(frozen=True)
class Asking:
    """The questions about one model on the targets that it ran on; `flags` and `given` are the user's."""

    model: OwnModel
    judged: Sequence[Judged]
    questions: Questions
    tries: Tries
    flags: tuple[str, ...] = ()
    given: Given = field(default_factory=Given)

    def answers(self) -> Iterator[tuple[str, tuple[Further, ...]]]:
        """Yield each question, by its name in results.json, with the answers of all targets as soon as they are there.

        Blockers come once; the others once a target, which is then the only one.
        """
        graph = graph_of(self.model)
        found = [Further(each) for each in self.judged if ran(each)]
        if self.questions.blockers:
            found = [self._blocked(graph, each) for each in found]
            yield "blockers", tuple(each for each in found if each.blockers)
        for each in found:
            yield from self._rest(graph, each)

    @property
    def troubled(self) -> bool:
        """Tell whether any target fails to build the model or loses its precision."""
        return any(ran(each) and troubles(each) and not works(each) for each in self.judged)

    @property
    def untold(self) -> bool:
        """Tell whether of any node no layer tells whether it kept its precision."""
        return any(ran(each) and untold(each) for each in self.judged)

    def _blocked(self, graph: onnx.ModelProto, found: Further) -> Further:
        before = found.before
        if before.classification.cls not in OF_A_NODE:
            return found
        return replace(found, blockers=blockers(graph, before, self._bench(before)))

    def _rest(self, graph: onnx.ModelProto, found: Further) -> Iterator[tuple[str, tuple[Further, ...]]]:
        named, before = self.questions.named(self.model), found.before
        troubled = bool(troubles(before)) and not works(before)
        bench = self._bench(before)
        if self.questions.leave_float and (named or troubled):
            left = _as_named(graph, named, bench) if named else leave_float(graph, before, bench)
            found = replace(found, left=left)
            yield "leave_float", (found,)
        if self.questions.workarounds and (troubled or untold(before)):
            also = [node for each in found.blockers.found for node in each.nodes] if found.blockers else []
            also += untold(before)
            tried = workarounds(graph, before, bench, also=also, inputs=self.given.inputs)
            found = replace(found, workarounds=tried)
            yield "workarounds", (found,)

    def _bench(self, judged: Judged) -> Callable[..., Judged]:
        variant = self.model.variant
        calibrated = tuple(self.given.calibration)
        return Bench(
            self.tries, judged.cell.target, variant.recipe, self.flags, variant.precision, calibrated
        )


def latest(answers: Iterable[tuple[str, tuple[Further, ...]]]) -> tuple[Further, ...]:
    """Return the last answers of each model and target."""
    found: dict[tuple[str, str], Further] = {}
    for _, each in answers:
        found |= {(one.before.cell.variant.name, one.target): one for one in each}
    return tuple(each for each in found.values() if each.answered)


def graph_of(model: OwnModel) -> onnx.ModelProto:
    """Return the graph of a user's model."""
    return onnx.load_model_from_string(model.variant.model_bytes())


def quantised_nodes(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the nodes that multiply quantised tensors, be it weights alone, in the model's order."""
    floats = {"", "fp16", "bf16"}
    return tuple(
        node.name for node in asked(model) if node.op in MULTIPLYING and node.precision not in floats
    )


def leave_float(
    model: onnx.ModelProto,
    before: Judged,
    attempt: Callable[[onnx.ModelProto], Judged],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> LeftFloat:
    """Return the fewest nodes whose Q/DQ is to go so that a target builds the rest and loses no precision.

    First those that are blamed, then all; of a set that helps one part after the other is given its Q/DQ back, halves,
    then quarters, down to single nodes, as long as it still helps.
    """
    began, every = clock(), quantised_nodes(model)
    tried: dict[tuple[str, ...], tuple[onnx.ModelProto, Judged] | None] = {}
    tries, over = 0, False

    def helps(nodes: tuple[str, ...]) -> bool:
        """Tell whether leaving these nodes in floating point helps; no, once the search is over."""
        nonlocal tries, over
        if nodes in tried:
            return tried[nodes] is not None
        if tries >= MOST_TRIES or clock() - began > MOST_SECONDS:
            over = True
            return False
        left = unquantised(model, nodes)
        judged = None if left is None else attempt(left)
        tries += judged is not None
        tried[nodes] = (left, judged) if left is not None and judged is not None and works(judged) else None
        return tried[nodes] is not None

    suspects = tuple(node for node in every if node in blamed(before))
    start = next((nodes for nodes in (suspects, every) if nodes and helps(nodes)), ())
    nodes = _fewest(start, helps)
    left, judged = tried.get(nodes) or (None, None)
    return LeftFloat(nodes, every, left, judged, not over, tries, clock() - began)


def _fewest(nodes: tuple[str, ...], helps: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """Return those of some nodes that help of which none can be spared any more."""
    size = len(nodes)
    while size > 1:
        size = (size + 1) // 2
        before: tuple[str, ...] = ()
        # Where some can be spared only after others, single nodes are gone through again.
        while nodes != before:
            before = nodes
            for part in [nodes[start : start + size] for start in range(0, len(nodes), size)]:
                rest = tuple(node for node in nodes if node not in part)
                if rest and helps(rest):
                    nodes = rest
            if size > 1:
                break
    return nodes


def _as_named(graph: onnx.ModelProto, named: tuple[str, ...], bench: Callable[..., Judged]) -> LeftFloat:
    left = unquantised(graph, named)
    judged = None if left is None else bench(left)
    return LeftFloat(named, quantised_nodes(graph), left, judged, least=False, tries=1, seconds=0.0)


def as_json(found: Further) -> dict[str, Any]:
    """Return an entry of results.json's `further`; a question that was not asked is null."""
    cell, left, tried = found.before.cell, found.left, found.workarounds
    best = tried.best if tried else None
    return {
        "cell": cell.id,
        "variant": cell.variant.name,
        "model": cell.variant.title,
        "target": cell.target.name,
        "blockers": found.blockers and {
            "found": [_blocker(each) for each in found.blockers.found],
            "end": found.blockers.end,
            "cut_as_well": list(found.blockers.behind),
            **_spent(found.blockers.tries, found.blockers.seconds),
        },
        "leave_float": left and {
            "nodes": list(left.nodes),
            "of": list(left.of),
            "helps": left.judged is not None and works(left.judged),
            "least": left.least and left.judged is not None,
            "became": _became(left.judged),
            **_spent(left.tries, left.seconds),
        },
        "workarounds": tried and {
            "best": best.rewrite.name if best else None,
            "tried": [_tried(each) for each in tried.tried],
            "nothing_to_change": [each.name for each in tried.unfit],
            "seconds": round(tried.seconds, 3),
        },
    }  # fmt: skip


def _spent(tries: int, seconds: float) -> dict[str, float]:
    return {"tries": tries, "seconds": round(seconds, 3)}


def _became(judged: Judged | None) -> dict[str, Any] | None:
    """Return the outcome of a model that was tried, in short."""
    if judged is None:
        return None
    precision, kept, wanted = (coverage(judged) if judged.outcome.layers else None) or (None, 0, 0)
    return {
        "class": str(judged.classification.cls),
        "signature": judged.signature,
        "reason": judged.classification.reason,
        "precision": precision and str(precision),
        "kept": kept,
        "wanted": wanted,
    }


def _blocker(found: Blocker) -> dict[str, Any]:
    cause = found.diagnosis
    return {
        "nodes": list(found.nodes),
        "operator": found.operator,
        "named": found.named,
        "after_cut": found.after_cut,
        "class": str(found.cls),
        "reason": found.reason,
        "signature": cause and cause.id,
        **{name: getattr(cause, name, "") for name in ("title", "cause", "advice")},
    }


def _tried(found: Tried) -> dict[str, Any]:
    rewrite = found.rewrite
    return {
        "name": rewrite.name,
        "title": rewrite.title,
        "costs": rewrite.cost,
        "proof": list(rewrite.proof),
        "gain": found.gain,
        "became": _became(found.judged),
        "outputs": [asdict(each) for each in found.numbers],
        "uncompared": found.uncompared,
    }

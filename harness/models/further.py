"""Asks of a model beyond itself: of parts of it, without its Q/DQ, and rewritten; the answers by target."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import onnx
from msgspec import structs
from packaging.version import Version

from harness.case.model import Built, serialise
from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.known.further import Blockers, LeftFloat
from harness.known.listed import State
from harness.layers.asked import asked
from harness.layers.operators import MULTIPLYING
from harness.models.answers import Answer, became, troubles, untold, works
from harness.models.blockers import MOST_SECONDS as MOST_BLOCKERS_SECONDS
from harness.models.blockers import accused, blamed, blockers
from harness.models.deciding import Patterns
from harness.models.own.data import Given
from harness.models.own.model import OwnModel
from harness.models.rewrites import unquantised
from harness.models.static import static_answers
from harness.models.trying import Bench, Tries
from harness.models.workarounds import listed_workarounds, workarounds
from harness.text import did_you_mean
from harness.words import OF_A_NODE


@dataclass(frozen=True)
class Questions:
    """The questions to ask; `leave_float` are the nodes to leave in floating point."""

    blockers: bool = True
    leave_float: tuple[str, ...] = ()
    workarounds: bool = False

    def fit(self, model: OwnModel) -> None:
        """Raise HandledError for a node that is no quantised one of a model."""
        known = quantised_nodes(graph_of(model)) if self.leave_float else ()
        for name in self.leave_float:
            if name not in known:
                what = did_you_mean(name, known) if known else "none of its nodes is quantised"
                raise HandledError(f"--leave-float {name!r}: is no quantised node of {model.label}; {what}")


@dataclass(frozen=True)
class Asking:
    """The questions about one model on the targets that it ran on; `flags` and `given` are the user's.

    `most_seconds` bounds the search for blockers, which nobody asked for by an option. `before` are the targets that
    ran, and those of which the static answer alone is known, without `patterns` from the tables.

    A question is not asked of a target that has no such trouble: blockers if the model fails to build, the others
    if it fails or loses its precision.
    """

    model: OwnModel
    before: Sequence[Answer]
    questions: Questions
    tries: Tries
    flags: tuple[str, ...] = ()
    given: Given = field(default_factory=Given)
    most_seconds: float = MOST_BLOCKERS_SECONDS
    patterns: Patterns | None = None

    def answers(self) -> Iterator[tuple[str, tuple[Answer, ...]]]:
        """Yield each question, by its name in results.json, with the answers of all targets as soon as they are there.

        Blockers come once; the others once a target, which is then the only one.
        """
        graph = graph_of(self.model)
        found = [each for each in self.before if each.ran]
        if self.questions.blockers:
            found = self._blocked(graph, found)
            yield "blockers", tuple(each for each in found if each.further.blockers)
        for each in found:
            yield from self._rest(graph, each)
        for each in self.before if self.questions.workarounds else ():
            yield from self._unrun(graph, each)

    @property
    def troubled(self) -> bool:
        """Tell whether any target fails to build the model, would by the tables, or loses its precision."""
        return any(each.troubles and not works(each.judged) for each in self.before)

    @property
    def untold(self) -> bool:
        """Tell whether of any node no layer tells whether it kept its precision."""
        return any(each.ran and untold(each.judged) for each in self.before)

    def _blocked(self, graph: onnx.ModelProto, found: Sequence[Answer]) -> list[Answer]:
        """Return answers with the blockers; targets of one engine share the newest's that hold their first one."""
        groups: dict[Hashable, list[Judged]] = {}
        for each in sorted(found, key=lambda each: Version(each.judged.cell.target.version)):
            groups.setdefault(_first_failure(each.judged), []).append(each.judged)
        sought: dict[str, Blockers] = {}
        for failure, left in groups.items():
            while left and failure is not None:
                newest = left.pop()
                held = blockers(graph, newest, self._bench(newest), most_seconds=self.most_seconds)
                seen = {node for each in held.found for node in each.nodes}
                sharing = [each for each in left if seen.issuperset(blamed(each))]
                if sharing and held.tries:
                    held = structs.replace(
                        held, end=f"{held.end} (sought on {newest.cell.target.name} alone)"
                    )
                sought |= {each.cell.target.name: held for each in (newest, *sharing)}
                left[:] = (each for each in left if each not in sharing)
        return [
            each.with_further(blockers=sought[each.target]) if each.target in sought else each
            for each in found
        ]

    def _rest(self, graph: onnx.ModelProto, found: Answer) -> Iterator[tuple[str, tuple[Answer, ...]]]:
        before, bench = found.judged, self._bench(found.judged)
        troubled = bool(troubles(before)) and not works(before)
        if self.questions.leave_float:
            left, made = _left_float(graph, self.questions.leave_float, bench)
            found = found.with_further(made, leave_float=left)
            yield "leave_float", (found,)
        if self.questions.workarounds and (troubled or untold(before)):
            blocked = found.further.blockers
            also = [node for each in blocked.found for node in each.nodes] if blocked else []
            also += untold(before)
            tried, made = workarounds(graph, before, bench, also=also, inputs=self.given.inputs)
            found = found.with_further(made, workarounds=tried)
            yield "workarounds", (found,)

    def _unrun(self, graph: onnx.ModelProto, found: Answer) -> Iterator[tuple[str, tuple[Answer, ...]]]:
        """Yield what rewrites make of the static answer of a target that did not run, if that is a bad one."""
        if found.ran or found.static.state not in (State.BLOCKED, State.IGNORED):
            return

        def state_of(made: onnx.ModelProto) -> State:
            variant = replace(self.model.variant, build=Built(serialise(made)))
            other = replace(self.model, variant=variant)
            answers = static_answers(
                [other], [found.judged], self.patterns, {variant.name: self.given.inputs}
            )
            return answers[found.judged.cell.id].state

        blamed_nodes = [each.node for each in found.static.findings if each.node]
        tried, made = listed_workarounds(
            graph, found.judged, blamed_nodes, state_of, inputs=self.given.inputs
        )
        if tried.tried:
            yield "workarounds", (found.with_further(made, workarounds=tried),)

    def _bench(self, judged: Judged) -> Callable[..., Judged]:
        target, variant, calibrated = judged.cell.target, self.model.variant, tuple(self.given.calibration)
        return Bench(self.tries, target, variant.recipe, self.flags, variant.precision, calibrated)


def _first_failure(judged: Judged) -> Hashable:
    """Return what targets have in common that fail alike at first; None for one whose failure is of no node."""
    cls, target = judged.classification.cls, judged.cell.target
    if cls not in OF_A_NODE:
        return None
    # Another version may name another node of the operator first.
    nodes = tuple(sorted({(each.operator, each.signature or "") for each in accused(judged)}))
    return target.engine, cls, judged.signature, nodes or target.name


def graph_of(model: OwnModel) -> onnx.ModelProto:
    """Return the graph of a user's model."""
    return onnx.load_model_from_string(model.variant.model_bytes())


def quantised_nodes(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the nodes that multiply quantised tensors, be it weights alone, in the model's order."""
    floats = {"", "fp16", "bf16"}
    return tuple(
        node.name for node in asked(model) if node.op in MULTIPLYING and node.precision not in floats
    )


def _left_float(
    graph: onnx.ModelProto, named: tuple[str, ...], bench: Callable[..., Judged]
) -> tuple[LeftFloat, onnx.ModelProto | None]:
    """Return what becomes of a model with these nodes in floating point, and that model, if it is another."""
    left, every = unquantised(graph, named), quantised_nodes(graph)
    judged = None if left is None else bench(left)
    helps, said = (works(judged), became(judged)) if judged else (False, None)
    return LeftFloat(named, every, helps, least=False, became=said, tries=1, seconds=0.0), left

"""Reads a model as an importer of TensorRT reads it, without what that drops, and tells what becomes of the rest.

An importer that does not read an attribute or an input builds another model than the one it was given. Most often that
one contradicts itself at a later node; sometimes nothing changes; else its numbers are off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper
from packaging.version import Version

from harness.case import Profile
from harness.case.graph_reader import GraphReader, attribute, inferred
from harness.case.model import effective_name
from harness.known.listed import KEPT, Objection, OperatorUse, State, uses_in
from harness.matrix.operators import Fact, tables_around
from harness.models.own.inputs import made_up
from harness.models.reading import MOST_EVALUATED
from harness.models.rewrites.editor import drop_attributes
from harness.models.walking import Stop, Walk, same, settled, walk
from harness.run.child import ChildFailed, stream
from harness.run.numbers.inputs import NotFeedable
from harness.run.numbers.reference import compare, reference
from harness.run.numbers.wire import Array
from harness.run.prepared import memory_for

#: Seconds that the walks of a model, and then its evaluation, may each take.
_SECONDS = 20.0
#: Less than this is rounding.
_ROUNDING = 1e-4
#: What a model of opset 17 says so that it is read, and the way there.
_OPSET_17 = frozenset({"axes-all", "parts-alike", "whole-shape"})
_WAY_OUT = "; export with opset 17, or take --try-workarounds"


@dataclass(frozen=True)
class NotRead:
    """A node of which an importer drops what breaks the condition of a fact."""

    node: str
    operator: str
    fact: Fact

    @property
    def words(self) -> str:
        """Return the fact about the node."""
        return f"{self.fact.words} ({self.fact.link})"


@dataclass(frozen=True)
class Reading:
    """What becomes of a model without what is dropped.

    It stops at a node, or it is off by a part of its magnitude, 0.0 if nothing changes, None if that is not known;
    `why` says why, or how its outputs differ.
    """

    dropped: tuple[NotRead, ...]
    stop: Stop | None = None
    off: float | None = None
    why: str = ""

    def findings(self) -> Iterator[Objection]:
        """Yield the findings in place of those that say that something is dropped."""
        kinds: dict[tuple[str, Fact], list[NotRead]] = {}
        for each in self.dropped:
            kinds.setdefault((each.operator, each.fact), []).append(each)
        told = [
            f"{operator} {first.node!r}{f' and {len(more)} more' if more else ''}: {first.words}"
            for (operator, _), (first, *more) in kinds.items()
        ]
        if self.stop:
            mendable = any(each.fact.condition in _OPSET_17 for each in self.dropped)
            others = f"; and {len(told) - 1} more kinds" if len(told) > 1 else ""
            words = f"cannot be ({self.stop.why}){_WAY_OUT if mendable else ''}, for {told[0]}{others}"
            yield Objection(State.BLOCKED, self.stop.node, self.stop.operator, words)
            return
        for (operator, _), (first, *more) in kinds.items():
            also = f", as of {len(more)} more" if more else ""
            if self.off is not None and self.off <= _ROUNDING and not self.why:
                words = f"without effect here{also}: {first.words}"
                yield Objection(State.CLEAR, first.node, operator, words)
            else:
                how = self.why or f"the outputs are off by {self.off:.3g} of their magnitude"
                yield Objection(State.IGNORED, first.node, operator, f"{how}{also}: {first.words}")


def readings(
    data: bytes, profiles: Sequence[Profile], versions: Sequence[str], inputs: Mapping[str, Array]
) -> Mapping[str, Reading]:
    """Return by version how the model is read where its importer drops anything; versions alike are read once.

    All is done in bounded children: a model may be a stranger's.
    """
    found: dict[str, Reading] = {}
    memory = memory_for(len(data))
    try:
        for names, reading in stream(
            _read, data, tuple(profiles), tuple(versions), dict(inputs), seconds=_SECONDS, memory_mib=memory
        ):
            found |= dict.fromkeys(names, reading)
    except ChildFailed:
        # What was told before stands; a model that was not walked keeps the findings of the tables.
        return found
    return found


def _read(
    data: bytes, profiles: tuple[Profile, ...], versions: tuple[str, ...], inputs: dict[str, Array]
) -> Iterator[tuple[tuple[str, ...], Reading]]:
    """Yield versions that read a model alike with the reading: as it was walked, and once more as it was run."""
    model = settled(onnx.load_model_from_string(data), {each.input: each.optimum for each in profiles})
    groups: dict[tuple[tuple[str, str], ...], tuple[onnx.ModelProto, tuple[NotRead, ...], list[str]]] = {}
    for version in versions:
        made, dropped = without_dropped(model, version)
        key = tuple((each.node, each.fact.condition) for each in dropped)
        if dropped:
            groups.setdefault(key, (made, dropped, []))[2].append(version)
    whole = walk(model) if groups else Walk()
    waiting = []
    for made, dropped, names in groups.values():
        reading = _walked(whole, walk(made), dropped)
        yield tuple(names), reading
        if reading.stop is None and reading.off is None and whole.stop is None:
            waiting.append((made, dropped, names))
    for made, dropped, names in waiting if len(data) <= MOST_EVALUATED else ():
        yield tuple(names), _run(model, made, dropped, inputs)


def _walked(whole: Walk, read: Walk, dropped: tuple[NotRead, ...]) -> Reading:
    """Return the reading that two walks allow, of the model and of what is left of it."""
    unknown = "whether that changes its numbers was not computed"
    if whole.stop is not None:
        return Reading(dropped, why=unknown)
    if read.stop is not None:
        return Reading(dropped, stop=read.stop)
    if same(whole, read):
        return Reading(dropped, off=0.0)
    return Reading(dropped, why=unknown)


def _run(
    model: onnx.ModelProto, made: onnx.ModelProto, dropped: tuple[NotRead, ...], inputs: Mapping[str, Array]
) -> Reading:
    """Return the reading of a model that was run with and without what is dropped."""
    unknown = "whether that changes its numbers was not computed: "
    try:
        fed = inputs or made_up(model, ())
    except (NotFeedable, ValueError) as refusal:
        return Reading(dropped, why=f"{unknown}{refusal}")
    wanted = reference(model, fed)
    if wanted.outputs is None:
        return Reading(dropped, why=f"{unknown}{wanted.reason}")
    got = reference(made, fed)
    if got.outputs is None:
        why = "it fails on the same inputs"
        return Reading(dropped, stop=Stop(got.node, got.operator, why) if got.node else None, why=got.reason)
    off = compare(wanted.outputs, got.outputs, wanted.ranked)
    other = [each.output for each in off if not each.shape_matches]
    if other:
        name = other[0]
        shapes = (
            "x".join(map(str, np.shape(each[name]))) or "a scalar" for each in (got.outputs, wanted.outputs)
        )
        return Reading(dropped, why="the output {!r} is {}, not {}".format(name, *shapes))
    figure = max((_off(each.max_rel, each.not_finite) for each in off), default=0.0)
    if figure <= _ROUNDING and any(each.fact.condition == "no-reduction" for each in dropped):
        return Reading(dropped, why="the order of writing decides, and is left open")
    return Reading(dropped, off=figure)


def _off(figure: float, not_finite: int) -> float:
    return float("inf") if not_finite else figure


def without_dropped(model: onnx.ModelProto, version: str) -> tuple[onnx.ModelProto, tuple[NotRead, ...]]:
    """Return a model as the importer of a TensorRT reads it, and what that drops; sizes are to be fixed."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.graph.CopyFrom(inferred(model))
    found: list[NotRead] = []
    for use in list(uses_in(GraphReader(made.graph), effective_name)):
        for fact in _facts(use, version):
            if KEPT[fact.condition](use) is not True:
                _DROP[fact.condition](made.graph, use)
                found.append(NotRead(use.name, use.operator, fact))
    return made, tuple(found)


def _facts(use: OperatorUse, version: str) -> tuple[Fact, ...]:
    """Return what the importers of both tables round a version drop of an operator."""
    if use.node.domain not in ("", "ai.onnx"):
        return ()
    held: list[dict[str, Fact]] = []
    for table in tables_around(version):
        importer = table.importers.get(use.operator) if table else None
        facts = importer.facts if table and importer else ()
        releases = Version(version), Version(table.release if table else version)
        held.append(
            {each.condition: each for each in facts if each.state == "ignored" and each.holds(*releases)}
        )
    first, second = held
    return tuple(fact for condition, fact in first.items() if condition in second)


def _leave_out(*names: str) -> Callable[[onnx.GraphProto, OperatorUse], None]:
    return lambda _, use: drop_attributes(use.node, *names)


def _drop_axes(_: onnx.GraphProto, use: OperatorUse) -> None:
    del use.node.input[1:]


def _make_alike(graph: onnx.GraphProto, use: OperatorUse) -> None:
    """Let a Split cut parts of one size off, and lose what is left of the axis in an output that nobody reads."""
    node, shape, axis = use.node, use.shape(), attribute(use.node, "axis", 0)
    length = shape[axis] if shape else None
    if length is not None:
        many = attribute(node, "num_outputs", len(node.output))
        size, rest = divmod(length, many)
        name = f"{node.output[0]}/sizes"
        sizes = np.array([size] * many + [rest] * bool(rest), np.int64)
        graph.initializer.append(numpy_helper.from_array(sizes, name))
        drop_attributes(node, "num_outputs")
        node.input.append(name)
        node.output.extend([f"{node.output[0]}/lost"] * bool(rest))


#: By condition of a fact: how a node is made the one that the importer reads.
_DROP: Mapping[str, Callable[[onnx.GraphProto, OperatorUse], None]] = {
    "axes-all": _drop_axes,
    "dilations-ones": _leave_out("dilations"),
    "layout-zero": _leave_out("layout"),
    "no-antialias": _leave_out("antialias"),
    "no-reduction": _leave_out("reduction"),
    "noop-without-effect": _leave_out("noop_with_empty_axes"),
    "parts-alike": _make_alike,
    "resize-policy": _leave_out("keep_aspect_ratio_policy"),
    "whole-shape": _leave_out("start", "end"),
}

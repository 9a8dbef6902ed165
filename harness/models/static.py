"""Tells of a model on a target without running it: NVIDIA's operator tables, claims about its patterns, its importer.

An importer that does not read an attribute or an input builds another model than the one it was given. Most often that
one contradicts itself at a later node; sometimes nothing changes; else its numbers are off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
from onnx import numpy_helper
from packaging.version import Version

from harness.case import Case, Profile, load_cases
from harness.case.graph_reader import STANDARD, GraphReader, attribute, inferred
from harness.case.model import effective_name
from harness.errors import HandledError, described
from harness.judge.cell import Judged, describe_recipe
from harness.known.listed import (
    KEPT,
    Dropped,
    Objection,
    OperatorUse,
    State,
    Static,
    StaticModel,
    ranked,
    uses_in,
)
from harness.matrix import Target
from harness.matrix.operators import Fact, OperatorTable, tables_around
from harness.models.answers import ran
from harness.models.deciding import Patterns
from harness.models.matches import Shape
from harness.models.own.model import OwnModel
from harness.models.own.shapes import evaluated
from harness.models.reading import MOST_EVALUATED, bounded
from harness.models.rewrites.editor import drop_attributes
from harness.models.walking import Stop, settled, walk
from harness.run.numbers.reference import compare
from harness.run.numbers.wire import Array
from harness.words import GOOD, PREDICATE, Basis

#: Seconds that reading a graph, its walks and its evaluation may each take; to read no real model at hand took one.
_SECONDS = 20.0
#: Less than this is rounding.
_ROUNDING = 1e-4
#: What a model of opset 17 says so that it is read, and the way there.
_OPSET_17 = frozenset({"axes-all", "parts-alike", "whole-shape"})
_WAY_OUT = "; export with opset 17, or take --try-workarounds"
_NOT_COMPUTED = "whether that changes its numbers was not computed"


def patterns(cases: Sequence[Case] | Path) -> tuple[Patterns | None, str]:
    """Return the patterns of the cases, or the sentence on why their folder cannot be read."""
    try:
        return Patterns(load_cases(cases) if isinstance(cases, Path) else cases), ""
    except HandledError as error:
        line = f"no hints at what is known to fail: {described(error)}; --cases names another folder"
        return None, line


def static_answers(
    models: Sequence[OwnModel],
    judged: Sequence[Judged],
    patterns: Patterns | None,
    inputs: Mapping[str, Mapping[str, Array]] = MappingProxyType({}),
) -> Mapping[str, Static]:
    """Return the answer for each model and target, by cell; `patterns` are None without cases.

    `inputs` are those that the user gives, by the variant's name.
    """
    found = {}
    for model in models:
        name, data = model.variant.name, model.variant.model_bytes()
        mine = [each for each in judged if each.cell.variant.name == name]
        held = StaticModel(None)
        if any(each.cell.target.traits.tabled for each in mine):
            held = held_against(data, plugins=bool(model.variant.recipe.libraries))
        unrun = [each.cell.target for each in mine if not ran(each)]
        listed = _listed(model, held, unrun, inputs.get(name, {}))
        shape = Shape(onnx.load_model_from_string(data))
        for each in mine:
            target = each.cell.target
            asked = patterns if patterns and not each.outcome.ran else Patterns(())
            said = listed[target.name] if target.name in listed else held.on(target)
            findings = ranked((*said, *_reported(asked, shape, each)))
            found[each.cell.id] = Static(findings, held.remark(target))
    return found


def _listed(
    model: OwnModel, held: StaticModel, targets: Iterable[Target], inputs: Mapping[str, Array]
) -> Mapping[str, tuple[Objection, ...]]:
    """Return by target the findings of the tables, those that tell of what is dropped by the model read so."""
    found = {each.name: held.on(each) for each in targets}
    kept = {name: [one for one in every if not isinstance(one, Dropped)] for name, every in found.items()}
    versions = {each.name: each.version for each in targets if len(kept[each.name]) < len(found[each.name])}
    variant, several = model.variant, tuple(dict.fromkeys(versions.values()))
    read = readings(variant.model_bytes(), variant.recipe.profiles, several, inputs) if several else {}
    told = {name: read[version].findings() for name, version in versions.items() if version in read}
    return found | {name: (*findings, *kept[name]) for name, findings in told.items()}


def held_against(data: bytes, *, plugins: bool = False) -> StaticModel:
    """Return a model held against the tables, read in a bounded child: functions in functions may grow without end."""
    found, failed = bounded(_held, data, plugins, size=len(data), seconds=_SECONDS)
    return found[0] if found else StaticModel(None, unread=f"the process that read the graph {failed}")


def _held(data: bytes, plugins: bool) -> Iterator[StaticModel]:  # noqa: FBT001
    yield StaticModel(onnx.load_model_from_string(data), plugins=plugins)


def _reported(patterns: Patterns, shape: Shape, each: Judged) -> Iterator[Objection]:
    """Yield the failures that are claimed, or were measured, of patterns on a target, for each place of them."""
    target = each.cell.target
    built = ran(each)
    if built and each.classification.cls not in GOOD:
        return
    for match in patterns.matches(shape, each.cell.variant.recipe, target, built=built):
        claim, variant = match.claim, match.pattern.variant
        link = claim.source.url if claim.source and claim.basis is not Basis.MEASURED else ""
        said = " ".join(filter(None, (PREDICATE[claim.outcome], f"({claim.provenance})", link)))
        name = f"{match.pattern.id} ({variant.title}; {describe_recipe(variant.recipe)})"
        for node in match.nodes:
            yield Objection(State.REPORTED, node, "", f"{said}: {name}")


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
        if self.stop:
            yield self._contradiction(self.stop, [*kinds.values()])
            return
        for first, *more in kinds.values():
            also = f", as of {len(more)} more" if more else ""
            state, how = (
                State.IGNORED,
                self.why or f"the outputs are off by {self.off:.3g} of their magnitude",
            )
            if self.off is not None and self.off <= _ROUNDING and not self.why:
                state, how = State.CLEAR, "without effect here"
            yield Objection(state, first.node, first.operator, f"{how}{also}: {first.words}")

    def _contradiction(self, stop: Stop, kinds: Sequence[Sequence[NotRead]]) -> Objection:
        """Return that the model cannot be what is left of it, with the first kind that is dropped."""
        first, *more = kinds[0]
        way_out = _WAY_OUT if any(each.fact.condition in _OPSET_17 for each in self.dropped) else ""
        also = f" and {len(more)} more" if more else ""
        others = f"; and {len(kinds) - 1} more kinds" if len(kinds) > 1 else ""
        words = f"{first.operator} {first.node!r}{also}: {first.words}{others}"
        return Objection(
            State.BLOCKED, stop.node, stop.operator, f"cannot be ({stop.why}){way_out}, for {words}"
        )


def readings(
    data: bytes, profiles: Sequence[Profile], versions: Sequence[str], inputs: Mapping[str, Array]
) -> Mapping[str, Reading]:
    """Return by version how the model is read where its importer drops anything; versions alike are read once."""
    given = data, tuple(profiles), tuple(versions), dict(inputs)
    # A model that is not walked in time keeps the findings of the tables.
    found, _ = bounded(_read, *given, size=len(data), seconds=_SECONDS)
    return {name: reading for names, reading in found for name in names}


def _read(
    data: bytes, profiles: tuple[Profile, ...], versions: tuple[str, ...], inputs: dict[str, Array]
) -> Iterator[tuple[list[str], Reading]]:
    """Yield versions that read a model alike with the reading: as it was walked, and once more as it was run."""
    model = settled(onnx.load_model_from_string(data), {each.input: each.optimum for each in profiles})
    groups: dict[tuple[NotRead, ...], tuple[onnx.ModelProto, list[str]]] = {}
    for version in versions:
        made, dropped = without_dropped(model, version)
        if dropped:
            groups.setdefault(dropped, (made, []))[1].append(version)
    contradicts, waiting = bool(groups) and walk(model) is not None, []
    for dropped, (made, names) in groups.items():
        stop = None if contradicts else walk(made)
        yield names, Reading(dropped, stop, why="" if stop else _NOT_COMPUTED)
        if not (contradicts or stop) and len(data) <= MOST_EVALUATED:
            waiting.append((made, dropped, names))
    for made, dropped, names in waiting:
        yield names, _run(model, made, dropped, inputs)


def _run(
    model: onnx.ModelProto, made: onnx.ModelProto, dropped: tuple[NotRead, ...], inputs: Mapping[str, Array]
) -> Reading:
    """Return the reading of a model that was run with and without what is dropped."""
    wanted, got = evaluated([model, made], given=inputs)
    if wanted.outputs is None:
        return Reading(dropped, why=f"{_NOT_COMPUTED}: {wanted.reason}")
    if got.outputs is None:
        stop = Stop(got.node, got.operator, "it fails on the same inputs") if got.node else None
        return Reading(dropped, stop=stop, why=got.reason)
    off = compare(wanted.outputs, got.outputs, wanted.ranked)
    for name in (each.output for each in off if not each.shape_matches):
        held = (np.shape(outputs[name]) for outputs in (got.outputs, wanted.outputs))
        shapes = ("x".join(map(str, shape)) or "a scalar" for shape in held)
        return Reading(dropped, why="the output {!r} is {}, not {}".format(name, *shapes))
    figure = max((math.inf if each.not_finite else each.max_rel for each in off), default=0.0)
    if figure <= _ROUNDING and any(each.fact.condition == "no-reduction" for each in dropped):
        return Reading(dropped, why="the order of writing decides, and is left open")
    return Reading(dropped, off=figure)


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


def _facts(use: OperatorUse, version: str) -> list[Fact]:
    """Return what the importers of both tables round a version drop of an operator."""
    first, second = ({*_dropped(table, use, version)} for table in tables_around(version))
    alike = {fact.condition for fact in second}
    return [fact for fact in first if fact.condition in alike]


def _dropped(table: OperatorTable | None, use: OperatorUse, version: str) -> Iterator[Fact]:
    importer = table.importers.get(use.operator) if table and use.node.domain in STANDARD else None
    releases = Version(version), Version(table.release if table else version)
    for fact in importer.facts if importer else ():
        if fact.state == "ignored" and fact.holds(*releases):
            yield fact


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

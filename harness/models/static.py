"""Tells of a model on a target without running it, by NVIDIA's operator tables and claims about its patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import onnx

from harness.case import Case, load_cases
from harness.errors import HandledError, described
from harness.judge.cell import Judged, describe_recipe
from harness.known.listed import Dropped, Objection, State, Static, StaticModel, ranked
from harness.matrix import Platform, Target
from harness.models.answers import ran
from harness.models.deciding import Patterns
from harness.models.importing import readings
from harness.models.matches import Shape
from harness.models.own.model import OwnModel
from harness.run.child import ChildFailed, stream
from harness.run.numbers.wire import Array
from harness.run.prepared import memory_for
from harness.words import GOOD, PREDICATE, Basis

#: Seconds that reading a graph may take; no real model at hand took one.
_SECONDS = 20.0
#: Platforms of which one's reports are told on the other: one version of TensorRT is built apart for each.
_PLATFORMS: Mapping[Platform, str] = {"linux/amd64": "x86-64", "jetson": "Jetson"}


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
    tabled = any(each.cell.target.traits.tabled for each in judged)
    for model in models:
        data, plugins = model.variant.model_bytes(), bool(model.variant.recipe.libraries)
        (held,) = read_models([data], plugins=plugins) if tabled else (StaticModel(None),)
        mine = [each for each in judged if each.cell.variant.name == model.variant.name]
        unrun = {each.cell.target.name: each.cell.target for each in mine if not ran(each)}
        listed = _listed(model, held, unrun.values(), inputs.get(model.variant.name, {}))
        shape = Shape(onnx.load_model_from_string(data))
        for each in mine:
            target = each.cell.target
            asked = patterns if patterns and not each.outcome.ran else Patterns(())
            said = listed[target.name] if target.name in listed else held.on(target)
            findings = ranked((*said, *_reported(asked, shape, each, target)))
            elsewhere = tuple(_elsewhere(asked, shape, each))
            found[each.cell.id] = Static(findings, held.remark(target), elsewhere)
    return found


def _listed(
    model: OwnModel, held: StaticModel, targets: Iterable[Target], inputs: Mapping[str, Array]
) -> Mapping[str, tuple[Objection, ...]]:
    """Return by target the findings of the tables, those that tell of what is dropped by the model read so."""
    found = {each.name: held.on(each) for each in targets}
    versions = {
        each.name: each.version
        for each in targets
        if any(isinstance(one, Dropped) for one in found[each.name])
    }
    if versions:
        variant = model.variant
        several = tuple(dict.fromkeys(versions.values()))
        read = readings(variant.model_bytes(), variant.recipe.profiles, several, inputs)
        for name, version in versions.items():
            if version in read:
                others = (one for one in found[name] if not isinstance(one, Dropped))
                found[name] = (*read[version].findings(), *others)
    return found


def read_models(models: Sequence[bytes], *, plugins: bool = False) -> Iterator[StaticModel]:
    """Yield models held against the tables, read in bounded children: functions in functions may grow without end."""
    left = list(models)
    while left:
        try:
            memory = memory_for(max(map(len, left)))
            for each in stream(_held, left, plugins, seconds=_SECONDS, memory_mib=memory):
                yield each
                del left[0]
        except ChildFailed as error:
            if left:
                yield StaticModel(None, unread=f"the process that read the graph {error}")
                del left[0]


def _held(models: Sequence[bytes], plugins: bool) -> Iterator[StaticModel]:  # noqa: FBT001
    yield from (StaticModel(onnx.load_model_from_string(data), plugins=plugins) for data in models)


def _elsewhere(patterns: Patterns, shape: Shape, each: Judged) -> Iterator[Objection]:
    """Yield failures of the same version on other platforms, of patterns without a claim about this one."""
    target = each.cell.target
    needs = replace(target.needs, compute_capability="")
    for platform, name in () if ran(each) else _PLATFORMS.items():
        if platform != target.platform:
            other = replace(target, platform=platform, needs=needs)
            for one in _reported(patterns, shape, each, other, unless=target):
                yield replace(one, restriction=f"on {name} {one.restriction}")


def _reported(
    patterns: Patterns, shape: Shape, each: Judged, target: Target, unless: Target | None = None
) -> Iterator[Objection]:
    """Yield the failures that are claimed, or were measured, of patterns on a target, for each place of them.

    Patterns with a claim about the target `unless` are left out.
    """
    built = ran(each)
    if built and each.classification.cls not in GOOD:
        return
    for match in patterns.matches(shape, each.cell.variant.recipe, target, built=built):
        if unless and match.pattern.claims(unless):
            continue
        claim, variant = match.claim, match.pattern.variant
        link = claim.source.url if claim.source and claim.basis is not Basis.MEASURED else ""
        said = " ".join(filter(None, (PREDICATE[claim.outcome], f"({claim.provenance})", link)))
        name = f"{match.pattern.id} ({variant.title}; {describe_recipe(variant.recipe)})"
        for node in match.nodes:
            yield Objection(State.REPORTED, node, "", f"{said}: {name}")

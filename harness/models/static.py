"""Tells of a model on a target without running it, by NVIDIA's operator tables and claims about its patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from harness.case import Case, Expectation, load_cases
from harness.errors import HandledError, described
from harness.judge.cell import Judged, describe_recipe
from harness.known.listed import Finding, State, Static, StaticModel, ranked
from harness.matrix import Matrix, Platform, Target
from harness.models.check import ran
from harness.models.matches import Match, Patterns
from harness.models.own.model import OwnModel
from harness.plan import Cell, claims_about
from harness.run.child import ChildFailed, stream
from harness.run.prepared import memory_for
from harness.words import GOOD, PREDICATE, SHOWS_NO_FAILURE, WHEN_RUN, Basis, Class

#: Seconds that reading a graph may take; no real model at hand took one.
_SECONDS = 20.0
#: Platforms of which one's reports are told on the other: one version of TensorRT is built apart for each.
_PLATFORMS: Mapping[Platform, str] = {"linux/amd64": "x86-64", "jetson": "Jetson"}


def patterns(cases: Sequence[Case] | Path, matrix: Matrix) -> tuple[Patterns | None, str]:
    """Return the patterns of the cases, or the sentence on why their folder cannot be read."""
    try:
        return Patterns(load_cases(cases) if isinstance(cases, Path) else cases, list(matrix)), ""
    except HandledError as error:
        line = f"no hints at what is known to fail: {described(error)}; --cases names another folder"
        return None, line


def static_answers(
    models: Sequence[OwnModel], judged: Sequence[Judged], patterns: Patterns | None
) -> Mapping[str, Static]:
    """Return the answer for each model and target, by cell; `patterns` are None without cases."""
    found = {}
    tabled = any(each.cell.target.traits.tabled for each in judged)
    for model in models:
        data, plugins = model.variant.model_bytes(), bool(model.variant.recipe.libraries)
        (held,) = read_models([data], plugins=plugins) if tabled else (StaticModel(None),)
        graph = onnx.load_model_from_string(data)
        matches = patterns.matches(graph) if patterns else ()
        for each in judged:
            if each.cell.variant.name == model.variant.name:
                claimed = () if each.outcome.ran else matches
                target = each.cell.target
                claims = (one for match in claimed for one in _reported(match, each, target))
                findings = ranked((*held.on(target), *claims))
                remark, elsewhere = held.remark(target), tuple(_elsewhere(claimed, each))
                found[each.cell.id] = Static(findings, remark, elsewhere)
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


def _elsewhere(matches: Sequence[Match], each: Judged) -> Iterator[Finding]:
    """Yield failures of the same version on other platforms, of patterns without a claim about this one."""
    target = each.cell.target
    needs = replace(target.needs, compute_capability="")
    others = {
        name: replace(target, platform=platform, needs=needs)
        for platform, name in _PLATFORMS.items()
        if platform != target.platform
    }
    for match in () if ran(each) else matches:
        if not claims_about(Cell("", match.case, match.variant, target)):
            for name, other in others.items():
                for one in _reported(match, each, other):
                    yield replace(one, restriction=f"on {name} {one.restriction}")


def _reported(match: Match, each: Judged, target: Target) -> Iterator[Finding]:
    """Yield the failure that is claimed, or was measured, of a pattern on a target, for each place of it."""
    claim = _surest(match, each, target)
    uncalibrated = match.variant.recipe.calibrator and not each.cell.variant.recipe.calibrator
    if claim is None or uncalibrated:
        return
    link = claim.source.url if claim.source and claim.basis is not Basis.MEASURED else ""
    said = " ".join(filter(None, (PREDICATE[claim.outcome], f"({claim.provenance})", link)))
    recipe = describe_recipe(match.variant.recipe)
    name = f"{match.case.name}.{match.variant.name} ({match.variant.title}; {recipe})"
    for place in match.places:
        yield Finding(State.REPORTED, place[0], "", f"{said}: {name}")


def _surest(match: Match, each: Judged, target: Target) -> Expectation | None:
    """Return the claim to tell about a target, if any."""
    if ran(each) and each.classification.cls not in GOOD:
        return None
    bad = WHEN_RUN if ran(each) else frozenset(Class) - SHOWS_NO_FAILURE
    cell = Cell("", match.case, match.variant, target)
    claims = sorted(claims_about(cell), key=lambda claim: claim.basis is not Basis.MEASURED)
    # A measured good ending speaks against a reported failure, but does not speak of a run.
    surest = [claim for claim in claims if claim.outcome in bad] if ran(each) else claims[:1]
    return next((claim for claim in surest if claim.outcome in bad), None)

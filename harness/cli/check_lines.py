"""The lines of `check`: of each model, of each target, of each step between targets, and advice."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from harness.compare.kinds import TIMED
from harness.judge.cell import Judged
from harness.known.listed import Objection, State
from harness.matrix import Matrix
from harness.models.answers import (
    Answer,
    ModelStep,
    changes,
    coverage,
    lost_by_time,
    median_ms,
    ran,
    sizes_doubted,
    untold,
)
from harness.models.checking import AllAnswered, Begun, Behind, Concluded, Ended, Event, Unread
from harness.models.own.model import OwnModel
from harness.report.further import further_rows
from harness.text import grouped, one_line, visible
from harness.words import GOOD, PREDICATE, Class, Typing, said

_MOST_NODES, _MOST_KINDS = 12, 6
_WIDEST, _WIDEST_FINDING = 240, 300
_NOT_RUN = "not run; by NVIDIA's operator tables (docs/operators.md of onnx-tensorrt) and what is measured or reported:"
_Key = TypeVar("_Key", bound=Hashable)


def lines(event: Event, begun: Begun | None, options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of an event of a check that began with `begun`."""
    several = begun is not None and len(begun.models) > 1
    match event:
        case Unread():
            yield f"not checked: {event.error}"
        case Begun():
            for model in event.models:
                yield from head(model)
                yield from _typeless(model, event.matrix, {*options.targets, options.after})
        case Ended() if begun and ran(event.judged):
            yield row(event.judged, max(len(each.name) for each in begun.matrix), several=several)
        case Concluded():
            yield from concluded(event, options.flags, several=several)
        case Behind():
            yield from _behind(event)
        case AllAnswered() if event.asking.before:
            yield from _asked(event, options)


def _asked(event: AllAnswered, options: argparse.Namespace) -> Iterator[str]:
    """Yield what is left to ask of a model that fails, or why nothing was asked of one that does not."""
    label = event.asking.model.label
    if event.asking.troubled:
        engines = [each for each in event.asking.before if not each.judged.cell.target.traits.baseline]
        if not options.workarounds and any(each.troubles for each in engines):
            yield f"{label}: --try-workarounds tries every known way round on it"
        return
    if options.workarounds and not event.asking.untold:
        yield f"{label}: no workaround is needed: no target that ran fails to build it or loses anything"


def head(model: OwnModel) -> Iterator[str]:
    """Yield a model's description and its assumptions."""
    words = Counter(said(precision).upper() for _, precision in model.wishes)
    asks = ", ".join(f"{number} to run in {each}" for each, number in words.items())
    many = f"{len(model.nodes)} node{'s' * (len(model.nodes) != 1)}"
    inner = f" and {model.inner} in branches and loops" if model.inner else ""
    yield f"{model.label}: {many}{inner}, opset {model.opset}; {asks or _unasked(model)}"
    yield from (f"  {line}" for line in model.assumed)


def _typeless(model: OwnModel, matrix: Matrix, named: Collection[str]) -> Iterator[str]:
    """Yield what a model without types loses on named targets that take none but the graph's."""
    # An engine that never knew another way is asked for nothing by flags.
    mine = (each for each in matrix if each.name in named and each.traits.strong_from != "0")
    alone = [each.name for each in mine if each.strong_alone]
    if alone and not model.quantisers and not any(node.precision for node in model.nodes):
        yield (
            f"  it has no types: {' and '.join(alone)} runs it in FP32 without a word, whatever flags and calibration "
            f"gave before; `trt-compat convert {model.label} --as build.log -o explicit.onnx` writes them in"
        )


def _unasked(model: OwnModel) -> str:
    if model.variant.precision is not None:
        return "held to no precision"
    pairs = f"{model.quantisers} Q/DQ node{'s' * (model.quantisers != 1)}"
    return (
        f"{pairs}, none at a node of the main graph that multiplies"
        if model.quantisers
        else "none is quantised"
    )


def row(judged: Judged, width: int, *, several: bool) -> str:
    """Return one target's line: class, cause, place, how many nodes kept their precision."""
    cell, found, cls = judged.cell, judged.diagnosis, judged.classification.cls
    parts = [f"{cell.variant.title}:"] if several else []
    parts += [f"{cell.target.name:<{width}}", f"{cell.target.version:<11}", f"{cls:<14}"]
    if found:
        parts += [found.id, found.place]
    if judged.outcome.layers:
        parts.append(_kept(judged))
    if not found and cls not in GOOD | {Class.PRECISION_LOST}:
        parts.append(_short(judged.classification.reason))
    median = median_ms(judged)
    parts.append("" if median is None else f"{median:.3g} ms")
    return " ".join(filter(None, parts))


def _kept(judged: Judged) -> str:
    kept = coverage(judged)
    if not kept:
        return ""
    unheld = "" if judged.demanded or kept[1] == kept[2] else " (not held to it)"
    return f"{said(kept[0]).upper()} {kept[1]}/{kept[2]}{unheld}"


def concluded(found: Concluded, flags: Sequence[str] = (), *, several: bool = False) -> Iterator[str]:
    """Yield the lines below the targets'; of several models each is named."""
    judged = [each.judged for each in found.answers]
    yield from _lost(judged)
    yield from _untold(judged)
    for step in found.steps:
        yield from _step(step, f"{step.after.model}: " if several else "")
    yield from _doubts(found.answers, several=several)
    yield from _advice(judged)
    for plain, words in ((False, "not compared"), (True, "held to ONNX Runtime without optimisations")):
        why = ((each, each.outcome.uncompared * (plain == bool(each.outcome.accuracy))) for each in judged)
        yield from _by_reason(f"numbers {words}", why)
    unrun = ((each, "" if ran(each) else each.classification.reason) for each in judged)
    yield from _by_reason("not run", unrun)
    yield from _without_effect(judged, flags)
    yield from _static(found.answers, several=several)
    yield from filter(None, [found.unread])


def _step(step: ModelStep, model: str) -> Iterator[str]:
    """Yield the changes of a model from one target to another."""
    names, unknown = f"{step.before.target} to {step.after.target}", step.unknown
    if step.after.blocked and step.worse:
        yield f"{model}from {names}: gets worse (build), by NVIDIA's operator tables"
    elif unknown:
        cls = unknown.judged.classification.cls
        yield f"{model}from {names}: not known, for {unknown.target} {PREDICATE[cls]}"
    if unknown:
        return
    before, after = step.before.judged, step.after.judged
    verb = f"gets worse ({', '.join(sorted(step.worse))})" if step.worse else "gets no worse"
    old, new = PREDICATE[before.classification.cls], PREDICATE[after.classification.cls]
    yield f"{model}from {names}: {verb}; it {old} on the one and {new} on the other"
    yield from (f"  {step.pair.detail(kind)}" for kind in step.pair.kinds() if kind in TIMED)
    moved = [f"  {one.node}: {said(one.before)} -> {said(one.after)}" for one in changes(before, after)]
    yield from _first(moved, "  ")


def _first(every: Sequence[str], indent: str) -> Iterator[str]:
    """Yield the lines of the first nodes, and how many more there are."""
    yield from every[:_MOST_NODES]
    if len(every) > _MOST_NODES:
        yield f"{indent}and {len(every) - _MOST_NODES} more nodes"


def _grouped(pairs: Iterable[tuple[_Key, str]]) -> Mapping[_Key, str]:
    """Return for each key its names, each once, with commas between."""
    return {key: ", ".join(dict.fromkeys(names)) for key, names in grouped(pairs).items()}


def _without_effect(judged: Sequence[Judged], flags: Sequence[str]) -> Iterator[str]:
    """Yield the line on targets without builder flags for precision, whose engines are built as without --flag."""
    names = dict.fromkeys(
        each.cell.target.name
        for each in judged
        if each.cell.variant.recipe.typing is Typing.GRAPH and each.cell.target.strong_alone
    )
    if flags and names:
        yield (
            f"--flag {', '.join(flags)} has no effect on {', '.join(names)}: precision comes from the graph alone "
            "there; write it into the model"
        )


def _doubts(answers: Sequence[Answer], *, several: bool) -> Iterator[str]:
    """Yield a sentence for each model that fails with made-up sizes; of several the model is named."""
    doubted = [each for each in answers if each.made_up]
    for model, made_up in dict.fromkeys((each.model, each.made_up) for each in doubted):
        targets = [each.target for each in doubted if each.model == model]
        yield (f"{model}: " if several else "") + sizes_doubted(targets, made_up)


def _lost(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the nodes that lost their precision, the slowest first, once for targets that lose the same ones."""
    losing = (each for each in judged if each.classification.lost and each.demanded)
    groups = _grouped(((each.cell.variant.title, _losses(each)), each.cell.target.name) for each in losing)
    for (_, every), names in groups.items():
        yield f"lost on {names}:"
        yield from _first(every, "  ")


def _losses(judged: Judged) -> tuple[str, ...]:
    why = {each.node: f": {each.sentence}" for each in judged.reasons}
    return tuple(
        f"  {lost.node} ran in {said(lost.got)}, not {said(lost.wanted)}"
        + ("" if taken is None else f" ({taken:.3g} ms)")
        + why.get(lost.node, "")
        for lost, taken in lost_by_time(judged)
    )


def _untold(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the nodes whose precision no layer shows, once for targets that have the same ones."""
    for nodes, names in _grouped((untold(each), each.cell.target.name) for each in judged).items():
        if nodes:
            more = f" and {len(nodes) - _MOST_NODES} more nodes" if len(nodes) > _MOST_NODES else ""
            yield f"no layer tells on {names} in what these ran: {', '.join(nodes[:_MOST_NODES])}{more}"


def _advice(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield each cause once, with its remedy and its targets."""
    failing = [(each, each.diagnosis) for each in judged if each.classification.cls not in GOOD]
    first = {found.id: found for _, found in reversed(failing) if found}
    for name, targets in _grouped(
        (found.id, each.cell.target.name) for each, found in failing if found
    ).items():
        found = first[name]
        yield f"{name} ({targets}): {found.title}"
        yield f"  why   {_short(found.cause)}"
        yield f"  do    {_short(found.advice)}"


def _by_reason(what: str, found: Iterable[tuple[Judged, str]]) -> Iterator[str]:
    """Yield each reason once, with its targets."""
    reasons = _grouped((_short(reason), each.cell.target.name) for each, reason in found if reason)
    yield from (f"{what}: {names}: {reason}" for reason, names in reasons.items())


def _short(text: str) -> str:
    return one_line(text, _WIDEST)


def _static(answers: Sequence[Answer], *, several: bool) -> Iterator[str]:
    """Yield a line for each group of targets with one answer, and its findings, for cells that did not run here.

    An engine that was built and not run has only claims about running here.
    """
    shown = [(each, found) for each in answers if (found := _findings(each))]
    groups = _grouped(((each.model, *found), each.target) for each, found in shown)
    if groups:
        yield _NOT_RUN
    for (model, state, *told), targets in groups.items():
        clear = ", which is no promise that it builds" if state is State.CLEAR else ""
        yield f"  {f'{model}: ' if several else ''}{state:<10} {targets}{clear}"
        yield from (f"    {line}" for line in told)


def _findings(answer: Answer) -> tuple[str, ...]:
    """Return the state to print of a model on a target and a line for each kind of finding; () without findings."""
    static, here = answer.static, answer.ran
    wanted = State.REPORTED if here else static.state
    findings = [one for one in static.findings if one.state is wanted]
    silent = static.state is State.UNKNOWN and not answer.judged.cell.target.traits.tabled
    if answer.judged.outcome.ran or silent or (here and not findings):
        return ()
    remark = "" if here else static.remark
    return (wanted, *_kinds(findings), *filter(None, [remark]))


def _kinds(findings: Sequence[Objection]) -> Iterator[str]:
    """Yield a line for each kind of finding, with its first node and how many more there are."""
    kinds = grouped((replace(each, node=None), each) for each in findings)
    for first, *more in list(kinds.values())[:_MOST_KINDS]:
        yield one_line(first.worded(f" and {len(more)} more" if more else ""), _WIDEST_FINDING)
    if len(kinds) > _MOST_KINDS:
        yield f"and {len(kinds) - _MOST_KINDS} kinds more"


def _behind(event: Behind) -> Iterator[str]:
    """Yield the answers to a question, targets that answer alike together."""
    # A search that names no node says no more than the target's own line.
    told = [
        each.further
        for each in event.answers
        if event.question != "blockers" or (each.further.blockers and each.further.blockers.found)
    ]
    answers = ((further_rows([each], event.question), each.target) for each in told)
    groups = _grouped((tuple(row._replace(target="") for row in rows), target) for rows, target in answers)
    for rows, targets in groups.items():
        yield f"{event.model.label} on {targets}: {rows[0].question}"
        yield from (visible(f"  {row.about}: {row.answer}") for row in rows)

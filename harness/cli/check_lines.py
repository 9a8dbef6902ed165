"""The lines of `check`: of each model, of each target, of each step between targets, and advice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.known.listed import State
from harness.models.check import (
    Trouble,
    changes,
    coverage,
    lost_by_time,
    median_ms,
    ran,
    sizes_doubted,
    step_troubles,
    troubles,
    untold,
    worse,
)
from harness.text import one_line
from harness.words import GOOD, PREDICATE, Class, Typing, said

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from harness.judge.cell import Judged
    from harness.known.listed import Finding, Static
    from harness.models.own.model import OwnModel

_MOST_NODES, _MOST_KINDS = 12, 6
_WIDEST, _WIDEST_FINDING = 240, 300
_NOT_RUN = "not run; by NVIDIA's operator tables (docs/operators.md of onnx-tensorrt) and what is measured or reported:"


def head(model: OwnModel) -> Iterator[str]:
    """Yield a model's description and its assumptions."""
    words = Counter(said(precision).upper() for _, precision in model.wishes)
    asks = ", ".join(f"{number} to run in {each}" for each, number in words.items())
    many = f"{len(model.nodes)} node{'s' * (len(model.nodes) != 1)}"
    inner = f" and {model.inner} in branches and loops" if model.inner else ""
    yield f"{model.label}: {many}{inner}, opset {model.opset}; {asks or _unasked(model)}"
    yield from (f"  {line}" for line in model.assumed)


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
    cell, found = judged.cell, judged.diagnosis
    parts = [f"{cell.target.name:<{width}}", f"{cell.target.version:<11}", f"{judged.classification.cls:<14}"]
    if several:
        parts.insert(0, f"{cell.variant.title}:")
    if found:
        parts += [found.id, found.place]
    kept = coverage(judged)
    if kept and judged.outcome.layers:
        unheld = "" if judged.demanded or kept[1] == kept[2] else " (not held to it)"
        parts.append(f"{said(kept[0]).upper()} {kept[1]}/{kept[2]}{unheld}")
    if (
        not found
        and judged.classification.cls not in GOOD
        and judged.classification.cls is not Class.PRECISION_LOST
    ):
        parts.append(_short(judged.classification.reason))
    median = median_ms(judged)
    return " ".join([*filter(None, parts), *([f"{median:.3g} ms"] if median is not None else [])])


def between(
    before: Judged,
    after: Judged,
    *,
    several: bool = False,
    blocked: Container[tuple[str, str]] = (),
    doubted: Container[tuple[str, str]] = (),
) -> Iterator[str]:
    """Yield the changes of a model from one target to another; of several the model is named."""
    old, new = before.classification.cls, after.classification.cls
    model = f"{before.cell.variant.title}: " if several else ""
    names = f"{before.cell.target.name} to {after.cell.target.name}"
    unknown = [each for each in (before, after) if not ran(each) or _key(each) in doubted]
    if any(not ran(each) for each in unknown) and step_troubles(before, after, blocked):
        yield f"{model}from {names}: gets worse (build), by NVIDIA's operator tables"
    elif unknown:
        name, cls = unknown[0].cell.target.name, unknown[0].classification.cls
        yield f"{model}from {names}: not known, for {name} {PREDICATE[cls]}"
    if unknown:
        return
    found = sorted(worse(before, after))
    verb = f"gets worse ({', '.join(found)})" if found else "gets no worse"
    yield f"{model}from {names}: {verb}; it {PREDICATE[old]} on the one and {PREDICATE[new]} on the other"
    changed = changes(before, after)
    for change in changed[:_MOST_NODES]:
        yield f"  {change.node}: {said(str(change.before))} -> {said(str(change.after))}"
    if len(changed) > _MOST_NODES:
        yield f"  and {len(changed) - _MOST_NODES} more nodes"


def told(
    judged: Sequence[Judged],
    steps: Iterable[tuple[Judged, Judged]],
    blocked: Container[tuple[str, str]] = (),
    doubted: Mapping[tuple[str, str], str] = {},
) -> Iterator[str]:
    """Yield the lines below the targets'; `doubted` are made-up sizes of failures by variant and target."""
    yield from _lost(judged)
    yield from _untold(judged)
    several = len({each.cell.variant.name for each in judged}) > 1
    for step in steps:
        yield from between(*step, several=several, blocked=blocked, doubted=doubted)
    yield from _doubts(judged, doubted, several=several)
    yield from _advice(judged)
    yield from _uncompared(judged)
    yield from _not_run(judged)


def without_effect(judged: Sequence[Judged], flags: Sequence[str]) -> Iterator[str]:
    """Yield the line on targets without builder flags for precision, whose engines are built as if none were given."""
    names = dict.fromkeys(
        each.cell.target.name
        for each in judged
        if each.cell.variant.recipe.typing is Typing.GRAPH
        and Version(each.cell.target.version) >= Version(each.cell.target.traits.strong_alone_from)
    )
    if flags and names:
        yield (
            f"--flag {', '.join(flags)} has no effect on {', '.join(names)}: precision comes from the graph alone "
            "there; write it into the model"
        )


def _key(judged: Judged) -> tuple[str, str]:
    return judged.cell.variant.name, judged.cell.target.name


def _doubts(
    judged: Sequence[Judged], doubted: Mapping[tuple[str, str], str], *, several: bool
) -> Iterator[str]:
    """Yield a sentence for each model that fails with made-up sizes; of several the model is named."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in judged:
        if _key(each) in doubted:
            groups.setdefault((each.cell.variant.title, doubted[_key(each)]), []).append(
                each.cell.target.name
            )
    for (title, made_up), targets in groups.items():
        yield (f"{title}: " if several else "") + sizes_doubted(targets, made_up)


def _lost(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the nodes that lost their precision, the slowest first, once where targets lose the same ones."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in judged:
        if each.classification.lost and each.demanded:
            lines = tuple(
                f"{lost.node} ran in {said(lost.got)}, not {said(lost.wanted)}{_milliseconds(taken)}"
                for lost, taken in lost_by_time(each)
            )
            groups.setdefault((each.cell.variant.title, lines), []).append(each.cell.target.name)
    for (_, lines), names in groups.items():
        yield f"lost on {', '.join(names)}:"
        yield from (f"  {line}" for line in lines[:_MOST_NODES])
        if len(lines) > _MOST_NODES:
            yield f"  and {len(lines) - _MOST_NODES} more nodes"


def _untold(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the nodes of which no layer tells the precision, once where targets have the same ones."""
    groups: dict[tuple[str, ...], dict[str, None]] = {}
    for each in judged:
        groups.setdefault(untold(each), {})[each.cell.target.name] = None
    for nodes, names in groups.items():
        if nodes:
            more = f" and {len(nodes) - _MOST_NODES} more nodes" if len(nodes) > _MOST_NODES else ""
            yield f"no layer tells on {', '.join(names)} in what these ran: {', '.join(nodes[:_MOST_NODES])}{more}"


def _milliseconds(taken: float | None) -> str:
    return "" if taken is None else f" ({taken:.3g} ms)"


def _advice(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield each cause once, with its remedy and its targets."""
    met: dict[str, list[Judged]] = {}
    for each in judged:
        if each.diagnosis and each.classification.cls not in GOOD:
            met.setdefault(each.diagnosis.id, []).append(each)
    for name, cells in met.items():
        found = cells[0].diagnosis
        if found:
            targets = ", ".join(dict.fromkeys(each.cell.target.name for each in cells))
            yield f"{name} ({targets}): {found.title}"
            yield f"  why   {_short(found.cause)}"
            yield f"  do    {_short(found.advice)}"
            if found.advice_variants:
                yield f"  proof {', '.join(found.advice_variants)}"


def _uncompared(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield why numbers were not compared, once a reason."""
    return _by_reason("numbers not compared", ((each, each.outcome.uncompared) for each in judged))


def _not_run(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield why targets said nothing, once a reason."""
    return _by_reason("not run", ((each, "" if ran(each) else each.classification.reason) for each in judged))


def _by_reason(what: str, found: Iterable[tuple[Judged, str]]) -> Iterator[str]:
    reasons: dict[str, dict[str, None]] = {}
    for each, reason in found:
        if reason:
            reasons.setdefault(_short(reason), {})[each.cell.target.name] = None
    for reason, names in reasons.items():
        yield f"{what}: {', '.join(names)}: {reason}"


def _short(text: str) -> str:
    return one_line(text, _WIDEST)


def static_lines(
    models: Sequence[OwnModel], judged: Sequence[Judged], answers: Mapping[tuple[str, str], Static]
) -> Iterator[str]:
    """Yield a line for each group of targets with one answer, and its findings, for cells that did not run here.

    Of an engine that was built and not run only claims about running are printed. Where the tables clear a model it is
    told which builder of another product refuses it here, and what is reported of the version on another platform.
    """
    groups: dict[tuple[str, State, tuple[str, ...]], list[str]] = {}
    labels = {model.variant.name: model.label for model in models}
    for each in judged:
        key = each.cell.variant.name, each.cell.target.name
        found = answers[key]
        wanted = State.REPORTED if ran(each) else found.state
        findings = [one for one in found.findings if one.state is wanted]
        silent = found.state is State.UNKNOWN and not each.cell.target.traits.tabled
        if each.outcome.ran or silent or (ran(each) and not findings):
            continue
        lines = (
            *_kinds(findings),
            *_kinds(found.elsewhere),
            *filter(None, ["" if ran(each) else found.remark]),
        )
        groups.setdefault((labels[key[0]], wanted, lines), []).append(key[1])
    if groups:
        yield _NOT_RUN
    for (label, state, lines), targets in groups.items():
        many = f"{label}: " if len(models) > 1 else ""
        clear = (
            f", which is no promise that it builds{_refused(label, judged)}" if state is State.CLEAR else ""
        )
        yield f"  {many}{state:<10} {', '.join(targets)}{clear}"
        yield from (f"    {line}" for line in lines)


def _refused(model: str, judged: Sequence[Judged]) -> str:
    """Return which builders refused a model here; "" for none."""
    names = [
        each.cell.target.name
        for each in judged
        if each.cell.variant.title == model and Trouble.BUILD in troubles(each)
    ]
    return f"; refused here by {', '.join(names)}" if names else ""


def _kinds(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each kind of finding, with its first node and how many more there are."""
    kinds: dict[Finding, list[Finding]] = {}
    for each in findings:
        kinds.setdefault(replace(each, node=None), []).append(each)
    for first, *more in list(kinds.values())[:_MOST_KINDS]:
        yield one_line(first.worded(f" and {len(more)} more" if more else ""), _WIDEST_FINDING)
    if len(kinds) > _MOST_KINDS:
        yield f"and {len(kinds) - _MOST_KINDS} kinds more"

"""What `check` prints of blockers, of the ladder, of nodes left in floating point and of workarounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.models.bench import works
from harness.models.check import coverage
from harness.text import clip, visible
from harness.words import PREDICATE, said

if TYPE_CHECKING:
    from harness.judge.cell import Judged
    from harness.models.blockers import Blocker, Blockers
    from harness.models.ladder import Ladder
    from harness.models.leave_float import LeftFloat
    from harness.models.workarounds import Tried, Workarounds
    from harness.record.outcome import Accuracy

_MOST_NAMES = 4
_WIDEST = 240


def blocker_lines(label: str, found: Mapping[str, Blockers], told: set[str]) -> Iterator[str]:
    """Yield what keeps a model from being built, once where targets refuse the same; `told` causes have no advice."""
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for target, each in found.items():
        groups.setdefault((tuple(map(_blocker, each.found)), each.end), []).append(target)
    for (_, end), targets in groups.items():
        each = found[targets[0]]
        many = f"{len(each.found)} blocker{'s' if len(each.found) != 1 else ''}"
        kinds = _kinds(each.found)
        many += f" of {len(kinds)} kinds" if 1 < len(kinds) < len(each.found) else ""
        yield f"{label} on {', '.join(targets)}: {many}; {_short(end)} ({_spent(each.tries, each.seconds)})"
        for line, blocker in ((_blocker(kind), kind) for kind in kinds):
            yield f"  {line}"
            if blocker.diagnosis and blocker.diagnosis.id not in told:
                told.add(blocker.diagnosis.id)
                yield f"    why   {_short(blocker.diagnosis.cause)}"
                yield f"    do    {_short(blocker.diagnosis.advice)}"
        if each.behind:
            yield f"  cut as well, for what they read has no known shape: {_names(each.behind)}"


def ladder_lines(label: str, rungs: Sequence[tuple[str, Ladder]]) -> Iterator[str]:
    """Yield what becomes of a model as it is, without Q/DQ and in FP16, a line a target."""
    rows = [("target", "as it is", "without Q/DQ", "in FP16", "at fault")]
    for name, each in rungs:
        as_it_is = " ".join(filter(None, (str(each.as_it_is.classification.cls), _kept(each.as_it_is))))
        rows.append((name, as_it_is, _rung(each.without), _rung(each.in_half), str(each.fault)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield f"{label}: is quantisation at fault?"
    for row in rows:
        yield "  " + "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()


def left_lines(label: str, before: Judged, found: LeftFloat, *, named: bool) -> Iterator[str]:
    """Yield which nodes are left in floating point on a target, and what becomes of the rest."""
    where = f"{label} on {before.cell.target.name}"
    if found.judged is None:
        why = "without all of its Q/DQ too" if found.of else "and none of its nodes is quantised"
        verb = PREDICATE[before.classification.cls]
        yield f"{where}: leaving nodes in floating point does not help: it {verb}, {why}"
        return
    many = f"{len(found.nodes)} of {len(found.of)} quantised nodes in floating point"
    result = f"{PREDICATE[found.judged.classification.cls]}{_comma(_kept(found.judged))}"
    if named:
        verb = "helps" if works(found.judged) else "does not help"
        yield f"{where}: leaving {many} {verb}: it {result}"
    else:
        least = "none of them can be spared" if found.least else "fewer may do"
        yield f"{where}: leave {many}; {least}; it then {result} ({_spent(found.tries, found.seconds)})"
        yield f"  --leave-float {','.join(found.nodes)}"


def workaround_lines(label: str, before: Judged, found: Workarounds) -> Iterator[str]:
    """Yield which rewrites help on a target and what each costs, then what was tried in vain."""
    helping = [each for each in found.tried if each.gain]
    what = f"{PREDICATE[before.classification.cls]}{_comma(_kept(before))}"
    verb = "helps" if len(helping) == 1 else "help"
    many = f"{len(helping)} of {len(found.tried)} ways round {verb}" if helping else "no way round helps"
    yield f"{label} on {before.cell.target.name}: {what}; {many} ({_spent(len(found.tried), found.seconds)})"
    for each in helping:
        best = " <- the best" if each is found.best and len(helping) > 1 else ""
        yield f"  {each.rewrite.name}: {each.rewrite.title}{best}"
        kept = " ".join(filter(None, (str(each.judged.classification.cls), _kept(each.judged))))
        yield f"    gives {kept}" + (f" ({each.gain})" if each.gain != "builds" else "")
        yield f"    costs {each.rewrite.cost}; {_numbers(each)}"
        if each.rewrite.proof:
            yield f"    proof {', '.join(each.rewrite.proof)}"
    vain: dict[str, list[str]] = {}
    for each in found.tried:
        if not each.gain:
            vain.setdefault(_outcome(each.judged), []).append(each.rewrite.name)
    for outcome, names in vain.items():
        yield f"  in vain: {', '.join(names)} ({outcome})"
    if found.unfit:
        yield f"  nothing to change for: {', '.join(each.name for each in found.unfit)}"


def _kinds(found: Sequence[Blocker]) -> list[Blocker]:
    """Return blockers with those of one cause and operator as one, in place of the first of them."""
    kinds: dict[object, Blocker] = {}
    for number, each in enumerate(found):
        alike = each.diagnosis and each.named and each.operator
        key = (each.diagnosis.id, each.operator) if each.diagnosis and alike else number
        first = kinds.get(key)
        kinds[key] = replace(first, nodes=(*first.nodes, *each.nodes)) if first else each
    return list(kinds.values())


def _blocker(blocker: Blocker) -> str:
    nodes = _names(blocker.nodes)
    if not blocker.operator:
        where = f"a fused region of {len(blocker.nodes)} nodes: {nodes}"
    elif blocker.named:
        many = f"{len(blocker.nodes)} times " if len(blocker.nodes) > 1 else ""
        where = f"{many}{blocker.operator} {nodes}"
    else:
        where = f"{blocker.operator}, which the engine names no node of; {len(blocker.nodes)} can be meant: {nodes}"
    found = blocker.diagnosis
    why = f"{found.id}: {found.title}" if found else blocker.reason
    mark = "after a cut: " if blocker.after_cut else ""
    return f"{mark}{where}: {_short(why)}"


def _names(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _MOST_NAMES} more" if len(nodes) > _MOST_NAMES else ""
    return ", ".join(map(repr, nodes[:_MOST_NAMES])) + more


def _outcome(judged: Judged) -> str:
    found = judged.diagnosis
    return " ".join(filter(None, (str(judged.classification.cls), found.id if found else _kept(judged))))


def _rung(judged: Judged | None) -> str:
    return str(judged.classification.cls) if judged else "-"


def _kept(judged: Judged) -> str:
    found = coverage(judged)
    return f"{said(found[0]).upper()} {found[1]}/{found[2]}" if found and judged.outcome.layers else ""


def _numbers(tried: Tried) -> str:
    worst = tried.worst
    if worst is None:
        return f"numbers not compared: {_short(tried.uncompared)}"
    return _figures(worst, len(tried.numbers))


def _figures(worst: Accuracy, outputs: int) -> str:
    if not worst.shape_matches:
        return f"output {worst.output!r} has another shape"
    if worst.max_abs == 0 and not worst.not_finite:
        return "measured: all outputs the same"
    of = f" of {outputs}, the worst" if outputs > 1 else ""
    odd = f", {worst.not_finite} values not finite" if worst.not_finite else ""
    return (
        f"measured: max_rel {worst.max_rel:.2g}, cosine {worst.cosine:.6f} (output {worst.output!r}{of}){odd}"
    )


def _spent(tries: int, seconds: float) -> str:
    return f"{tries} tr{'y' if tries == 1 else 'ies'}, {seconds:.1f} s"


def _comma(text: str) -> str:
    return f", {text}" if text else ""


def _short(text: str) -> str:
    return clip(" ".join(visible(text).split()), _WIDEST)

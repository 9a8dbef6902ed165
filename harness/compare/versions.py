"""How a variant fares along a series of versions, in a sentence, and which version changed it; pure.

A series is a run of versions that can be compared: one engine on one platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from packaging.version import Version

from harness.known.model import NOT_THERE_YET, Known, Span, TargetView, VariantView
from harness.layers.datatype import NARROW
from harness.text import listed
from harness.words import GOOD, Basis, Class, Precision, Verdict, said

#: The cells of a row along one series.
Run = Sequence[tuple[TargetView, Known]]


@dataclass(frozen=True)
class Change:
    """A measured change of a variant between two versions of a series with none measured between them.

    kind: "result", "precision" or "attention".
    better: None if neither side is better.
    versions: "1.6 to 1.7".
    """

    case: str
    variant: str
    series: str
    before: str
    after: str
    versions: str
    kind: str
    better: bool | None
    text: str


def by_series(row: Run) -> dict[str, Run]:
    """Return a row's cells by series, each in version order; series in the order of their first target."""
    found: dict[str, list[tuple[TargetView, Known]]] = {}
    for target, cell in row:
        found.setdefault(target.series, []).append((target, cell))
    return {series: sorted(run, key=lambda pair: Version(pair[0].version)) for series, run in found.items()}


def spans(runs: Mapping[str, Run]) -> list[Span]:
    """Return a sentence for each series with a known version, every bound marked measured or reported.

    A side series ("RTX, SM 7.5") appears only if it was measured to differ from its main one at the same version.
    """
    measured = [(target, cell) for run in runs.values() for target, cell in run if cell.measured]
    states = {(target.series, target.version): (cell.cls, cell.chip) for target, cell in measured}
    ran = {target.id for target, _ in measured}
    found = []
    for series, run in runs.items():
        points = [_point(target, cell) for target, cell in run if cell.cls is not Class.NOT_APPLICABLE]
        order = [point.target.id for point in points]
        if (main := series.partition(",")[0]) != series:
            points = [each for each in points if each.target.id in ran and _differs(each, main, states)]
        found += [Span(series, _sentence(points, order))] if any(map(_known, points)) else []
    return found


class _Point(NamedTuple):
    """A version, its predicate, and how sure that is; `state` is NOT_RUN for an unknown cell.

    yet: the version lacks something for it that came later.
    """

    target: TargetView
    state: Class
    does: str
    chip: str
    mark: str
    yet: bool = False


def _point(target: TargetView, cell: Known) -> _Point:
    if cell.stands is None or cell.cls is Class.INFRA_ERROR:
        return _Point(target, Class.NOT_RUN, "", "", "")
    does = f"{NOT_THERE_YET} ({cell.not_yet})" if cell.not_yet else cell.text.removesuffix(f" ({cell.chip})")
    mark = Basis.REPORTED if cell.verdict is Verdict.FAILS_WHEN_RUN else cell.basis
    return _Point(target, cell.stands, does, cell.chip, str(mark), bool(cell.not_yet))


def _known(point: _Point) -> bool:
    return point.state is not Class.NOT_RUN


def _differs(point: _Point, main: str, states: Mapping[tuple[str, str], tuple[Class, str]]) -> bool:
    return states.get((main, point.target.version)) != (point.state, point.chip)


def _sentence(points: Sequence[_Point], order: Sequence[str]) -> str:
    """Return the clauses in version order, then the untested versions; `order` are all columns of the series."""
    runs = [list(run) for _, run in groupby(filter(_known, points), key=lambda point: point[1:])]
    clauses = []
    last: _Point | None = None
    for run in runs:
        gap = last is not None and order.index(run[0].target.id) - order.index(last.target.id) > 1
        parts = _neighbouring(run, order)
        open_end = len(parts) == 1 and last is not None and run is runs[-1]
        clauses.append(_clause(run[0], parts, last, gap=gap, open_end=open_end))
        last = run[-1]
    groups = [
        (known, [point.target.short for point in group]) for known, group in groupby(points, key=_known)
    ]
    untested = [_range(names) for known, names in groups if not known]
    return "; ".join([*clauses, f"{', '.join(untested)} not tested"] if untested else clauses)


def _neighbouring(run: Sequence[_Point], order: Sequence[str]) -> list[list[str]]:
    """Return the versions of a run, neighbours among all columns together."""
    groups = groupby(enumerate(run), key=lambda each: order.index(each[1].target.id) - each[0])
    return [[point.target.short for _, point in group] for _, group in groups]


def _clause(
    first: _Point, parts: Sequence[Sequence[str]], before: _Point | None, *, gap: bool, open_end: bool
) -> str:
    """Return a clause about versions; each part holds neighbours, and the versions between two parts are left out."""
    since = first.target.short
    kept = f", {first.chip}" if first.chip else ""
    turn = _turn(before, first)
    if turn:
        return f"{turn} {'by' if gap else 'in'} {since} ({first.mark}): {first.does}{kept}"
    longer = open_end and parts[0][0] != parts[0][-1]
    where = f"from {since}" if longer else f"on {listed(list(map(_range, parts)))}"
    return f"{first.does} {where} ({first.mark}){kept}"


def _turn(before: _Point | None, now: _Point) -> str | None:
    """Name the turn for the better or the worse; from a lost precision to a failure is neither, nor what came later."""
    if before is None or before.yet or (before.state in GOOD) == (now.state in GOOD):
        return None
    return "fixed" if now.state in GOOD else "broken" if now.state is not Class.PRECISION_LOST else None


def _range(names: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys((names[0], names[-1])))


def changes(variant: VariantView, run: Run) -> list[Change]:
    """Return the changes between neighbours of a series, leaving out versions that were not measured."""
    measured = [(target, cell) for target, cell in run if cell.measured]
    order = [target.id for target, _ in run]
    found = []
    for (before, old), (after, new) in pairwise(measured):
        between = [run[index][0].short for index in range(order.index(before.id) + 1, order.index(after.id))]
        difference = _difference(variant, old, new)
        if difference:
            gap = f" ({', '.join(between)} not run)" if between else ""
            where = variant.case, variant.name, before.series, before.id, after.id
            found.append(Change(*where, f"{before.short} to {after.short}{gap}", *difference))
    return found


def _difference(variant: VariantView, old: Known, new: Known) -> tuple[str, bool | None, str] | None:
    was, now = ((cell.cls, cell.verdict is Verdict.FAILS_WHEN_RUN) for cell in (old, new))
    if was != now:
        worked, works = (cell.stands in GOOD for cell in (old, new))
        # What came later mends nothing.
        better = None if worked == works or old.not_yet else works
        return "result", better, f"{_does(old)} before, {_does(new)} after"
    return _precision(dict(variant.wanted), old, new) or _attention(
        old.attention_kernel, new.attention_kernel
    )


def _does(cell: Known) -> str:
    return NOT_THERE_YET if cell.not_yet else cell.text.removesuffix(f" ({cell.chip})")


def _attention(was: str | None, now: str | None) -> tuple[str, bool | None, str] | None:
    if was is None or now is None or bool(was) is bool(now):
        return None
    runs = f"as one fused kernel, {now}" if now else "no longer as one fused kernel"
    return "attention", bool(now), f"attention runs {runs}"


def _precision(
    wanted: Mapping[str, Precision], old: Known, new: Known
) -> tuple[str, bool | None, str] | None:
    moved = _moved(old.precision, new.precision, wanted)
    others = _moved(old.other, new.other, old.other)
    shown = moved or [each for each in others if (each[1] in NARROW) != (each[2] in NARROW)]
    # If one side is not reported, it is unknown whether precision was gained or lost.
    sure = [(wanted[each[0]], *each[1:]) for each in moved if Precision.UNKNOWN not in each]
    gained = {after == want for want, *sides in sure for after in sides[1:] if want in sides}
    text = ", ".join(f"{node} {said(before)} → {said(after)}" for node, before, after in shown)
    return ("precision", gained.pop() if len(gained) == 1 else None, text) if shown else None


def _moved(
    old: Mapping[str, Precision], new: Mapping[str, Precision], nodes: Iterable[str]
) -> list[tuple[str, Precision, Precision]]:
    """Return the nodes that ran in another precision, with before and after."""
    both = [(node, old[node], new[node]) for node in nodes if node in old and node in new]
    return [each for each in both if each[1] is not each[2]]

"""From cells to facts about version ranges: how a variant fares along a series, and which version changed it.

A series is a run of versions that can be compared: one engine on one platform. Pure.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from harness.layers.datatype import FLOATS, NARROW, WEIGHTS, same_precision
from harness.report.claimed import built_but, drawn, says
from harness.report.labels import drawn_as
from harness.report.model import Change, Span, TargetView
from harness.words import GOOD, PREDICATE, UNJUDGED, Class, Grade, Precision, Verdict, said

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from harness.record.outcome import Layer
    from harness.report.model import CellView, VariantView

    Run = Sequence[tuple[TargetView, CellView]]
    #: What, better, what variants may have in common, what is the variant's own.
    Difference = tuple[str, bool | None, str, str]


def short_versions(versions: Iterable[str]) -> dict[str, str]:
    """Return for each version its shortest prefix, of two parts or more, that no other one shares."""
    every = dict.fromkeys(versions)
    return {version: _shortest(version, every) for version in every}


def _shortest(version: str, every: Collection[str]) -> str:
    parts = version.split(".")
    for length in range(2, len(parts)):
        prefix = parts[:length]
        if sum(other.split(".")[:length] == prefix for other in every) == 1:
            return ".".join(prefix)
    return version


def chip(
    wanted: Mapping[str, Precision],
    actual: Mapping[str, Precision],
    untold: Collection[str],
    layers: Sequence[Layer],
) -> str:
    """Return a cell's precision in short: wanted nodes that kept it ("INT8 1/2"), else what layers ran in.

    `untold` are wanted nodes of which the engine does not tell; they add a question mark ("INT8 1/2?"). Other nodes
    without a precision vanished rightly and do not count. Empty where the layers are not known.
    """
    if not layers:
        return ""
    counted = [node for node in wanted if node in actual or node in untold]
    if not counted:
        ran_in = {layer.precision for layer in layers if layer.precision not in _UNINTERESTING}
        return "+".join(sorted(said(kind).upper() for kind in ran_in))
    kinds = {wanted[node] for node in counted}
    word = said(kinds.pop()).upper() if len(kinds) == 1 else "kept"
    kept = sum(same_precision(wanted[node], actual.get(node)) for node in counted)
    if all(node in untold for node in counted):
        return f"{word} ?"
    return f"{word} {kept}/{len(counted)}{'?' if any(node in untold for node in counted) else ''}"


def unasked(cell: CellView, variant: VariantView) -> dict[str, Precision]:
    """Return what the nodes ran in that are wanted in no precision: a narrow type or a float.

    A node that is fused into one layer with a wanted one follows that, and is left out.
    """
    wanted = dict(variant.wanted)
    follow = {
        (node, cell.precision.get(leader))
        for layer in cell.layers
        for leader in wanted.keys() & layer.onnx_nodes
        for node in layer.onnx_nodes
    }
    return {
        node: kind
        for node, kind in cell.precision.items()
        if kind in NARROW | _FLOATING and (node, kind) not in follow
    }


def crosses(before: Precision, after: Precision) -> bool:
    """Tell whether a node left a narrow type or took one: that is told though nobody wished for it."""
    return (before in NARROW) != (after in NARROW)


#: Precisions that multiply in a float; so do those of weights that are only stored in something narrower.
_FLOATING = FLOATS | frozenset(WEIGHTS.values())
_UNINTERESTING = frozenset({Precision.UNKNOWN, Precision.INT32, Precision.INT64, Precision.BOOL})


def by_series(row: Run) -> dict[str, Run]:
    """Return a row's cells by series, each in version order; series in the order of their first target."""
    found: dict[str, list[tuple[TargetView, CellView]]] = {}
    for target, cell in row:
        found.setdefault(target.series, []).append((target, cell))
    return {series: sorted(run, key=lambda pair: Version(pair[0].version)) for series, run in found.items()}


def spans(variant: VariantView, runs: Mapping[str, Run]) -> list[Span]:
    """Return a sentence for each series of which something is known, every bound marked measured or reported.

    A side series ("RTX, SM 7.5") is told only where it was measured to differ from its main one at the same version.
    """
    found = []
    every = [pair for run in runs.values() for pair in run if pair[1].measured]
    states = {(target.series, target.version): (cell.cls, cell.chip) for target, cell in every}
    for series, run in runs.items():
        main = series.partition(",")[0]
        ran = {target.id for target, cell in run if cell.measured}
        points = [
            _point(variant, target, cell) for target, cell in run if cell.cls is not Class.NOT_APPLICABLE
        ]
        if main != series:
            points = [
                point
                for point in points
                if point.target.id in ran
                and states.get((main, point.target.version)) != (point.state, point.chip)
            ]
        if any(map(_known, points)):
            measured = any(point.target.id in ran for point in points)
            found.append(Span(series, _sentence(points), claimed=not measured))
    return found


class _Point(NamedTuple):
    """What is known of one version, in words too, and how sure that is; `state` is NOT_RUN where nothing is.

    Of an engine that was only built, and is known to fail when it is run, that is how it fails.
    """

    target: TargetView
    state: Class
    does: str
    chip: str
    mark: str


def _point(variant: VariantView, target: TargetView, cell: CellView) -> _Point:
    claim = variant.expectations[cell.claims[0]] if cell.claims else None
    if claim and cell.verdict is Verdict.FAILS_WHEN_RUN:
        return _Point(target, claim.outcome, built_but(claim), cell.chip, str(claim.grade))
    if cell.measured:
        return _Point(target, cell.cls, PREDICATE[cell.cls], cell.chip, str(Grade.MEASURED))
    if claim is None or claim.outcome in UNJUDGED:
        return _Point(target, Class.NOT_RUN, "", "", "")
    return _Point(target, drawn(claim), says(claim), "", str(claim.grade))


def _known(point: _Point) -> bool:
    return point.state is not Class.NOT_RUN


def _sentence(points: Sequence[_Point]) -> str:
    """Say the clauses in version order, then which versions nobody tested."""
    runs = [list(run) for _, run in groupby(filter(_known, points), key=lambda point: point[1:])]
    order = [point.target.id for point in points]
    clauses = []
    for before, run in zip([None, *runs], runs, strict=False):
        last = before[-1] if before else None
        gap = last is not None and order.index(run[0].target.id) - order.index(last.target.id) > 1
        clauses.append(_clause(run[0], run[-1], last, gap=gap, open_end=run is runs[-1]))
    untested = _untested(points)
    return "; ".join([*clauses, f"{untested} not tested"] if untested else clauses)


def _clause(first: _Point, last: _Point, before: _Point | None, *, gap: bool, open_end: bool) -> str:
    since, until = first.target.short, last.target.short
    kept = f", {first.chip}" if first.chip else ""
    turn = _turn(before, first)
    if turn:
        return f"{turn} {'by' if gap else 'in'} {since} ({first.mark}): {first.does}{kept}"
    where = (
        f"on {since}"
        if since == until
        else f"from {since}"
        if open_end and before
        else f"on {since} to {until}"
    )
    return f"{first.does} {where} ({first.mark}){kept}"


def _turn(before: _Point | None, now: _Point) -> str | None:
    """Name the turn for the better or the worse; from a lost precision to a failure is neither."""
    if before is None or (before.state in GOOD) == (now.state in GOOD):
        return None
    return "fixed" if now.state in GOOD else "broken" if now.state is not Class.PRECISION_LOST else None


def _untested(points: Sequence[_Point]) -> str:
    """Name the versions of which nothing is known, neighbours as a range."""
    groups = [
        [point.target.short for point in group] for known, group in groupby(points, key=_known) if not known
    ]
    return ", ".join(" to ".join(dict.fromkeys((group[0], group[-1]))) for group in groups)


def changes(variant: VariantView, run: Run) -> tuple[Change, ...]:
    """Return what changed between neighbours of a series, leaving out versions that were not measured."""
    measured = [(target, cell) for target, cell in run if cell.measured]
    order = [target.id for target, _ in run]
    found = []
    for (before, old), (after, new) in pairwise(measured):
        between = [run[index][0].short for index in range(order.index(before.id) + 1, order.index(after.id))]
        difference = _difference(variant, old, new)
        if difference:
            gap = f" ({', '.join(between)} not run)" if between else ""
            where = (variant.case, variant.name, before.series, before.id, after.id)
            what, better, shared, detail = difference
            versions = f"{before.short} to {after.short}{gap}"
            found.append(Change(*where, what, better, versions, shared, detail))
    return tuple(found)


def _difference(variant: VariantView, old: CellView, new: CellView) -> Difference | None:
    was, now = drawn_as(old), drawn_as(new)
    if was is not now:
        better = None if (was in GOOD) == (now in GOOD) else now in GOOD
        return "class", better, f"{_does(old)} before, {_does(new)} after", new.chip
    wanted = dict(variant.wanted)
    moved = _moved(old.precision, new.precision, wanted)
    rest = unasked(old, variant)
    moved = moved or [each for each in _moved(rest, unasked(new, variant), rest) if crosses(*each[1:])]
    if moved:
        # Where one side does not tell, nothing is known to be gained or lost.
        told = [
            (before, after, wanted[node])
            for node, before, after in moved
            if node in wanted and Precision.UNKNOWN not in (before, after)
        ]
        gained = {after == want for before, after, want in told if want in (before, after)}
        text = ", ".join(f"{node} {said(before)} → {said(after)}" for node, before, after in moved)
        return "precision", gained.pop() if len(gained) == 1 else None, "", text
    return _layer_difference(old, new)


def _does(cell: CellView) -> str:
    known_to_fail = cell.verdict is Verdict.FAILS_WHEN_RUN
    return f"{PREDICATE[cell.cls]}{' and is known to fail when run' if known_to_fail else ''}"


def _moved(
    old: Mapping[str, Precision], new: Mapping[str, Precision], nodes: Iterable[str]
) -> list[tuple[str, Precision, Precision]]:
    """Return the nodes that ran in another precision, with before and after."""
    both = [(node, old[node], new[node]) for node in nodes if node in old and node in new]
    return [each for each in both if each[1] is not each[2]]


def _layer_difference(old: CellView, new: CellView) -> Difference | None:
    before, after = _fusions(old.layers), _fusions(new.layers)
    fused = old.attention_kernel, new.attention_kernel
    if None not in fused and bool(fused[0]) is not bool(fused[1]):
        now = (
            f"runs as one fused kernel, {fused[1]}"
            if fused[1]
            else f"no longer runs as one fused kernel, {fused[0]}"
        )
        return "layers", bool(fused[1]), f"attention {now}", _counted(old, new)
    if not before or not after or before == after:
        return None
    example = _example(before - after, after - before)
    return "layers", None, "", "; ".join(filter(None, [_counted(old, new), example]))


def _counted(old: CellView, new: CellView) -> str:
    return f"{len(old.layers)} → {len(new.layers)} layers" if len(old.layers) != len(new.layers) else ""


def _fusions(layers: Sequence[Layer]) -> Counter[tuple[tuple[str, ...], str]]:
    """Return how nodes are fused and in which precision: what stays comparable when layers are renamed."""
    return Counter((tuple(sorted(layer.onnx_nodes)), str(layer.precision)) for layer in layers)


def _example(
    gone: Counter[tuple[tuple[str, ...], str]], come: Counter[tuple[tuple[str, ...], str]]
) -> str | None:
    """Name one ONNX node whose layer is another, so that the change can be found in the layer table."""
    for nodes, precision in sorted(come):
        for old_nodes, old_precision in sorted(gone):
            for node in nodes:
                if node in old_nodes:
                    now = f"{_company(node, nodes)} in {precision}"
                    return f"{node} was {_company(node, old_nodes)} in {old_precision}, now {now}"
    return None


def _company(node: str, nodes: Sequence[str]) -> str:
    others = [other for other in nodes if other != node]
    return f"fused with {' and '.join(others)}" if others else "alone"

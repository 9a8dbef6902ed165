"""From cells to facts about version ranges: how a variant fares along a series, and which version changed it.

A series is a run of versions that can be compared: one engine on one platform. Pure.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.report.model import Change, Span
from harness.words import GOOD, Class, Precision

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from harness.outcome import Layer
    from harness.report.model import CellView, TargetView, VariantView

    Run = Sequence[tuple[TargetView, CellView]]

#: A class as the predicate of a sentence whose subject is the variant.
PREDICATE = {
    Class.OK: "works",
    Class.BUILT: "builds",
    Class.PRECISION_LOST: "loses precision",
    Class.INACCURATE: "gives wrong numbers",
    Class.PARSE_FAILED: "fails to parse",
    Class.BUILD_FAILED: "fails to build",
    Class.LOAD_FAILED: "fails to load",
    Class.RUN_FAILED: "fails to run",
    Class.CRASHED: "crashes",
    Class.TIMED_OUT: "times out",
    Class.OUT_OF_MEMORY: "runs out of memory",
    Class.API_REMOVED: "needs an API that is not there",
    Class.NOT_APPLICABLE: "does not apply",
    Class.NOT_RUN: "was not run",
    Class.INFRA_ERROR: "was not judged (infrastructure)",
}


def short_versions(versions: Iterable[str]) -> dict[str, str]:
    """Return for each version its shortest prefix, of two parts or more, that no other one shares."""
    every = sorted(set(versions), key=Version)
    return {version: _shortest(version, every) for version in every}


def _shortest(version: str, every: Sequence[str]) -> str:
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

    `untold` are wanted nodes of which the engine does not tell; they add a question mark ("INT8 1/2?").
    Other nodes without a precision vanished rightly and do not count. Empty where the layers are not known.
    """
    if not layers:
        return ""
    counted = [node for node in wanted if node in actual or node in untold]
    if not counted:
        ran_in = {layer.precision for layer in layers if layer.precision not in _UNINTERESTING}
        return "+".join(sorted(str(kind).upper() for kind in ran_in))
    kinds = {wanted[node] for node in counted}
    word = str(kinds.pop()).upper() if len(kinds) == 1 else "kept"
    kept = sum(same_precision(wanted[node], actual.get(node)) for node in counted)
    if all(node in untold for node in counted):
        return f"{word} ?"
    return f"{word} {kept}/{len(counted)}{'?' if any(node in untold for node in counted) else ''}"


def same_precision(wanted: Precision, actual: Precision | None) -> bool:
    """Tell whether a node kept its precision; TF32 is how a GPU multiplies FP32."""
    floats = (Precision.FP32, Precision.TF32)
    return wanted == actual or (wanted in floats and actual in floats)


_UNINTERESTING = frozenset({Precision.UNKNOWN, Precision.INT32, Precision.INT64, Precision.BOOL})


def by_series(row: Run) -> dict[str, Run]:
    """Return a row's cells by series, each in version order; series in the order of their first target."""
    found: dict[str, list[tuple[TargetView, CellView]]] = {}
    for target, cell in row:
        found.setdefault(target.series, []).append((target, cell))
    return {series: sorted(run, key=lambda pair: Version(pair[0].version)) for series, run in found.items()}


def spans(variant: VariantView, runs: Mapping[str, Run]) -> list[Span]:
    """Return a sentence for each series: what was measured, then what is only documented.

    A side series ("RTX, SM 7.5") is told only where it differs from its main one at the same version.
    """
    found = []
    measured_cells = [pair for run in runs.values() for pair in run if pair[1].measured]
    states = {(target.series, target.version): _state(cell) for target, cell in measured_cells}
    for series, run in runs.items():
        main = series.partition(",")[0]
        measured = [
            (target, _state(cell))
            for target, cell in run
            if cell.measured and (main == series or states.get((main, target.version)) != _state(cell))
        ]
        claimed = [
            (target, _claim(variant, cell))
            for target, cell in run
            if not cell.measured and cell.documented and cell.cls is not Class.NOT_APPLICABLE
        ]
        if measured:
            found.append(Span(series, _sentence(measured)))
        if claimed and main == series:
            found.append(Span(series, _sentence(claimed), documented=True))
    return found


def _state(cell: CellView) -> str:
    return f"{PREDICATE[cell.cls]}, {cell.chip}" if cell.chip else PREDICATE[cell.cls]


def _claim(variant: VariantView, cell: CellView) -> str:
    return PREDICATE[variant.expectations[cell.documented[0]].outcome]


def _sentence(points: Sequence[tuple[TargetView, str]]) -> str:
    runs: list[tuple[str, str, str]] = []
    for target, state in points:
        if runs and runs[-1][0] == state:
            runs[-1] = (state, runs[-1][1], target.short)
        else:
            runs.append((state, target.short, target.short))
    last = len(runs) - 1
    return "; ".join(_clause(*entry, open_end=index == last > 0) for index, entry in enumerate(runs))


def _clause(state: str, first: str, last: str, *, open_end: bool) -> str:
    predicate, comma, precision = state.partition(", ")
    if open_end:
        where = f"from {first}" if first != last else f"on {first}"
    else:
        where = f"on {first}" if first == last else f"on {first} to {last}"
    return f"{predicate} {where}{comma}{precision}"


def changes(variant: VariantView, run: Run) -> tuple[Change, ...]:
    """Return what changed between neighbours of a series, leaving out versions that were not measured."""
    measured = [(target, cell) for target, cell in run if cell.measured]
    order = [target.id for target, _ in run]
    found = []
    for (before, old), (after, new) in pairwise(measured):
        between = [run[index][0].short for index in range(order.index(before.id) + 1, order.index(after.id))]
        difference = _difference(variant, old, new)
        if difference:
            what, better, text = difference
            gap = f" ({', '.join(between)} not run)" if between else ""
            text = f"{before.short} to {after.short}{gap}: {text}"
            where = (variant.case, variant.name, before.series, before.id, after.id)
            found.append(Change(*where, what, better, text))
    return tuple(found)


def _difference(variant: VariantView, old: CellView, new: CellView) -> tuple[str, bool | None, str] | None:
    if old.cls is not new.cls:
        better = None if (old.cls in GOOD) == (new.cls in GOOD) else new.cls in GOOD
        kept = f", {new.chip}" if new.chip else ""
        return "class", better, f"{PREDICATE[old.cls]} before, {PREDICATE[new.cls]} after{kept}"
    moved = [
        (node, old.precision[node], new.precision[node], precision)
        for node, precision in variant.wanted
        if node in old.precision and node in new.precision and old.precision[node] != new.precision[node]
    ]
    if moved:
        gained = {after == wanted for _, before, after, wanted in moved if wanted in (before, after)}
        text = ", ".join(f"{node} {before} → {after}" for node, before, after, _ in moved)
        return "precision", gained.pop() if len(gained) == 1 else None, text
    return _layer_difference(old, new)


def _layer_difference(old: CellView, new: CellView) -> tuple[str, bool | None, str] | None:
    before, after = _fusions(old.layers), _fusions(new.layers)
    if not before or not after or before == after:
        return None
    count = f"{len(old.layers)} → {len(new.layers)} layers" if len(old.layers) != len(new.layers) else ""
    return "layers", None, "; ".join(filter(None, [count, _example(before - after, after - before)]))


def _fusions(layers: Sequence[Layer]) -> Counter[tuple[tuple[str, ...], str]]:
    """Return how nodes are fused and in which precision: what stays comparable when layers are renamed."""
    return Counter((tuple(sorted(layer.onnx_nodes)), str(layer.precision)) for layer in layers)


def _example(gone: Counter[tuple[tuple[str, ...], str]], come: Counter[tuple[tuple[str, ...], str]]) -> str:
    """Name one ONNX node whose layer is another, so that the change can be found in the layer table."""
    for nodes, precision in sorted(come):
        for old_nodes, old_precision in sorted(gone):
            for node in nodes:
                if node in old_nodes:
                    now = f"{_company(node, nodes)} in {precision}"
                    return f"{node} was {_company(node, old_nodes)} in {old_precision}, now {now}"
    return ""


def _company(node: str, nodes: Sequence[str]) -> str:
    others = [other for other in nodes if other != node]
    return f"fused with {' and '.join(others)}" if others else "alone"

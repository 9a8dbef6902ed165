"""The upgrade view: what changes from one column of results.json to another; pure, and on JSON alone.

A column is one target's cells by (case, variant), of this report or of another one, so that two targets of one night
and one target of two nights are compared alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Any

from harness.words import GOOD, UNJUDGED, Class

#: What can have happened to a row, the worst news first, with its name.
KINDS = {
    "broken": "broken",
    "precision_lost": "precision lost",
    "slower": "slower",
    "unknown": "newly unknown",
    "changed": "fails in another way",
    "fixed": "fixed",
    "precision_gained": "precision gained",
    "faster": "faster",
}
#: The engine is usable: what is missing at most is the precision that was wanted.
_USABLE = {*GOOD, Class.PRECISION_LOST}
#: What one machine does from run to run is within this part, and a single run a side cannot tell it from a change. Of
#: a GPU: https://github.com/meta-pytorch/tritonbench/issues/143; of a CPU: up to 0.20 in 33 pairs of runs of one stack,
#: on two cores that others used too.
RUN_TO_RUN = {"cuda_events": 0.04, "monotonic": 0.25}
#: Both medians lie within their intervals together with 99 % confidence.
_CONFIDENCE = 0.995
#: With fewer samples the extremes do not enclose the median that surely.
_FEWEST_SAMPLES = 12

Cell = Mapping[str, Any]
Row = tuple[str, str]


@dataclass(frozen=True)
class Column:
    """One target's cells by row, and the precision that each variant wants of its nodes."""

    name: str
    cells: Mapping[Row, Cell]
    wanted: Mapping[Row, Mapping[str, str]]


@dataclass(frozen=True)
class Difference:
    """One row that changed: what happened, in a sentence, and what to do about it where that is known."""

    kind: str
    case: str
    variant: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Comparison:
    """What changes from `before` to `after`.

    `compared` rows were measured on both sides. `other_stack` of them have latencies that cannot be compared, for they
    were taken on another device, driver or clock.
    """

    before: str
    after: str
    compared: int
    other_stack: int
    differences: tuple[Difference, ...]

    def of(self, kind: str) -> tuple[Difference, ...]:
        """Return the rows to which this happened."""
        return tuple(found for found in self.differences if found.kind == kind)


def column(results: Mapping[str, Any], target: str, name: str | None = None) -> Column:
    """Return one target's column of results.json; empty where the report has no such target."""
    return Column(
        name=name or target,
        cells={
            (cell["case"], cell["variant"]): cell for cell in results["cells"] if cell["target"] == target
        },
        wanted={
            (variant["case"], variant["name"]): dict(variant["wanted"])
            for case in results["cases"]
            for variant in case["variants"]
        },
    )


def compare(before: Column, after: Column) -> Comparison:
    """Return the differences of the rows that either side has, in the order of `after` and worst first."""
    rows = list(dict.fromkeys([*after.cells, *before.cells]))
    found: list[Difference] = []
    compared = other_stack = 0
    for row in rows:
        old, new = before.cells.get(row), after.cells.get(row)
        both = _measured(old) and _measured(new)
        compared += both
        found += _differences(row, old, new, after.wanted.get(row, {}))
        if both and old and new and old["latency_ms"] and new["latency_ms"]:
            other_stack += not _comparable(old, new)
    order = list(KINDS)
    found.sort(key=lambda difference: order.index(difference.kind))
    return Comparison(before.name, after.name, compared, other_stack, tuple(found))


def _measured(cell: Cell | None) -> bool:
    return cell is not None and cell["class"] not in UNJUDGED


def _differences(row: Row, old: Cell | None, new: Cell | None, wanted: Mapping[str, str]) -> list[Difference]:
    if old is None or not _measured(old):
        return []
    if new is None or not _measured(new):
        if new is not None and new["class"] == Class.NOT_APPLICABLE:
            return []
        why = new["reason"] if new else "the other report has no such cell"
        return [Difference("unknown", *row, f"{old['class']} before, then not measured: {why}")]
    return _measured_differences(row, old, new, wanted)


def _measured_differences(row: Row, old: Cell, new: Cell, wanted: Mapping[str, str]) -> list[Difference]:
    was, now = old["class"] in _USABLE, new["class"] in _USABLE
    if was and now:
        return [*_precision(row, old, new, wanted), *_latency(row, old, new)]
    if now:
        return [Difference("fixed", *row, _change(old, new))]
    text = f"{_change(old, new)}: {new['reason']}"
    if was:
        return [Difference("broken", *row, text, _advice(new))]
    same = (old["class"], old["signature"]) == (new["class"], new["signature"])
    return [] if same else [Difference("changed", *row, text, _advice(new))]


def _change(old: Cell, new: Cell) -> str:
    seen = [
        f"{side} is flaky ({', '.join(cell['flaky'])})"
        for side, cell in _sides(old, new)
        if cell.get("flaky")
    ]
    return f"{old['class']} -> {new['class']}" + "".join(f"; {text}" for text in seen)


def _sides(old: Cell, new: Cell) -> tuple[tuple[str, Cell], ...]:
    return ("before", old), ("after", new)


def _advice(cell: Cell) -> str:
    diagnosis = cell["diagnosis"]
    if not diagnosis:
        return ""
    shown = f" (shown by {', '.join(diagnosis['proofs'])})" if diagnosis["proofs"] else ""
    return f"{diagnosis['title']}: {diagnosis['advice']}{shown}"


def _precision(row: Row, old: Cell, new: Cell, wanted: Mapping[str, str]) -> list[Difference]:
    lost: list[str] = []
    gained: list[str] = []
    for node, precision in wanted.items():
        was, now = old["precision"].get(node), new["precision"].get(node)
        if was is None or now is None or was == now or "unknown" in (was, now):
            continue
        if precision in (was, now):
            (lost if was == precision else gained).append(f"{node} {was} -> {now}")
    made = []
    if lost or (old["class"] in GOOD and new["class"] == Class.PRECISION_LOST):
        made.append(Difference("precision_lost", *row, ", ".join(lost) or new["reason"], _advice(new)))
    if gained or (old["class"] == Class.PRECISION_LOST and new["class"] in GOOD and not lost):
        made.append(Difference("precision_gained", *row, ", ".join(gained) or _change(old, new)))
    return made


def _latency(row: Row, old: Cell, new: Cell) -> list[Difference]:
    if not old["latency_ms"] or not new["latency_ms"] or not _comparable(old, new):
        return []
    before, after = old["latency_ms"]["samples"], new["latency_ms"]["samples"]
    if min(len(before), len(after)) < _FEWEST_SAMPLES or min(*before, *after) <= 0:
        return []
    least = _interval(after)[0] / _interval(before)[1]
    most = _interval(after)[1] / _interval(before)[0]
    margin = 1 + RUN_TO_RUN[old["latency_ms"]["clock"]]
    if least <= margin and most >= 1 / margin:
        return []
    kind = "slower" if least > 1 else "faster"
    text = f"{median(before):.3g} -> {median(after):.3g} ms ({100 * (least - 1):+.0f} to {100 * (most - 1):+.0f} %)"
    return [Difference(kind, *row, text)]


def _comparable(old: Cell, new: Cell) -> bool:
    return _machine(old) == _machine(new)


def _machine(cell: Cell) -> tuple[str, ...]:
    seen = cell["stamps"].get("environment", {})
    device = seen.get("gpu_uuid") or seen.get("gpu") or seen.get("cpu", "")
    return device, seen.get("driver", ""), cell["latency_ms"]["clock"]


def _interval(samples: list[float]) -> tuple[float, float]:
    """Return an interval that encloses the median with `_CONFIDENCE`, from order statistics; no shape is assumed."""
    ordered = sorted(samples)
    count = len(ordered)
    reach = NormalDist().inv_cdf(0.5 + _CONFIDENCE / 2) * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - reach))
    return ordered[low], ordered[min(count - 1, count - 1 - low)]

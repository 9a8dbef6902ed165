"""The drill-down data inside the page: compact, shared, and with no key that a stranger chose.

`table` holds what occurs more than once; `{"$": n}` stands for its entry n. Maps keyed by names are lists of
pairs.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.report.labels import BUCKETS, CERTAINTIES, MARKS, ROLES, bucket
from harness.report.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.case import Expectation
    from harness.outcome import Layer, Stamps, TensorUse
    from harness.report.model import CaseView, CellView, Results, VariantView

#: A repeated piece shorter than this costs less than the reference to it.
_WORTH_SHARING = 24
#: Samples drawn for one cell; results.json has them all.
_SAMPLES = 160


def page_data(results: Results) -> str:
    """Return the JSON text, safe inside a <script> element; the same bytes for the same results."""
    columns = {target.id: index for index, target in enumerate(results.targets)}
    rows = [(case, variant) for case in results.cases for variant in case.variants]
    row_of = {(case.name, variant.name): index for index, (case, variant) in enumerate(rows)}
    grid: list[list[Any]] = [[0] * len(columns) for _ in rows]
    for cell in results.cells:
        grid[row_of[cell.case, cell.variant]][columns[cell.target]] = _cell(cell)
    data = {
        "targets": [{"id": target.id, "label": target.label} for target in results.targets],
        "variants": [_variant(case, variant) for case, variant in rows],
        "cells": grid,
    }
    text = json.dumps(_share(_clean(data)), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _variant(case: CaseView, variant: VariantView) -> dict[str, Any]:
    return _slim(
        {
            "case": case.name,
            "caseTitle": case.title,
            "name": variant.name,
            "title": variant.title,
            "role": ROLES[variant.role],
            "counterpart": variant.counterpart,
            "wanted": [[node, str(precision)] for node, precision in variant.wanted],
            "recipe": variant.recipe_text,
            "hashes": [["model", variant.model_sha256], ["recipe", variant.recipe_sha256]],
            "expectations": [_expectation(entry) for entry in variant.expectations],
            "tags": list(variant.tags),
        }
    )


def _expectation(entry: Expectation) -> dict[str, Any]:
    where = [str(entry.engine), entry.versions or "every version", entry.platform or "", *entry.targets]
    return _slim(
        {
            "outcome": MARKS[entry.outcome].name,
            "where": " ".join(part for part in where if part),
            "certainty": CERTAINTIES[entry.certainty],
            "url": entry.source.url if entry.source else "",
            "source": (entry.source.title or entry.source.url) if entry.source else "",
            "note": entry.note,
        }
    )


def _cell(cell: CellView) -> dict[str, Any]:
    """Return what the panel shows of a cell, leaving out what is empty."""
    end = cell.end
    return _slim(
        {
            "class": MARKS[cell.cls].name,
            "letters": MARKS[cell.cls].letters,
            "bucket": BUCKETS[bucket(cell)][0],
            "reason": cell.reason,
            "sentence": cell.sentence,
            "expectation": cell.expectation,
            "documented": list(cell.documented),
            "lost": list(cell.lost),
            "diagnosis": vars(cell.diagnosis) if cell.diagnosis else None,
            "notes": list(cell.notes),
            "phases": _pairs(cell.phases),
            "failedPhase": cell.failed_phase,
            "missingApi": cell.missing_api,
            "end": end.detail or end.kind if end and end.kind != "finished" else None,
            "peakRss": end.peak_rss_bytes if end else None,
            "error": cell.error,
            "parserErrors": [[one.code, one.node, one.operator, one.text] for one in cell.parser_errors],
            "messages": [[entry.severity, entry.text] for entry in cell.messages],
            "messagesLeftOut": cell.messages_left_out,
            "native": cell.native_output,
            "precision": [[node, str(precision)] for node, precision in cell.precision.items()],
            "layers": [_layer(layer) for layer in cell.layers],
            "layerSource": cell.layer_source,
            "unparsedLayers": cell.unparsed_layers,
            "engineBytes": cell.engine_bytes,
            "accuracy": [
                [one.output, one.max_abs, one.max_rel, one.cosine, one.not_finite, one.shape_matches]
                for one in cell.accuracy
            ],
            "latency": _latency(cell),
            "stamps": _stamps(cell.stamps) if cell.stamps else None,
        }
    )


def _layer(layer: Layer) -> list[Any]:
    edges = [_tensors(layer.inputs), _tensors(layer.weights), _tensors(layer.outputs)]
    head = [layer.name, layer.type, str(layer.precision)]
    return [*head, *edges, layer.tactic, list(layer.onnx_nodes), layer.time_ms]


def _tensors(tensors: Iterable[TensorUse]) -> list[str]:
    said = [(str(use.precision), " ".join(map(str, use.dimensions)), use.format) for use in tensors]
    return [", ".join(filter(None, parts)) for parts in said]


def _latency(cell: CellView) -> dict[str, Any] | None:
    timing = cell.latency
    if timing is None:
        return None
    step = max(1, math.ceil(len(timing.samples) / _SAMPLES))
    return {
        "median": timing.median,
        "p95": timing.p95,
        "count": len(timing.samples),
        "samples": [float(f"{sample:.5g}") for sample in timing.samples[::step]],
        "warmup": timing.warmup,
        "clock": timing.clock,
        "spread": float(f"{timing.spread:.3g}"),
        "noise": timing.noise,
        "scope": timing.scope,
        "upload": timing.upload,
        "sensors": [[name, value, timing.after.get(name, "")] for name, value in timing.before.items()],
    }


#: Stamps that are told beside the recipe: a result that is shown is of today's model and recipe.
_WITH_THE_RECIPE = frozenset({"model_sha256", "recipe_sha256"})


def _stamps(stamps: Stamps) -> list[list[str]]:
    texts = {key: value for key, value in vars(stamps).items() if isinstance(value, str)}
    plain = {key: value for key, value in texts.items() if value and key not in _WITH_THE_RECIPE}
    packages = [["packages", " ".join(stamps.packages)]] if stamps.packages else []
    return [*_pairs(plain), *packages, *_pairs(dict(sorted(stamps.environment.items())))]


def _pairs(mapping: Mapping[str, Any]) -> list[list[Any]]:
    return [[key, value] for key, value in mapping.items()]


def _slim(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value or key == "expectation"}


def _clean(value: Any) -> Any:  # noqa: ANN401  (walks JSON)
    """Return the data with hidden characters written out, and no number that JSON does not have."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _clean(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(entry) for entry in value]
    return value


def _share(data: dict[str, Any]) -> dict[str, Any]:
    """Put every string, list and object that occurs more than once into a table."""
    seen: Counter[str] = Counter()
    for value in data.values():
        _count(value, seen)
    repeated = (key for key, times in seen.items() if times > 1 and len(key) >= _WORTH_SHARING)
    shared = _Shared(frozenset(repeated))
    plain = {key: shared.inside(value) for key, value in data.items()}
    return {**plain, "table": shared.table}


def _count(value: Any, seen: Counter[str]) -> None:  # noqa: ANN401
    """Count the pieces of a value; what is inside a piece seen before goes with it, uncounted."""
    if isinstance(value, str | list | dict):
        key = json.dumps(value)
        seen[key] += 1
        if seen[key] == 1:
            for entry in _entries(value):
                _count(entry, seen)


def _entries(value: str | list[Any] | dict[str, Any]) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class _Shared:
    """The table under construction; `repeated` are the pieces to put into it, as JSON."""

    def __init__(self, repeated: frozenset[str]) -> None:
        self.table: list[Any] = []
        self._repeated = repeated
        self._place: dict[str, int] = {}

    def inside(self, value: Any) -> Any:  # noqa: ANN401
        """Return a value with the repeated pieces inside it replaced by references."""
        if isinstance(value, dict):
            return {key: self._refer(entry) for key, entry in value.items()}
        return [self._refer(entry) for entry in value] if isinstance(value, list) else value

    def _refer(self, value: Any) -> Any:  # noqa: ANN401
        key = json.dumps(value)
        if key not in self._repeated:
            return self.inside(value)
        if key not in self._place:
            plain = self.inside(value)
            self._place[key] = len(self.table)
            self.table.append(plain)
        return {"$": self._place[key]}

"""What the panel shows of a variant and of a cell, with what is empty left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.layers.datatype import same_precision
from harness.record.from_json import fields_of
from harness.report import past
from harness.report.labels import MARKS, ROLES, drawn_as
from harness.report.page.conclusions import claim_evidence, concluded, slim
from harness.report.page.gpus import gpu_rows
from harness.report.page.layout import layout
from harness.report.page.packing import table
from harness.words import Class, Precision, said

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.record.outcome import Accuracy, Layer, Stamps, TensorUse
    from harness.report.graph import GraphView
    from harness.report.model import CaseView, CellView, RunView, VariantView

#: Samples drawn for one cell; results.json has them all.
_SAMPLES = 160


def variant_evidence(
    case: CaseView, variant: VariantView, models: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a variant's recipe, claims, graph, and where its model's pieces are if `models` has it by its file."""
    file = f"{case.name}-{variant.name}.onnx"
    return slim(
        {
            "case": case.name,
            "caseTitle": case.title,
            "name": variant.name,
            "title": variant.title,
            "role": ROLES[variant.role],
            "counterpart": variant.counterpart,
            "wanted": [[node, said(precision)] for node, precision in variant.wanted],
            "recipe": variant.recipe_text,
            "hashes": [["model", variant.model_sha256], ["recipe", variant.recipe_sha256]],
            "expectations": [claim_evidence(entry) for entry in variant.expectations],
            "tags": list(variant.tags),
            "file": file,
            "onnx": (models or {}).get(file),
            "graph": _graph(variant.graph),
        }
    )


class _Node(NamedTuple):
    name: str
    op: str
    constants: list[int]
    rank: int
    across: int


class _End(NamedTuple):
    tensor: int
    rank: int
    across: int


class _Wire(NamedTuple):
    tensor: int
    source: int
    sink: int
    port: int
    ports: int
    lanes: tuple[tuple[int, int, int], ...]


def _graph(graph: GraphView) -> dict[str, Any] | None:
    """Return the graph with places; tensors are numbers into `tensors`, items those of nodes and then of ends."""
    if not graph.nodes:
        return None
    names = dict.fromkeys(name for node in graph.nodes for name in (*node.inputs, *node.outputs) if name)
    number = {name: index for index, name in enumerate(names)}
    types = dict(graph.types)
    constants = set(graph.constants)
    picture = layout(graph)
    return {
        "tensors": [[name, types.get(name, "")] for name in names],
        "nodes": table(
            _Node,
            (
                _Node(
                    node.name,
                    node.op,
                    [number[name] for name in node.inputs if name in constants],
                    place.rank,
                    place.across,
                )
                for node, place in zip(graph.nodes, picture.nodes, strict=True)
            ),
        ),
        "ends": table(
            _End, (_End(number[end.tensor], end.place.rank, end.place.across) for end in picture.ends)
        ),
        "wires": table(
            _Wire,
            (
                _Wire(number[wire.tensor], wire.source, wire.sink, wire.port, wire.ports, wire.lanes)
                for wire in picture.wires
            ),
        ),
    }


def cell_evidence(
    cell: CellView,
    variant: VariantView,
    runs: Sequence[RunView] = (),
    meanwhile: str = "",
) -> dict[str, Any]:
    """Return a cell's evidence; `runs` are all of the past, which its history points into.

    `meanwhile` says what to use in its place.
    """
    end = cell.end
    return slim(
        {
            **concluded(cell, variant, meanwhile),
            "class": MARKS[drawn_as(cell)].name,
            "letters": MARKS[drawn_as(cell)].letters,
            "reason": "" if cell.cls is Class.NOT_RUN else cell.reason,
            "sentence": cell.sentence,
            "expectation": cell.expectation,
            "notes": list(cell.notes),
            "phases": [[name, _figures(seconds, 5)] for name, seconds in cell.phases.items()],
            "failedPhase": cell.failed_phase,
            "missingApi": cell.missing_api,
            "end": end.detail or end.kind if end and end.kind != "finished" else None,
            "peakRss": end.peak_rss_bytes if end else None,
            "error": cell.error,
            "parserErrors": [[one.code, one.node, one.operator, one.text] for one in cell.parser_errors],
            "messages": [[entry.severity, entry.text] for entry in cell.messages],
            "messagesLeftOut": cell.messages_left_out,
            "native": cell.native_output,
            "log": cell.log_sha256,
            "precision": _precision(cell, dict(variant.wanted)),
            "layers": table(_Layer, map(_layer, cell.layers)) if cell.layers else None,
            "layerSource": cell.layer_source,
            "unparsedLayers": cell.unparsed_layers,
            "engineBytes": cell.engine_bytes,
            "accuracy": [_accuracy(one) for one in cell.accuracy],
            "latency": _latency(cell),
            "stamps": _stamps(cell.stamps) if cell.stamps else None,
            "past": _past(cell, runs) if cell.history else None,
            "byHand": list(cell.by_hand),
            "command": cell.command,
            "script": [cell.script_head, variant.scripts[cell.script]] if cell.script is not None else None,
            "byGpu": gpu_rows(cell),
        }
    )


class Ran(NamedTuple):
    """A node, what it ran in ("" where the engine does not tell), and whether that is not what is wanted."""

    node: str
    kind: str
    lost: bool


def _precision(cell: CellView, wanted: Mapping[str, Precision]) -> dict[str, Any] | None:
    """Return what nodes ran in; of the baseline no precision is demanded."""
    found = [
        Ran(
            node,
            "" if kind is Precision.UNKNOWN else said(kind),
            lost=cell.demanded
            and kind is not Precision.UNKNOWN
            and not same_precision(wanted.get(node, kind), kind),
        )
        for node, kind in cell.precision.items()
    ]
    return table(Ran, found) if found else None


def _past(cell: CellView, runs: Sequence[RunView]) -> dict[str, Any]:
    """Return what is said of the past, the strip of runs, and the medians with the runs from which they changed."""
    found = cell.history
    if found is None:
        return {}
    changes = found.latency.changes if found.latency else ()
    return slim(
        {
            "said": list(past.sentences(cell)),
            "strip": [
                [past.day(runs[number].when), str(cls), int(number in found.elsewhere)]
                for number, cls in found.strip
            ],
            "medians": [[past.day(runs[number].when), value] for number, value in found.medians_ms],
            "changes": [past.day(change.when) for change in changes],
        }
    )


def _accuracy(one: Accuracy) -> list[Any]:
    return [one.output, one.max_abs, one.max_rel, one.cosine, one.not_finite, one.shape_matches]


class _Layer(NamedTuple):
    name: str
    type: str
    precision: str
    inputs: list[list[str]]
    weights: list[list[str]]
    outputs: list[list[str]]
    tactic: str
    nodes: tuple[str, ...]
    time: float | None


def _layer(layer: Layer) -> _Layer:
    return _Layer(
        layer.name,
        layer.type,
        said(layer.precision),
        _tensors(layer.inputs),
        _tensors(layer.weights),
        _tensors(layer.outputs),
        layer.tactic,
        layer.onnx_nodes,
        layer.time_ms,
    )


def _tensors(tensors: Iterable[TensorUse]) -> list[list[str]]:
    """Return each tensor's name and what is said of it."""
    return [
        [
            use.name,
            ", ".join(filter(None, (str(use.precision), " ".join(map(str, use.dimensions)), use.format))),
        ]
        for use in tensors
    ]


def _latency(cell: CellView) -> dict[str, Any] | None:
    timing = cell.latency
    if timing is None:
        return None
    step = max(1, math.ceil(len(timing.samples) / _SAMPLES))
    return {
        "median": timing.median,
        "p95": timing.p95,
        "count": len(timing.samples),
        "samples": [_figures(sample, 4) for sample in timing.samples[::step]],
        "warmup": timing.warmup,
        "clock": timing.clock,
        "spread": _figures(timing.spread, 3),
        "noise": timing.noise,
        "scope": timing.scope,
        "upload": timing.upload,
        "sensors": [[name, value, timing.after.get(name, "")] for name, value in timing.before.items()],
    }


def _figures(value: float, many: int) -> float:
    """Return a figure as exactly as it is shown or drawn."""
    return float(f"{value:.{many}g}")


#: Stamps that are told beside the recipe: a result that is shown is of today's model and recipe.
_WITH_THE_RECIPE = frozenset({"model_sha256", "recipe_sha256"})


def _stamps(stamps: Stamps) -> list[list[str]]:
    texts = {key: value for key, value in fields_of(stamps).items() if isinstance(value, str)}
    plain = {key: value for key, value in texts.items() if value and key not in _WITH_THE_RECIPE}
    packages = [["packages", " ".join(stamps.packages)]] if stamps.packages else []
    # What the stamps say already: the agent reports its engine's version too.
    seen = {key: value for key, value in sorted(stamps.environment.items()) if key not in plain}
    return [*_pairs(plain), *packages, *_pairs(seen)]


def _pairs(mapping: Mapping[str, Any]) -> list[list[Any]]:
    return [[key, value] for key, value in mapping.items()]

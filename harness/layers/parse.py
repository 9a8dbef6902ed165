"""One entry for all sources: text of an engine -> `LayerReport`."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.layers import inspector, log8x, names, ort, verbose
from harness.layers.compute import layer_precision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.record.outcome import Layer, Node

Source = Literal["verbose_log", "inspector", "log_8x", "ort_graph"]


@dataclass(frozen=True)
class LayerReport:
    """What was read; `unparsed` counts the layers not understood, 1 for a text of another kind."""

    layers: tuple[Layer, ...]
    unparsed: int
    source: Source


def parse_layers(
    source: Source,
    data: str | bytes,
    *,
    nodes: Sequence[Node] = (),
    model: bytes = b"",
    times_ms: Mapping[str, Sequence[float]] | None = None,
) -> LayerReport:
    """Read an engine's own account of its layers.

    `nodes`, in the model's order, let names be mapped to nodes where the source has no metadata. `model` is
    the ONNX model that was given to ONNX Runtime; "ort_graph" needs it. `times_ms` are samples by layer name,
    of which each layer gets the median. Empty data is an empty report; nothing raises on strange text.
    """
    if source == "ort_graph":
        layers, unparsed = ort.read(data if isinstance(data, bytes) else data.encode(), model)
    else:
        read = {"verbose_log": verbose.read, "inspector": inspector.read, "log_8x": log8x.read}[source]
        layers, unparsed = read(data.decode("utf-8", "replace") if isinstance(data, bytes) else data)
    return LayerReport(tuple(_finish(layer, nodes, times_ms or {}) for layer in layers), unparsed, source)


def _finish(layer: Layer, nodes: Sequence[Node], times_ms: Mapping[str, Sequence[float]]) -> Layer:
    samples = times_ms.get(layer.name)
    return dataclasses.replace(
        layer,
        precision=str(layer_precision(layer)),
        onnx_nodes=layer.onnx_nodes or names.map_names(layer.name, nodes),
        time_ms=statistics.median(samples) if samples else None,
    )

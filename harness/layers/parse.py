"""One entry for all sources: text of an engine -> `LayerReport`."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.layers import inspector, log8x, ort, verbose
from harness.layers.compute import layer_precision
from harness.layers.names import Names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.record.outcome import Layer, Node

Source = Literal["verbose_log", "inspector", "log_8x", "ort_graph"]
#: Characters or bytes of an account that is read: the longest seen is a thousandth of it.
LONGEST = 32 << 20


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
    of which each layer gets the median. Empty data is an empty report; nothing raises on strange text, none takes
    more time than its length allows, and one above `LONGEST` is not read.
    """
    if len(data) > LONGEST:
        return LayerReport((), 1, source)
    if source == "ort_graph":
        layers, unparsed = ort.read(data if isinstance(data, bytes) else data.encode(), model)
    else:
        read = {"verbose_log": verbose.read, "inspector": inspector.read, "log_8x": log8x.read}[source]
        layers, unparsed = read(data.decode("utf-8", "replace") if isinstance(data, bytes) else data)
    names = Names(nodes)
    finished = tuple(_finish(layer, names, times_ms or {}) for layer in layers)
    return LayerReport(finished, unparsed + names.given_up, source)


def _finish(layer: Layer, names: Names, times_ms: Mapping[str, Sequence[float]]) -> Layer:
    samples = times_ms.get(layer.name)
    return dataclasses.replace(
        layer,
        precision=str(layer_precision(layer)),
        onnx_nodes=layer.onnx_nodes or names.map(layer.name),
        time_ms=statistics.median(samples) if samples else None,
    )

"""JSON of IEngineInspector.get_engine_information, in the 8.5 .. 10 and the 11 schema."""

from __future__ import annotations

import json
from typing import Any

from harness.layers.compute import DECLARED_WEIGHTS
from harness.layers.tensor import onnx_nodes, plain_layer, tensor_use
from harness.record.outcome import Layer, TensorUse

#: Of a dimension, as TensorRT counts: the product of longer numbers takes the square of the text's length.
_LARGEST = 2**63


def read(text: str) -> tuple[list[Layer], int]:
    """Return the layers and how many entries were not understood; text of another kind counts as one."""
    if not text.strip():
        return [], 0
    try:
        # Names are written unescaped by some versions: control characters are let through.
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return [], 1
    entries = document.get("Layers") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return [], 1
    layers = [_layer(entry) for entry in entries]
    return [layer for layer in layers if layer], sum(layer is None for layer in layers)


def _layer(entry: object) -> Layer | None:
    if isinstance(entry, str):
        return plain_layer(entry)
    if not isinstance(entry, dict) or "Name" not in entry:
        return None
    try:
        return Layer(
            name=str(entry["Name"]),
            type=str(entry.get("LayerType", "")),
            precision="",
            inputs=_tensors(entry.get("Inputs")),
            weights=(*_declared(entry), *_tensors(entry.get("Constants"))),
            outputs=_tensors(entry.get("Outputs")),
            tactic=str(entry.get("TacticName", "")),
            onnx_nodes=onnx_nodes(str(entry.get("Metadata", ""))),
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):  # of no known version
        return None


def _tensors(entries: Any) -> tuple[TensorUse, ...]:  # noqa: ANN401  (JSON)
    return tuple(_tensor(entry) for entry in entries or ())


def _tensor(entry: dict[str, Any]) -> TensorUse:
    layout = str(entry.get("Format/Datatype") or entry.get("Format") or "")
    datatype = str(entry.get("Datatype") or entry.get("DataType") or layout)
    sizes = tuple(int(size) for size in entry.get("Dimensions", ()))
    if any(abs(size) > _LARGEST for size in sizes):
        raise ValueError(sizes)
    return tensor_use(str(entry["Name"]), sizes, datatype, layout)


def _declared(entry: dict[str, Any]) -> tuple[TensorUse, ...]:
    """Return the kinds of constants that 8.5 .. 10 declare by type and count."""
    kinds = ((DECLARED_WEIGHTS, entry.get("Weights")), ("Bias", entry.get("Bias")))
    return tuple(
        tensor_use(name, (), str(value["Type"]), "")
        for name, value in kinds
        if isinstance(value, dict) and value.get("Count", 1)
    )

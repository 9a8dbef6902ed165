"""Raw parts, as every TensorRT source gives them, to the record's own types."""

from __future__ import annotations

import re

from harness.layers.datatype import precision_of
from harness.record.outcome import Layer, TensorUse

_SEPARATOR = re.compile("[\x1e\x1f]")
_ENTRY = re.compile(r"\[ONNX Layer: (?P<name>.*)\]", re.DOTALL)


def tensor_use(name: str, dimensions: tuple[int, ...], datatype: str, layout: str) -> TensorUse:
    """Return a tensor; `datatype` is any of the engine's texts, `layout` what is shown as its format."""
    return TensorUse(name=name, precision=str(precision_of(datatype)), dimensions=dimensions, format=layout)


def onnx_nodes(metadata: str) -> tuple[str, ...]:
    """Return the node names in a layer's metadata, each once, in the order given.

    Some logs lose the separators; entries are then told apart by their brackets.
    """
    if not _SEPARATOR.search(metadata):
        metadata = metadata.replace("][ONNX Layer: ", "]\x1f[ONNX Layer: ")
    entries = (_ENTRY.fullmatch(entry.strip()) for entry in _SEPARATOR.split(metadata))
    return tuple(dict.fromkeys(entry["name"] for entry in entries if entry))


def plain_layer(name: str) -> Layer:
    """Return the layer of an engine that was built to tell names alone."""
    return Layer(name=name, type="", precision="")

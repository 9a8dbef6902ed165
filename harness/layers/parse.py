"""Text of an engine -> `LayerReport`: one entry for all sources, and the ONNX nodes in the names of layers.

TensorRT builds a fused layer's name from its parts: `a + PWN(PWN(b), c)`; the weight first under explicit
quantisation, `w + w_quant + conv + PWN(..)` (github.com/NVIDIA/TensorRT/issues/3385); `a || b` for layers
merged side by side; `{ForeignNode[a...b]}` for a compiled region. Node names may hold any of these signs
themselves, so known names are looked for at the joints, longest first; the text is not split.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from harness.layers.names import BEGIN, END
from harness.layers.ort import read_ort
from harness.layers.precision import layer_precision
from harness.layers.tensorrt import read_inspector, read_verbose
from harness.record.outcome import Layer, Node

Source = Literal["verbose_log", "inspector", "ort_graph"]
#: Characters or bytes of an account that is read: the longest seen is a thousandth of it.
LONGEST = 32 << 20


@dataclass(frozen=True)
class LayerReport:
    """The layers read; `unparsed` counts those not understood, 1 for a text of another kind."""

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

    `nodes`, in the model's order, map names to nodes if the source has no metadata. `model` is the ONNX model that was
    given to ONNX Runtime; "ort_graph" needs it. `times_ms` are samples by layer name, of which each layer gets the
    median. Empty data is an empty report. Strange text never raises and takes time in proportion to its length; a text
    above `LONGEST` is not read.
    """
    if len(data) > LONGEST:
        return LayerReport((), 1, source)
    if source == "ort_graph":
        layers, unparsed = read_ort(data if isinstance(data, bytes) else data.encode(), model)
    else:
        read = read_verbose if source == "verbose_log" else read_inspector
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


_REFORMAT = re.compile(r"Reformatting CopyNode |Reformatted (?:Input|Output) Tensor ")
#: Places at which a region's name is tried as its first and its last node: a node's own name may hold dots.
_MOST_PLACES = 16
#: Names tried at joints, and nodes of regions, in all of an engine's layers, if the text and the names together can ask
#: for their product; a long network takes a hundredth of it.
_MOST_STEPS = 10_000_000
#: Characters of a name that are compared in the time of a step.
_CHARACTERS = 256
#: The bounds of a part.
_BEFORE = re.compile(r"\(| \+ | \|\| |, ")
_AFTER = re.compile(r"$|\)| \+ | \|\| |, |_myl\d+_\d+$|_clone_\d+")


class Names:
    """The names of a model's nodes, looked for in the names of an engine's layers."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._order = [node.name for node in nodes]
        self._places: dict[str, list[int]] = {}
        for place, name in enumerate(self._order):
            self._places.setdefault(name, []).append(place)
        self._lengths = sorted({len(name) for name in self._order} - {0}, reverse=True)
        self._left = _MOST_STEPS
        #: Layers that were not looked at, as those before them had used up the bound.
        self.given_up = 0

    def map(self, layer_name: str) -> tuple[str, ...]:
        """Return the names of the nodes in a layer's name, in the model's order.

        A region gives every node from its first to its last, which can be too many for branches side by side. A
        reformat layer gives no node.
        """
        if _REFORMAT.match(layer_name):
            return ()
        begin, end = layer_name.find(BEGIN), layer_name.rfind(END)
        try:
            found = self._parts(layer_name)
            if 0 <= begin <= end - len(BEGIN):
                found |= self._range(layer_name[begin + len(BEGIN) : end])
        except _TooMuchError:
            self.given_up += 1
            return ()
        return tuple(self._order[place] for place in sorted(found))

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuchError

    def _parts(self, text: str) -> set[int]:
        """Return the places of the nodes whose names stand between joints, of two that begin alike the longer."""
        found: set[int] = set()
        taken = 0
        for start in (0, *(joint.end() for joint in _BEFORE.finditer(text))):
            if start < taken:
                continue
            for length in self._lengths:
                self._spend(1 + length // _CHARACTERS)
                places = self._places.get(text[start : start + length])
                if places and start + length <= len(text) and _AFTER.match(text, start + length):
                    found.update(places)
                    taken = start + length
                    break
        return found

    def _range(self, body: str) -> set[int]:
        """Return the nodes of `first...last`; of one end alone if the other is a weight or an unnamed layer.

        Each end may be a fused name itself.
        """
        for dots in islice(re.finditer(r"\.\.\.", body), _MOST_PLACES):
            first, last = self._parts(body[: dots.start()]), self._parts(body[dots.end() :])
            if first and last:
                firsts = [self._places[self._order[place]][0] for place in first | last]
                inner = range(min(firsts), max(firsts) + 1)
                self._spend(8 * len(inner))
                names = {self._order[each] for each in inner}
                return {place for name in names for place in self._places[name]}
            if first or last:
                return first | last
        return self._parts(body)


class _TooMuchError(Exception):
    """More was to be looked at than is worth it."""


def map_names(layer_name: str, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the names of the nodes in one layer's name, in the model's order; `nodes` is in the model's order."""
    return Names(nodes).map(layer_name)

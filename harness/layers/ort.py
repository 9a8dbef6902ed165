"""The optimised model that ONNX Runtime writes (`optimized_model_filepath`), and the times of its profile.

One layer a node; measured on 1.17.3 and 1.31.1.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError

from harness.case.model import effective_name
from harness.layers.elements import types_of
from harness.layers.origins import Origins
from harness.record.outcome import Layer, TensorUse
from harness.words import Precision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KERNEL_TIME = "_kernel_time"
#: Microseconds that no kernel takes: a year.
_NO_TIME = 3.2e13
#: What MatMulNBits' weights are, which it keeps packed in bytes, by its attribute.
_PACKED = {4: Precision.INT4, 8: Precision.INT8}


def read(optimised: bytes, original: bytes) -> tuple[list[Layer], int]:
    """Return one layer for each node of the optimised model; bytes that are no model count as one unread."""
    if not optimised:
        return [], 0
    try:
        after, before = onnx.load_from_string(optimised), onnx.load_from_string(original)
        types, sizes = (
            types_of(after.graph),
            {item.name: tuple(item.dims) for item in after.graph.initializer},
        )
        origins = Origins(before.graph, after.graph)
        return [_layer(node, types, sizes, origins.of(node)) for node in after.graph.node], origins.given_up
    # Any bytes may come: a node without outputs, text that is no UTF-8.
    except (DecodeError, LookupError, ValueError, TypeError):
        return [], 1


def ort_node_times(profile_json: str) -> dict[str, list[float]]:
    """Return the kernel times of a profile in milliseconds, in run order, by name of the optimised node.

    A node without a name is `<operator>_<index>` there. Source: the file that `end_profiling` names, events
    of category "Node" called `<name>_kernel_time`, durations in microseconds.
    """
    times: dict[str, list[float]] = {}
    # Node names are written unescaped: a tab in one is let through.
    document = json.loads(profile_json, strict=False)
    for event in document if isinstance(document, list) else ():
        name, took = (event.get("name"), event.get("dur")) if isinstance(event, dict) else (None, None)
        if not (isinstance(name, str) and name.endswith(_KERNEL_TIME)):
            continue
        if isinstance(took, int | float) and 0 <= took < _NO_TIME:
            times.setdefault(name.removesuffix(_KERNEL_TIME), []).append(took / 1000)
    return times


def _layer(
    node: onnx.NodeProto,
    types: Mapping[str, Precision],
    sizes: Mapping[str, tuple[int, ...]],
    nodes: tuple[str, ...],
) -> Layer:
    if node.op_type == "MatMulNBits":
        bits = next((item.i for item in node.attribute if item.name == "bits"), 4)
        types = {**types, node.input[1]: _PACKED.get(bits, Precision.UNKNOWN)}

    def use(names: Iterable[str]) -> tuple[TensorUse, ...]:
        return tuple(
            TensorUse(_text(name), str(types.get(name, Precision.UNKNOWN)), sizes.get(name, ()))
            for name in names
            if name
        )

    return Layer(
        name=_text(effective_name(node)),
        type=f"{_text(node.domain)}.{_text(node.op_type)}" if node.domain else _text(node.op_type),
        precision="",
        inputs=use(name for name in node.input if name not in sizes),
        weights=use(name for name in node.input if name in sizes),
        outputs=use(node.output),
        onnx_nodes=nodes,
    )


def _text(text: str | bytes) -> str:
    """Return a text of a model; protobuf gives one that is no UTF-8 as bytes."""
    return text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")

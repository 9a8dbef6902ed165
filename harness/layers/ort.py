"""The optimised model that ONNX Runtime writes (`optimized_model_filepath`), and the times of its profile.

One layer a node; measured on 1.17.3 and 1.31.1.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from harness.case.model import effective_name
from harness.layers.origins import Origins
from harness.outcome import Layer, TensorUse
from harness.words import Precision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TYPES: dict[int, Precision] = {
    TensorProto.FLOAT: Precision.FP32,
    TensorProto.FLOAT16: Precision.FP16,
    TensorProto.BFLOAT16: Precision.BF16,
    TensorProto.INT8: Precision.INT8,
    TensorProto.UINT8: Precision.UINT8,
    TensorProto.INT32: Precision.INT32,
    TensorProto.INT64: Precision.INT64,
    TensorProto.BOOL: Precision.BOOL,
}
_KERNEL_TIME = "_kernel_time"
#: Input that fixes the type of the output, by operator; the first one for all others.
_TYPED_BY = {"QuantizeLinear": 2, "DequantizeLinear": 1, "MatMulIntegerToFloat": 2}


def read(optimised: bytes, original: bytes) -> tuple[list[Layer], int]:
    """Return one layer for each node of the optimised model; bytes that are no model count as one unread."""
    if not optimised:
        return [], 0
    try:
        after, before = onnx.load_from_string(optimised), onnx.load_from_string(original)
    except DecodeError:
        return [], 1
    types, sizes = _types(after.graph), {item.name: tuple(item.dims) for item in after.graph.initializer}
    origins = Origins(before.graph, after.graph)
    return [_layer(node, types, sizes, origins.of(node)) for node in after.graph.node], 0


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
        if isinstance(name, str) and name.endswith(_KERNEL_TIME) and isinstance(took, int | float):
            times.setdefault(name.removesuffix(_KERNEL_TIME), []).append(took / 1000)
    return times


def _layer(
    node: onnx.NodeProto,
    types: Mapping[str, Precision],
    sizes: Mapping[str, tuple[int, ...]],
    nodes: tuple[str, ...],
) -> Layer:
    def use(names: Iterable[str]) -> tuple[TensorUse, ...]:
        return tuple(
            TensorUse(name, str(types.get(name, Precision.UNKNOWN)), sizes.get(name, ()))
            for name in names
            if name
        )

    return Layer(
        name=effective_name(node),
        type=f"{node.domain}.{node.op_type}" if node.domain else node.op_type,
        precision="",
        inputs=use(name for name in node.input if name not in sizes),
        weights=use(name for name in node.input if name in sizes),
        outputs=use(node.output),
        onnx_nodes=nodes,
    )


def _types(graph: onnx.GraphProto) -> dict[str, Precision]:
    """Return each tensor's type; the model declares those of its edges alone, and its nodes are sorted."""
    known = {item.name: _TYPES.get(item.data_type, Precision.UNKNOWN) for item in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        known[value.name] = _TYPES.get(value.type.tensor_type.elem_type, Precision.UNKNOWN)
    for node in graph.node:
        for output in node.output:
            known.setdefault(output, _output_type(node, known))
    return known


def _output_type(node: onnx.NodeProto, known: Mapping[str, Precision]) -> Precision:
    attributes: dict[str, Any] = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    if node.op_type == "Cast":
        return _TYPES.get(attributes["to"], Precision.UNKNOWN)
    index = _TYPED_BY.get(node.op_type, 0)
    name = node.input[index] if index < len(node.input) else ""
    return known.get(name, Precision.UNKNOWN)

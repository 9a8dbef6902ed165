"""How quantised data come to a node of an ONNX graph, where engines are known to stumble over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnx import numpy_helper

from harness.layers.operators import dequantises

if TYPE_CHECKING:
    from collections.abc import Iterable

#: ONNX takes one scale for a whole tensor as a scalar or as a vector of one element.
VECTOR_OF_ONE = "a scale in a vector of one element"
#: Concat joins what was quantised by different scales.
UNLIKE_SCALES = "inputs of unlike scales"


class Scales:
    """The scales by which a graph dequantises, as far as they are constants."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._constants = {item.name: item for item in graph.initializer} | {
            node.output[0]: item.t
            for node in graph.node
            if node.op_type == "Constant"
            for item in node.attribute
            if item.name == "value"
        }
        self._shapes = {item.name: tuple(item.dims) for item in graph.initializer} | {
            value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
            for value in (*graph.input, *graph.value_info, *graph.output)
        }

    def fed(self, node: onnx.NodeProto, sources: Iterable[onnx.NodeProto]) -> str:
        """Return how a node is fed, "" where that is nothing special; `sources` are what makes its data."""
        readers = [each for each in sources if dequantises(each.op_type) and len(each.input) > 1]
        if node.op_type == "Concat":
            scales = {self._value(reader) for reader in readers} - {None}
            return UNLIKE_SCALES if len(scales) > 1 else ""
        return VECTOR_OF_ONE if any(map(self._is_vector_of_one, readers)) else ""

    def _is_vector_of_one(self, reader: onnx.NodeProto) -> bool:
        """Tell whether one scale is for the whole of a tensor that has more than one channel."""
        if self._shapes.get(reader.input[1]) != (1,):
            return False
        axis = next((item.i for item in reader.attribute if item.name == "axis"), 1)
        shape = self._shapes.get(reader.input[0], ())
        return not -len(shape) <= axis < len(shape) or shape[axis] != 1

    def _value(self, reader: onnx.NodeProto) -> bytes | None:
        """Return the bytes of a scale's values, None where it is no constant or lies in another file."""
        scale = self._constants.get(reader.input[1])
        if scale is None or scale.data_location == onnx.TensorProto.EXTERNAL:
            return None
        # A tensor may hold the same numbers as bytes or one by one.
        values: bytes = numpy_helper.to_array(scale).tobytes()
        return values

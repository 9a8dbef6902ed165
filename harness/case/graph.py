"""Builds small ONNX graphs, deterministic to the byte, with the Q/DQ spelling that quantisers export."""

from __future__ import annotations

import math
import random
import struct
from array import array
from typing import TYPE_CHECKING, Any

import onnx
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The newest ONNX IR that the parser of the oldest target (TensorRT 8.5) reads.
IR_VERSION = 8


class Graph:
    """A graph under construction; every method that makes a tensor returns the tensor's name.

    Node names are given in full, because an error message names them: pass `name=""` for a node that the
    reported model left unnamed. `opset` is the default domain's.
    """

    def __init__(self, name: str, *, opset: int = 13) -> None:
        self._name = name
        self._opset = opset
        self._domains = {"": opset}
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._weights: dict[str, tuple[tuple[int, ...], list[float]]] = {}

    def input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """Add a network input; a string in the shape is a dynamic dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """Declare an existing tensor a network output."""
        self._outputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        *,
        name: str,
        output: str | None = None,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  (whatever onnx.helper.make_attribute takes)
    ) -> str:
        """Add a node with one output, called `<name>_output_0` unless `output` names it."""
        if output is None:
            if not name:
                raise ValueError(f"{op}: a node without a name needs its output named")
            output = f"{name}_output_0"
        if domain:
            self._domains.setdefault(domain, 1)
        node = helper.make_node(op, list(inputs), [output], name=name or None, domain=domain, **attributes)
        self._nodes.append(node)
        return output

    def constant(
        self, name: str, values: Sequence[float], shape: Sequence[int], dtype: int = TensorProto.FLOAT
    ) -> str:
        """Add an initialiser with given values; a name that is there already keeps its first values."""
        if name not in self._initializers:
            packed = _pack(values, dtype)
            self._initializers[name] = helper.make_tensor(name, dtype, list(shape), packed, raw=True)
        return name

    def weight(
        self,
        name: str,
        shape: Sequence[int],
        *,
        centre: float = 0.0,
        spread: float | None = None,
        dtype: int = TensorProto.FLOAT,
    ) -> str:
        """Add an initialiser of pseudo-random values fixed by its name.

        Uniform in `centre` +- `spread`; the spread defaults to a fan-in scaling that keeps activations near one.
        """
        values = _uniform(name, shape, centre, spread)
        self._weights[name] = (tuple(shape), values)
        return self.constant(name, values, shape, dtype)

    def int8_weight(self, tensor: str, shape: Sequence[int], *, name: str, output: str | None = None) -> str:
        """Add a weight stored as the INT8 initialiser `tensor`, and the DequantizeLinear that reads it.

        The values are those of `weight` under the same name, rounded to one scale for each index of axis 0.
        """
        values = _uniform(tensor, shape, 0.0, None)
        self._weights[tensor] = (tuple(shape), values)
        scales = self.weight_scale(tensor)
        if not isinstance(scales, list):
            raise TypeError(f"{tensor}: expected one scale a channel")
        step = len(values) // shape[0]
        whole = [round(value / scales[index // step]) for index, value in enumerate(values)]
        self.constant(tensor, whole, shape, TensorProto.INT8)
        return self.dequantize(tensor, name=name, scale=scales, axis=0, output=output)

    def conv(  # noqa: PLR0913
        self,
        tensor: str,
        weight: str,
        *,
        name: str,
        kernel: int = 3,
        stride: int = 1,
        group: int = 1,
        bias: str | None = None,
        output: str | None = None,
    ) -> str:
        """Add a two-dimensional Conv with a square kernel, padded by half the kernel on every side."""
        return self.node(
            "Conv",
            [tensor, weight] if bias is None else [tensor, weight, bias],
            name=name,
            output=output,
            group=group,
            kernel_shape=[kernel, kernel],
            pads=[kernel // 2] * 4,
            strides=[stride, stride],
        )

    def quantize(  # noqa: PLR0913
        self,
        tensor: str,
        *,
        name: str,
        scale: float | Sequence[float],
        axis: int = 1,
        output: str | None = None,
        prefix: str | None = None,
    ) -> str:
        """Add a QuantizeLinear to INT8 with zero point 0; a sequence of scales is one a channel of `axis`."""
        scales, attributes = self._scales(tensor if prefix is None else prefix, scale, axis)
        return self.node("QuantizeLinear", [tensor, *scales], name=name, output=output, **attributes)

    def dequantize(  # noqa: PLR0913
        self,
        tensor: str,
        *,
        name: str,
        scale: float | Sequence[float],
        axis: int = 1,
        output: str | None = None,
        prefix: str | None = None,
    ) -> str:
        """Add the DequantizeLinear that undoes a `quantize` with the same scale."""
        scales, attributes = self._scales(tensor if prefix is None else prefix, scale, axis)
        return self.node("DequantizeLinear", [tensor, *scales], name=name, output=output, **attributes)

    def qdq(self, tensor: str, *, name: str, scale: float = 0.05) -> str:
        """Add a per-tensor Q/DQ pair `<name>/QuantizeLinear`, `<name>/DequantizeLinear` on an activation."""
        quantized = self.quantize(tensor, name=f"{name}/QuantizeLinear", scale=scale, prefix=name)
        return self.dequantize(quantized, name=f"{name}/DequantizeLinear", scale=scale, prefix=name)

    def weight_qdq(self, tensor: str, *, name: str, per_channel: bool = True) -> str:
        """Add a Q/DQ pair on a weight, its scale taken from the weight's own values.

        The scale is max abs / 127: of each index of axis 0, or of the whole weight.
        """
        scale = self.weight_scale(tensor, per_channel=per_channel)
        quantized = self.quantize(tensor, name=f"{name}/QuantizeLinear", scale=scale, axis=0, prefix=name)
        return self.dequantize(quantized, name=f"{name}/DequantizeLinear", scale=scale, axis=0, prefix=name)

    def weight_scale(self, tensor: str, *, per_channel: bool = True) -> float | list[float]:
        """Return the symmetric INT8 scale of a weight, or one scale for each index of its first axis."""
        shape, values = self._weights[tensor]
        if not per_channel:
            return _as_float32([max(map(abs, values)) / 127])[0]
        step = len(values) // shape[0]
        rows = (values[start : start + step] for start in range(0, len(values), step))
        return _as_float32(max(map(abs, row)) / 127 for row in rows)

    def batch_norm(  # noqa: PLR0913
        self,
        tensor: str,
        channels: int,
        *,
        name: str,
        prefix: str,
        output: str | None = None,
        dtype: int = TensorProto.FLOAT,
    ) -> str:
        """Add a BatchNormalization kept as a node.

        Its vectors are `<prefix>.weight`, `.bias`, `.running_mean` and `.running_var`.
        """
        parts = [
            self.weight(f"{prefix}.weight", (channels,), centre=1.0, spread=0.1, dtype=dtype),
            self.weight(f"{prefix}.bias", (channels,), spread=0.1, dtype=dtype),
            self.weight(f"{prefix}.running_mean", (channels,), spread=0.1, dtype=dtype),
            self.weight(f"{prefix}.running_var", (channels,), centre=1.0, spread=0.2, dtype=dtype),
        ]
        # An inference has no use for the momentum, but below opset 14 onnx.reference mixes the batch's own
        # statistics in by it; 1 keeps them out.
        return self.node(
            "BatchNormalization", [tensor, *parts], name=name, output=output, epsilon=1e-5, momentum=1.0
        )

    def model(self) -> onnx.ModelProto:
        """Return the finished model after `onnx.checker` with full shape inference.

        Nodes of custom domains are not inferred.
        """
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, list(self._initializers.values())
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._domains.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="")
        onnx.checker.check_model(model, full_check=True)
        return model

    def _scales(
        self, prefix: str, scale: float | Sequence[float], axis: int
    ) -> tuple[list[str], dict[str, Any]]:
        scalar = isinstance(scale, (int, float))
        values = [scale] if isinstance(scale, (int, float)) else list(scale)
        shape = [] if scalar else [len(values)]
        names = [
            self.constant(f"{prefix}_scale", values, shape),
            self.constant(f"{prefix}_zero_point", [0] * len(values), shape, TensorProto.INT8),
        ]
        # Opset 13 brought the axis; without it the scale is per tensor.
        return names, {} if scalar else {"axis": axis}


def _uniform(name: str, shape: Sequence[int], centre: float, spread: float | None) -> list[float]:
    count = math.prod(shape)
    if spread is None:
        spread = math.sqrt(3.0 / max(1, count // shape[0]))
    generator = random.Random(f"{name}{tuple(shape)}")  # noqa: S311  (data, not secrets)
    return _as_float32(centre + spread * (2.0 * generator.random() - 1.0) for _ in range(count))


def _as_float32(values: Iterable[float]) -> list[float]:
    return array("f", values).tolist()


_FORMATS: dict[int, str] = {
    TensorProto.FLOAT: "f",
    TensorProto.FLOAT16: "e",
    TensorProto.INT8: "b",
    TensorProto.INT32: "i",
    TensorProto.INT64: "q",
}


def _pack(values: Sequence[float], dtype: int) -> bytes:
    code = _FORMATS[dtype]
    numbers = values if code in "fe" else [int(value) for value in values]
    return struct.pack(f"<{len(values)}{code}", *numbers)

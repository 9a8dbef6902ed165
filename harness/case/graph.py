"""Builds small ONNX graphs, the same bytes on every machine, with the Q/DQ spelling that quantisers export."""

from __future__ import annotations

import math
import random
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from onnx import TensorProto, helper

#: The newest ONNX IR that the parser of the oldest target (TensorRT 8.5) reads: that of a model that needs none newer.
OLDEST_IR = 8
_FORMATS: dict[int, str] = {
    TensorProto.FLOAT: "f",
    TensorProto.FLOAT16: "e",
    TensorProto.INT8: "b",
    TensorProto.UINT8: "B",
    TensorProto.INT32: "i",
    TensorProto.INT64: "q",
    TensorProto.BOOL: "?",
}
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})
#: The largest magnitude that a symmetric quantiser maps onto, by the type that it quantises to.
LARGEST: dict[int, float] = {
    TensorProto.INT8: 127,
    TensorProto.UINT8: 127,
    TensorProto.INT4: 7,
    TensorProto.FLOAT8E4M3FN: 448,
    TensorProto.FLOAT4E2M1: 6,
}
#: The first ONNX IR that knows a type, for those that came after IR 8.
FIRST_IR: dict[int, int] = {
    TensorProto.FLOAT8E4M3FN: 9,
    TensorProto.INT4: 10,
    TensorProto.UINT4: 10,
    TensorProto.FLOAT4E2M1: 11,
}
_WHOLE = frozenset({TensorProto.INT8, TensorProto.UINT8, TensorProto.INT4})


@dataclass(frozen=True)
class Quantiser:
    """The type that a Q/DQ pair quantises to (`dtype`), the type of its scales, and its zero point."""

    dtype: int = TensorProto.INT8
    scale_type: int = TensorProto.FLOAT
    zero_point: int = 0


INT8 = Quantiser()


class Graph:
    """A graph under construction; every method that makes a tensor returns the tensor's name.

    Node names are given in full, because an error message names them: pass `name=""` for a node that the
    reported model left unnamed. `opset` is the default domain's; the model's IR is the oldest, from 8 on, that has
    the opset and all types. A scale that is a sequence is a vector, one of one element too.
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
        """Add a node with one output, called `<name>_output_0` unless `output` names it.

        An attribute may be a subgraph: the `body()` of another graph.
        """
        if output is None:
            if not name:
                raise ValueError(f"{op}: a node without a name needs its output named")
            output = f"{name}_output_0"
        return self.node_of_several(op, inputs, [output], name=name, domain=domain, **attributes)[0]

    def node_of_several(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: int | Sequence[str],
        *,
        name: str,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  (whatever onnx.helper.make_attribute takes)
    ) -> list[str]:
        """Add a node with the outputs that are named, "" for one left out; or with so many `<name>_output_<index>`."""
        names = (
            [f"{name}_output_{index}" for index in range(outputs)] if isinstance(outputs, int) else outputs
        )
        if domain:
            self._domains.setdefault(domain, 1)
        node = helper.make_node(op, list(inputs), list(names), name=name or None, domain=domain, **attributes)
        self._nodes.append(node)
        return list(names)

    def constant(
        self, name: str, values: Sequence[float], shape: Sequence[int], dtype: int = TensorProto.FLOAT
    ) -> str:
        """Add an initialiser with given values; a name that is there already keeps its first values."""
        if name not in self._initializers:
            packed = pack(values, dtype)
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
        return self.constant(name, self._values(name, shape, centre, spread), shape, dtype)

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
        dimensions: int = 2,
    ) -> str:
        """Add a Conv with a kernel of one size in all dimensions, padded by half of it on every side."""
        return self.node(
            "Conv",
            [tensor, weight] if bias is None else [tensor, weight, bias],
            name=name,
            output=output,
            group=group,
            kernel_shape=[kernel] * dimensions,
            pads=[kernel // 2] * 2 * dimensions,
            strides=[stride] * dimensions,
        )

    def conv_transpose(  # noqa: PLR0913
        self,
        tensor: str,
        weight: str,
        *,
        name: str,
        kernel: int = 4,
        stride: int = 2,
        pad: int = 1,
        dilation: int = 1,
        group: int = 1,
        output: str | None = None,
        dimensions: int = 2,
    ) -> str:
        """Add a ConvTranspose, whose weight has input channels first; with the defaults it doubles each dimension."""
        return self.node(
            "ConvTranspose",
            [tensor, weight],
            name=name,
            output=output,
            dilations=[dilation] * dimensions,
            group=group,
            kernel_shape=[kernel] * dimensions,
            pads=[pad] * 2 * dimensions,
            strides=[stride] * dimensions,
        )

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

    def quantize(  # noqa: PLR0913
        self,
        tensor: str,
        *,
        name: str,
        scale: float | Sequence[float],
        axis: int = 1,
        output: str | None = None,
        prefix: str | None = None,
        to: Quantiser = INT8,
    ) -> str:
        """Add a QuantizeLinear; a sequence of scales is one a channel of `axis`."""
        scales, attributes = self._scales(tensor if prefix is None else prefix, scale, axis, to)
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
        to: Quantiser = INT8,
    ) -> str:
        """Add the DequantizeLinear that undoes a `quantize` with the same scale."""
        scales, attributes = self._scales(tensor if prefix is None else prefix, scale, axis, to)
        return self.node("DequantizeLinear", [tensor, *scales], name=name, output=output, **attributes)

    def qdq(
        self, tensor: str, *, name: str, scale: float | Sequence[float] = 0.05, to: Quantiser = INT8
    ) -> str:
        """Add a Q/DQ pair `<name>/QuantizeLinear`, `<name>/DequantizeLinear` on an activation."""
        quantized = self.quantize(tensor, name=f"{name}/QuantizeLinear", scale=scale, prefix=name, to=to)
        return self.dequantize(quantized, name=f"{name}/DequantizeLinear", scale=scale, prefix=name, to=to)

    def weight_qdq(
        self, tensor: str, *, name: str, per_channel: bool = True, axis: int = 0, to: Quantiser = INT8
    ) -> str:
        """Add a Q/DQ pair on a weight, its scale taken from the weight's own values.

        The scale is max abs over the type's largest value: of each index of `axis`, or of the whole weight.
        """
        scale = self.weight_scale(tensor, per_channel=per_channel, axis=axis, to=to)
        quantized = self.quantize(
            tensor, name=f"{name}/QuantizeLinear", scale=scale, axis=axis, prefix=name, to=to
        )
        return self.dequantize(
            quantized, name=f"{name}/DequantizeLinear", scale=scale, axis=axis, prefix=name, to=to
        )

    def weight_scale(
        self, tensor: str, *, per_channel: bool = True, axis: int = 0, to: Quantiser = INT8
    ) -> float | list[float]:
        """Return the symmetric scale of a weight, or one scale for each index of an axis."""
        shape, values = self._weights[tensor]
        largest = LARGEST[to.dtype]
        if not per_channel:
            return as_float32([max(map(abs, values)) / largest])[0]
        return as_float32(most / largest for most in _most(values, _groups(shape, axis)))

    def stored_weight(  # noqa: PLR0913
        self,
        tensor: str,
        shape: Sequence[int],
        *,
        name: str,
        output: str | None = None,
        axis: int = 0,
        block: int = 0,
        to: Quantiser = INT8,
    ) -> str:
        """Add a weight stored as the initialiser `tensor` in a narrow type, and the DequantizeLinear that reads it.

        The values are those of `weight` under the same name, rounded to one scale for each index of `axis`, or, with a
        `block`, for so many elements along it, as opset 21 has them.
        """
        values = self._values(tensor, shape)
        groups = _blocks(shape, axis, block) if block else _groups(shape, axis)
        scales = as_float32(most / LARGEST[to.dtype] for most in _most(values, groups))
        fitting = [value / scales[group] for value, group in zip(values, groups, strict=True)]
        self.constant(
            tensor, [round(each) for each in fitting] if to.dtype in _WHOLE else fitting, shape, to.dtype
        )
        if not block:
            return self.dequantize(tensor, name=name, scale=scales, axis=axis, output=output, to=to)
        of = list(shape)
        of[axis] //= block
        scale = self.constant(f"{tensor}_scale", scales, of, to.scale_type)
        return self.node(
            "DequantizeLinear", [tensor, scale], name=name, output=output, axis=axis, block_size=block
        )

    def _scales(
        self, prefix: str, scale: float | Sequence[float], axis: int, to: Quantiser
    ) -> tuple[list[str], dict[str, Any]]:
        scalar = isinstance(scale, (int, float))
        values = [scale] if isinstance(scale, (int, float)) else list(scale)
        shape = [] if scalar else [len(values)]
        names = [
            self.constant(f"{prefix}_scale", values, shape, to.scale_type),
            self.constant(f"{prefix}_zero_point", [to.zero_point] * len(values), shape, to.dtype),
        ]
        # Opset 13 brought the axis; without it the scale is per tensor.
        return names, {} if scalar else {"axis": axis}

    def body(self) -> onnx.GraphProto:
        """Return the graph so far as a subgraph, unchecked: it may use tensors of the graph around it."""
        initializers = list(self._initializers.values())
        return helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, initializers)

    def model(self) -> onnx.ModelProto:
        """Return the finished model after `onnx.checker` with full shape inference.

        Nodes of custom domains are not inferred.
        """
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._domains.items()]
        model = helper.make_model(self.body(), opset_imports=opsets, ir_version=self._ir(), producer_name="")
        onnx.checker.check_model(model, full_check=True)
        return model

    def _ir(self) -> int:
        values = [*self._inputs, *self._outputs]
        types = {value.type.tensor_type.elem_type for value in values}
        types |= {tensor.data_type for tensor in self._initializers.values()}
        of_opset = helper.find_min_ir_version_for([helper.make_opsetid("", self._opset)])
        return max(OLDEST_IR, of_opset, *(FIRST_IR.get(dtype, OLDEST_IR) for dtype in types))

    def _values(
        self, name: str, shape: Sequence[int], centre: float = 0.0, spread: float | None = None
    ) -> list[float]:
        """Return the values of a weight, and remember them for its scale."""
        count = math.prod(shape)
        if spread is None:
            spread = math.sqrt(3.0 / max(1, count // shape[0]))
        generator = random.Random(f"{name}{tuple(shape)}")  # noqa: S311  (data, not secrets)
        draw = generator.random
        values = as_float32([centre + spread * (2.0 * draw() - 1.0) for _ in range(count)])
        self._weights[name] = (tuple(shape), values)
        return values


def _groups(shape: Sequence[int], axis: int) -> list[int]:
    """Return for each element which index of an axis it has."""
    inner = math.prod(shape[axis + 1 :])
    return [index // inner % shape[axis] for index in range(math.prod(shape))]


def _blocks(shape: Sequence[int], axis: int, block: int) -> list[int]:
    """Return for each element which scale it has, of those of a tensor that is a `block`-th as long along an axis."""
    inner = math.prod(shape[axis + 1 :])
    if shape[axis] % block:
        raise ValueError(f"an axis of {shape[axis]} elements has no blocks of {block}")
    rows = shape[axis] // block
    return [
        (index // inner // shape[axis] * rows + index // inner % shape[axis] // block) * inner + index % inner
        for index in range(math.prod(shape))
    ]


def _most(values: Sequence[float], groups: Sequence[int]) -> list[float]:
    """Return the largest magnitude of each group, in the order of the groups' numbers."""
    found = [0.0] * (max(groups) + 1)
    for value, group in zip(values, groups, strict=True):
        found[group] = max(found[group], abs(value))
    return found


def pack(values: Sequence[float], dtype: int) -> bytes:
    """Return elements as `TensorProto.raw_data` has them; elements of 4 bits are two in a byte, the first one low.

    Floats are rounded to the nearest that the type holds; a type without a packing raises KeyError.
    """
    if dtype == TensorProto.BFLOAT16:
        return struct.pack(f"<{len(values)}H", *map(_bfloat16, values))
    if dtype == TensorProto.FLOAT8E4M3FN:
        return bytes(_nearest(value, 3, 4, 7) for value in values)
    if dtype in {TensorProto.INT4, TensorProto.UINT4}:
        return _halves([int(value) & 15 for value in values])
    if dtype == TensorProto.FLOAT4E2M1:
        return _halves([_nearest(value, 1, 2, 1) for value in values])
    numbers = values if dtype in _FLOATS else [int(value) for value in values]
    return struct.pack(f"<{len(values)}{_FORMATS[dtype]}", *numbers)


def as_float32(values: Iterable[float]) -> list[float]:
    """Return each value as the nearest FP32 number."""
    return array("f", values).tolist()


def _halves(codes: list[int]) -> bytes:
    codes = [*codes, 0] if len(codes) % 2 else codes
    return bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))


def _bfloat16(value: float) -> int:
    """Return the upper half of an FP32 number's bits, rounded to the nearest, and to even between two."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def _nearest(value: float, mantissa: int, exponent: int, bias: int) -> int:
    """Return the code of the nearest number, the even one between two, of a float with neither infinity nor zeros."""
    magnitudes = _magnitudes(mantissa, exponent, bias)
    size = abs(value)
    above = min(bisect_left(magnitudes, size), len(magnitudes) - 1)
    below = max(above - 1, 0)
    code = min(above, below, key=lambda each: (abs(magnitudes[each] - size), each % 2))
    return code | (1 << mantissa + exponent if value < 0 else 0)


@cache
def _magnitudes(mantissa: int, exponent: int, bias: int) -> tuple[float, ...]:
    """Return the numbers of a small float without its sign, by their codes; FP8 E4M3FN's last code is no number."""
    steps = 1 << mantissa
    count = steps << exponent
    whole = range(count - 1 if mantissa == 3 else count)  # noqa: PLR2004  (E4M3FN)
    return tuple(
        (code % steps / steps) * 2.0 ** (1 - bias)
        if code < steps
        else (1 + code % steps / steps) * 2.0 ** (code // steps - bias)
        for code in whole
    )

"""Builds small ONNX graphs, the same bytes on every machine, with the Q/DQ spelling that quantisers export."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

#: The newest ONNX IR that the parser of the oldest target (TensorRT 8.5) reads: most models need no newer one.
OLDEST_IR = 8
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
_SMALL = frozenset({TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT4E2M1})


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
        self._weights: dict[str, npt.NDArray[np.float32]] = {}

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
        self,
        name: str,
        values: Sequence[float] | npt.NDArray[Any],
        shape: Sequence[int],
        dtype: int = TensorProto.FLOAT,
    ) -> str:
        """Add an initialiser with given values; a name that is there already keeps its first values."""
        if name not in self._initializers:
            array = elements(values, dtype).reshape(shape)
            self._initializers[name] = numpy_helper.from_array(array, name)
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
        return self.constant(name, self._drawn(name, shape, centre, spread).ravel(), shape, dtype)

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
        dilation: int = 1,
        group: int = 1,
        output: str | None = None,
        dimensions: int = 2,
    ) -> str:
        """Add a ConvTranspose of stride 2, its weight with input channels first; by default it doubles an image."""
        return self.node(
            "ConvTranspose",
            [tensor, weight],
            name=name,
            output=output,
            dilations=[dilation] * dimensions,
            group=group,
            kernel_shape=[kernel] * dimensions,
            pads=[1] * 2 * dimensions,
            strides=[2] * dimensions,
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
        op: str = "QuantizeLinear",
    ) -> str:
        """Add a QuantizeLinear; a sequence of scales is one a channel of `axis`."""
        prefix = tensor if prefix is None else prefix
        values = [scale] if isinstance(scale, (int, float)) else list(scale)
        shape = [] if isinstance(scale, (int, float)) else [len(values)]
        # Opset 13 brought the axis; without it the scale is per tensor.
        attributes: dict[str, Any] = {"axis": axis} if shape else {}
        scales = [
            self.constant(f"{prefix}_scale", values, shape, to.scale_type),
            self.constant(f"{prefix}_zero_point", [to.zero_point] * len(values), shape, to.dtype),
        ]
        return self.node(op, [tensor, *scales], name=name, output=output, **attributes)

    def dequantize(self, tensor: str, **same: Any) -> str:  # noqa: ANN401  (the arguments of `quantize`)
        """Add the DequantizeLinear that undoes a `quantize` with the same scale."""
        return self.quantize(tensor, op="DequantizeLinear", **same)

    def qdq(
        self,
        tensor: str,
        *,
        name: str,
        scale: float | Sequence[float] = 0.05,
        axis: int = 1,
        to: Quantiser = INT8,
    ) -> str:
        """Add a Q/DQ pair `<name>/QuantizeLinear`, `<name>/DequantizeLinear`."""
        same: dict[str, Any] = {"scale": scale, "axis": axis, "prefix": name, "to": to}
        quantized = self.quantize(tensor, name=f"{name}/QuantizeLinear", **same)
        return self.dequantize(quantized, name=f"{name}/DequantizeLinear", **same)

    def weight_qdq(
        self, tensor: str, *, name: str, per_channel: bool = True, axis: int = 0, to: Quantiser = INT8
    ) -> str:
        """Add a Q/DQ pair on a weight, its scale taken from the weight's own values.

        The scale is max abs over the type's largest value: of each index of `axis`, or of the whole weight.
        """
        scale = self.weight_scale(tensor, per_channel=per_channel, axis=axis, to=to)
        return self.qdq(tensor, name=name, scale=scale, axis=axis, to=to)

    def weight_scale(
        self, tensor: str, *, per_channel: bool = True, axis: int = 0, to: Quantiser = INT8
    ) -> float | list[float]:
        """Return the symmetric scale of a weight, or one scale for each index of an axis."""
        values = np.abs(self._weights[tensor]).astype(np.float64)
        others = tuple(at for at in range(values.ndim) if per_channel and at != axis % values.ndim)
        scales = (values.max(axis=others or None) / LARGEST[to.dtype]).astype(np.float32)
        found: float | list[float] = scales.tolist()
        return found

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
        if block and shape[axis] % block:
            raise ValueError(f"an axis of {shape[axis]} elements has no blocks of {block}")
        values = self._drawn(tensor, shape).astype(np.float64)
        rows = (shape[axis] // block, block) if block else (shape[axis], 1)
        groups = np.abs(values).reshape(*shape[:axis], *rows, *shape[axis + 1 :])
        others = axis + 1 if block else tuple(at for at in range(groups.ndim) if at != axis)
        most = groups.max(axis=others, keepdims=True)
        scales = (most / LARGEST[to.dtype]).astype(np.float32)
        fitting = (values.reshape(groups.shape) / scales).ravel()
        self.constant(tensor, np.rint(fitting) if to.dtype in _WHOLE else fitting, shape, to.dtype)
        if not block:
            each = scales.ravel().tolist()
            return self.dequantize(tensor, name=name, scale=each, axis=axis, output=output, to=to)
        of = (*shape[:axis], rows[0], *shape[axis + 1 :])
        scale = self.constant(f"{tensor}_scale", scales.ravel(), of, to.scale_type)
        return self.node(
            "DequantizeLinear", [tensor, scale], name=name, output=output, axis=axis, block_size=block
        )

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

    def _drawn(
        self, name: str, shape: Sequence[int], centre: float = 0.0, spread: float | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the values of a weight, and remember them for its scale."""
        count = math.prod(shape)
        if spread is None:
            spread = math.sqrt(3.0 / max(1, count // shape[0]))
        _, (*state, position), _ = random.Random(f"{name}{tuple(shape)}").getstate()  # noqa: S311  (data, not secrets)
        # The draws of the standard library's generator, in a hundredth of its time.
        generator = np.random.RandomState()
        generator.set_state(("MT19937", np.array(state, np.uint32), position, 0, 0.0))
        drawn = centre + spread * (2.0 * generator.random_sample(count) - 1.0)
        self._weights[name] = drawn.astype(np.float32).reshape(shape)
        return self._weights[name]


def elements(values: Sequence[float] | npt.NDArray[Any], dtype: int) -> npt.NDArray[Any]:
    """Return elements of one of ONNX's types: floats rounded to the nearest, whole numbers cut off.

    A number too large for a float of 8 or 4 bits becomes its largest, as a quantiser has it; a wider float raises.
    """
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if kind.kind == "b" or "int" in kind.name:
        return np.array([int(value) for value in values], kind)
    if dtype in _SMALL:
        values = np.clip(values, -LARGEST[dtype], LARGEST[dtype])
    with np.errstate(over="raise"):
        return np.array(values).astype(kind)

"""Q/DQ as quantisers export it: to any type, with one scale, one a channel or one a block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx import TensorProto

from harness.case.graph.base import Base
from harness.case.graph.elements import LARGEST, as_float32

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHOLE = frozenset({TensorProto.INT8, TensorProto.UINT8, TensorProto.INT4})


@dataclass(frozen=True)
class Quantiser:
    """What a Q/DQ pair quantises to (`dtype`), the type of its scales, and its zero point."""

    dtype: int = TensorProto.INT8
    scale_type: int = TensorProto.FLOAT
    zero_point: int = 0


INT8 = Quantiser()


class Quantised(Base):
    """A graph with Q/DQ pairs; a scale that is a sequence is a vector, one of one element too."""

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

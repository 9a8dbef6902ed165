"""Operators that ONNX's reference evaluator (onnx 1.20 to 1.23) lacks or has wrong, as their opset has them.

The evaluator finds each by its name. Which they are was found by 593 pairs of operator and opset, against ONNX Runtime
1.31.1 without its optimisations.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops import (
    op_conv_transpose,
    op_grid_sample,
    op_layer_normalization,
    op_loop,
    op_resize,
    op_rms_normalization,
    op_roi_align,
)

from harness.run.numbers.wire import Array

_FRACTION = 1e-6


class Doubtful(Exception):
    """The specification leaves the result of an operator open here, and runtimes differ knowingly."""


class DequantizeLinear(OpRun):
    """DequantizeLinear of opsets 10 to 18, which the reference evaluator lacks; it finds it by this name."""

    def _run(
        self,
        x: Array,
        scale: Array,
        zero_point: Array | None = None,
        axis: int = 1,
        **_newer: Any,  # noqa: ANN401  (attributes of newer opsets, which the evaluator fills in)
    ) -> tuple[Array]:
        shape = [1] * x.ndim
        # ONNX Runtime's quantiser writes one scale as an array of one element, with axis 1 even for a bias.
        if scale.size > 1:
            shape[axis] = scale.size
        zero = np.float32(0) if zero_point is None else zero_point.astype(np.float32).reshape(shape)
        values = (x.astype(np.float32) - zero) * scale.reshape(shape)
        return (values.astype(scale.dtype).reshape(x.shape),)


class GatherElements(OpRun):
    """GatherElements of any number of choices; the evaluator's own chooses among 64 at most."""

    def _run(self, data: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        held = [
            slice(None) if at == axis % data.ndim else slice(each) for at, each in enumerate(indices.shape)
        ]
        return (np.take_along_axis(data[tuple(held)], indices, axis),)


class GridSample(op_grid_sample.GridSample):
    """GridSample of opsets 16 to 19, whose modes have names that the evaluator lacks."""

    def _run(self, x: Array, grid: Array, mode: str = "", **others: Any) -> tuple[Array]:  # type: ignore[override]  # noqa: ANN401
        newer = {"bilinear": "linear", "bicubic": "cubic"}
        sampled: tuple[Array] = super()._run(x, grid, mode=newer.get(mode, mode), **others)  # type: ignore[no-untyped-call]
        return sampled


class LayerNormalization(op_layer_normalization.LayerNormalization):
    """LayerNormalization in FP32, as its stash_type says; the evaluator's own overflows once squares leave FP16."""

    def _run(self, x: Array, *rest: Any, **others: Any) -> tuple[Array, ...]:  # type: ignore[override]  # noqa: ANN401
        result, *more = super()._run(x.astype(np.float32), *rest, **others)  # type: ignore[no-untyped-call]
        return (result.astype(x.dtype), *more)


class RMSNormalization(op_rms_normalization.RMSNormalization):
    """RMSNormalization in FP32, for the same reason."""

    def _run(self, x: Array, *rest: Any, **others: Any) -> tuple[Array]:  # type: ignore[override]  # noqa: ANN401
        (result,) = super()._run(x.astype(np.float32), *rest, **others)  # type: ignore[no-untyped-call]
        return (result.astype(x.dtype),)


class BatchNormalization(OpRun):
    """BatchNormalization of inference before opset 14; the evaluator's own takes the mean of the batch."""

    def _run(  # noqa: PLR0913, PLR0917
        self,
        x: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        epsilon: float = 1e-5,
        **_training: object,
    ) -> tuple[Array]:
        if len(self.onnx_node.output) > 1:
            raise Doubtful("BatchNormalization gives a mean and a variance, as in training alone")
        shape = (1, -1, *([1] * (x.ndim - 2)))
        factor = scale / np.sqrt(variance + np.asarray(epsilon, variance.dtype))
        return (((x - mean.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)).astype(x.dtype),)


class _Flattening(OpRun):
    """Softmax and its kin before opset 13: over all axes from `axis` on, by default from the second."""

    def _run(self, x: Array, **_axis: object) -> tuple[Array]:
        axis = next((int(item.i) for item in self.onnx_node.attribute if item.name == "axis"), 1)
        rows = x.reshape(math.prod(x.shape[: axis % x.ndim if axis < x.ndim else axis]), -1)
        return (self._of_rows(rows).astype(x.dtype).reshape(x.shape) if x.size else x,)

    @abstractmethod
    def _of_rows(self, rows: Array) -> Array:
        """Return the operator's result for each row of a matrix."""


class Softmax(_Flattening):
    """Softmax before opset 13."""

    def _of_rows(self, rows: Array) -> Array:
        powers = np.exp(rows - rows.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))


class LogSoftmax(_Flattening):
    """LogSoftmax before opset 13."""

    def _of_rows(self, rows: Array) -> Array:
        less = rows - rows.max(1, keepdims=True)
        return np.asarray(less - np.log(np.exp(less).sum(1, keepdims=True)))


class Hardmax(_Flattening):
    """Hardmax before opset 13."""

    def _of_rows(self, rows: Array) -> Array:
        return np.asarray(np.arange(rows.shape[1]) == rows.argmax(1)[:, None])


class RoiAlign(op_roi_align.RoiAlign):
    """RoiAlign before opset 16, which does not shift by half a pixel."""

    def _run(self, *inputs: Array, **others: Any) -> tuple[Array]:  # noqa: ANN401
        others["coordinate_transformation_mode"] = "output_half_pixel"
        found: tuple[Array] = super()._run(*inputs, **others)  # type: ignore[no-untyped-call]
        return found


class GlobalMaxPool(OpRun):
    """GlobalMaxPool of any rank; the evaluator's own takes two axes whatever there are."""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.asarray(x.max(tuple(range(2, x.ndim)), keepdims=True)),)


class GlobalLpPool(OpRun):
    """GlobalLpPool, which the evaluator lacks."""

    def _run(self, x: Array, p: int = 2) -> tuple[Array]:
        powers = np.abs(x) ** p
        return (np.asarray(powers.sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)).astype(x.dtype),)


class LRN(OpRun):
    """LRN over all channels; the evaluator's own takes as many channels as the batch has items."""

    def _run(
        self, x: Array, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int = 1
    ) -> tuple[Array]:
        before, after = (size - 1) // 2, size // 2
        squares = np.pad(np.square(x), [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
        window = sum(squares[:, at : at + x.shape[1]] for at in range(size))
        return ((x / (bias + alpha / size * window) ** beta).astype(x.dtype),)


class Loop(op_loop.Loop):
    """Loop whose condition may be left out, and is then true; the evaluator's own does not run it at all."""

    def _run(self, M: Array | None, cond: Array | None, *args: Any, **others: Any) -> Any:  # noqa: ANN401, N803
        return super()._run(M, np.array(True) if cond is None else cond, *args, **others)  # type: ignore[no-untyped-call]


class ConvTranspose(op_conv_transpose.ConvTranspose):
    """ConvTranspose with `output_shape`, from which the pads follow; the evaluator's own takes them for zero."""

    def _run(self, x: Array, *rest: Any, **others: Any) -> tuple[Array]:  # type: ignore[override]  # noqa: ANN401
        if others.get("output_shape") and others.get("auto_pad") in (None, "NOTSET"):
            # The odd one stands at the start unless auto_pad is SAME_UPPER; the evaluator splits pads for a name alone.
            others |= {"auto_pad": "SAME_LOWER", "pads": None}
        found: tuple[Array] = super()._run(x, *rest, **others)  # type: ignore[no-untyped-call]
        return found


class Resize(op_resize.Resize):
    """Resize, but for corners aligned at a scale without a whole size: before or after rounding is left open."""

    def _run(self, x: Array, *rest: Any, **others: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        scales = rest[1] if len(rest) > 1 else None
        if others.get("coordinate_transformation_mode") == "align_corners" and scales is not None:
            axes = others.get("axes") or range(x.ndim)
            sizes = [x.shape[axis] * float(scale) for axis, scale in zip(axes, scales, strict=False)]
            if any(abs(size - round(size)) > _FRACTION for size in sizes):
                raise Doubtful("Resize aligns corners at a size that its scale does not give whole")
        return super()._run(x, *rest, **others)


#: The replacements for operators of the evaluator, and the opset from which its own is right.
REPLACED: dict[type[OpRun], float] = {
    BatchNormalization: 14,
    ConvTranspose: math.inf,
    DequantizeLinear: 19,
    GatherElements: math.inf,
    GlobalLpPool: math.inf,
    GlobalMaxPool: math.inf,
    GridSample: 20,
    Hardmax: 13,
    LayerNormalization: math.inf,
    LRN: math.inf,
    LogSoftmax: 13,
    Loop: math.inf,
    RMSNormalization: math.inf,
    Resize: math.inf,
    RoiAlign: 16,
    Softmax: 13,
}

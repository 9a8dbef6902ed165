"""What a model's outputs should be: the ONNX reference evaluator's, where it can do the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_grid_sample

from harness.run.numbers.wire import Array, is_carried

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Domains whose operators the reference evaluator knows.
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})


@dataclass(frozen=True)
class Reference:
    """The reference outputs by name, or None and the reason why there are none."""

    outputs: Mapping[str, Array] | None
    reason: str = ""


def reference(model: onnx.ModelProto, inputs: Mapping[str, Array], *, also: Sequence[str] = ()) -> Reference:
    """Return the ONNX reference evaluator's outputs, and the tensors named in `also`.

    `also` is for tensors that a recipe marks as outputs. Q/DQ is evaluated as written, so that an engine that
    quantises where the graph says is held to the quantised numbers. Operators of other domains, and what the
    evaluator cannot do, give a reason instead of outputs.
    """
    foreign = sorted(
        {f"{node.domain}::{node.op_type}" for node in model.graph.node if node.domain not in _KNOWN_DOMAINS}
    )
    if foreign:
        return Reference(None, f"the reference evaluator does not know {', '.join(foreign)}")
    names = [value.name for value in model.graph.output]
    names += [name for name in also if name not in names]
    try:
        with np.errstate(all="ignore"):
            opset = _opset(model)
            operators = [operator for operator, right in _REPLACED.items() if opset < right]
            values = ReferenceEvaluator(model, new_ops=operators).run(names, dict(inputs))
    except Exception as error:  # noqa: BLE001  (another project's operators raise anything)
        first = (str(error).splitlines() or [""])[0]
        return Reference(None, f"the reference evaluator failed: {type(error).__name__}: {first}")
    outputs = {
        name: np.asarray(value) for name, value in zip(names, values, strict=True) if is_carried(value)
    }
    return Reference(outputs) if outputs else Reference(None, "no output of the graph is a tensor of numbers")


class DequantizeLinear(OpRun):
    """DequantizeLinear of opsets 10 to 18, which the reference evaluator lacks; it finds it by this name."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        scale: Array,
        zero_point: Array | None = None,
        axis: int = 1,
        **_newer: Any,  # noqa: ANN401  (attributes of newer opsets, which the evaluator fills in)
    ) -> tuple[Array]:
        shape = [1] * x.ndim
        if scale.ndim:
            shape[axis] = scale.size
        zero = np.float32(0) if zero_point is None else zero_point.astype(np.float32).reshape(shape)
        values = (x.astype(np.float32) - zero) * scale.reshape(shape)
        return (values.astype(scale.dtype).reshape(x.shape),)


class GridSample(op_grid_sample.GridSample):
    """GridSample of opsets 16 to 19, whose modes have names that the evaluator lacks."""

    op_domain = ""

    def _run(self, x: Array, grid: Array, mode: str = "", **others: Any) -> tuple[Array]:  # type: ignore[override]  # noqa: ANN401
        newer = {"bilinear": "linear", "bicubic": "cubic"}
        sampled: tuple[Array] = super()._run(x, grid, mode=newer.get(mode, mode), **others)  # type: ignore[no-untyped-call]
        return sampled


class LayerNormalization(OpRun):
    """LayerNormalization in FP32, as its stash_type says; the evaluator's own overflows where squares leave FP16."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        scale: Array,
        bias: Array | None = None,
        axis: int = -1,
        epsilon: float = 1e-5,
        **_stash: object,
    ) -> tuple[Array, Array, Array]:
        over = tuple(range(axis % x.ndim, x.ndim))
        mean = x.mean(over, np.float32, keepdims=True)
        centred = x.astype(np.float32) - mean
        inverse = np.reciprocal(np.sqrt(np.square(centred).mean(over, keepdims=True) + epsilon))
        result = centred * inverse * scale
        return (result if bias is None else result + bias).astype(x.dtype), mean, inverse


class RMSNormalization(OpRun):
    """RMSNormalization in FP32, for the same reason."""

    op_domain = ""

    def _run(
        self, x: Array, scale: Array, axis: int = -1, epsilon: float = 1e-5, **_stash: object
    ) -> tuple[Array]:
        over, wide = tuple(range(axis % x.ndim, x.ndim)), x.astype(np.float32)
        result = wide / np.sqrt(np.square(wide).mean(over, keepdims=True) + epsilon) * scale
        return (result.astype(x.dtype),)


#: What replaces operators of the reference evaluator (onnx 1.16 to 1.23), and the opset from which its own is right.
_REPLACED: dict[type[OpRun], float] = {
    DequantizeLinear: 19,
    GridSample: 20,
    LayerNormalization: math.inf,
    RMSNormalization: math.inf,
}


def _opset(model: onnx.ModelProto) -> int:
    return next((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)

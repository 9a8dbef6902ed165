"""Rewrites models: pure functions that give another model, or None if there is no change.

rewrites.tsv lists them with their effects, their costs, and the cases that prove them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from harness.models.rewrites.exact import finite_clip, name_axes, scatter_product
from harness.models.rewrites.floats import (
    float_weights,
    half,
    half_deconvolution,
    half_products,
    unquantised,
)
from harness.models.rewrites.folded import fold
from harness.models.rewrites.integers import dequantise_weights, undo_dynamic
from harness.models.rewrites.quantised import (
    behind_activation,
    concat_after,
    float_bias,
    float_scalars,
    mark_output,
    scalar_scale,
    zero_points,
    zeros_in_kernel,
)

__all__ = ["REWRITES", "Rewrite", "half", "unquantised"]


@dataclass(frozen=True)
class Rewrite:
    """A way round a failure: its effect and its cost in words, and the variants of cases that prove it, if any.

    `apply` takes the model and the nodes that are blamed: those that are refused, or that lost their precision. One
    that `gives_up` INT8 helps only a model that is not built with it. One that `fixes` shapes takes the model at those
    of this run.
    """

    name: str
    title: str
    cost: str
    proof: tuple[str, ...]
    apply: Callable[[onnx.ModelProto, Collection[str]], onnx.ModelProto | None]
    gives_up: bool = False
    fixes: bool = False


_APPLY: dict[str, Callable[[onnx.ModelProto, Collection[str]], onnx.ModelProto | None]] = {
    "scalar-scale": scalar_scale,
    "float-bias": float_bias,
    "zero-points": zero_points,
    "float-scalars": float_scalars,
    "dequantise-weights": dequantise_weights,
    "name-axes": name_axes,
    "finite-clip": finite_clip,
    "scatter-product": scatter_product,
    "fold": fold,
    "undo-dynamic": undo_dynamic,
    "concat-after": concat_after,
    "behind-activation": behind_activation,
    "mark-output": mark_output,
    "zeros-in-kernel": zeros_in_kernel,
    "half-deconvolution": half_deconvolution,
    "float-weights": float_weights,
    "half-products": half_products,
    "half": lambda model, _: half(model),
}


def _read() -> Iterator[Rewrite]:
    lines = Path(__file__).with_name("rewrites.tsv").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.startswith("#"):
            name, kind, proof, title, cost = line.split("\t")
            gives_up, fixes = kind == "gives_up", kind == "fixes"
            yield Rewrite(name, title, cost, tuple(proof.split()), _APPLY[name], gives_up, fixes)


REWRITES = tuple(_read())

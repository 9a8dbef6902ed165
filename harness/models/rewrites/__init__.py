"""Rewrites models: pure functions that give another model, or None if there is no change.

The list is of the rewrites that this project's cases prove, with their costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

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


#: Rewrites without a cost come first, those of the whole model last.
REWRITES = (
    Rewrite(
        "scalar-scale",
        "scales of whole tensors as scalars in place of vectors of one element",
        "nothing: the same numbers",
        ("qdq_scale.int8-conv-scalar", "qdq_scale.fp8-conv-scalar"),
        scalar_scale,
    ),
    Rewrite(
        "float-bias",
        "biases in INT32 behind DequantizeLinear as floats",
        "nothing: the same numbers",
        ("ort_output.ort-symmetric",),
        float_bias,
    ),
    Rewrite(
        "zero-points",
        "zero points of 0 and INT8 in place of any, and of UINT8; a Relu where the zero point stood for one",
        "accuracy: what did not lie around zero is rounded up to twice as coarsely",
        ("ort_output.ort-symmetric",),
        zero_points,
    ),
    Rewrite(
        "float-scalars",
        "no Q/DQ on constants of one element",
        "nothing that runs in INT8; such a constant is no longer rounded",
        (),
        float_scalars,
    ),
    Rewrite(
        "dequantise-weights",
        "INT8 weights through DequantizeLinear in place of Cast and Mul",
        "nothing: the same numbers",
        (),
        dequantise_weights,
    ),
    Rewrite(
        "name-axes",
        "the axes of a Squeeze by their names",
        "axes of unknown size, which stay even where the size is 1",
        (),
        name_axes,
    ),
    Rewrite(
        "finite-clip",
        "no bound in place of an infinite one",
        "nothing: the same numbers",
        (),
        finite_clip,
    ),
    Rewrite(
        "scatter-product",
        "sums by OneHot of the indices and MatMul in place of ScatterElements",
        "time and memory: a matrix of each index and each place; dynamic axes: the model has these shapes alone",
        (),
        scatter_product,
        fixes=True,
    ),
    Rewrite(
        "fold",
        "shapes as they are here, the Ifs that these decide, and constants computed",
        "dynamic axes: the model has these shapes alone; weights that were widened as it ran are larger",
        (),
        fold,
        fixes=True,
    ),
    Rewrite(
        "undo-dynamic",
        "floats in place of integer operators and of what is quantised as it runs",
        "INT8: weights are four times as large, and data is no longer rounded",
        (),
        undo_dynamic,
        gives_up=True,
    ),
    Rewrite(
        "concat-after",
        "Q/DQ behind a Concat of unlike scales in place of its inputs",
        "accuracy: what was joined has the largest of the scales",
        ("qdq_placement.concat-after",),
        concat_after,
    ),
    Rewrite(
        "behind-activation",
        "Q/DQ behind the activation in place of between it and the node before",
        "accuracy: the scale is that of what went into the activation",
        ("depthwise_qdq.qdq-relu-after",),
        behind_activation,
    ),
    Rewrite(
        "mark-output",
        "what a convolution gives as an output of the network too",
        "time and memory: it is not fused with what follows, and is copied out",
        ("conv_silu.int8-mark-conv", "conv_silu.qdq-mark-conv"),
        mark_output,
    ),
    Rewrite(
        "zeros-in-kernel",
        "deconvolutions of stride and dilation with zeros in their kernels",
        "time: the kernel is larger; the numbers are the same",
        ("qdq_shapes.up-dilated-zeros",),
        zeros_in_kernel,
    ),
    Rewrite(
        "half-deconvolution",
        "deconvolutions without Q/DQ, in FP16 between Casts",
        "INT8 of the deconvolutions, and a Cast on each side",
        ("qdq_shapes.up-fp16",),
        half_deconvolution,
    ),
    Rewrite(
        "float-weights",
        "no Q/DQ on the weights of the refused convolutions",
        "INT8 of these convolutions, whose weights are four times as large",
        ("depthwise_qdq.act-qdq",),
        float_weights,
        gives_up=True,
    ),
    Rewrite(
        "half-products",
        "all nodes of the refused operator in FP16, between Casts",
        "accuracy of FP16 in these nodes, and Casts where FP32 meets FP16",
        ("turing.gemm-fp16", "turing.conv3d-fp16"),
        half_products,
    ),
    Rewrite(
        "half",
        "the whole model in FP16, its inputs and outputs as they are",
        "accuracy and range of FP16 everywhere",
        ("turing.gemm-fp16", "turing.vit-fp16", "low_precision_gemm.int8-half"),
        lambda model, _: half(model),
    ),
)

"""The precision that one layer computes in, from its own edges.

The rules, in order:

1. A region whose inside is hidden (LayerType Myelin, named `{ForeignNode[..]}`) is UNKNOWN: its edges do not show it.
2. A layer that multiplies (convolution, correlation, gemm, matmul; by type or tactic) computes in the type of its data
   *and* weights. Data is the first input. Weights are the declared `Weights`, else the largest narrow constant, else
   the first constant that is shaped like a weight, else the second input (TensorRT-RTX dequantises weights in a kernel
   of their own for SM75), else any constant matrix. Scales, alpha, beta and bias are no weights. Without printed
   constants (TensorRT-RTX 1.4) data alone decides. A generated kernel that dequantises data and weights before it
   multiplies (`__myl_CastMulCastCastMulCastFc`) computes in a float that no edge shows: UNKNOWN. FP32 is TF32 where
   the kernel says so, and may be where it names no type (`untyped`).
3. Any other layer computes in the one float type at its edges: a kernel from FP32 to INT8 works in FP32 and
   quantises at the end. A generated kernel is named after its operations in order
   (`__myl_MulAddSiluMulMinMaxRounCast`): `RounCast` quantises and a later `CastMul` dequantises, any other
   Cast changes the float type. One such Cast, between two float types at the edges, decides by its place
   (last: the input's type, first: the output's); otherwise, and with a Cast to a float type that no edge
   shows, UNKNOWN. Without floats, the one type of the edges.

Layer types and kernel names as printed by TensorRT-RTX 1.4 .. 1.7: correlation, deconv, gemm, maxpool, kgen
(a generated kernel), runtime_fusion (`__myl_CorrSilu`: a generated kernel that holds a convolution),
runtime_function, shape_call. TensorRT 8.5 .. 10: CaskConvolution, CaskGemmConvolution,
CudaDepthwiseConvolution, CublasConvolution, FusedConvActConvolution, CaskDeconvolutionV2, MatrixMultiply,
FullyConnected, PointWiseV2, Reformat, Myelin, fusion.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from harness.layers import names
from harness.layers.datatype import FLOATS, NARROW, WEIGHTS, multiplied_in
from harness.record.outcome import Layer, TensorUse
from harness.words import Precision

#: The name under which the inspector's `Weights` entry becomes a TensorUse.
DECLARED_WEIGHTS = "Weights"

_MULTIPLIES = re.compile(
    r"conv(?!ert)|correlation|gemm|mat_?mul|matrix_?multiply|fully_?connected|winograd", re.IGNORECASE
)
_TACTIC = re.compile(r"gemm|fprop|dgrad|conv2d|convolution|winograd|_imma_|_hmma_", re.IGNORECASE)
#: In the names of kernels of FP32: `..f32f32_f32f32_f32_nchwkcrs..`, `..conv_act_fp32_NCHW..`, `volta_sgemm_..`.
_FP32_NAMED = re.compile(r"f32|fp32|sgemm|scudnn", re.IGNORECASE)
_KERNEL_NAME = re.compile(r"__myl_(?P<ops>[A-Za-z0-9]+?)_(?:0x[0-9a-f]+|myl\d+_\d+)")
#: Operations in a kernel's name that multiply, cut to four letters; "Corr" was seen here, "Fc" in published logs.
_KERNEL_MULTIPLIES = re.compile(r"(?:Corr|Conv|Deco|Gemm|Matm|Fc)(?=[A-Z]|$)")
_INDEX_TYPES = frozenset({Precision.INT32, Precision.INT64, Precision.BOOL})
_STORED = frozenset(WEIGHTS.values())
_MATRIX = 2


def is_compute(layer: Layer) -> bool:
    """Tell whether the layer is one that multiplies data by weights (or data by data)."""
    if _MULTIPLIES.search(layer.type) or _TACTIC.search(layer.tactic):
        return True
    return bool(_KERNEL_MULTIPLIES.search(_operations(layer)))


def is_region(layer: Layer) -> bool:
    """Tell whether the layer is a compiled region whose inner types are not printed."""
    return layer.type == "Myelin" or (not layer.type and names.is_region(layer.name))


def layer_precision(layer: Layer) -> Precision:
    """Return the precision that the layer computes in, by this module's rules; its own `precision` is not read."""
    if is_region(layer):
        return Precision.UNKNOWN
    if is_compute(layer):
        return _of_compute(layer)
    return _of_pointwise(layer)


def untyped(layer: Layer) -> bool:
    """Tell whether a layer that multiplies FP32 has no kernel whose name tells it from TF32."""
    return is_compute(layer) and layer.precision == Precision.FP32 and not _FP32_NAMED.search(layer.tactic)


def _of_compute(layer: Layer) -> Precision:
    if not layer.inputs:
        return Precision.UNKNOWN
    weights = _weights(layer)
    data = Precision(layer.inputs[0].precision)
    found = multiplied_in(data, Precision(weights.precision) if weights else Precision.UNKNOWN)
    if found in _STORED and (weights not in layer.weights or "DynamicQuantize" in layer.type):
        # A narrow tensor that is no constant is data; ONNX Runtime's layers of this name quantise theirs inside.
        return Precision(weights.precision) if weights and weights in layer.weights else data
    if found in NARROW and found not in _STORED and _dequantises_first(_operations(layer)):
        return Precision.UNKNOWN
    if found is Precision.FP32 and "tf32" in layer.tactic.lower():
        return Precision.TF32
    return found


def _dequantises_first(operations: str) -> bool:
    """Tell whether a generated kernel dequantises its operands, and quantises them no more, before it multiplies."""
    multiplies = _KERNEL_MULTIPLIES.search(operations)
    return multiplies is not None and "CastMul" in operations[: multiplies.start()].rpartition("RounCast")[2]


def _weights(layer: Layer) -> TensorUse | None:
    for tensor in layer.weights:
        if tensor.name == DECLARED_WEIGHTS:
            return tensor
    matrices = [tensor for tensor in layer.weights if len(tensor.dimensions) >= _MATRIX]
    # A bias or a scale is shaped [1, C] or [1, C, 1, 1].
    shaped = [tensor for tensor in matrices if {tensor.dimensions[0], *tensor.dimensions[2:]} != {1}]
    edges = {tensor.dimensions for tensor in layer.outputs if tensor.dimensions}
    # A second input shaped like the output is a residual to add, unless two matrices are multiplied.
    others = [
        tensor
        for tensor in layer.inputs[1:]
        if tensor.dimensions not in edges or "mat" in layer.type.lower() or "gemm" in layer.type.lower()
    ]
    for group in (_narrow(shaped), shaped, others, matrices):
        if group:
            return group[0]
    return None


def _narrow(constants: Sequence[TensorUse]) -> list[TensorUse]:
    """Return the narrow constants, the largest first: one that is a scale for each column is a float, or smaller."""
    narrow = [tensor for tensor in constants if Precision(tensor.precision) in NARROW]
    return sorted(narrow, key=lambda tensor: -math.prod(tensor.dimensions, start=1.0))


def _of_pointwise(layer: Layer) -> Precision:
    inputs, outputs = _types(layer.inputs), _types(layer.outputs)
    floats = (inputs | outputs) & FLOATS
    casts = _float_casts(_operations(layer), narrow=bool(inputs & NARROW))
    if len(floats) == 1:
        # One Cast between equal types is an Identity; other casts are to a float type that the edges do not show.
        seen = not casts.count("Cast") or (
            casts.count("Cast") == 1 and floats <= inputs and floats <= outputs
        )
        return next(iter(floats)) if seen else Precision.UNKNOWN
    if floats:
        side = {"Cast.": outputs, ".Cast": inputs}.get(casts, frozenset()) & FLOATS
        return next(iter(side)) if len(side) == 1 else Precision.UNKNOWN
    types = inputs | outputs
    computed = types - _INDEX_TYPES or types
    return next(iter(computed)) if len(computed) == 1 else Precision.UNKNOWN


def _operations(layer: Layer) -> str:
    """Return the operations in a generated kernel's name; empty for any other layer."""
    named = _KERNEL_NAME.match(layer.tactic) or _KERNEL_NAME.match(layer.name)
    return named["ops"] if named else ""


def _float_casts(operations: str, *, narrow: bool) -> str:
    """Return a kernel's casts between float types: "Cast" each, "." for operations around and between."""
    if narrow:
        operations = operations.removeprefix("CastMul")
    before, quantise, after = operations.partition("RounCast")
    kept = before + (after.replace("RounCast", ".").replace("CastMul", ".") if quantise else "")
    return "Cast".join("." if part else "" for part in kept.split("Cast"))


def _types(tensors: Sequence[TensorUse]) -> frozenset[Precision]:
    return frozenset(Precision(tensor.precision) for tensor in tensors) - {Precision.UNKNOWN}

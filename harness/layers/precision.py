"""The precision that one layer computes in, from its own edges, and that each ONNX node ran in.

The rules for a layer, in order:

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

The layer that answers for a node:

- For a node that multiplies (Conv, ConvTranspose, Gemm, MatMul) it is the layer that multiplies, not the kernels that
  prepare its weights, quantise its input or add its bias, though metadata lists the node there too. A convolution
  folded into a layer of another kind has no layer that multiplies: UNKNOWN.
- For any other node it is the layers that do not multiply (its activation kernel), else the multiplication that
  absorbed it (BatchNormalization folded into a Conv). A kernel that feeds such a multiplication prepares its operands
  and does not answer: TensorRT-RTX for SM75 lists a fused Relu in the kernel that dequantises the weights.
- A node whose weights the graph only stores narrow, and which a float layer answers for, computes so with stored
  weights if a kernel of their own widens them (TensorRT-RTX does so for blocks of 128, and for SM75); if the layer
  lists no weights (TensorRT-RTX 1.4), UNKNOWN.
- Layers that disagree give UNKNOWN. A node that no layer names is absent: it was folded away entirely.
- QuantizeLinear, DequantizeLinear and Cast (between two types by nature) and Constant are left out.

TensorRT for RTX 1.4 to 1.7 names the fused attention kernel `_gemm_mha_v2_0x..` (measured). Whether it is taken depends
on the types, the head size, the other readers of the tensors in between, and the version.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from harness.layers import names
from harness.layers.datatype import FLOATS, NARROW, WEIGHTS, multiplied_in
from harness.layers.operators import MULTIPLYING
from harness.record.outcome import Layer, Node, TensorUse
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
_LEFT_OUT = frozenset({"QuantizeLinear", "DequantizeLinear", "Cast", "Constant"})
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
    weights, data = _weights(layer), Precision(layer.inputs[0].precision)
    stored = Precision(weights.precision) if weights else Precision.UNKNOWN
    found = multiplied_in(data, stored)
    if found in _STORED:
        if weights not in layer.weights:
            # A narrow tensor that is no constant is data.
            return data
        # ONNX Runtime's layers of this name quantise their data inside.
        return stored if "DynamicQuantize" in layer.type else found
    if found in NARROW and _dequantises_first(_operations(layer)):
        return Precision.UNKNOWN
    return Precision.TF32 if found is Precision.FP32 and "tf32" in layer.tactic.lower() else found


def _dequantises_first(operations: str) -> bool:
    """Tell whether a generated kernel dequantises its operands, and quantises them no more, before it multiplies."""
    multiplies = _KERNEL_MULTIPLIES.search(operations)
    return multiplies is not None and "CastMul" in operations[: multiplies.start()].rpartition("RounCast")[2]


def _weights(layer: Layer) -> TensorUse | None:
    declared = [tensor for tensor in layer.weights if tensor.name == DECLARED_WEIGHTS]
    matrices = [tensor for tensor in layer.weights if len(tensor.dimensions) >= _MATRIX]
    # A bias or a scale is shaped [1, C] or [1, C, 1, 1].
    shaped = [tensor for tensor in matrices if {tensor.dimensions[0], *tensor.dimensions[2:]} != {1}]
    groups = (declared, _narrow(shaped), shaped, _operands(layer), matrices)
    return next((group[0] for group in groups if group), None)


def _operands(layer: Layer) -> list[TensorUse]:
    """Return the further inputs without those shaped like the output: residuals, unless two matrices are multiplied."""
    edges = {tensor.dimensions for tensor in layer.outputs} - {()}
    if re.search("mat|gemm", layer.type.lower()):
        edges = set()
    return [tensor for tensor in layer.inputs[1:] if tensor.dimensions not in edges]


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


def node_precision(nodes: Sequence[Node], layers: Sequence[Layer]) -> dict[str, Precision]:
    """Return the precision of each node by name, in the nodes' order, without nodes that no layer names."""
    found: dict[str, Precision] = {}
    for node in nodes:
        naming = [layer for layer in layers if node.name in layer.onnx_nodes]
        if naming and node.op not in _LEFT_OUT:
            found[node.name] = _of_node(node, naming, layers)
    return found


def _of_node(node: Node, naming: Sequence[Layer], layers: Sequence[Layer]) -> Precision:
    """Return the precision of a node that some layers name."""
    answering = _answering(node, naming)
    precisions = {Precision(layer.precision) for layer in answering}
    agreed = precisions.pop() if len(precisions) == 1 else Precision.UNKNOWN
    if agreed not in FLOATS or node.precision not in _STORED:
        return agreed
    # Weights that are stored narrow may be widened before the node's own layer.
    if not all(layer.weights or layer.inputs[1:] for layer in answering):
        return Precision.UNKNOWN
    word = Precision(node.precision)
    return word if word in _widened(answering, layers) else agreed


def _answering(node: Node, naming: Sequence[Layer]) -> Sequence[Layer]:
    """Return the layers that answer for a node, of those that name it."""
    compute = [layer for layer in naming if is_compute(layer)]
    if node.op in MULTIPLYING:
        return compute
    fed = _names(tensor for layer in compute for tensor in layer.inputs)
    others = [layer for layer in naming if layer not in compute and fed.isdisjoint(_names(layer.outputs))]
    return others or compute


def _widened(answering: Sequence[Layer], layers: Sequence[Layer]) -> set[Precision | None]:
    """Return the kinds of stored weights that kernels of their own widen for some layers."""
    operands = _names(tensor for layer in answering for tensor in layer.inputs[1:])
    kernels = (layer for layer in layers if not (layer.inputs or operands.isdisjoint(_names(layer.outputs))))
    return {WEIGHTS.get(Precision(tensor.precision)) for layer in kernels for tensor in layer.weights}


def _names(tensors: Iterable[TensorUse]) -> frozenset[str]:
    return frozenset(tensor.name for tensor in tensors)


_KERNEL = re.compile(r"(?:^|_)f?mha(?:_|$)")
_WHOLE = frozenset({"Attention", "MultiHeadAttention"})
#: A product before the Softmax and one behind it.
_PRODUCTS = 2


def holds_attention(operators: Sequence[str]) -> bool:
    """Tell whether a graph of these operators holds attention: as one operator, or as MatMul, Softmax, MatMul."""
    products = sum(operator in MULTIPLYING for operator in operators)
    return not _WHOLE.isdisjoint(operators) or ("Softmax" in operators and products >= _PRODUCTS)


def attention_kernel(layers: Sequence[Layer]) -> str | None:
    """Return the name of the fused attention kernel, "" without one; None if no layer names its kernel."""
    kernels = [layer.tactic for layer in layers if layer.tactic]
    found = next((kernel for kernel in kernels if _KERNEL.search(kernel)), "")
    # A hash of the graph around it follows.
    return found.partition("_0x")[0] if kernels else None

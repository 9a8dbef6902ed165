"""Layers and nodes -> the precision each ONNX node ran in, and the fused attention kernel.

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

import re
from collections.abc import Sequence

from harness.layers.compute import is_compute
from harness.layers.datatype import FLOATS, WEIGHTS
from harness.layers.operators import MULTIPLYING
from harness.record.outcome import Layer, Node
from harness.words import Precision

_LEFT_OUT = frozenset({"QuantizeLinear", "DequantizeLinear", "Cast", "Constant"})
_STORED = frozenset(map(str, WEIGHTS.values()))


def node_precision(nodes: Sequence[Node], layers: Sequence[Layer]) -> dict[str, Precision]:
    """Return the precision of each node by name, in the nodes' order, without nodes that no layer names."""
    found: dict[str, Precision] = {}
    for node in nodes:
        if node.op in _LEFT_OUT:
            continue
        answering = _answering(node, layers)
        if answering is not None:
            precisions = {Precision(layer.precision) for layer in answering}
            agreed = precisions.pop() if len(precisions) == 1 else Precision.UNKNOWN
            stored = agreed in FLOATS and node.precision in _STORED
            found[node.name] = _of_stored(node, answering, layers, agreed) if stored else agreed
    return found


def _answering(node: Node, layers: Sequence[Layer]) -> list[Layer] | None:
    """Return the layers that answer for the node; None if no layer names it."""
    naming = [layer for layer in layers if node.name in layer.onnx_nodes]
    if not naming:
        return None
    compute = [layer for layer in naming if is_compute(layer)]
    if node.op in MULTIPLYING:
        return compute
    feeding = {tensor.name for layer in compute for tensor in layer.inputs}
    others = [
        layer
        for layer in naming
        if not is_compute(layer) and feeding.isdisjoint(tensor.name for tensor in layer.outputs)
    ]
    return others or compute


def _of_stored(
    node: Node, answering: Sequence[Layer], layers: Sequence[Layer], agreed: Precision
) -> Precision:
    """Return the precision of a node with narrowly stored weights: they may be widened before its own layer."""
    word = Precision(node.precision)
    if not all(layer.weights or layer.inputs[1:] for layer in answering):
        return Precision.UNKNOWN
    operands = {tensor.name for layer in answering for tensor in layer.inputs[1:]}
    widened = any(
        not layer.inputs
        and not operands.isdisjoint(tensor.name for tensor in layer.outputs)
        and any(WEIGHTS.get(Precision(tensor.precision)) is word for tensor in layer.weights)
        for layer in layers
    )
    return word if widened else agreed


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

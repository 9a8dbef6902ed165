"""Layers and nodes -> the precision each ONNX node really ran in.

Which layer answers for a node:

- A node that multiplies (Conv, ConvTranspose, Gemm, MatMul) is answered for by the layer that multiplies, not
  by the kernels that prepare its weights, quantise its input or add its bias, though metadata lists it there
  too. A convolution folded into a layer of another kind has no layer that multiplies: UNKNOWN.
- Any other node is answered for by the layers that are not a multiplication (its activation kernel); where
  there are none, by the multiplication that absorbed it (BatchNormalization folded into a Conv). A kernel
  that feeds such a multiplication prepares its operands and does not answer: TensorRT-RTX for SM75 lists a
  fused Relu in the kernel that dequantises the weights.
- A node whose weights the graph only stores narrow, and which a float layer answers for, computes so with stored
  weights where a kernel of their own widens them (TensorRT-RTX does so for blocks of 128, and for SM75); where the
  layer lists no weights (TensorRT-RTX 1.4), UNKNOWN.
- Layers that disagree give UNKNOWN. A node that no layer names is absent: it was folded away entirely.
- QuantizeLinear, DequantizeLinear and Cast (between two types by nature) and Constant are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.layers.compute import is_compute, is_region
from harness.layers.datatype import EIGHT_BIT, FLOATS, WEIGHTS
from harness.layers.operators import MULTIPLYING
from harness.words import Precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.record.outcome import Layer, Node

_LEFT_OUT = frozenset({"QuantizeLinear", "DequantizeLinear", "Cast", "Constant"})
_STORED = frozenset(map(str, WEIGHTS.values()))


def node_precision(nodes: Sequence[Node], layers: Sequence[Layer]) -> dict[str, Precision]:
    """Return the precision of each node by name, in the nodes' order; absent where no layer names it."""
    found: dict[str, Precision] = {}
    for node in nodes:
        if node.op in _LEFT_OUT:
            continue
        answering = _answering(node, layers)
        if answering is not None:
            agreed = _agreed(answering)
            stored = agreed in FLOATS and node.precision in _STORED
            found[node.name] = _of_stored(node, answering, layers, agreed) if stored else agreed
    return found


def int8_coverage(nodes: Sequence[Node], layers: Sequence[Layer]) -> tuple[int, int]:
    """Return how many of the layers that multiply do so in 8-bit integers, and how many there are.

    A multiplying node that ended in a region whose inside is hidden counts once a region, as not INT8.
    """
    compute = [layer for layer in layers if is_compute(layer) and not is_region(layer)]
    multiplying = {node.name for node in nodes if node.op in MULTIPLYING}
    hidden = [layer for layer in layers if is_region(layer) and multiplying.intersection(layer.onnx_nodes)]
    return sum(Precision(layer.precision) in EIGHT_BIT for layer in compute), len(compute) + len(hidden)


def _answering(node: Node, layers: Sequence[Layer]) -> list[Layer] | None:
    """Return the layers that answer for the node; None where no layer names it."""
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
    """Return what a node ran in whose weights the graph stores narrow: they may be widened before its own layer."""
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


def _agreed(layers: Sequence[Layer]) -> Precision:
    precisions = {Precision(layer.precision) for layer in layers}
    return precisions.pop() if len(precisions) == 1 else Precision.UNKNOWN

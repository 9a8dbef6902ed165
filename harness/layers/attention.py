"""Whether an engine runs a graph's attention as one fused kernel, as the kernel's name says.

TensorRT for RTX 1.4 to 1.7 names that kernel `_gemm_mha_v2_0x..` (measured). Whether it is taken depends on the
types, the head size, on what else reads the tensors in between, and on the version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.layers.operators import MULTIPLYING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.record.outcome import Layer

_KERNEL = re.compile(r"(?:^|_)f?mha(?:_|$)")
_WHOLE = frozenset({"Attention", "MultiHeadAttention"})
#: A product before the Softmax and one behind it.
_PRODUCTS = 2


def holds_attention(operators: Sequence[str]) -> bool:
    """Tell whether a graph of these operators holds attention: as one operator, or as MatMul, Softmax, MatMul."""
    products = sum(operator in MULTIPLYING for operator in operators)
    return not _WHOLE.isdisjoint(operators) or ("Softmax" in operators and products >= _PRODUCTS)


def attention_kernel(layers: Sequence[Layer]) -> str | None:
    """Return the name of the fused attention kernel, "" where there is none; None where no layer names its kernel."""
    kernels = [layer.tactic for layer in layers if layer.tactic]
    found = next((kernel for kernel in kernels if _KERNEL.search(kernel)), "")
    # What follows is a hash of the graph around it.
    return found.partition("_0x")[0] if kernels else None

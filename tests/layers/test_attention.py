"""Which kernel runs a graph's attention, by its name as TensorRT for RTX prints it."""

from __future__ import annotations

import pytest

from harness.layers.precision import attention_kernel, holds_attention
from harness.record.outcome import Layer

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("tactics", "kernel"),
    [
        (("__myl_ReshMove_0x126e", "_gemm_mha_v2_0x60d11ad198a59e816529b807c8535679"), "_gemm_mha_v2"),
        (("fmha_v2_flash_attention_fp16_64_sm86_kernel",), "fmha_v2_flash_attention_fp16_64_sm86_kernel"),
        (("__myelin_CASK_STUB", "__myl_MulMaxrSubExpSumDiv_0x5608"), ""),
        # A word that only ends like it.
        (("__myl_alphamha1_0x12",), ""),
        (("", ""), None),
        ((), None),
    ],
)
def test_the_fused_kernel_is_known_by_its_name(tactics: tuple[str, ...], kernel: str | None) -> None:
    layers = [Layer(f"layer{at}", "kgen", "fp16", tactic=tactic) for at, tactic in enumerate(tactics)]
    assert attention_kernel(layers) == kernel


@pytest.mark.parametrize(
    ("operators", "held"),
    [
        (("MatMul", "Mul", "Softmax", "MatMul"), True),
        (("Reshape", "Attention"), True),
        (("MatMul", "Softmax"), False),
        (("MatMul", "Relu", "MatMul"), False),
    ],
)
def test_a_classifier_s_softmax_is_no_attention(operators: tuple[str, ...], held: bool) -> None:
    assert holds_attention(operators) is held

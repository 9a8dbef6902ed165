"""Attention with Q/DQ round its two products, in INT8 and FP8.

A fused kernel wants Q/DQ in front of the first product, behind the softmax and behind the second (issue 4167), where
they stand here; the head size is 64, which INT8 allows, and so is the length. Users find the products in FP16 all the
same (issues 4167 and 4516). An FP16 form stands beside the FP32 one: Turing has no product in FP32 from TensorRT for
RTX 1.7 on, and a quantised neighbourhood falls with it.

Issue 4167 (10.3, Orin, JetPack 6.1) calls no fused kernel with `trtexec --int8` and `_gemm_mha_v2` with `--fp16`; its
opset is 13. A user quotes NVIDIA's rules there: heads of 16, 32 or 64, at most 512 long. Issue 4516 is NVIDIA's own
example of a ViT.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from onnx import TensorProto

from harness.case import (
    Case,
    Class,
    Engine,
    Expectation,
    Graph,
    Precision,
    Quantiser,
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

FUSED = links.issue(4167, "no fused attention in INT8 on 10.3")
FUSED_FP8 = links.issue(4516, "attention in FP8 on 10.8")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
HEADS, LENGTH, HEAD_SIZE = 2, 32, 64
FIRST, SECOND = "/qk/MatMul", "/pv/MatMul"
#: The harness's inputs are uniform in [-1, 1].
SCALES: dict[int, float] = {TensorProto.INT8: 0.01, TensorProto.FLOAT8E4M3FN: 0.0025}
#: What a softmax gives is at most one.
SOFTMAX_SCALES: dict[int, float] = {TensorProto.INT8: 1 / 127, TensorProto.FLOAT8E4M3FN: 1 / 448}


def _attention(narrow: int, dtype: int = FLOAT) -> onnx.ModelProto:
    """Build attention with Q/DQ on the operands of both products and behind the second."""
    g = Graph("attention", opset=19 if narrow != TensorProto.INT8 or dtype != FLOAT else 13)
    to, scale = Quantiser(narrow, dtype), SCALES[narrow]
    shape = [1, HEADS, LENGTH, HEAD_SIZE]
    query, key, value = (
        g.qdq(g.input(name, shape, dtype), name=f"/{name}_quantizer", scale=scale, to=to)
        for name in ("query", "key", "value")
    )
    key = g.node("Transpose", [key], name="/Transpose", perm=[0, 1, 3, 2])
    scores = g.node("MatMul", [query, key], name=FIRST)
    # Without a factor of its own a fused kernel is as likely, and the scores of 64 products stay moderate.
    scores = g.node("Mul", [scores, g.constant("factor", [1 / math.sqrt(HEAD_SIZE)], [], dtype)], name="/Mul")
    weights = g.node("Softmax", [scores], name="/Softmax", axis=-1)
    weights = g.qdq(weights, name="/softmax_quantizer", scale=SOFTMAX_SCALES[narrow], to=to)
    out = g.node("MatMul", [weights, value], name=SECOND)
    out = g.qdq(out, name="/output_quantizer", scale=scale / 4, to=to)
    g.node("Identity", [out], name="/output", output="output")
    g.output("output", shape, dtype)
    return g.model()


OK, FAILS = Class.OK, Class.BUILD_FAILED
reported = Expectation.reported
_on_rtx = partial(
    reported, versions=">=1.5,<1.6", link=links.RTX_PRECISIONS, kind="nvidia", engine=Engine.TENSORRT_RTX
)
FP8_ON_RTX = (
    *(
        _on_rtx(OK, scope="sibling", of="FP8 at large", level="builds", compute_capability=gpu)
        for gpu in ("8.9", "12.0")
    ),
    *(_on_rtx(FAILS, compute_capability=gpu, signature="type-not-on-generation") for gpu in ("7.5", "8.6")),
)
_attentions = partial(
    Variant,
    recipe=Recipe(flags=("INT8",)),
    precision=((FIRST, Precision.INT8), (SECOND, Precision.INT8)),
)
ATTENTIONS = (
    _attentions(
        name="int8",
        title="Attention in INT8, FP32 otherwise",
        build=partial(_attention, TensorProto.INT8),
        expectations=(
            reported(
                OK,
                "==10.3.*",
                FUSED,
                scope="sibling",
                of="10.3 of JetPack 6.1, an Orin, by --int8 and no Q/DQ that was seen",
                level="builds",
                note="no fused kernel is called",
                platform="jetson",
                compute_capability="8.7",
            ),
        ),
    ),
    _attentions(
        name="int8-half",
        title="Attention in INT8, FP16 otherwise",
        build=partial(_attention, TensorProto.INT8, HALF),
        recipe=Recipe(flags=("INT8", "FP16")),
        role=Role.WORKAROUND,
        counterpart="int8",
        tags=("opset19",),
    ),
    _attentions(
        name="fp8",
        title="Attention in FP8, FP16 otherwise",
        build=partial(_attention, TensorProto.FLOAT8E4M3FN, HALF),
        recipe=Recipe(flags=("FP8", "FP16")),
        precision=((FIRST, Precision.FP8), (SECOND, Precision.FP8)),
        expectations=(
            reported(
                Class.PRECISION_LOST,
                "==10.8.*",
                FUSED_FP8,
                scope="model",
                of="10.8, a ViT, no GPU named",
                note="it runs in half precision",
            ),
            *FP8_ON_RTX,
        ),
        tags=("opset19",),
    ),
)


CASE = Case(
    name="quantised_attention",
    title="Attention in INT8 and FP8",
    summary=(
        "Quantised attention is to become one fused kernel that multiplies in INT8 or FP8. Whether both products keep "
        "the narrow type hangs on the version, on the GPU generation and on the floating-point type round them."
    ),
    links=(FUSED, FUSED_FP8, links.RTX_PRECISIONS),
    variants=ATTENTIONS,
    topics=("attention",),
)

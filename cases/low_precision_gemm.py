"""Matrix products in INT8, FP8, INT4 and FP4: quantised on both sides, or in the weights alone.

Every exporter of transformers writes one of these forms, and which version and GPU generation builds it is asked of
each anew. NVIDIA's support matrix of TensorRT for RTX gives Turing none of them, Ampere weight-only INT8 and INT4, Ada
FP8 and Blackwell FP4.

A form in FP16 stands beside one in FP32 where that is the way round: from TensorRT for RTX 1.7 on Turing has no product
in FP32, and a quantised neighbourhood falls with it. Left out, because in a survey they did not differ from a
neighbour: a weight scale for each row, for all, INT4 without blocks or in blocks of 64 and 128, and BF16 data.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onnx import TensorProto

from harness.case import (
    Case,
    Class,
    Engine,
    Expectation,
    Graph,
    Link,
    Precision,
    Quantiser,
    Recipe,
    Role,
    Scope,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

ACTIVATIONS = Link("https://github.com/pytorch/TensorRT/pull/4156", "Torch-TensorRT pull request 4156")
BLOCKS = links.issue(4298, "block quantisation wants opset 21")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
ROWS, DEPTH, COLUMNS = 16, 64, 64
#: Elements of FP4 that share a scale.
BLOCK = 16
NODE = "/MatMul"
#: The harness's inputs are uniform in [-1, 1].
SCALES: dict[int, float] = {TensorProto.INT8: 0.01, TensorProto.FLOAT8E4M3FN: 0.0025}


def _product(*, axis: int | None = 1, gemm: bool = False) -> onnx.ModelProto:
    """Build data times weights in INT8 by Q/DQ, with a weight scale for each index of `axis`, or one for all."""
    g = Graph("product")
    x = g.qdq(g.input("input", [ROWS, DEPTH]), name="/input_quantizer", scale=SCALES[TensorProto.INT8])
    # Gemm with transB has outputs first, as PyTorch's Linear.
    weight = g.weight("fc.weight", (COLUMNS, DEPTH) if gemm else (DEPTH, COLUMNS), spread=0.2)
    weight = g.weight_qdq(weight, name="/weight_quantizer", per_channel=axis is not None, axis=axis or 0)
    if gemm:
        g.node(
            "Gemm",
            [x, weight, g.weight("fc.bias", (COLUMNS,), spread=0.1)],
            name=NODE,
            output="output",
            transB=1,
        )
    else:
        g.node("MatMul", [x, weight], name=NODE, output="output")
    g.output("output", [ROWS, COLUMNS])
    return g.model()


def _half_product(narrow: int) -> onnx.ModelProto:
    """Build data times weights with Q/DQ on both, FP16 otherwise; scales in FP16 came with opset 19."""
    g = Graph("half_product", opset=19)
    to = Quantiser(narrow, HALF)
    x = g.qdq(g.input("input", [ROWS, DEPTH], HALF), name="/input_quantizer", scale=SCALES[narrow], to=to)
    weight = g.weight("fc.weight", (DEPTH, COLUMNS), spread=0.2, dtype=HALF)
    weight = g.weight_qdq(weight, name="/weight_quantizer", axis=1, to=to)
    g.node("MatMul", [x, weight], name=NODE, output="output")
    g.output("output", [ROWS, COLUMNS], HALF)
    return g.model()


def _two_activations() -> onnx.ModelProto:
    """Build the product of two inputs, both with Q/DQ."""
    g = Graph("two_activations")
    scale = SCALES[TensorProto.INT8]
    left = g.qdq(g.input("left", [ROWS, DEPTH]), name="/left_quantizer", scale=scale)
    right = g.qdq(g.input("right", [DEPTH, COLUMNS]), name="/right_quantizer", scale=scale)
    g.node("MatMul", [left, right], name=NODE, output="output")
    g.output("output", [ROWS, COLUMNS])
    return g.model()


def _stored(narrow: int, dtype: int = HALF, *, block: int = 0, axis: int = 1) -> onnx.ModelProto:
    """Build a float times weights that are stored in a narrow type, a scale a channel of `axis` or a block along it."""
    opset = 23 if narrow == TensorProto.FLOAT4E2M1 else 21
    g = Graph("stored", opset=opset)
    x = g.input("input", [ROWS, DEPTH], dtype)
    weight = g.stored_weight(
        "fc.weight",
        (DEPTH, COLUMNS),
        name="/fc/Dequantize",
        axis=axis,
        block=block,
        to=Quantiser(narrow, dtype),
    )
    g.node("MatMul", [x, weight], name=NODE, output="output")
    g.output("output", [ROWS, COLUMNS], dtype)
    return g.model()


def _fp4() -> onnx.ModelProto:
    """Build FP4 times FP4 as Model-Optimizer exports NVFP4: blocks of 16, whose scales are FP8 and have a scale too."""
    g = Graph("fp4", opset=23)
    x, whole = g.input("input", [ROWS, DEPTH], HALF), g.constant("scale", [0.05], [], HALF)
    attributes = {"axis": -1, "block_size": BLOCK, "scale_type": TensorProto.FLOAT8E4M3FN}
    narrow, scales = g.node_of_several(
        "TRT_FP4DynamicQuantize", [x, whole], 2, name="/input/Quantize", domain="trt", **attributes
    )
    scales = g.node("DequantizeLinear", [scales, whole], name="/input/DequantizeScales")
    x = g.node("DequantizeLinear", [narrow, scales], name="/input/Dequantize", axis=-1, block_size=BLOCK)
    values = [(-6, -3, -1.5, -0.5, 0, 0.5, 1, 2, 4)[at * 7 % 9] for at in range(DEPTH * COLUMNS)]
    weight = g.constant("fc.weight", values, (DEPTH, COLUMNS), TensorProto.FLOAT4E2M1)
    blocks = [(0.5, 0.75, 1)[at % 3] for at in range(DEPTH * COLUMNS // BLOCK)]
    scales = g.constant("fc.weight_scale", blocks, (DEPTH // BLOCK, COLUMNS), TensorProto.FLOAT8E4M3FN)
    scales = g.node("DequantizeLinear", [scales, whole], name="/fc/DequantizeScales")
    weight = g.node("DequantizeLinear", [weight, scales], name="/fc/Dequantize", axis=0, block_size=BLOCK)
    g.node("MatMul", [x, weight], name=NODE, output="output")
    g.output("output", [ROWS, COLUMNS], HALF)
    return g.model()


OK, FAILS = Class.OK, Class.BUILD_FAILED
RTX = Engine.TENSORRT_RTX
reported = Expectation.reported
_on_rtx = partial(reported, OK, ">=1.5,<1.6", links.RTX_PRECISIONS, "nvidia", level="builds", engine=RTX)
_not_on_rtx = partial(
    reported,
    FAILS,
    ">=1.5,<1.6",
    links.RTX_PRECISIONS,
    "nvidia",
    engine=RTX,
    signature="type-not-on-generation",
    note="the table says No; that the build fails so is inferred",
)
AMPERE_AND_LATER = tuple(_on_rtx(compute_capability=gpu) for gpu in ("8.6", "8.9", "12.0"))
ADA_AND_LATER = (
    *(_on_rtx(compute_capability=gpu) for gpu in ("8.9", "12.0")),
    *(_not_on_rtx(compute_capability=gpu) for gpu in ("7.5", "8.6")),
)


def _blackwell(scope: Scope = "graph", of: str = "") -> tuple[Expectation, ...]:
    """Return NVIDIA's row of FP4 products."""
    older = (_not_on_rtx(compute_capability=gpu, scope=scope, of=of) for gpu in ("7.5", "8.6", "8.9"))
    return (_on_rtx(compute_capability="12.0", scope=scope, of=of), *older)


_int8 = partial(Variant, recipe=Recipe(flags=("INT8",)), precision=((NODE, Precision.INT8),))
INT8_PRODUCTS = (
    _int8(
        name="int8",
        title="A product in INT8, a weight scale for each column",
        build=_product,
    ),
    _int8(
        name="int8-gemm",
        title="Gemm with transB and a bias in INT8, as PyTorch's Linear",
        build=partial(_product, axis=0, gemm=True),
        expectations=(
            reported(
                OK,
                "==1.4.*",
                ACTIVATIONS,
                "nvidia",
                scope="sibling",
                of="two linear layers, by Torch-TensorRT",
                level="builds",
                note="INT8 activations were opened for 1.4",
                engine=RTX,
            ),
        ),
    ),
    _int8(
        name="int8-two-activations",
        title="The product of two activations in INT8",
        build=_two_activations,
    ),
    _int8(
        name="int8-half",
        title="A product in INT8 whose floating-point side is FP16",
        build=partial(_half_product, TensorProto.INT8),
        recipe=Recipe(flags=("INT8", "FP16")),
        role=Role.WORKAROUND,
        counterpart="int8",
        tags=("opset19",),
    ),
)

STORED = (
    Variant(
        name="int8-weights",
        title="FP16 times weights stored in INT8",
        build=partial(_stored, TensorProto.INT8),
        recipe=Recipe(flags=("INT8", "FP16")),
        precision=((NODE, Precision.INT8_WEIGHTS),),
        expectations=AMPERE_AND_LATER,
        tags=("opset21",),
    ),
    Variant(
        name="int8-weights-float",
        title="FP32 times weights stored in INT8",
        build=partial(_stored, TensorProto.INT8, FLOAT),
        recipe=Recipe(flags=("INT8",)),
        precision=((NODE, Precision.INT8_WEIGHTS),),
        tags=("opset21",),
    ),
    Variant(
        name="int4-weights",
        title="FP16 times weights stored in INT4, a scale for each block of 32 rows",
        build=partial(_stored, TensorProto.INT4, axis=0, block=32),
        recipe=Recipe(flags=("INT4", "FP16")),
        precision=((NODE, Precision.INT4_WEIGHTS),),
        expectations=(
            reported(OK, "==10.7.*", BLOCKS, "nvidia", level="builds", note="from opset 21 on"),
            *AMPERE_AND_LATER,
        ),
        tags=("opset21",),
    ),
    Variant(
        name="int4-weights-float",
        title="FP32 times weights stored in INT4, a scale for each block of 32 rows",
        build=partial(_stored, TensorProto.INT4, FLOAT, axis=0, block=32),
        recipe=Recipe(flags=("INT4",)),
        precision=((NODE, Precision.INT4_WEIGHTS),),
        tags=("opset21",),
    ),
    Variant(
        name="int4-weights-columns",
        title="FP16 times weights stored in INT4, blocks of 32 along the columns",
        build=partial(_stored, TensorProto.INT4, axis=1, block=32),
        recipe=Recipe(flags=("INT4", "FP16")),
        precision=((NODE, Precision.INT4_WEIGHTS),),
        tags=("opset21",),
    ),
    Variant(
        name="fp4-weights",
        title="FP16 times weights stored in FP4, blocks of 16 with FP16 scales",
        build=partial(_stored, TensorProto.FLOAT4E2M1, axis=0, block=BLOCK),
        recipe=Recipe(flags=("FP4", "FP16")),
        precision=((NODE, Precision.FP4_WEIGHTS),),
        expectations=_blackwell("sibling", "products in FP4"),
        tags=("opset23",),
    ),
)

NARROW_FLOATS = (
    Variant(
        name="fp4",
        title="A product in FP4 whose data are quantised in blocks as it runs (NVFP4)",
        build=_fp4,
        recipe=Recipe(flags=("FP4", "FP16")),
        precision=((NODE, Precision.FP4),),
        expectations=_blackwell(),
        tags=("opset23",),
    ),
    Variant(
        name="fp8",
        title="A product in FP8 whose floating-point side is FP16",
        build=partial(_half_product, TensorProto.FLOAT8E4M3FN),
        recipe=Recipe(flags=("FP8", "FP16")),
        precision=((NODE, Precision.FP8),),
        expectations=ADA_AND_LATER,
        tags=("opset19",),
    ),
)

CASE = Case(
    name="low_precision_gemm",
    title="Matrix products in INT8, FP8, INT4 and FP4",
    summary=(
        "Which narrow types a matrix product builds in hangs on the version and on the GPU generation: INT8 and FP8 on "
        "both sides, INT8, INT4 and FP4 in the weights alone. The forms here differ in one thing at a time, so that "
        "what fails can be told from what does not. On Hopper the INT8 product of two activations is in FP32 on 8.6.1, "
        "where INT8 is not tried, and in INT8 on 10.6.0. 8.6.1 reads FP16 scales as FP32 and calls them not positive. "
        "10.6.0 makes the weights of this one product of 16x64x64, in INT8 and INT4, floats before it multiplies."
    ),
    links=(links.RTX_PRECISIONS, ACTIVATIONS, BLOCKS, links.QUANTISED_TYPES),
    variants=INT8_PRODUCTS + NARROW_FLOATS + STORED,
)

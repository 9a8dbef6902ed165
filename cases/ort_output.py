"""Default output of ONNX Runtime's quantiser and optimiser that TensorRT's parsers refuse.

Its static quantiser gives activations zero points and biases INT32, unless it is told not to; its QOperator format and
its dynamic quantisation have integer operators in place of Q/DQ; its transformer optimiser writes operators of
com.microsoft. Each is here in the smallest graph that has it, with its replacement.

Left out: UINT8 with a zero point of 0 and INT8 with another than 0, which end as the one here does; integer operators
beyond two, and operators of com.microsoft that no version of the parser has.

The operator lists of 8.5 to 10.1 lack QLinearConv, DynamicQuantizeLinear and MatMulInteger. ONNX Runtime 14229 names
no version. TensorRT has a rotary layer from 10.15.1 on; whether its parser makes one of ONNX's operator is not known.
Nobody reports `contrib-attention` and `contrib-rotary`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onnx import TensorProto

from harness.case import (
    Case,
    Class,
    Expectation,
    Graph,
    Link,
    Precision,
    Quantiser,
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

ORT = "https://github.com/microsoft/onnxruntime/issues"
INT32_BIAS = Link(f"{ORT}/14229", "ONNX Runtime issue 14229: the bias behind DequantizeLinear")
NOT_INT8 = Link(f"{ORT}/17738", "ONNX Runtime issue 17738: biases in INT32")
QUANTISED_TYPES = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-with-quantized-types.html",
    "NVIDIA: working with quantised types",
)
ROTARY_1015 = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-with-transformers.html",
    "NVIDIA: rotary embedding since 10.15.1",
)

FLOAT, HALF, INT64, UINT8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.UINT8
CONTRIB = "com.microsoft"
CONV = "/conv/Conv"
SCALE = 0.01

OK, NO_PARSER = Class.OK, Class.PARSE_FAILED
reported = Expectation.reported
#: Versions whose parser's list of operators was read.
LISTS = ("8.5", "8.6", "9.2", "10.0", "10.1")


def _quantised(*, activation: Quantiser, int32_bias: bool) -> onnx.ModelProto:
    """Build a convolution as ONNX Runtime's quantiser writes it; its default bias is INT32 with a DequantizeLinear."""
    g = Graph("ort_quantised")
    x = g.qdq(g.input("input", [1, 16, 16, 16]), name="input", scale=SCALE, to=activation)
    weight = g.stored_weight("conv.weight", (16, 16, 3, 3), name="conv.weight_DequantizeLinear")
    if int32_bias:
        stored = g.constant("conv.bias_quantized", range(-8, 8), [16], TensorProto.INT32)
        scales = g.constant("conv.bias_scale", [1e-4] * 16, [16])
        bias = g.node("DequantizeLinear", [stored, scales], name="conv.bias_DequantizeLinear", axis=0)
    else:
        bias = g.weight("conv.bias", (16,), spread=0.01)
    g.conv(x, weight, name=CONV, bias=bias, output="output")
    g.output("output", [1, 16, 16, 16])
    return g.model()


def _integer_conv() -> onnx.ModelProto:
    """Build a convolution of ONNX Runtime's QOperator format."""
    g = Graph("qoperator")
    g.input("input", [1, 16, 16, 16])
    x = g.quantize("input", name="input_QuantizeLinear", scale=SCALE)
    weight = g.weight("conv.weight", (16, 16, 3, 3))
    scale = g.weight_scale(weight, per_channel=False)
    stored = g.quantize(weight, name="conv.weight_QuantizeLinear", scale=scale)
    of_output = [
        g.constant("output_scale", [SCALE], []),
        g.constant("output_zero", [0], [], TensorProto.INT8),
    ]
    of_input = ["input_scale", "input_zero_point"]
    of_weight = ["conv.weight_scale", "conv.weight_zero_point"]
    g.node("QLinearConv", [x, *of_input, stored, *of_weight, *of_output], name=CONV, output="y", pads=[1] * 4)
    g.node("DequantizeLinear", ["y", *of_output], name="output_DequantizeLinear", output="output")
    g.output("output", [1, 16, 16, 16])
    return g.model()


def _dynamically_quantised() -> onnx.ModelProto:
    """Build a product as ONNX Runtime's dynamic quantisation writes it."""
    g = Graph("dynamic_quantisation")
    x = g.input("input", [4, 64])
    x, scale, zero = g.node_of_several("DynamicQuantizeLinear", [x], 3, name="/fc/DynamicQuantizeLinear")
    # Seven bits, as its `reduce_range` writes them: with eight, x86 processors that lack VNNI saturate sums.
    weight = g.constant(
        "fc.weight", [index * 7 % 127 - 63 for index in range(64 * 32)], [64, 32], TensorProto.INT8
    )
    y = g.node("MatMulInteger", [x, weight, zero], name="/fc/MatMulInteger")
    y = g.node("Cast", [y], name="/fc/Cast", to=FLOAT)
    scale = g.node("Mul", [scale, g.constant("fc.scale", [SCALE], [])], name="/fc/Mul")
    g.node("Mul", [y, scale], name="/fc/Mul_1", output="output")
    g.output("output", [4, 32])
    return g.model()


def _attention() -> onnx.ModelProto:
    """Build MultiHeadAttention of com.microsoft over 4 heads of 64."""
    g = Graph("contrib_attention", opset=17)
    qkv = [g.input(name, [1, 8, 256], HALF) for name in ("query", "key", "value")]
    g.node("MultiHeadAttention", qkv, name="/attn", output="output", domain=CONTRIB, num_heads=4)
    g.output("output", [1, 8, 256], HALF)
    return g.model()


def _rotary(opset: int, domain: str = "") -> onnx.ModelProto:
    """Build a rotary embedding of 4 heads of 64 for 8 tokens, as com.microsoft's operator or as ONNX's own."""
    g = Graph("rotary", opset=opset)
    x = g.input("input", [1, 4, 8, 64], HALF)
    positions = g.constant("position_ids", range(8), [1, 8], INT64)
    caches = [g.weight(f"{name}_cache", (8, 32), spread=1.0, dtype=HALF) for name in ("cos", "sin")]
    order = [positions, *caches] if domain else [*caches, positions]
    g.node("RotaryEmbedding", [x, *order], name="/RotaryEmbedding", output="output", domain=domain)
    g.output("output", [1, 4, 8, 64], HALF)
    return g.model()


NOT_LISTED = tuple(
    reported(NO_PARSER, f"=={version}.*", links.operators(version), "nvidia") for version in LISTS
)
_q = partial(Variant, recipe=Recipe(flags=("INT8",)))
_half = partial(Variant, recipe=Recipe(flags=("FP16",)), precision=())

QUANTISED = (
    _q(
        name="ort-uint8",
        title="Activations in UINT8 with a zero point, as ONNX Runtime quantises by default",
        build=partial(_quantised, activation=Quantiser(UINT8, zero_point=128), int32_bias=False),
        precision=((CONV, Precision.INT8),),
        expectations=tuple(
            reported(
                NO_PARSER,
                f"=={version}.*",
                links.operators(version),
                "nvidia",
                note="the zero point must be 0",
                signature="asymmetric-quantization",
            )
            for version in LISTS
        ),
    ),
    _q(
        name="ort-int32-bias",
        title="A bias in INT32 behind DequantizeLinear, as ONNX Runtime quantises by default",
        build=partial(_quantised, activation=Quantiser(), int32_bias=True),
        precision=((CONV, Precision.INT8),),
        expectations=(
            reported(
                NO_PARSER,
                None,
                INT32_BIAS,
                scope="model",
                note="trtexec refuses it when it parses",
                signature="int32-bias",
            ),
        ),
    ),
    _q(
        name="ort-symmetric",
        title="Activations in INT8 and no bias in INT32, by ActivationSymmetric and without QuantizeBias",
        build=partial(_quantised, activation=Quantiser(), int32_bias=False),
        role=Role.WORKAROUND,
        counterpart="ort-int32-bias",
        precision=((CONV, Precision.INT8),),
    ),
    _q(
        name="qoperator",
        title="QLinearConv of ONNX Runtime's QOperator format",
        build=_integer_conv,
        precision=(),
        expectations=NOT_LISTED,
    ),
    Variant(
        name="dynamic-quantisation",
        title="DynamicQuantizeLinear and MatMulInteger of dynamic quantisation",
        build=_dynamically_quantised,
        precision=(),
        expectations=NOT_LISTED,
    ),
)
FROM_ORT_OPTIMISER = (
    _half(
        name="contrib-attention",
        title="MultiHeadAttention of com.microsoft",
        build=_attention,
    ),
    _half(
        name="contrib-rotary",
        title="RotaryEmbedding of com.microsoft",
        build=partial(_rotary, 17, CONTRIB),
    ),
    _half(
        name="rotary",
        title="RotaryEmbedding of ONNX's opset 23",
        build=partial(_rotary, 23),
        role=Role.WORKAROUND,
        counterpart="contrib-rotary",
        tags=("opset23",),
    ),
)
CASE = Case(
    name="ort_output",
    title="What ONNX Runtime's quantiser and optimiser write",
    summary=(
        "Models that ONNX Runtime quantised or optimised run there and are refused by TensorRT's parsers: for zero "
        "points, for biases in INT32, for integer operators and for operators of com.microsoft. Which of them a "
        "version takes, and with which options of the quantiser it takes the rest."
    ),
    links=(INT32_BIAS, NOT_INT8, QUANTISED_TYPES, ROTARY_1015),
    variants=(*QUANTISED, *FROM_ORT_OPTIMISER),
    topics=("exporter",),
)

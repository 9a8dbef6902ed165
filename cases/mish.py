"""A quantised depthwise convolution followed by Mish: "Could not find any implementation" on TensorRT 10.0.

The report (issue 3870) shows no graph: it names a node, `SandGlass1.0.weight`, a file, `mobilenetv2_SQ.onnx`, Mish, and
a script that sets INT8 and a calibrator. That the model has Q/DQ, and the form of its blocks, is taken from an earlier
report of the same author (issue 3579), whose printed model has ReLU6 where this one has Mish.

The graphs are that model's first block (`qdq` and variants that differ from it by one thing), its last convolution with
a residual (`residual-*`), and the same hole found earlier with Swish (`swish-*`). Weakly typed variants name no wanted
precision: there the builder may pick any permitted type by its timings.

Issue 3870 is of Windows, by its paths, and names no GPU, driver or CUDA. Issue 3579 names a node `weight +
/_weight_quantizer/QuantizeLinear + Conv` and prints 32 channels, 3x3, BatchNormalization and a 1x1 convolution
behind; it sets INT8 and the second entropy calibrator. Opset 13 is the least that per-channel Q/DQ needs. Issue 3385
has 144 channels on 128x128, here 32x32; its table shows what builds, not in which precision. Model-Optimizer 50 has a
depthwise convolution and its Add in a YOLOv10; nobody says that its failure is that of 3579. Issue 3243 advises Q/DQ
on residuals.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onnx import TensorProto

from harness.case import (
    Calibrator,
    Case,
    Class,
    Expectation,
    Graph,
    Link,
    Precision,
    Recipe,
    Role,
    Typing,
    Variant,
    links,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

REPORT = links.issue(3870)
SWISH = links.DEPTHWISE_SWISH
RESIDUAL = links.issue(3579)
RESIDUAL_FIX = Link("https://github.com/NVIDIA/Model-Optimizer/issues/50", "Model-Optimizer issue 50")
ADD_ADVICE = links.issue(3243)

OK, FAILS = Class.OK, Class.BUILD_FAILED
reported = Expectation.reported
builds = partial(reported, OK, level="builds")
fails = partial(reported, FAILS, signature="no-implementation-qdq")
X86, JETSON = "linux/amd64", "jetson"
CONV = "/SandGlass1/SandGlass1.0/Conv"
NEXT_CONV = "/SandGlass1/SandGlass1.3/Conv"
SWISH_CONV = "node_of_dqconv.dwconv"
RESIDUAL_CONV = "/SandGlass4/SandGlass4.8/Conv"
#: The harness's inputs are uniform in [-1, 1]; the layers behind them keep about that magnitude.
INPUT_SCALE = 0.01
INNER_SCALE = 0.025


def _mish(g: Graph, x: str) -> str:
    name = "/SandGlass1/SandGlass1.2"
    softplus = g.node("Softplus", [x], name=f"{name}/Softplus")
    return g.node("Mul", [x, g.node("Tanh", [softplus], name=f"{name}/Tanh")], name=f"{name}/Mul")


def _mish_op(g: Graph, x: str) -> str:
    return g.node("Mish", [x], name="/SandGlass1/SandGlass1.2/Mish")


def _relu(g: Graph, x: str) -> str:
    return g.node("Relu", [x], name="/SandGlass1/SandGlass1.2/Relu")


def _norm(  # noqa: PLR0913  (what the normalisations differ in)
    g: Graph,
    x: str,
    channels: int,
    *,
    name: str,
    prefix: str,
    output: str | None = None,
    dtype: int = TensorProto.FLOAT,
) -> str:
    """Add a BatchNormalization kept as a node."""
    parts = [
        g.weight(f"{prefix}.weight", (channels,), centre=1.0, spread=0.1, dtype=dtype),
        g.weight(f"{prefix}.bias", (channels,), spread=0.1, dtype=dtype),
        g.weight(f"{prefix}.running_mean", (channels,), spread=0.1, dtype=dtype),
        g.weight(f"{prefix}.running_var", (channels,), centre=1.0, spread=0.2, dtype=dtype),
    ]
    # Below opset 14 onnx.reference mixes the batch's own statistics in by the momentum; 1 keeps them out.
    return g.node("BatchNormalization", [x, *parts], name=name, output=output, epsilon=1e-5, momentum=1.0)


def _quantised_conv(  # noqa: PLR0913  (what the convolutions differ in)
    g: Graph,
    x: str,
    module: str,
    shape: tuple[int, int, int, int],
    *,
    scale: float = INPUT_SCALE,
    output: str | None = None,
) -> str:
    """Add a Conv with Q/DQ on both inputs, named as PyTorch's quantiser exports `module` of a block.

    One weight channel for more outputs than one makes it depthwise.
    """
    name = f"/{module.partition('.')[0]}/{module}"
    x = g.qdq(x, name=f"{name}/_input_quantizer", scale=scale)
    weight = g.weight_qdq(g.weight(f"{module}.weight", shape), name=f"{name}/_weight_quantizer")
    group = shape[0] if shape[1] == 1 else 1
    return g.conv(x, weight, name=f"{name}/Conv", kernel=shape[2], group=group, output=output)


def _block(
    activation: Callable[[Graph, str], str] = _mish,
    *,
    dense: bool = False,
    qdq_after_norm: bool = False,
    opset: int = 13,
) -> onnx.ModelProto:
    """Build Conv, BatchNormalization, activation and the next convolution, in explicit quantisation."""
    g = Graph("sandglass1", opset=opset)
    x = g.input("input", [1, 32, 32, 32])
    x = _quantised_conv(g, x, "SandGlass1.0", (32, 32 if dense else 1, 3, 3))
    x = _norm(g, x, 32, name="/SandGlass1/SandGlass1.1/BatchNormalization", prefix="SandGlass1.1")
    if qdq_after_norm:
        x = g.qdq(x, name="/SandGlass1/SandGlass1.2/_input_quantizer", scale=INNER_SCALE)
    x = activation(g, x)
    _quantised_conv(g, x, "SandGlass1.3", (16, 32, 1, 1), scale=INNER_SCALE, output="output")
    g.output("output", [1, 16, 32, 32])
    return g.model()


def _float_block(dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Build the block without Q/DQ; in FP16 between a Cast behind the input and a Cast before the output."""
    half = dtype == TensorProto.FLOAT16
    g = Graph("sandglass1_float")
    x = g.input("input", [1, 32, 32, 32])
    if half:
        x = g.node("Cast", [x], name="/input/Cast", to=dtype)
    weight = g.weight("SandGlass1.0.weight", (32, 1, 3, 3), dtype=dtype)
    x = g.conv(x, weight, name=CONV, group=32)
    norm = "/SandGlass1/SandGlass1.1/BatchNormalization"
    x = _mish(g, _norm(g, x, 32, name=norm, prefix="SandGlass1.1", dtype=dtype))
    weight = g.weight("SandGlass1.3.weight", (16, 32, 1, 1), dtype=dtype)
    x = g.conv(x, weight, name=NEXT_CONV, kernel=1, output=None if half else "output")
    if half:
        g.node("Cast", [x], name="/output/Cast", output="output", to=TensorProto.FLOAT)
    g.output("output", [1, 16, 32, 32])
    return g.model()


def _swish_tail(*, identity: bool) -> onnx.ModelProto:
    """Build the earlier report's graph: unnamed nodes, INT8 weights, nothing behind the last Q/DQ."""
    g = Graph("qdq_dw_bn_swish")
    g.input("input", [1, 144, 32, 32])
    scale = INPUT_SCALE
    g.quantize("input", name="", scale=scale, output="input_quantized")
    x = g.dequantize("input_quantized", name="", scale=scale, output="input_dequantized", prefix="input")
    weight = g.stored_weight("w", (144, 1, 3, 3), name="", output="w_dequantized")
    x = g.conv(x, weight, name="", group=144, output="dqconv.dwconv")
    x = _norm(g, x, 144, name="", prefix="bn", output="bn")
    sigmoid = g.node("Sigmoid", [x], name="", output="swish.sigmoid")
    g.node("Mul", [x, sigmoid], name="", output="swish.mul")
    scale = INNER_SCALE
    x = g.quantize("swish.mul", name="", scale=scale, output="swish_quantized", prefix="swish")
    last = "swish_dequantized" if identity else "output"
    x = g.dequantize(x, name="", scale=scale, output=last, prefix="swish")
    if identity:
        g.node("Identity", [x], name="", output="output")
    g.output("output", [1, 144, 32, 32])
    return g.model()


def _residual(*, quantised: bool) -> onnx.ModelProto:
    """Build a quantised depthwise convolution and the Add of a residual from elsewhere in the model."""
    g = Graph("sandglass4_residual")
    x = g.input("input", [1, 192, 4, 4])
    residual = g.input("residual", [1, 192, 4, 4])
    x = _quantised_conv(g, x, "SandGlass4.8", (192, 1, 3, 3))
    if quantised:
        residual = g.qdq(residual, name="/_residual_quantizer", scale=INPUT_SCALE)
    g.node("Add", [x, residual], name="/Add", output="output")
    g.output("output", [1, 192, 4, 4])
    return g.model()


EXPLICIT = Recipe(flags=("INT8",))
BOTH_INT8 = ((CONV, Precision.INT8), (NEXT_CONV, Precision.INT8))
_explicit = partial(Variant, recipe=EXPLICIT, precision=BOTH_INT8, counterpart="qdq")

#: The thread names 10.0.1; that 10.2 mends it, and the way round, are from a summary of it.
_of_the_model = partial(builds, link=REPORT, kind="summary", scope="model", platform=X86)
REPORTED_CLAIMS = (
    fails("==10.0.*", REPORT, scope="model", of="10.0.1 on Windows, no GPU named", platform=X86),
    _of_the_model("==10.2.*", note="the version of the fix is from a summary of the thread"),
)
#: The table of an earlier report has what builds beside what fails.
_seen_beside = partial(
    builds, "==8.5.*", SWISH, scope="sibling", of="8.5.2, AGX Orin", platform=JETSON, compute_capability="8.7"
)
EXPLICIT_VARIANTS = (
    _explicit(
        name="qdq",
        title="Depthwise convolution, BatchNormalization and Mish in explicit INT8",
        build=_block,
        counterpart=None,
        expectations=REPORTED_CLAIMS,
    ),
    Variant(
        name="qdq-calibrator",
        title="Depthwise convolution and Mish in explicit INT8 with a calibrator set as well, as reported",
        build=_block,
        recipe=Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy")),
        expectations=(
            *REPORTED_CLAIMS,
            reported(Class.API_REMOVED, ">=11", links.MIGRATION, "nvidia", signature="implicit-int8-removed"),
        ),
        tags=("idle-calibrator",),
    ),
    _explicit(
        name="qdq-strong",
        title="Depthwise convolution and Mish in explicit INT8 in a strongly typed network",
        build=_block,
        recipe=Recipe(typing=Typing.STRONG),
        role=Role.TWIN,
        counterpart="qdq-calibrator",
        expectations=(
            reported(Class.API_REMOVED, "<9", links.HEADER_86, "source", signature="strong-typing-missing"),
        ),
    ),
    _explicit(
        name="qdq-after-norm",
        title="A Q/DQ pair between BatchNormalization and Mish avoids the failure",
        build=partial(_block, qdq_after_norm=True),
        role=Role.WORKAROUND,
        expectations=(
            _of_the_model("==10.0.*", of="10.0.1", note="the workaround is from a summary of the thread"),
        ),
    ),
    _explicit(
        name="mish-op",
        title="The single ONNX operator Mish (opset 18) in place of Softplus, Tanh and Mul",
        build=partial(_block, _mish_op, opset=18),
        tags=("opset18",),
        expectations=tuple(
            reported(
                Class.PARSE_FAILED,
                f"=={version}.*",
                links.operators(version),
                "nvidia",
                note="its list has no Mish; that of 10.0 has",
                signature="no-importer",
            )
            for version in ("8.5", "8.6", "9.2")
        ),
    ),
    _explicit(
        name="qdq-dense",
        title="Dense convolution, BatchNormalization and Mish in explicit INT8",
        build=partial(_block, dense=True),
        role=Role.CONTROL,
        expectations=(_seen_beside(note="a dense convolution with Swish"),),
    ),
    _explicit(
        name="qdq-relu",
        title="Depthwise convolution, BatchNormalization and ReLU in explicit INT8",
        build=partial(_block, _relu),
        role=Role.CONTROL,
        expectations=(_seen_beside(note="144 channels, ReLU and Q/DQ at the end"),),
    ),
)

EARLIER_VARIANTS = (
    Variant(
        name="swish-tail",
        title="Depthwise convolution, BatchNormalization and Swish in explicit INT8 at the end of the graph",
        build=partial(_swish_tail, identity=False),
        recipe=EXPLICIT,
        precision=((SWISH_CONV, Precision.INT8),),
        expectations=(
            fails("==8.5.*", SWISH, of="8.5.2, AGX Orin, 128x128", platform=JETSON, compute_capability="8.7"),
        ),
    ),
    Variant(
        name="swish-tail-identity",
        title="An Identity behind the last Q/DQ pair, which a maintainer advises and nobody confirms",
        build=partial(_swish_tail, identity=True),
        recipe=EXPLICIT,
        role=Role.WORKAROUND,
        counterpart="swish-tail",
        precision=((SWISH_CONV, Precision.INT8),),
    ),
    Variant(
        name="residual-fp32",
        title="Quantised depthwise convolution plus an FP32 residual",
        build=partial(_residual, quantised=False),
        recipe=EXPLICIT,
        precision=((RESIDUAL_CONV, Precision.INT8),),
        expectations=(
            fails(
                "==8.6.*",
                RESIDUAL_FIX,
                scope="model",
                of="8.6.1, a YOLOv10 with --fp16 --int8, no GPU named",
                note="issue 3579 has these names, its version is not shown",
                platform=X86,
            ),
            builds(None, RESIDUAL_FIX, scope="model", of="TensorRT 10", note="the reporter confirms the fix"),
        ),
    ),
    Variant(
        name="residual-qdq",
        title="A Q/DQ pair on the residual as well, the usual advice for residual adds",
        build=partial(_residual, quantised=True),
        recipe=EXPLICIT,
        role=Role.WORKAROUND,
        counterpart="residual-fp32",
        precision=((RESIDUAL_CONV, Precision.INT8),),
    ),
)

FLOAT_VARIANTS = (
    Variant(
        name="int8-entropy",
        title="The block without Q/DQ, INT8 from the entropy calibrator",
        build=_float_block,
        recipe=Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy")),
        role=Role.TWIN,
        counterpart="qdq",
        expectations=(
            reported(Class.API_REMOVED, ">=11", links.MIGRATION, "nvidia", signature="implicit-int8-removed"),
        ),
    ),
    Variant(
        name="fp16",
        title="The block without Q/DQ, FP16 permitted by the builder flag",
        build=_float_block,
        recipe=Recipe(Typing.WEAK, flags=("FP16",)),
        role=Role.CONTROL,
        counterpart="qdq",
        expectations=(
            reported(Class.API_REMOVED, ">=11", links.MIGRATION, "nvidia", signature="weak-typing-removed"),
        ),
    ),
    Variant(
        name="fp16-graph",
        title="The block in FP16 by its own tensor types",
        build=partial(_float_block, TensorProto.FLOAT16),
        recipe=Recipe(flags=("FP16",)),
        role=Role.TWIN,
        counterpart="fp16",
        precision=((CONV, Precision.FP16), (NEXT_CONV, Precision.FP16)),
    ),
    Variant(
        name="fp32",
        title="The block in FP32",
        build=_float_block,
        role=Role.CONTROL,
        counterpart="qdq",
        precision=((CONV, Precision.FP32), (NEXT_CONV, Precision.FP32)),
    ),
)

CASE = Case(
    name="mish",
    title="Depthwise convolution with BatchNormalization and Mish in INT8",
    summary=(
        "A user reports that a model with depthwise convolutions and Mish does not build in INT8 on TensorRT 10.0: no "
        "implementation is found for its first one. A summary of the thread has 10.2 build it, and on 10.0 a Q/DQ "
        "pair between BatchNormalization and the activation. The report shows no graph; Q/DQ and the MobileNeXt block "
        "round the convolution are taken from an earlier report of its author. Other reports have the same error for "
        "a depthwise convolution with Swish (8.5) and with a residual Add (8.6). On Hopper a depthwise convolution "
        "with Swish at the network's end has no kernel on 8.6.1, an Identity behind it helps; 10.6.0 runs it in INT8."
    ),
    links=(REPORT, SWISH, RESIDUAL, RESIDUAL_FIX, ADD_ADVICE),
    variants=EXPLICIT_VARIANTS + EARLIER_VARIANTS + FLOAT_VARIANTS,
    seed=0,
)

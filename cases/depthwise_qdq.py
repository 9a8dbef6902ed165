"""A depthwise convolution in explicit INT8: no implementation on TensorRT 8.6, FP32 in spite of Q/DQ on 10.2.

The report is of TensorRT 8.6.11, a version that no image here has (one of DRIVE OS, by its number), so that it is a
guess for 8.6.1 and 8.6.2. It names neither channel count nor flags, and its model is lost; docs/reports.md goes through
it line by line. The graph is rebuilt from the tensors that the error names, with 32 channels, and swept: by channels,
and by channels per group at 96 channels throughout, which separates the rule in NVIDIA's header (channels per group a
multiple of 4) from the number of channels. Where that rule excludes INT8, INT8 stays the wanted precision: the Q/DQ
nodes ask for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from onnx import TensorProto

from harness.case import (
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
    import onnx

REPORT = links.issue(4060)
WORKS_WITH_RELU = links.DEPTHWISE_SWISH
CHANNEL_RULE = links.issue(1556)
FEW_CHANNELS = links.issue(3638)
GROUP_RULE = Link(links.HEADER_86.url, "NvInfer.h, IConvolutionLayer::setNbGroupsNd")

SIZE = 32
#: The harness's inputs are uniform in [-1, 1]; the convolutions keep about that magnitude.
INPUT_SCALE = 0.01
OUTPUT_SCALE = 0.025
#: The channel count of every sweep point by channels per group: a multiple of them all.
SWEPT_CHANNELS = 96
#: The node has no name; this is what the ONNX parser calls it.
CONV = "node_of_output"
FIRST_CONV = "/unet/condition_vae_latent_conv"


def _reported(
    channels: int = 32,
    *,
    per_group: int = 1,
    weights: Literal["per channel", "per tensor", "not"] = "per channel",
    after: Literal["nothing", "qdq", "relu qdq"] = "nothing",
) -> onnx.ModelProto:
    """Build the reported graph: unnamed nodes, a convolution of as many channels out as in.

    `weights` says how these are quantised, `after` what stands between the convolution and the output.
    """
    g = Graph("qdq_depthwise_conv")
    shape = [1, channels, SIZE, SIZE]
    g.input("input", shape)
    g.quantize("input", name="", scale=INPUT_SCALE, output="input_quantized")
    x = g.dequantize(
        "input_quantized", name="", scale=INPUT_SCALE, output="input_dequantized", prefix="input"
    )
    weight = g.weight("weights", (channels, per_group, 3, 3))
    if weights != "not":
        scale = g.weight_scale("weights", per_channel=weights == "per channel")
        g.quantize("weights", name="", scale=scale, axis=0, output="weights_quantized")
        weight = g.dequantize(
            "weights_quantized", name="", scale=scale, axis=0, output="weights_dequantized", prefix="weights"
        )
    x = g.conv(x, weight, name="", group=channels // per_group, output="output")
    if after == "relu qdq":
        x = g.node("Relu", [x], name="", output="output_relu")
    if after != "nothing":
        g.quantize(x, name="", scale=OUTPUT_SCALE, output="output_quantized", prefix="output")
        x = g.dequantize(
            "output_quantized", name="", scale=OUTPUT_SCALE, output="output_dequantized", prefix="output"
        )
    g.output(x, shape)
    return g.model()


def _first_conv() -> onnx.ModelProto:
    """Build the first convolution of a diffusion model: dense, 4 channels of 64x48 in, 32 out."""
    g = Graph("qdq_first_conv")
    x = g.input("latent", [1, 4, 64, 48])
    x = g.qdq(x, name=f"{FIRST_CONV}/_input_quantizer", scale=INPUT_SCALE)
    weight = g.weight("unet.condition_vae_latent_conv.weight", (32, 4, 3, 3))
    weight = g.weight_qdq(weight, name=f"{FIRST_CONV}/_weight_quantizer")
    g.conv(x, weight, name=f"{FIRST_CONV}/Conv", output="output")
    g.output("output", [1, 32, 64, 48])
    return g.model()


def _float(dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Build the convolution without Q/DQ; in FP16 between two Casts."""
    g = Graph("depthwise_conv")
    x = g.input("input", [1, 32, SIZE, SIZE])
    weight = g.weight("weights", (32, 1, 3, 3), dtype=dtype)
    if dtype == TensorProto.FLOAT16:
        x = g.node("Cast", [x], name="", output="input_half", to=dtype)
    x = g.conv(x, weight, name="", group=32, output="output")
    if dtype == TensorProto.FLOAT16:
        x = g.node("Cast", [x], name="", output="output_float", to=TensorProto.FLOAT)
    g.output(x, [1, 32, SIZE, SIZE])
    return g.model()


OK, FAILS, LOST = Class.OK, Class.BUILD_FAILED, Class.PRECISION_LOST
reported, guessed = Expectation.reported, Expectation.guessed
builds, may_build = partial(reported, OK, level="builds"), partial(guessed, OK, level="builds")
#: Builds, in the precision that the variant wants.
may_keep = partial(guessed, OK, level="precision")
NO_KERNEL = "no-implementation-qdq"
fails, may_fail = partial(reported, FAILS, signature=NO_KERNEL), partial(guessed, FAILS, signature=NO_KERNEL)
X86 = "linux/amd64"

EXPLICIT = Recipe(flags=("INT8",))
_probe = partial(
    Variant, recipe=EXPLICIT, role=Role.CONTROL, counterpart="qdq", precision=((CONV, Precision.INT8),)
)


def _by_channels(channels: int) -> Variant:
    """Return the reported graph with another number of channels."""
    rule = "users find that the channels must be a multiple of 4"
    claims = (
        may_fail(">=8.5,<9", rule, link=CHANNEL_RULE),
        guessed(LOST, ">=10", rule, link=CHANNEL_RULE),
    )
    # One channel in one group is a dense convolution as well: nothing is known of it.
    odd = channels % 4 != 0 and channels > 1
    return _probe(
        name=f"qdq-c{channels}",
        title=f"Depthwise with {channels} channel{'s' if channels > 1 else ''}",
        build=partial(_reported, channels),
        expectations=claims if odd else (),
        tags=("sweep:channels",),
    )


def _by_group(per_group: int) -> Variant:
    """Return a grouped convolution of 96 channels with this many channels in a group."""
    rule = "channels per group must be a multiple of 4 in INT8"
    claims: tuple[Expectation, ...] = ()
    if per_group % 4 == 0:
        claims = (may_keep(">=8.5", f"{rule}, which is not to say that it is then given", link=GROUP_RULE),)
    elif per_group > 1:  # depthwise contradicts the rule: issue 3385 has it in INT8
        claims = (guessed(LOST, ">=10", rule, link=GROUP_RULE),)
    return _probe(
        name=f"qdq-group{per_group}",
        title=f"{SWEPT_CHANNELS} channels in groups of {per_group}",
        build=partial(_reported, SWEPT_CHANNELS, per_group=per_group),
        expectations=claims,
        tags=("sweep:group",),
    )


REPORTED_VARIANTS = (
    _probe(
        name="qdq",
        title="Depthwise convolution with Q/DQ on input and weights at the end of the graph, as reported",
        build=_reported,
        role=Role.REPRODUCER,
        counterpart=None,
        expectations=(
            may_fail(">=8.6,<9", "8.6.11 fails on a Quadro T2000 (SM 7.5)", link=REPORT, platform=X86),
            may_fail(
                ">=8.6,<9",
                "8.6.11 fails on x86, and the target is an AGX Orin",
                link=REPORT,
                platform="jetson",
            ),
            reported(LOST, ">=10.2,<10.3", REPORT, "summary", note="the whole model, in FP32", platform=X86),
        ),
    ),
    _probe(
        name="qdq-after",
        title="A Q/DQ pair after the convolution lets it end in INT8",
        build=partial(_reported, after="qdq"),
        role=Role.WORKAROUND,
        expectations=(may_build(">=8.5", link=WORKS_WITH_RELU),),
    ),
    _probe(
        name="qdq-relu-after",
        title="ReLU and a Q/DQ pair after a convolution of 144 channels, which users saw work",
        build=partial(_reported, 144, after="relu qdq"),
        role=Role.WORKAROUND,
        expectations=(
            builds(">=8.5,<8.6", WORKS_WITH_RELU, note="AGX Orin, BatchNorm", platform="jetson"),
            may_build(">=8.5", link=WORKS_WITH_RELU),
        ),
    ),
    _probe(
        name="act-qdq",
        title="Without Q/DQ on the weights it builds, in FP32",
        build=partial(_reported, weights="not"),
        role=Role.WORKAROUND,
        precision=((CONV, Precision.FP32),),
        expectations=(
            may_keep(">=8.5", "8.6.11 builds it in FP32, by a summary of the thread", link=REPORT),
        ),
    ),
    _probe(
        name="qdq-per-tensor",
        title="One weight scale for all channels in place of one for each",
        build=partial(_reported, weights="per tensor"),
    ),
    _probe(
        name="qdq-dense",
        title="A dense convolution in place of the depthwise one",
        build=partial(_reported, per_group=32),
        expectations=(may_keep(">=8.5", "one group of 32 channels", link=GROUP_RULE),),
    ),
    _probe(
        name="qdq-dense-c4",
        title="A dense first convolution with 4 channels in has the same failure",
        build=_first_conv,
        role=Role.REPRODUCER,
        precision=((f"{FIRST_CONV}/Conv", Precision.INT8),),
        expectations=(fails(">=8.6,<9", FEW_CHANNELS, note="seen on a T4 (SM 7.5)", platform=X86),),
    ),
)

FLOAT_VARIANTS = (
    Variant(
        name="fp16",
        title="The convolution without Q/DQ, FP16 permitted by the builder flag",
        build=_float,
        recipe=Recipe(Typing.WEAK, flags=("FP16",)),
        role=Role.CONTROL,
        counterpart="qdq",
        expectations=(
            may_build(">=8.5,<11", link=REPORT),
            reported(Class.API_REMOVED, ">=11", links.MIGRATION, "nvidia", signature="weak-typing-removed"),
        ),
    ),
    Variant(
        name="fp16-graph",
        title="The convolution in FP16 by its own tensor types",
        build=partial(_float, TensorProto.FLOAT16),
        recipe=Recipe(flags=("FP16",)),
        role=Role.TWIN,
        counterpart="fp16",
        precision=((CONV, Precision.FP16),),
        expectations=(may_build(">=8.5", link=REPORT),),
    ),
    Variant(
        name="fp32",
        title="The convolution in FP32",
        build=_float,
        role=Role.CONTROL,
        counterpart="qdq",
        precision=((CONV, Precision.FP32),),
        expectations=(may_build(">=8.5", link=REPORT),),
    ),
)

CASE = Case(
    name="depthwise_qdq",
    title="Depthwise and grouped convolution in explicit INT8",
    summary=(
        "A depthwise convolution with Q/DQ on input and weights runs in ONNX Runtime, does not build on "
        "TensorRT 8.6.11 and builds on 10.2 in FP32. NVIDIA's header demands channels per group in multiples "
        "of 4 for INT8, yet users run depthwise convolutions in INT8; the sweeps show where INT8 is given."
    ),
    links=(REPORT, WORKS_WITH_RELU, GROUP_RULE, CHANNEL_RULE, FEW_CHANNELS),
    variants=(
        *REPORTED_VARIANTS,
        *(_by_channels(channels) for channels in (1, 3, 4, 6, 8, 16, 30, 144)),
        *(_by_group(per_group) for per_group in (1, 2, 3, 4, 6, 8, 12, 16)),
        *FLOAT_VARIANTS,
    ),
)

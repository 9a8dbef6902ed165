"""A depthwise convolution in explicit INT8: no implementation on TensorRT 8.6, FP32 in spite of Q/DQ on 10.2.

The report is of TensorRT 8.6.11, a version that no image here has (one of DRIVE OS, by its number), which its claim
says. It names neither channel count nor flags, and its model is lost. The graph is rebuilt from the tensors that the
error names, with 32 channels, and swept: by channels, and by channels per group at 96 channels throughout, which
separates the rule in NVIDIA's header (channels per group a multiple of 4) from the number of channels. Where that
rule excludes INT8, INT8 stays the wanted precision: the Q/DQ nodes ask for it.

Issue 4060 has CUDA 11.4, driver 470.256.02, `trtexec` and the error node `weights + node_of_weights_quantized +
node_of_output`; a lost script made the model. It is open, so nothing is claimed to be mended. Issue 3638 (8.6.1, T4)
has 4 channels on 64x48 and opset 17, here 13. Issue 1556 has a user's rule of 4 output channels, from which no claim
is made.
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
    size: int = SIZE,
    weights: Literal["per channel", "per tensor", "not"] = "per channel",
    after: Literal["nothing", "qdq", "relu qdq"] = "nothing",
) -> onnx.ModelProto:
    """Build the reported graph: unnamed nodes, a convolution of as many channels out as in.

    `weights` says how these are quantised, `after` the operator between the convolution and the output.
    """
    g = Graph("qdq_depthwise_conv")
    shape = [1, channels, size, size]
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


def _first_conv(channels: int = 4) -> onnx.ModelProto:
    """Build the first convolution of a diffusion model: dense, 4 channels of 64x48 in, 32 out."""
    g = Graph("qdq_first_conv")
    x = g.input("latent", [1, channels, 64, 48])
    x = g.qdq(x, name=f"{FIRST_CONV}/_input_quantizer", scale=INPUT_SCALE)
    weight = g.weight("unet.condition_vae_latent_conv.weight", (32, channels, 3, 3))
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
reported = Expectation.reported
X86 = "linux/amd64"
#: The reported model is one convolution, which is lost: its channels are not known.
_said = partial(reported, link=REPORT, scope="model", platform=X86)
fails = partial(reported, FAILS, "==8.6.*", signature="no-implementation-qdq", scope="model", platform=X86)
T2000 = "8.6.11, Quadro T2000 (SM 7.5), by its number of DRIVE OS"

EXPLICIT = Recipe(flags=("INT8",))
_probe = partial(
    Variant, recipe=EXPLICIT, role=Role.CONTROL, counterpart="qdq", precision=((CONV, Precision.INT8),)
)


def _by_channels(channels: int) -> Variant:
    """Return the reported graph with another number of channels."""
    return _probe(
        name=f"qdq-c{channels}",
        title=f"Depthwise with {channels} channel{'s' if channels > 1 else ''}",
        build=partial(_reported, channels),
        tags=("sweep:channels",),
    )


def _by_group(per_group: int) -> Variant:
    """Return a grouped convolution of 96 channels with this many channels in a group."""
    return _probe(
        name=f"qdq-group{per_group}",
        title=f"{SWEPT_CHANNELS} channels in groups of {per_group}",
        build=partial(_reported, SWEPT_CHANNELS, per_group=per_group),
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
            fails(link=REPORT, of=T2000, note="to be run on an AGX Orin", compute_capability="7.5"),
            _said(LOST, "==10.2.*", kind="summary", note="it builds, and the convolution runs in FP32"),
        ),
    ),
    _probe(
        name="qdq-after",
        title="A Q/DQ pair after the convolution, as where users saw it in INT8",
        build=partial(_reported, after="qdq"),
        role=Role.WORKAROUND,
    ),
    _probe(
        name="qdq-relu-after",
        title="ReLU and a Q/DQ pair after a convolution of 144 channels, which users saw work",
        build=partial(_reported, 144, after="relu qdq"),
        role=Role.WORKAROUND,
        expectations=(
            reported(
                OK,
                "==8.5.*",
                WORKS_WITH_RELU,
                of="8.5.2, AGX Orin, with BatchNormalization",
                level="builds",
                platform="jetson",
                compute_capability="8.7",
            ),
        ),
    ),
    _probe(
        name="act-qdq",
        title="Without Q/DQ on the weights it builds, in FP32",
        build=partial(_reported, weights="not"),
        role=Role.WORKAROUND,
        precision=((CONV, Precision.FP32),),
        expectations=(
            _said(OK, "==8.6.*", kind="summary", of=T2000, level="precision", compute_capability="7.5"),
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
        expectations=(
            reported(
                OK,
                "==8.6.*",
                links.operators("8.6"),
                "nvidia",
                level="builds",
                note="the operator list has Conv in INT8",
            ),
        ),
    ),
    _probe(
        name="qdq-dense-c4",
        title="A dense first convolution with 4 channels in has the same failure",
        build=_first_conv,
        role=Role.REPRODUCER,
        precision=((f"{FIRST_CONV}/Conv", Precision.INT8),),
        expectations=(fails(link=FEW_CHANNELS, of="8.6.1, T4 (SM 7.5), a UNet", compute_capability="7.5"),),
    ),
    _probe(
        name="qdq-dense-c3",
        title="A dense first convolution with the 3 channels of an image in",
        build=partial(_first_conv, 3),
        precision=((f"{FIRST_CONV}/Conv", Precision.INT8),),
    ),
)


def _by_size(size: int) -> Variant:
    """Return the reported graph on another size of image."""
    return _probe(
        name=f"qdq-size{size}",
        title=f"Depthwise with 32 channels on {size}x{size}",
        build=partial(_reported, size=size),
        tags=("sweep:size",),
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
    ),
    Variant(
        name="fp32",
        title="The convolution in FP32",
        build=_float,
        role=Role.CONTROL,
        counterpart="qdq",
        precision=((CONV, Precision.FP32),),
    ),
)

CASE = Case(
    name="depthwise_qdq",
    title="Depthwise and grouped convolution in explicit INT8",
    summary=(
        "A depthwise convolution with Q/DQ on input and weights runs in ONNX Runtime, does not build on "
        "TensorRT 8.6.11 and builds on 10.2 in FP32; without Q/DQ on the weights 8.6.11 builds it, in FP32 too. "
        "NVIDIA's header demands channels per group in multiples of 4 for INT8, which a summary of the thread "
        "repeats, yet users run depthwise convolutions in INT8; the sweeps show where INT8 is given. On Hopper "
        "TensorRT 8.6.1 and 10.6.0 run depthwise convolutions of 4, 8, 12, 16, 20 and 144 channels in INT8. For "
        "2, 3, 6 and 30 channels 8.6.1 has no kernel and builds nothing; 10.6.0 runs them in FP32 without a word. "
        "Groups of 2 to 16 and of 48 channels, of 96, run in FP32 on both: INT8 is not offered, and groups of 3 or 6 "
        "take several times the time of 2 or 4. Groups of 32 run in INT8 on both."
    ),
    links=(REPORT, WORKS_WITH_RELU, GROUP_RULE, CHANNEL_RULE, FEW_CHANNELS),
    variants=(
        *REPORTED_VARIANTS,
        *(_by_channels(channels) for channels in (1, 2, 3, 4, 6, 8, 12, 16, 20, 30, 144)),
        *(_by_group(per_group) for per_group in (1, 2, 3, 4, 6, 8, 12, 16, 32, 48)),
        *(_by_size(size) for size in (8, 112)),
        *FLOAT_VARIANTS,
    ),
    seed=3,
)

"""INT8 beyond the plain 2-D convolution: ConvTranspose, 1-D and 3-D; and a deconvolution with stride and dilation.

TensorRT had no INT8 for a grouped ConvTranspose in 8.4 (issue 1934: channels at least four times the groups), and a
depthwise one with BatchNormalization builds from 8.5 on (issue 1556). The scale a channel of a ConvTranspose is along
axis 1 of its weight, which has input channels first; NVIDIA's quantiser and its engine disagreed on that (issue 1694).
The 3-D convolution has an FP16 form beside it, which is the way round for GPUs whose FP32 and INT8 forms are refused.

Issue 1934 is of 8.4; NVIDIA tested it as mended on 10.9, in which precision is not said. Torch-TensorRT change 4306
has RTX 1.5 without a kernel for strided and dilated 3-D deconvolutions (A100); whether 2-D ones fail too it does not
say.
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
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

GROUPED = links.issue(1934, "grouped ConvTranspose with Q/DQ")
AXIS = links.issue(1694, "the axis of a ConvTranspose's scales")
DEPTHWISE = links.issue(1556, "a depthwise ConvTranspose in INT8")
VOLUMES = Link(
    "https://forums.developer.nvidia.com/t/tensorrt-10-x-is-convtranspose3d-supported-in-int8-on-jetson-qat-workflow/353440",
    "NVIDIA's forum: ConvTranspose3d in INT8",
)
DILATED = Link(
    "https://github.com/pytorch/TensorRT/pull/4306", "pytorch/TensorRT change 4306: deconvolutions on RTX"
)

CHANNELS, SIZE = 16, 8
INPUT_SCALE = 0.01
UP, CONV = "/up", "/conv"


def _deconvolution(
    *, axis: int | None, group: int = 1, channels: int = CHANNELS, dimensions: int = 2
) -> onnx.ModelProto:
    """Build a ConvTranspose with Q/DQ on both inputs; an `axis` of None is one scale for the whole weight."""
    g = Graph("deconvolution")
    x = g.input("input", [1, channels, *[SIZE] * dimensions])
    x = g.qdq(x, name=f"{UP}/_input_quantizer", scale=INPUT_SCALE)
    weight = g.weight("up.weight", (channels, channels // group, *[4] * dimensions))
    name = f"{UP}/_weight_quantizer"
    weight = g.weight_qdq(weight, name=name, per_channel=axis is not None, axis=axis or 0)
    g.conv_transpose(x, weight, name=UP, group=group, output="output", dimensions=dimensions)
    g.output("output", [1, channels, *[2 * SIZE] * dimensions])
    return g.model()


def _float_deconvolution(dtype: int, dimensions: int = 2) -> onnx.ModelProto:
    g = Graph("deconvolution")
    x = g.input("input", [1, CHANNELS, *[SIZE] * dimensions], dtype)
    weight = g.weight("up.weight", (CHANNELS, CHANNELS, *[4] * dimensions), dtype=dtype)
    g.conv_transpose(x, weight, name=UP, output="output", dimensions=dimensions)
    g.output("output", [1, CHANNELS, *[2 * SIZE] * dimensions], dtype)
    return g.model()


def _convolution(dimensions: int, *, dtype: int | None = None) -> onnx.ModelProto:
    """Build a convolution of some dimensions, in INT8 by Q/DQ or in the floating-point type given."""
    g = Graph("convolution")
    shape = [1, CHANNELS, *[SIZE] * dimensions]
    x = g.input("input", shape, dtype or TensorProto.FLOAT)
    weight = g.weight(
        "conv.weight", (CHANNELS, CHANNELS, *[3] * dimensions), dtype=dtype or TensorProto.FLOAT
    )
    if dtype is None:
        x = g.qdq(x, name=f"{CONV}/_input_quantizer", scale=INPUT_SCALE)
        weight = g.weight_qdq(weight, name=f"{CONV}/_weight_quantizer")
    g.conv(x, weight, name=CONV, dimensions=dimensions, output="output")
    g.output("output", shape, dtype or TensorProto.FLOAT)
    return g.model()


def _dilated(*, zeros: bool) -> onnx.ModelProto:
    """Build a deconvolution of stride 2 and dilation 2; with `zeros` they stand in its kernel and the dilation is 1."""
    g = Graph("dilated")
    x = g.input("input", [1, CHANNELS, SIZE, SIZE])
    kernel, apart = (5, 2) if zeros else (3, 1)
    places = [y * kernel + x for y in range(0, kernel, apart) for x in range(0, kernel, apart)]
    values = [0.0] * (CHANNELS * CHANNELS * kernel * kernel)
    for number in range(CHANNELS * CHANNELS * len(places)):
        filter_, place = divmod(number, len(places))
        values[filter_ * kernel * kernel + places[place]] = (number * 37 % 101 - 50) / 500
    weight = g.constant("up.weight", values, (CHANNELS, CHANNELS, kernel, kernel))
    g.conv_transpose(x, weight, name=UP, kernel=kernel, dilation=1 if zeros else 2, output="output")
    g.output("output", [1, CHANNELS, 2 * SIZE + 1, 2 * SIZE + 1])
    return g.model()


OK, FAILS = Class.OK, Class.BUILD_FAILED
reported = Expectation.reported
RESOLVED = reported(OK, "==10.9.*", GROUPED, "nvidia", of="a grouped one", level="builds")
_of_centerface = partial(
    reported, link=DEPTHWISE, kind="nvidia", scope="model", of="a CenterFace, 24 channels, BatchNormalization"
)
QUANTISED, HALF = Recipe(flags=("INT8",)), Recipe(flags=("FP16",))
_up = partial(
    Variant,
    recipe=QUANTISED,
    role=Role.CONTROL,
    counterpart="up-per-channel",
    precision=((UP, Precision.INT8),),
)
DECONVOLUTIONS = (
    _up(
        name="up-per-channel",
        title="ConvTranspose in INT8, a weight scale for each output channel (axis 1)",
        build=partial(_deconvolution, axis=1),
        role=Role.REPRODUCER,
        counterpart=None,
    ),
    _up(
        name="up-per-tensor",
        title="ConvTranspose in INT8, one weight scale",
        build=partial(_deconvolution, axis=None),
    ),
    _up(
        name="up-axis0",
        title="ConvTranspose in INT8, a weight scale for each input channel (axis 0), once advised",
        build=partial(_deconvolution, axis=0),
    ),
    _up(
        name="up-odd",
        title="ConvTranspose in INT8 with 15 channels",
        build=partial(_deconvolution, axis=1, channels=15),
    ),
    _up(
        name="up-group4",
        title="ConvTranspose in INT8 in 4 groups, four channels for each group",
        build=partial(_deconvolution, axis=None, group=4),
        role=Role.REPRODUCER,
        counterpart=None,
        tags=("no-reference",),
        expectations=(RESOLVED,),
    ),
    _up(
        name="up-depthwise",
        title="ConvTranspose in INT8, depthwise",
        build=partial(_deconvolution, axis=None, group=CHANNELS),
        role=Role.REPRODUCER,
        counterpart=None,
        expectations=(
            reported(
                FAILS, "==8.4.*", GROUPED, "nvidia", note="channels must be at least four times the groups"
            ),
            _of_centerface(OK, "==8.5.*", level="builds", note="fixed in 8.5"),
            RESOLVED,
        ),
    ),
    _up(
        name="up-fp16",
        title="ConvTranspose in FP16, which is what is left where it has no INT8",
        build=partial(_float_deconvolution, TensorProto.FLOAT16),
        recipe=HALF,
        role=Role.WORKAROUND,
        precision=((UP, Precision.FP16),),
    ),
    _up(
        name="up3d",
        title="A 3-D ConvTranspose in INT8, a weight scale for each output channel",
        build=partial(_deconvolution, axis=1, dimensions=3),
        role=Role.REPRODUCER,
        counterpart=None,
        expectations=(
            reported(
                Class.PRECISION_LOST,
                "==10.13.*",
                VOLUMES,
                scope="model",
                of="10.13, a network of 3-D convolutions that is meant for a Jetson",
                note="the 3-D convolutions run in INT8, this in FP16 or FP32",
            ),
        ),
    ),
    _up(
        name="up3d-fp16",
        title="The 3-D ConvTranspose in FP16",
        build=partial(_float_deconvolution, TensorProto.FLOAT16, 3),
        recipe=HALF,
        role=Role.WORKAROUND,
        counterpart="up3d",
        precision=((UP, Precision.FP16),),
    ),
)

LISTED = (
    reported(
        OK,
        "==8.6.*",
        links.operators("8.6"),
        "nvidia",
        level="builds",
        note="the list has Conv in INT8 and FP16; it tells of no dimensions and no build",
    ),
)
_conv = partial(Variant, recipe=QUANTISED, precision=((CONV, Precision.INT8),))
CONVOLUTIONS = (
    _conv(
        name="conv1d",
        title="A 1-D convolution in INT8",
        build=partial(_convolution, 1),
        expectations=LISTED,
    ),
    _conv(
        name="conv3d",
        title="A 3-D convolution in INT8",
        build=partial(_convolution, 3),
        expectations=LISTED,
    ),
    _conv(
        name="conv3d-fp16",
        title="The 3-D convolution in FP16",
        build=partial(_convolution, 3, dtype=TensorProto.FLOAT16),
        recipe=HALF,
        role=Role.WORKAROUND,
        counterpart="conv3d",
        precision=((CONV, Precision.FP16),),
        expectations=LISTED,
    ),
)

DILATED_ONES = (
    Variant(
        name="up-dilated",
        title="ConvTranspose with stride 2 and dilation 2 in FP32",
        build=partial(_dilated, zeros=False),
        precision=((UP, Precision.FP32),),
        expectations=(
            reported(
                FAILS,
                "==1.5.*",
                DILATED,
                "nvidia",
                scope="sibling",
                of="3-D ones, an A100",
                engine=Engine.TENSORRT_RTX,
                signature="strided-dilated-deconvolution",
            ),
        ),
    ),
    Variant(
        name="up-dilated-zeros",
        title="ConvTranspose with stride 2, its dilation as zeros in the kernel, in FP32",
        build=partial(_dilated, zeros=True),
        role=Role.WORKAROUND,
        counterpart="up-dilated",
        precision=((UP, Precision.FP32),),
    ),
)

CASE = Case(
    name="qdq_shapes",
    title="INT8 deconvolution, 1-D and 3-D convolution, and deconvolution with stride and dilation",
    summary=(
        "Quantised ConvTranspose was refused, then taken where channels and groups allow it, and an engine may take "
        "it in FP32 without a word. Convolutions of one and three dimensions have INT8 of their own. A deconvolution "
        "with both stride and dilation is written with zeros in its kernel where the engine has none. On Hopper 8.6.1 "
        "and 10.6.0 run a dense ConvTranspose in INT8, offer none to one in groups or of volumes and to the 3-D "
        "convolution, and build one with stride and dilation as it is."
    ),
    links=(GROUPED, AXIS, DEPTHWISE, VOLUMES, DILATED),
    variants=DECONVOLUTIONS + CONVOLUTIONS + DILATED_ONES,
)

"""Convolutions in FP8 by Q/DQ: dense, the first one, grouped, depthwise, and the type of their scales.

On TensorRT 10.2 a weakly typed network took no FP8 convolution, which NVIDIA calls a bug; with strong typing it did,
but for the first convolution of ResNet, with its three channels, no implementation was found (issue 3987). Release
notes up to 10.12 say that grouped and depthwise ones have no optimised FP8 kernel (quoted in issue 4524), and users
find no FP8 kernel for a dense one either on 10.12 (issue 4560). The scales have the type of the data: FP16 scales on
FP32 data, which 10.7 refused (Model-Optimizer issue 118), are no valid ONNX at this opset.

The claims of 10.2 and 10.12 are of an H100. Whether 10.3 mended the bug of 10.2, as NVIDIA wanted to, was not read.
"Not optimised" is taken as "in another type". The first convolution here is 8x8.
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
    Typing,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

WEAK = links.issue(3987, "FP8 convolution on 10.2")
GROUPS = links.issue(4524, "FP8 depthwise convolutions")
DENSE = links.issue(4560, "no FP8 convolution on 10.12 and an H100")
NO_FASTER = links.issue(4081, "FP8 convolution as slow as FP16")
SCALES = Link(
    "https://github.com/NVIDIA/Model-Optimizer/issues/118", "Model-Optimizer issue 118: FP16 scales"
)

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
CONV, SIZE = "/conv1/Conv", 8
INPUT_SCALE, WEIGHT_SCALE = 0.0025, 0.001


def _fp8(channels: int = 32, *, group: int = 1, out: int = 32, data: int = FLOAT) -> onnx.ModelProto:
    """Build a convolution with FP8 Q/DQ on both inputs, scales in the type of the data."""
    g = Graph("fp8_conv", opset=19)
    to = Quantiser(TensorProto.FLOAT8E4M3FN, data)
    x = g.qdq(
        g.input("input", [1, channels, SIZE, SIZE], data),
        name="/conv1/input_quantizer",
        scale=INPUT_SCALE,
        to=to,
    )
    weight = g.weight("conv1.weight", (out, channels // group, 3, 3), dtype=data)
    weight = g.qdq(weight, name="/conv1/weight_quantizer", scale=WEIGHT_SCALE, to=to)
    g.conv(x, weight, name=CONV, group=group, output="output")
    g.output("output", [1, out, SIZE, SIZE], data)
    return g.model()


reported = Expectation.reported
LOST, OK = Class.PRECISION_LOST, Class.OK
#: All that is reported of TensorRT itself is of an H100.
_on_h100 = partial(reported, compute_capability="9.0")
NO_KERNEL = reported(
    LOST,
    "==10.12.*",
    GROUPS,
    "nvidia",
    scope="sibling",
    note="the release notes: no optimised FP8 for groups and depthwise; not that they run in another type",
)
_on_rtx = partial(
    reported, versions=">=1.5,<1.6", link=links.RTX_PRECISIONS, kind="nvidia", engine=Engine.TENSORRT_RTX
)
FP8_ON_RTX = (
    *(
        _on_rtx(OK, scope="sibling", of="FP8 at large", level="builds", compute_capability=gpu)
        for gpu in ("8.9", "12.0")
    ),
    *(
        _on_rtx(Class.BUILD_FAILED, compute_capability=gpu, signature="type-not-on-generation")
        for gpu in ("7.5", "8.6")
    ),
)
STRONG = Recipe(typing=Typing.STRONG)
NO_STRONG = reported(Class.API_REMOVED, "<9", links.HEADER_86, "source", signature="strong-typing-missing")
_variant = partial(
    Variant,
    recipe=STRONG,
    role=Role.CONTROL,
    counterpart="dense",
    precision=((CONV, Precision.FP8),),
    tags=("opset19",),
)

CASE = Case(
    name="fp8_conv",
    title="Convolution in FP8",
    summary=(
        "FP8 convolutions came with TensorRT 10.2 and strong typing alone. Which of them have a kernel, dense, first, "
        "grouped or depthwise, is asked again with every version and GPU generation. On Hopper 10.6.0 runs a depthwise "
        "one of 32 channels as 32 convolutions in FP8, 97 kernels, some twenty times slower than a dense one."
    ),
    links=(WEAK, GROUPS, DENSE, NO_FASTER, SCALES, links.RTX_PRECISIONS),
    variants=(
        _variant(
            name="dense-flags",
            title="A dense convolution in FP8, permitted by the builder flags",
            build=_fp8,
            recipe=Recipe(flags=("FP8",)),
            role=Role.REPRODUCER,
            counterpart=None,
            expectations=(
                _on_h100(
                    LOST,
                    "==10.2.*",
                    WEAK,
                    of="10.2, an H100",
                    note="a bug of 10.2, says NVIDIA, which wants to mend it in 10.3",
                ),
                *FP8_ON_RTX,
            ),
        ),
        _variant(
            name="dense",
            title="A dense convolution in FP8, strongly typed",
            build=_fp8,
            role=Role.WORKAROUND,
            counterpart="dense-flags",
            expectations=(
                NO_STRONG,
                _on_h100(OK, "==10.2.*", WEAK, of="10.2, an H100", level="precision"),
                _on_h100(
                    LOST, "==10.12.*", DENSE, scope="model", of="10.12.0.36, an H100, by Torch-TensorRT"
                ),
                reported(
                    OK,
                    "==10.3.*",
                    NO_FASTER,
                    scope="sibling",
                    of="10.3, an RTX 4090, one convolution whose typing was not read",
                    level="precision",
                    note="FP8 kernels that are no faster than those of FP16",
                    compute_capability="8.9",
                ),
                *FP8_ON_RTX,
            ),
        ),
        _variant(
            name="first",
            title="A first convolution in FP8, with 3 channels in",
            build=partial(_fp8, 3),
            role=Role.REPRODUCER,
            counterpart=None,
            expectations=(
                NO_STRONG,
                _on_h100(
                    Class.BUILD_FAILED,
                    "==10.2.*",
                    WEAK,
                    scope="model",
                    of="10.2, an H100, a ResNet",
                    signature="no-implementation",
                ),
            ),
        ),
        _variant(
            name="group2",
            title="A convolution of two groups in FP8",
            build=partial(_fp8, group=2),
            role=Role.REPRODUCER,
            counterpart=None,
            expectations=(NO_STRONG, NO_KERNEL),
        ),
        _variant(
            name="depthwise",
            title="A depthwise convolution in FP8",
            build=partial(_fp8, group=32),
            role=Role.REPRODUCER,
            counterpart=None,
            expectations=(NO_STRONG, NO_KERNEL),
        ),
        _variant(
            name="half",
            title="The dense convolution with FP16 data and scales",
            build=partial(_fp8, data=HALF),
            expectations=(
                NO_STRONG,
                *FP8_ON_RTX,
            ),
        ),
    ),
)

"""Grouped convolution in FP16 between two Casts: "No low-precision conv kernel available" on TensorRT 11.2.

The report (issue 4838) is of a graph of this form, whose sizes and groups its text does not tell. TensorRT 10.16.1.11
builds it, 11.2.1.2 does not, both on an RTX 4090; in FP32 11.2.1.2 is fine. Dense, depthwise and 3-D forms stand
beside it: the report suspects the groups, and says nothing of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onnx import TensorProto

from harness.case import Case, Class, Expectation, Graph, Precision, Recipe, Role, Variant, links

if TYPE_CHECKING:
    import onnx

REPORT = links.issue(4838, "FP16 grouped convolution on 11.2.1.2")
FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
CONV, CHANNELS, SIZE = "/conv/Conv", 32, 8


def _conv(group: int, *, dtype: int = HALF, dimensions: int = 2, channels: int = CHANNELS) -> onnx.ModelProto:
    """Build a convolution of FP32 input and output; in FP16 it stands between two Casts."""
    g = Graph("group_conv")
    shape = [1, channels, *[SIZE] * dimensions]
    x = g.input("input", shape)
    if dtype == HALF:
        x = g.node("Cast", [x], name="/Cast", to=HALF)
    weight = g.weight("conv.weight", (channels, channels // group, *[3] * dimensions), dtype=dtype)
    output = None if dtype == HALF else "output"
    x = g.conv(x, weight, name=CONV, group=group, dimensions=dimensions, output=output)
    if dtype == HALF:
        g.node("Cast", [x], name="/Cast_1", to=FLOAT, output="output")
    g.output("output", shape)
    return g.model()


_reported = partial(Expectation.reported, link=REPORT, compute_capability="8.9")
BUILDS = _reported(Class.OK, "==10.16.*", of="10.16.1.11, an RTX 4090", level="builds")
FAILS = _reported(
    Class.BUILD_FAILED,
    "==11.2.*",
    of="11.2.1.2, an RTX 4090",
    note="sizes and groups are not told",
    signature="no-low-precision-convolution",
)
IN_FP32 = _reported(
    Class.OK, "==11.2.*", of="11.2.1.2, an RTX 4090", level="builds", note="FP32 works normally"
)
FP16 = Recipe(flags=("FP16",))
_half = partial(Variant, recipe=FP16, precision=((CONV, Precision.FP16),))
_beside = partial(_half, role=Role.CONTROL, counterpart="group4")

CASE = Case(
    name="fp16_group_conv",
    title="Grouped convolution in FP16",
    summary=(
        "A grouped convolution in FP16 that TensorRT 10.16.1 builds has no kernel on 11.2.1. The error's own advice is "
        "to keep the convolution in FP32. On Hopper 8.6.1 and 10.6.0 choose FP32 for a dense and a depthwise one as "
        "small: its FP16 kernel is no slower, and in FP32 the two Casts around it vanish. Grouped ones "
        "run in FP16, or by a few percent in TF32: the 3-D one on 10.6.0, and on an H200 the one of 4 groups on 10.6.0 "
        "and the 3-D one on 8.6.1."
    ),
    links=(REPORT,),
    variants=(
        _half(
            name="group4",
            title="A convolution of 4 groups in FP16, between two Casts",
            build=partial(_conv, 4),
            expectations=(BUILDS, FAILS),
        ),
        Variant(
            name="group4-fp32",
            title="The grouped convolution in FP32, as the error advises",
            build=partial(_conv, 4, dtype=FLOAT),
            role=Role.WORKAROUND,
            counterpart="group4",
            precision=((CONV, Precision.FP32),),
            expectations=(IN_FP32,),
        ),
        _beside(
            name="dense", title="A dense convolution in FP16, between two Casts", build=partial(_conv, 1)
        ),
        _beside(
            name="depthwise",
            title="A depthwise convolution in FP16, between two Casts",
            build=partial(_conv, 32),
        ),
        _beside(
            name="group4-3d",
            title="A 3-D convolution of 4 groups in FP16, between two Casts",
            build=partial(_conv, 4, dimensions=3),
        ),
        *(
            _beside(
                name=f"group{group}",
                title=f"A convolution of {group} groups in FP16, between two Casts",
                build=partial(_conv, group),
            )
            for group in (2, 8)
        ),
        _beside(
            name="group4-c256",
            title="A convolution of 256 channels in 4 groups in FP16, between two Casts",
            build=partial(_conv, 4, channels=256),
        ),
    ),
)

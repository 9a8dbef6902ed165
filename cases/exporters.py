"""Exports that a version's parser or builder refuses, each with its replacement.

Each refusal is one operator or one attribute of a real exporter's output, in the smallest graph that has it: images in
UINT8, Resize with antialiasing, a detector's TopK, NonMaxSuppression and masks, casts, newer opsets, deconvolutions. A
workaround stands beside its original. The table of all operators is made from ONNX's own node tests; here are those
that users ask about.

Left out: further modes of Resize, which end as antialiasing does; NonZero alone, which is a part of the mask; BF16
deconvolutions that are grouped or of other dimensions, which end as the plain one does; with a stride and a dilation
they are among the quantised shapes.

Torch-TensorRT change 4306 says that BF16 depthwise convolutions work from RTX 1.5 on. Nobody reports `opset-27`, nor
the convolution in front of a Cast, which was met while issue 184 was made smaller.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx import TensorProto

from harness.case import (
    Case,
    Class,
    Engine,
    Expectation,
    Graph,
    Link,
    Profile,
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import onnx

RTX = "https://github.com/NVIDIA/TensorRT-RTX/issues"
SEGFAULT = links.issue(4586, "the parser crashes on an Identity")
ANTIALIAS = links.issue(3560, "Resize with antialiasing")
TOPK = links.issue(4390, "the limit of TopK")
NMS = Link(f"{RTX}/5", "TensorRT-RTX issue 5: NonMaxSuppression")
NONZERO_14 = Link(f"{RTX}/32", "TensorRT-RTX issue 32: NonZero on 1.4.0")
NONZERO = Link(f"{RTX}/36", "TensorRT-RTX issue 36: NonZero on 1.5.0")
SWISH = links.changes("11.0", "the parser takes Swish")
CAST = Link(
    "https://github.com/NVlabs/GR00T-WholeBodyControl/issues/184",
    "GR00T-WholeBodyControl issue 184: a Cast in front of an Unsqueeze",
)
BF16_DECONV = Link("https://github.com/pytorch/TensorRT/pull/4306", "pytorch/TensorRT change 4306: RTX 1.5")
BF16_110 = links.issue(4829, "ConvTranspose in BF16")

FLOAT, HALF, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
INT32, INT64, UINT8 = TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8
DECONV = "/up/ConvTranspose"
RTX_4080 = "11.0.0.114, an RTX 4080"
BOXES, KEPT = 64, 8

OK, NO_PARSER, FAILS = Class.OK, Class.PARSE_FAILED, Class.BUILD_FAILED
reported = Expectation.reported
NO_BF16 = tuple(
    reported(
        NO_PARSER,
        f"=={version}.*",
        links.operators(version),
        "nvidia",
        note="its types have no BF16",
    )
    for version in ("8.5", "8.6")
)
parsed_since = partial(reported, OK, level="builds")
no_nonzero = partial(
    reported,
    FAILS,
    scope="model",
    note="a known gap, says NVIDIA there",
    engine=Engine.TENSORRT_RTX,
    signature="no-runners",
)


def _image() -> onnx.ModelProto:
    """Build tf2onnx's identity of a UINT8 image, its batch dynamic."""
    g = Graph("ident")
    shape: list[int | str] = ["batch", 16, 16, 3]
    g.node("Identity", [g.input("__input", shape, UINT8)], name="ident", output="output")
    g.output("output", shape, UINT8)
    return g.model()


def _alone(  # noqa: PLR0913
    op: str,
    opset: int,
    inputs: Sequence[tuple[list[int], int]],
    output: list[int],
    *,
    constants: Callable[[Graph], list[str]] = lambda _: [],
    outputs: Sequence[str] = ("output",),
    **attributes: Any,  # noqa: ANN401  (those of the operator)
) -> onnx.ModelProto:
    """Build one operator of these inputs, with constants behind them; all of its outputs that are named are alike."""
    g = Graph(op.lower(), opset=opset)
    names = [g.input(f"input_{index}", shape, dtype) for index, (shape, dtype) in enumerate(inputs)]
    g.node_of_several(op, [*names, *constants(g)], outputs, name=f"/{op}", **attributes)
    g.output("output", output, inputs[0][1])
    for name in outputs[1:]:
        g.output(name, output, INT64)
    return g.model()


def _suppressed() -> onnx.ModelProto:
    """Build a detector's end: non-maximum suppression, and the boxes that it kept."""
    g = Graph("nms")
    boxes, scores = g.input("boxes", [1, BOXES, 4]), g.input("scores", [1, 1, BOXES])
    limits = [
        g.constant("most", [KEPT], [1], INT64),
        *(g.constant(name, [0.0], [1]) for name in ("iou", "score")),
    ]
    kept = g.node("NonMaxSuppression", [boxes, scores, *limits], name="/NonMaxSuppression")
    index = g.node("Gather", [kept, g.constant("columns", [0, 2], [2], INT64)], name="/Gather", axis=1)
    g.node("GatherND", [boxes, index], name="/GatherND", output="output")
    g.output("output", ["kept", 4])
    return g.model()


def _masked(*, shape_stays: bool) -> onnx.ModelProto:
    """Build PyTorch's `x[x > 0]`, or `torch.where` in its place, whose output has a shape that no data decide."""
    g = Graph("mask")
    x = g.input("input", [8, 8])
    zero = g.constant("zero", [0.0], [])
    mask = g.node("Greater", [x, zero], name="/Greater")
    if shape_stays:
        g.node("Where", [mask, x, zero], name="/Where", output="output")
    else:
        index = g.node(
            "Transpose", [g.node("NonZero", [mask], name="/NonZero")], name="/Transpose", perm=[1, 0]
        )
        g.node("GatherND", [x, index], name="/GatherND", output="output")
    g.output("output", [8, 8] if shape_stays else ["positive"])
    return g.model()


def _swish() -> onnx.ModelProto:
    """Build Swish as exporters wrote it before opset 24."""
    g = Graph("swish")
    x = g.input("input", [4, 64], HALF)
    g.node("Mul", [x, g.node("Sigmoid", [x], name="/Sigmoid")], name="/Mul", output="output")
    g.output("output", [4, 64], HALF)
    return g.model()


def _to_integers(*, cast_last: bool = False) -> onnx.ModelProto:
    """Build a 1-D convolution whose values become integers with one axis more: Cast and Unsqueeze, or the other way."""
    g = Graph("integers")
    weight = g.weight("conv.weight", (8, 8, 3), spread=20.0)
    x = g.conv(g.input("input", [1, 8, 16]), weight, name="/Conv", dimensions=1)
    axes = g.constant("axes", [1], [1], INT64)
    if cast_last:
        x = g.node("Unsqueeze", [x, axes], name="/Unsqueeze")
        g.node("Cast", [x], name="/Cast", to=INT32, output="output")
    else:
        x = g.node("Cast", [x], name="/Cast", to=INT32)
        g.node("Unsqueeze", [x, axes], name="/Unsqueeze", output="output")
    g.output("output", [1, 1, 8, 16], INT32)
    return g.model()


def _scaled(factors: list[int]) -> onnx.ModelProto:
    """Build a convolution without bias, a product with one value in a tensor of this shape, and a Cast to FP16."""
    g = Graph("scaled")
    x = g.conv(g.input("input", [1, 8, 16, 16]), g.weight("conv.weight", (8, 8, 3, 3)), name="/Conv")
    x = g.node("Mul", [x, g.constant("factor", [0.125] * math.prod(factors), factors)], name="/Mul")
    g.node("Cast", [x], name="/Cast", to=HALF, output="output")
    g.output("output", [1, 8, 16, 16], HALF)
    return g.model()


def _deconvolution(dtype: int) -> onnx.ModelProto:
    """Build a deconvolution that doubles an image's sides."""
    g = Graph("deconvolution", opset=22)
    x = g.input("input", [1, 8, 8, 8], dtype)
    g.conv_transpose(x, g.weight("up.weight", (8, 8, 4, 4), dtype=dtype), name=DECONV, output="output")
    g.output("output", [1, 8, 16, 16], dtype)
    return g.model()


def _scales(g: Graph) -> list[str]:
    return ["", g.constant("scales", [1.0, 1.0, 0.5, 0.5], [4])]


def _topk(name: str, title: str, k: int, role: Role, *claims: Expectation) -> Variant:
    """Return a TopK of so many of 8192 values."""
    build = partial(
        _alone,
        "TopK",
        13,
        [([1, 8192], FLOAT)],
        [1, k],
        constants=lambda g: [g.constant("k", [k], [1], INT64)],
        outputs=("output", "indices"),
    )
    counterpart = None if role is Role.REPRODUCER else "topk-4000"
    return Variant(name, title, build, role=role, counterpart=counterpart, precision=(), expectations=claims)


LISTED_86 = parsed_since("==8.6.*", links.operators("8.6"), "nvidia")
_half = partial(Variant, recipe=Recipe(flags=("FP16",)), precision=())
_plain = partial(Variant, precision=())

DETECTORS = (
    _plain(
        name="uint8-identity",
        title="A UINT8 image through an Identity, as tf2onnx leaves it",
        build=_image,
        recipe=Recipe(profiles=(Profile("__input", (1, 16, 16, 3), (1, 16, 16, 3), (2, 16, 16, 3)),)),
        expectations=(
            parsed_since(">=10.11,<10.13", SEGFAULT),
            reported(Class.CRASHED, "==10.13.*", SEGFAULT, of="10.13.3", note="in the parser"),
        ),
        tags=("few-values",),
    ),
    _plain(
        name="resize-antialias",
        title="Resize with antialiasing, as image models that shrink their input have it",
        build=partial(
            _alone,
            "Resize",
            18,
            [([1, 3, 16, 16], FLOAT)],
            [1, 3, 8, 8],
            constants=_scales,
            mode="linear",
            antialias=1,
        ),
        expectations=(
            reported(Class.INACCURATE, "==8.6.*", ANTIALIAS, note="it is passed over"),
            reported(NO_PARSER, "==10.0.*", ANTIALIAS, signature="resize-antialias"),
        ),
        tags=("opset18",),
    ),
    _topk(
        "topk-4000",
        "TopK of 4000 values",
        4000,
        Role.REPRODUCER,
        reported(FAILS, "==10.1.*", links.operators("10.1"), "nvidia", signature="topk-limit"),
        reported(FAILS, None, TOPK, "nvidia", note="the limit is 3840", signature="topk-limit"),
    ),
    _topk(
        "topk-3840",
        "TopK of the 3840 values that are allowed",
        3840,
        Role.WORKAROUND,
        reported(OK, None, TOPK, "nvidia", level="builds", note="K <= 3840 is what NVIDIA's staff names"),
    ),
    _plain(
        name="nms",
        title="NonMaxSuppression at a detector's end",
        build=_suppressed,
        expectations=(
            LISTED_86,
            reported(
                FAILS,
                None,
                NMS,
                scope="model",
                note="asked for when 1.0 was there",
                engine=Engine.TENSORRT_RTX,
                signature="no-runners",
            ),
        ),
    ),
    _plain(
        name="mask",
        title="Indexing by a boolean mask, which is NonZero and GatherND",
        build=partial(_masked, shape_stays=False),
        expectations=(
            LISTED_86,
            no_nonzero(
                "==1.4.*", NONZERO_14, of="1.4.0.76 on Windows, RTX 3090, a YOLO", compute_capability="8.6"
            ),
            no_nonzero("==1.5.*", NONZERO, of="1.5.0.114, a decoder"),
        ),
    ),
    _plain(
        name="mask-where",
        title="Where in place of the indexing, which keeps the shape",
        build=partial(_masked, shape_stays=True),
        role=Role.WORKAROUND,
        counterpart="mask",
    ),
)
CASTS = (
    _plain(
        name="cast-unsqueeze",
        title="A Cast to INT32 behind a convolution, in front of an Unsqueeze",
        build=_to_integers,
        expectations=(
            reported(
                FAILS,
                "==11.0.*",
                CAST,
                scope="model",
                of="11.0.0.114, an RTX 6000 Ada, a motion planner",
                note="it is said to convert on 10.x",
                signature="cast-folded",
                compute_capability="8.9",
            ),
        ),
    ),
    _plain(
        name="unsqueeze-cast",
        title="The Cast behind the Unsqueeze",
        build=partial(_to_integers, cast_last=True),
        role=Role.WORKAROUND,
        counterpart="cast-unsqueeze",
    ),
    _plain(
        name="conv-scale-cast",
        title="A convolution without bias, times one number, in front of a Cast to FP16",
        build=partial(_scaled, []),
    ),
    _plain(
        name="conv-scales-cast",
        title="The number written once for each channel",
        build=partial(_scaled, [1, 8, 1, 1]),
        role=Role.WORKAROUND,
        counterpart="conv-scale-cast",
    ),
)
NEWER = (
    _half(
        name="swish-op",
        title="The operator Swish of opset 24",
        build=partial(_alone, "Swish", 24, [([4, 64], HALF)], [4, 64]),
        expectations=(
            reported(NO_PARSER, "<11", SWISH, "nvidia"),
            parsed_since("==11.0.*", SWISH, "nvidia"),
        ),
        tags=("opset24",),
    ),
    _half(
        name="swish-written-out",
        title="Swish as Sigmoid and Mul",
        build=_swish,
        role=Role.WORKAROUND,
        counterpart="swish-op",
    ),
    _plain(
        name="opset-27",
        title="A Relu of opset 27",
        build=partial(_alone, "Relu", 27, [([4, 64], FLOAT)], [4, 64]),
        tags=("opset27",),
    ),
)
DECONVOLUTIONS = (
    Variant(
        name="deconv-bf16",
        title="A deconvolution in BF16",
        build=partial(_deconvolution, BF16),
        recipe=Recipe(flags=("BF16",)),
        expectations=(
            *NO_BF16,
            reported(
                FAILS, "==11.0.*", BF16_110, of=RTX_4080, note="no valid tactic", compute_capability="8.9"
            ),
        ),
        tags=("opset22",),
    ),
    Variant(
        name="deconv-fp16",
        title="A deconvolution in FP16",
        build=partial(_deconvolution, HALF),
        recipe=Recipe(flags=("FP16",)),
        role=Role.WORKAROUND,
        counterpart="deconv-bf16",
        expectations=(parsed_since("==11.0.*", BF16_110, of=RTX_4080, compute_capability="8.9"),),
        tags=("opset22",),
    ),
)

CASE = Case(
    name="exporters",
    title="What exporters write that is refused",
    summary=(
        "Models fail at what exporters write by default: antialiasing, TopK beyond 3840, masks and suppression, "
        "operators newer than the parser, deconvolutions in BF16. Each in its smallest graph, with what to write in "
        "its place."
    ),
    links=(SEGFAULT, ANTIALIAS, TOPK, NMS, NONZERO_14, NONZERO, SWISH, CAST, BF16_DECONV, BF16_110),
    variants=(*DETECTORS, *CASTS, *NEWER, *DECONVOLUTIONS),
    topics=("exporter",),
)

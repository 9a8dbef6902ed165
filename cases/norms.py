"""LayerNorm, RMSNorm and GroupNorm: in FP16, written out and as operators, and with scales of several shapes.

Squares of FP16 values beyond 255 leave FP16, so that a norm written out in FP16 (Pow, ReduceMean) overflows where the
operator, which computes in FP32, does not. Users meet it with transformers on every version since 8.5; the advice is
the operator, or the norm between Casts to FP32. `-large` variants have values beyond 255, so that a GPU shows it;
written out in FP16 they have none, since the graph itself then asks for infinity.

Left out: GroupNormalization of opset 18, which ONNX has taken back; InstanceNormalization, which has a case of its own.

The scale of a LayerNormalization may be smaller than the normalised axes: ONNX broadcasts it, and ONNX Runtime had
none of that up to 1.17. It may not be larger, as in issue 4475 (three values for an axis of one, which is a norm over
the channels of an image without a Transpose): ONNX's checker takes that model, and no engine does.

Change 1052 of onnx-tensorrt confirms issue 4756 on an RTX 4060 and blames the importer. No claim is made from issues
3657 (opsets 16 and 17 in FP16 on 8.6), 4493 (10.10), 2564 (8.5) and Torch-TensorRT 4061, whose advice is FP32 between
Casts.
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
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

OVERFLOW = links.issue(2564, "LayerNorm overflows in FP16")
ASKED_FP32 = links.issue(2781, "LayerNorm in FP32")
OPSET_16 = links.issue(3657, "LayerNorm of opset 16 and 17 in FP16")
INACCURATE = links.issue(4493, "LayerNorm in FP16 on 10.10")
WARNING = Link("https://github.com/pytorch/TensorRT/issues/4061", "pytorch/TensorRT issue 4061: the warning")
NO_RMSNORM = links.issue(4639, "RMSNormalization wanted")
RMSNORM_1015 = links.changes("10.15", "the parser takes RMSNormalization")
GROUPS_109 = Link(
    "https://github.com/onnx/onnx-tensorrt/pull/1022", "ONNX parser 10.9: GroupNormalization of opset 21"
)
GROUPS_OF_21 = links.issue(4336, "GroupNormalization of opset 21")
ONE_GROUP = links.issue(4756, "GroupNormalization of one group")
LARGE_SCALE = links.issue(4475, "LayerNormalization with a scale of another shape")
SMALL_SCALE = Link(
    "https://github.com/microsoft/onnxruntime/issues/18184",
    "ONNX Runtime issue 18184: a scale that broadcasts",
)

FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
FP16 = Recipe(flags=("FP16",))
SHAPE = [1, 64, 256]
CHANNELS, PIXELS = 32, 8
#: Squares of what is above 255 leave FP16; the inputs are uniform in [-1, 1].
LARGE = 600.0
SQUARE, MEAN, NORM = "/norm/Pow", "/norm/ReduceMean", "/norm/Norm"

OK, NO_PARSER = Class.OK, Class.PARSE_FAILED
reported = Expectation.reported


def _ready(g: Graph, *, large: bool) -> str:
    """Add the input, made large inside the graph where wanted."""
    x = g.input("input", SHAPE, HALF)
    return g.node("Mul", [x, g.constant("large", [LARGE], [], HALF)], name="/large/Mul") if large else x


def _written_out(*, centred: bool, island: bool = False, large: bool = False) -> onnx.ModelProto:
    """Build RMSNorm as PyTorch exports it, or LayerNorm where it is centred; an `island` is in FP32 between Casts."""
    g = Graph("norm", opset=17 if large else 13)
    x, inner = _ready(g, large=large), FLOAT if island else HALF
    if island:
        x = g.node("Cast", [x], name="/norm/Cast", to=FLOAT)
    if centred:
        x = g.node("Sub", [x, _mean(g, x, "/norm/ReduceMean_centre")], name="/norm/Sub")
    squares = g.node("Pow", [x, g.constant("two", [2.0], [], inner)], name=SQUARE)
    variance = _mean(g, squares, MEAN)
    variance = g.node("Add", [variance, g.constant("epsilon", [1e-5], [], inner)], name="/norm/Add")
    x = g.node("Div", [x, g.node("Sqrt", [variance], name="/norm/Sqrt")], name="/norm/Div")
    if island:
        x = g.node("Cast", [x], name="/norm/Cast_1", to=HALF)
    weight = g.weight("norm.weight", SHAPE[-1:], centre=1.0, spread=0.1, dtype=HALF)
    g.node("Mul", [x, weight], name="/norm/Mul", output="output")
    g.output("output", SHAPE, HALF)
    return g.model()


def _mean(g: Graph, x: str, name: str) -> str:
    return g.node("ReduceMean", [x], name=name, axes=[-1], keepdims=1)


def _operator(op: str, opset: int, *, large: bool = False) -> onnx.ModelProto:
    """Build a norm over the last axis as one operator."""
    g = Graph("norm_operator", opset=opset)
    inputs = [
        _ready(g, large=large),
        g.weight("norm.weight", SHAPE[-1:], centre=1.0, spread=0.1, dtype=HALF),
    ]
    if op == "LayerNormalization":
        inputs.append(g.weight("norm.bias", SHAPE[-1:], spread=0.1, dtype=HALF))
    g.node(op, inputs, name=NORM, output="output", axis=-1)
    g.output("output", SHAPE, HALF)
    return g.model()


def _scaled(shape: list[int], axis: int, scale: list[int], *, channels_last: bool = False) -> onnx.ModelProto:
    """Build LayerNormalization in FP32 and a sum with its input; `channels_last` puts the norm between Transposes."""
    g = Graph("norm_scale", opset=17)
    x = sine = g.node("Sin", [g.input("input", shape)], name="/Sin")
    if channels_last:
        x = g.node("Transpose", [x], name="/norm/Transpose", perm=[0, 2, 3, 1])
    weight = g.weight("norm.weight", scale, centre=1.0, spread=0.3)
    x = g.node("LayerNormalization", [x, weight], name=NORM, axis=axis)
    if channels_last:
        x = g.node("Transpose", [x], name="/norm/Transpose_1", perm=[0, 3, 1, 2])
    g.node("Add", [x, sine], name="/Add", output="output")
    g.output("output", shape)
    return g.model()


def _groups(*, groups: int = 4, operator: bool = True) -> onnx.ModelProto:
    """Build GroupNormalization of opset 21 in FP32, or PyTorch's export in its place up to opset 20."""
    shape, per_channel = [1, CHANNELS, PIXELS, PIXELS], [CHANNELS] if operator else [CHANNELS, 1, 1]
    g = Graph("group_norm", opset=21 if operator else 13)
    x = g.input("input", shape)
    scale = g.weight("norm.weight", per_channel, centre=1.0, spread=0.3)
    bias = g.weight("norm.bias", per_channel, spread=0.3)
    if operator:
        g.node("GroupNormalization", [x, scale, bias], name=NORM, output="output", num_groups=groups)
    else:
        x = g.node("Reshape", [x, g.constant("grouped", [0, groups, -1], [3], INT64)], name="/norm/Reshape")
        units = [
            g.constant(name, [value] * groups, [groups]) for name, value in (("one", 1.0), ("none", 0.0))
        ]
        x = g.node("InstanceNormalization", [x, *units], name=NORM)
        x = g.node("Reshape", [x, g.constant("whole", shape, [4], INT64)], name="/norm/Reshape_1")
        g.node("Add", [g.node("Mul", [x, scale], name="/norm/Mul"), bias], name="/norm/Add", output="output")
    g.output("output", shape)
    return g.model()


NOT_IN_85 = reported(NO_PARSER, "==8.5.*", links.operators("8.5"), "nvidia")
IS_FP32 = reported(
    OK,
    "==8.6.*",
    ASKED_FP32,
    "nvidia",
    level="right numbers",
    note="8.6 sees to the operator's precision itself, says NVIDIA; by issue 4493 it falls short on 10.10.0",
)
_norm = partial(Variant, recipe=FP16)

IN_PIECES = (
    _norm(
        name="layernorm-fp16",
        title="LayerNorm written out in FP16, as opset 16 and older export it",
        build=partial(_written_out, centred=True),
        precision=((SQUARE, Precision.FP16),),
    ),
    _norm(
        name="rmsnorm-fp16",
        title="RMSNorm written out in FP16",
        build=partial(_written_out, centred=False),
        precision=((SQUARE, Precision.FP16),),
    ),
    _norm(
        name="rmsnorm-island",
        title="RMSNorm in FP32 between two Casts, as the warning advises, with values whose squares leave FP16",
        build=partial(_written_out, centred=False, island=True, large=True),
        role=Role.WORKAROUND,
        counterpart="rmsnorm-fp16",
        precision=((SQUARE, Precision.FP32), (MEAN, Precision.FP32)),
    ),
)
AS_OPERATORS = (
    _norm(
        name="layernorm-op-large",
        title="LayerNormalization of opset 17 in FP16, with values whose squares leave FP16",
        build=partial(_operator, "LayerNormalization", 17, large=True),
        role=Role.WORKAROUND,
        counterpart="layernorm-fp16",
        precision=(),
        expectations=(NOT_IN_85, IS_FP32),
    ),
    _norm(
        name="rmsnorm-op-large",
        title="RMSNormalization of opset 23 in FP16, with values whose squares leave FP16",
        build=partial(_operator, "RMSNormalization", 23, large=True),
        role=Role.WORKAROUND,
        counterpart="rmsnorm-fp16",
        precision=(),
        expectations=(
            reported(NO_PARSER, "<10.15", RMSNORM_1015, "nvidia"),
            reported(OK, "==10.15.*", RMSNORM_1015, "nvidia", level="builds"),
        ),
        tags=("opset23",),
    ),
)
GROUPED = (
    Variant(
        name="groupnorm-op",
        title="GroupNormalization of opset 21: scale and bias of a channel",
        build=_groups,
        expectations=(
            reported(
                NO_PARSER,
                "==10.7.*",
                GROUPS_OF_21,
                of="10.7.0, an A100",
                note="it fails to run the operator of opset 21, and runs that of 18; where it fails is not said",
                compute_capability="8.0",
            ),
            reported(OK, "==10.9.*", GROUPS_109, "nvidia", level="builds", note="new in the parser of 10.9"),
        ),
        tags=("opset21",),
    ),
    Variant(
        name="groupnorm-op-one-group",
        title="GroupNormalization of opset 21 with all channels in one group",
        build=partial(_groups, groups=1),
        expectations=(
            reported(
                Class.INACCURATE,
                "==10.16.*",
                ONE_GROUP,
                of="10.16.1.11, no GPU named",
                note="it normalises each channel by itself",
            ),
        ),
        tags=("opset21",),
    ),
    Variant(
        name="groupnorm-written-out",
        title="GroupNorm as Reshape and InstanceNormalization, as PyTorch exports it up to opset 20",
        build=partial(_groups, operator=False),
        role=Role.WORKAROUND,
        counterpart="groupnorm-op",
    ),
)
SCALES = (
    Variant(
        name="layernorm-scale-large",
        title="LayerNormalization over an axis of one, with a scale of three",
        build=partial(_scaled, [2, 3, 4, 1], -1, [3]),
        expectations=(
            NOT_IN_85,
            reported(
                Class.BUILD_FAILED,
                "==10.11.*",
                LARGE_SCALE,
                of="10.11.0.33, an RTX 3080",
                note="there between Sin and Relu",
                signature="normalisation-shape",
                compute_capability="8.6",
            ),
        ),
    ),
    Variant(
        name="layernorm-channels-last",
        title="The channels made the last axis by a Transpose, which a scale of three fits",
        build=partial(_scaled, [2, 3, 4, 4], -1, [3], channels_last=True),
        role=Role.WORKAROUND,
        counterpart="layernorm-scale-large",
        expectations=(NOT_IN_85,),
    ),
    Variant(
        name="layernorm-scale-small",
        title="LayerNormalization over channels and pixels, with a scale for each channel",
        build=partial(_scaled, [2, 3, 4, 4], 1, [3, 1, 1]),
        role=Role.CONTROL,
        counterpart="layernorm-scale-large",
        expectations=(NOT_IN_85,),
    ),
)

CASE = Case(
    name="norms",
    title="LayerNorm, RMSNorm and GroupNorm: FP16, operators and the shape of the scale",
    summary=(
        "A normalisation written out in FP16 overflows where its operator computes in FP32, which costs transformers "
        "their accuracy on every version. Which operators a version's parser knows, and what it runs a norm in that "
        "is written out. And which shapes of a LayerNormalization's scale an engine takes."
    ),
    links=(
        OVERFLOW,
        ASKED_FP32,
        OPSET_16,
        INACCURATE,
        WARNING,
        NO_RMSNORM,
        RMSNORM_1015,
        GROUPS_OF_21,
        GROUPS_109,
        ONE_GROUP,
        LARGE_SCALE,
        SMALL_SCALE,
    ),
    variants=(*IN_PIECES, *AS_OPERATORS, *GROUPED, *SCALES),
)

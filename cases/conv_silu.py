"""Convolution and SiLU (Sigmoid, Mul) in INT8: "Could not find any implementation" on TensorRT 8.5 and 8.6.

The reports are of whole YOLO models calibrated for INT8. The graphs here are the parts that the error names:
the first convolution, the first two, and the end of the segmentation head, whose result is a network output.
Weakly typed variants name no wanted precision: there the builder may pick any permitted type by its timings.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

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
    import onnx

REPORT = links.issue(3640)
TAIL_REPORT = links.issue(4555)
WITH_FP16 = links.issue(3576)
DENSE_SWISH = links.DEPTHWISE_SWISH
MINMAX = Link("https://github.com/maggiez0138/yolov5_quant_sample/issues/11", "yolov5_quant_sample issue 11")
CALIBRATION_102 = Link("https://github.com/ultralytics/ultralytics/pull/24368", "Ultralytics change 24368")

#: A module of the exported model: its name, channels in, channels out, kernel, stride.
Module = tuple[str, int, int, int, int]
#: What is in FP16: nothing, every tensor behind the input, or the activation between two Casts.
Half = Literal["nothing", "all", "activation"]

FIRST = ("model.0", 3, 16, 3, 2)
SECOND = ("model.1", 16, 32, 3, 2)
PROTO_2 = ("model.22.proto.cv2", 64, 64, 3, 1)
PROTO_3 = ("model.22.proto.cv3", 64, 32, 1, 1)


#: The harness's inputs are uniform in [-1, 1]; the layers behind them keep about that magnitude.
INPUT_SCALE = 0.01
INNER_SCALE = 0.02


def _path(module: Module) -> str:
    """Return the node prefix that the exporter of YOLOv8 makes of a module's name: `/model.22/proto/cv3`."""
    return "/" + module[0].replace(".", "/").replace("model/", "model.", 1)


def _activation(g: Graph, x: str, path: str, *, relu: bool) -> str:
    if relu:
        return g.node("Relu", [x], name=f"{path}/act/Relu")
    sigmoid = g.node("Sigmoid", [x], name=f"{path}/act/Sigmoid")
    return g.node("Mul", [x, sigmoid], name=f"{path}/act/Mul")


def _module(  # noqa: PLR0913  (what the variants differ in)
    g: Graph, x: str, module: Module, *, first: bool, relu: bool, qdq: bool, half: Half
) -> str:
    name, channels_in, channels_out, kernel, stride = module
    path = _path(module)
    dtype = TensorProto.FLOAT16 if half == "all" else TensorProto.FLOAT
    weight = g.weight(f"{name}.conv.weight", (channels_out, channels_in, kernel, kernel), dtype=dtype)
    bias = g.weight(f"{name}.conv.bias", (channels_out,), spread=0.1, dtype=dtype)
    if qdq:
        x = g.qdq(x, name=f"{path}/conv/_input_quantizer", scale=INPUT_SCALE if first else INNER_SCALE)
        weight = g.weight_qdq(weight, name=f"{path}/conv/_weight_quantizer")
    x = g.conv(x, weight, name=f"{path}/conv/Conv", kernel=kernel, stride=stride, bias=bias)
    if half != "activation":
        return _activation(g, x, path, relu=relu)
    x = g.node("Cast", [x], name=f"{path}/act/Cast", to=TensorProto.FLOAT16)
    x = _activation(g, x, path, relu=relu)
    return g.node("Cast", [x], name=f"{path}/act/Cast_1", to=TensorProto.FLOAT)


def _model(
    *modules: Module,
    size: int = 64,
    relu: bool = False,
    qdq: bool = False,
    identity: bool = False,
    half: Half = "nothing",
) -> onnx.ModelProto:
    """Build modules in a row on a square input; with `qdq` a last Q/DQ pair stands before the output."""
    g = Graph("conv_silu", opset=13 if qdq or half != "nothing" else 11)
    x = g.input("images", [1, modules[0][1], size, size])
    if half == "all":
        x = g.node("Cast", [x], name="/Cast", to=TensorProto.FLOAT16)
    for number, module in enumerate(modules):
        x = _module(g, x, module, first=number == 0, relu=relu, qdq=qdq, half=half)
        size //= module[4]
    if half == "all":
        x = g.node("Cast", [x], name="/Cast_1", to=TensorProto.FLOAT)
    if qdq:
        x = g.qdq(x, name="/_output_quantizer", scale=INNER_SCALE)
    if identity:
        x = g.node("Identity", [x], name="/Identity")
    g.output(x, [1, modules[-1][2], size, size])
    return g.model()


OK, FAILS, REMOVED = Class.OK, Class.BUILD_FAILED, Class.API_REMOVED
reported, guessed = Expectation.reported, Expectation.guessed
fails = partial(reported, FAILS, signature="no-implementation")
X86 = "linux/amd64"
NO_IMPLICIT = reported(REMOVED, ">=11", links.MIGRATION, "nvidia", signature="implicit-int8-removed")
NO_WEAK_TYPING = reported(REMOVED, ">=11", links.MIGRATION, "nvidia", signature="weak-typing-removed")
#: From 9.2 on the failure is gone on x86; 10.2 broke the calibration of whole YOLO models in another way.
CALIBRATES = guessed(
    OK,
    ">=9.2,<11,!=10.2.*",
    "a YOLO model calibrates on every 10.x but 10.2",
    link=CALIBRATION_102,
    platform=X86,
)

_one = partial(_model, FIRST)
_two = partial(_model, FIRST, SECOND)
_tail = partial(_model, PROTO_2, PROTO_3, size=32)
ENTROPY = Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy"))
MIN_MAX = Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("minmax"))
EXPLICIT = Recipe(flags=("INT8",))
CONV_TENSOR = "/model.0/conv/Conv_output_0"
SIGMOID_TENSOR = "/model.0/act/Sigmoid_output_0"


def _convs(precision: Precision, *modules: Module) -> tuple[tuple[str, Precision], ...]:
    return tuple((f"{_path(module)}/conv/Conv", precision) for module in modules)


_workaround = partial(Variant, role=Role.WORKAROUND, counterpart="int8-entropy")
_control = partial(Variant, role=Role.CONTROL, counterpart="int8-entropy")
_twin = partial(Variant, recipe=EXPLICIT, role=Role.TWIN, precision=_convs(Precision.INT8, FIRST))

IMPLICIT_VARIANTS = (
    Variant(
        name="int8-entropy",
        title="Convolution and SiLU in INT8 with the entropy calibrator, as reported",
        build=_one,
        recipe=ENTROPY,
        expectations=(
            fails(">=8.5,<9", REPORT, note="seen with a whole YOLOv8 model", platform="jetson"),
            fails(">=8.6,<9", TAIL_REPORT, note="seen at another node of YOLOv8", platform=X86),
            reported(
                OK, ">=9.2,<10", REPORT, "nvidia", note="a maintainer built the reported model", platform=X86
            ),
            reported(OK, ">=10,<10.1", REPORT, "summary", note="from a summary of the thread", platform=X86),
            CALIBRATES,
            NO_IMPLICIT,
        ),
    ),
    _workaround(
        name="int8-minmax",
        title="The min-max calibrator avoids the failure",
        build=_one,
        recipe=MIN_MAX,
        expectations=(
            reported(OK, ">=8.6,<9", MINMAX, note="RTX 3090 and Orin; 8.6 by its date"),
            guessed(OK, ">=8.5,<8.6", link=MINMAX, platform="jetson"),
            CALIBRATES,
            NO_IMPLICIT,
        ),
    ),
    Variant(
        name="int8-fp16",
        title="Convolution and SiLU with INT8 and FP16 both permitted",
        build=_one,
        recipe=Recipe(Typing.WEAK, flags=("INT8", "FP16"), calibrator=Calibrator("entropy")),
        expectations=(
            guessed(
                FAILS,
                ">=8.6,<9",
                "a YOLOv8 segmentation model fails with both flags; the error's text was not seen",
                link=WITH_FP16,
                platform=X86,
            ),
            CALIBRATES,
            NO_IMPLICIT,
        ),
    ),
    _workaround(
        name="int8-mark-conv",
        title="Making the convolution's result a network output keeps it from fusing",
        build=_one,
        recipe=replace(ENTROPY, mark_outputs=(CONV_TENSOR,)),
        expectations=(
            guessed(OK, ">=8.5,<9", "proposed by a maintainer, confirmed by nobody", link=REPORT),
            CALIBRATES,
            NO_IMPLICIT,
        ),
    ),
    _workaround(
        name="int8-mark-sigmoid",
        title="Making the Sigmoid's result a network output keeps it from fusing",
        build=_one,
        recipe=replace(ENTROPY, mark_outputs=(SIGMOID_TENSOR,)),
        expectations=(
            guessed(OK, ">=8.5,<9", "proposed by a maintainer, confirmed by nobody", link=REPORT),
            CALIBRATES,
            NO_IMPLICIT,
        ),
    ),
    _control(
        name="int8-relu",
        title="The same convolution with ReLU in place of SiLU",
        build=partial(_one, relu=True),
        recipe=ENTROPY,
        expectations=(guessed(OK, ">=8.5,<11", link=REPORT), NO_IMPLICIT),
    ),
    Variant(
        name="int8-two",
        title="Two convolutions with SiLU in a row, entropy calibrator",
        build=_two,
        recipe=ENTROPY,
        expectations=(
            fails(">=8.6,<9", MINMAX, note="names /model.1/conv/Conv; 8.6 by its date"),
            CALIBRATES,
            NO_IMPLICIT,
        ),
    ),
    Variant(
        name="int8-tail",
        title="The end of the YOLOv8 segmentation head, its result a network output, entropy calibrator",
        build=_tail,
        recipe=ENTROPY,
        expectations=(
            fails(">=8.6,<9", TAIL_REPORT, note="seen on Windows, whole model", platform=X86),
            CALIBRATES,
            NO_IMPLICIT,
        ),
    ),
    _workaround(
        name="int8-tail-minmax",
        title="The end of the YOLOv8 segmentation head with the min-max calibrator",
        build=_tail,
        recipe=MIN_MAX,
        counterpart="int8-tail",
        expectations=(guessed(OK, ">=8.6,<9", link=MINMAX), CALIBRATES, NO_IMPLICIT),
    ),
)

DENSE_OK = (
    reported(OK, ">=8.5,<8.6", DENSE_SWISH, note="a dense convolution with Swish", platform="jetson"),
    guessed(OK, ">=8.5", link=DENSE_SWISH),
)
EXPLICIT_VARIANTS = (
    _twin(
        name="qdq",
        title="Convolution and SiLU in explicit INT8",
        build=partial(_one, qdq=True),
        counterpart="int8-entropy",
        expectations=DENSE_OK,
    ),
    _twin(
        name="qdq-identity",
        title="Convolution and SiLU in explicit INT8 with an Identity before the output",
        build=partial(_one, qdq=True, identity=True),
        role=Role.CONTROL,
        counterpart="qdq",
        expectations=(guessed(OK, ">=8.5", "named as a workaround for depthwise", link=DENSE_SWISH),),
    ),
    _twin(
        name="qdq-relu",
        title="Convolution and ReLU in explicit INT8",
        build=partial(_one, qdq=True, relu=True),
        counterpart="int8-relu",
        expectations=(guessed(OK, ">=8.5", link=DENSE_SWISH),),
    ),
    _twin(
        name="qdq-fp16",
        title="Convolution in explicit INT8, SiLU in FP16 by its own tensor types",
        build=partial(_one, qdq=True, half="activation"),
        recipe=Recipe(flags=("INT8", "FP16")),
        counterpart="int8-fp16",
    ),
    _twin(
        name="qdq-mark-conv",
        title="Explicit INT8 with the convolution's result a network output",
        build=partial(_one, qdq=True),
        recipe=replace(EXPLICIT, mark_outputs=(CONV_TENSOR,)),
        counterpart="int8-mark-conv",
    ),
    _twin(
        name="qdq-mark-sigmoid",
        title="Explicit INT8 with the Sigmoid's result a network output",
        build=partial(_one, qdq=True),
        recipe=replace(EXPLICIT, mark_outputs=(SIGMOID_TENSOR,)),
        counterpart="int8-mark-sigmoid",
    ),
    _twin(
        name="qdq-two",
        title="Two convolutions with SiLU in a row in explicit INT8",
        build=partial(_two, qdq=True),
        counterpart="int8-two",
        precision=_convs(Precision.INT8, FIRST, SECOND),
        expectations=DENSE_OK,
    ),
    _twin(
        name="qdq-tail",
        title="The end of the YOLOv8 segmentation head in explicit INT8",
        build=partial(_tail, qdq=True),
        counterpart="int8-tail",
        precision=_convs(Precision.INT8, PROTO_2, PROTO_3),
        expectations=DENSE_OK,
    ),
)

FLOAT_VARIANTS = (
    _control(
        name="fp16",
        title="Convolution and SiLU with FP16 permitted by the builder flag",
        build=_one,
        recipe=Recipe(Typing.WEAK, flags=("FP16",)),
        expectations=(
            reported(OK, ">=8.6,<9", MINMAX, note="RTX 3090 and Orin; 8.6 by its date"),
            guessed(OK, ">=8.5,<11", link=MINMAX),
            NO_WEAK_TYPING,
        ),
    ),
    _twin(
        name="fp16-graph",
        title="Convolution and SiLU in FP16 by their own tensor types",
        build=partial(_one, half="all"),
        recipe=Recipe(flags=("FP16",)),
        counterpart="fp16",
        precision=_convs(Precision.FP16, FIRST),
        expectations=(guessed(OK, ">=8.5", link=MINMAX),),
    ),
    _control(
        name="fp32",
        title="Convolution and SiLU in FP32",
        build=_one,
        precision=_convs(Precision.FP32, FIRST),
        expectations=(
            reported(OK, ">=8.6,<9", MINMAX, note="RTX 3090 and Orin; 8.6 by its date"),
            guessed(OK, ">=8.5", link=MINMAX),
        ),
    ),
)

CASE = Case(
    name="conv_silu",
    title="Convolution with SiLU in INT8",
    summary=(
        "YOLO models calibrated for INT8 do not build on TensorRT 8.5 and 8.6: no implementation is found "
        "for a convolution fused with its Sigmoid and Mul. Newer versions build them on x86; a Jetson cannot "
        "leave the version of its JetPack, so what avoids the failure there matters."
    ),
    links=(REPORT, TAIL_REPORT, MINMAX, WITH_FP16, DENSE_SWISH, CALIBRATION_102),
    variants=IMPLICIT_VARIANTS + EXPLICIT_VARIANTS + FLOAT_VARIANTS,
)

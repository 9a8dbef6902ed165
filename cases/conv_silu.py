"""Convolution and SiLU (Sigmoid, Mul) in calibrated INT8: "Could not find any implementation".

The reports are of whole YOLO models. The graphs here are the parts that the errors name: the first convolution (issue
3640), the first two, and the end of the segmentation head (`tail`), whose result is a network output. That end fails
on TensorRT 8.6 and on 10.3 to 10.11 alike. Weakly typed variants name no wanted precision: there the builder may pick
any permitted type by its timings.

Issue 3640 has opset 17, IR 8, PyTorch 2.1.0, a file of 137 MB and an image of 640x640; here it is 64x64. The error
names `/model.0/conv/Conv + PWN(PWN(/model.0/act/Sigmoid), /model.0/act/Mul)`, without Q/DQ, and no calibrator.
Ultralytics 21281 has opset 19, which 8.5 does not read; the tail here has 17. Its log on x86 says
`TRT-101100-MinMaxCalibration`, then error 10 at `/model.23/proto/cv3/conv/Conv`. Issue 4555 has `trtexec --int8
--calib=none` and `/model.22/proto/cv3`. The network of tensorrtx 1546 is made by layer calls, with the second entropy
calibrator and a Scale for the normalisation.

No claim is made from these. Ultralytics 19974 (YOLOv8m-seg, dynamic batch): `Int8(12800,6400:32,80,1) ->
Float(307200,6400,80,1)` has no tactic; by its strides a convolution to 48 channels on 80x80, not the prototypes.
22877: `/model/model.0/conv/Conv` with INT8 and NMS, of no version; it speaks against min-max on newer ones. 23841: a
YOLO26n on 10.3.0 (JetPack 6) ends in `checkLinks::218` while it is calibrated, another failure. yolov5_quant_sample
11 names no version.
"""

from __future__ import annotations

import math
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
TENSORRTX = Link("https://github.com/wang-xinyu/tensorrtx/issues/1546", "tensorrtx issue 1546")
TENSORRTX_CONCAT = Link("https://github.com/wang-xinyu/tensorrtx/pull/1556", "tensorrtx change 1556")


def _ultralytics(number: int, what: str = "issue") -> Link:
    kind = "pull" if what == "change" else "issues"
    return Link(f"https://github.com/ultralytics/ultralytics/{kind}/{number}", f"Ultralytics {what} {number}")


TAIL_NOW = _ultralytics(21281)
TAIL_106 = _ultralytics(17841)
MASK_BRANCH = _ultralytics(19974)
FIRST_WITH_NMS = _ultralytics(22877)
CALIBRATORS = _ultralytics(19518)
CHECK_LINKS = _ultralytics(23841)
CALIBRATION_102 = _ultralytics(24368, "change")

#: A module of the exported model: its name, channels in, channels out, kernel, stride.
Module = tuple[str, int, int, int, int]
#: What is in FP16: nothing, every tensor behind the input, or the activation between two Casts.
Half = Literal["nothing", "all", "activation"]

#: The reported model is a large one: its file of 137 MB has room for 48 or 64 channels here, and not for 16.
FIRST = ("model.0", 3, 48, 3, 2)
TWO = (("model.0", 3, 64, 3, 2), ("model.1", 64, 128, 3, 2))
#: Of a YOLO11n-seg; a YOLOv8n-seg has the same under /model.22.
PROTO = "model.23.proto"
PROTO_1, PROTO_2 = (f"{PROTO}.cv1", 64, 64, 3, 1), (f"{PROTO}.cv2", 64, 64, 3, 1)
PROTO_3 = (f"{PROTO}.cv3", 64, 32, 1, 1)
OPSET = 17

#: The harness's inputs are uniform in [-1, 1]; the layers behind them keep about that magnitude.
INPUT_SCALE = 0.01
INNER_SCALE = 0.02


def _path(module: Module) -> str:
    """Return the node prefix that the exporter of YOLO makes of a module's name: `/model.23/proto/cv3`."""
    return "/" + module[0].replace(".", "/").replace("model/", "model.", 1)


def _activation(g: Graph, x: str, path: str, *, relu: bool) -> str:
    if relu:
        return g.node("Relu", [x], name=f"{path}/act/Relu")
    sigmoid = g.node("Sigmoid", [x], name=f"{path}/act/Sigmoid")
    return g.node("Mul", [x, sigmoid], name=f"{path}/act/Mul")


def _module(  # noqa: PLR0913  (what the variants differ in)
    g: Graph,
    x: str,
    module: Module,
    *,
    first: bool = False,
    relu: bool = False,
    qdq: bool = False,
    half: Half = "nothing",
    concat: bool = False,
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
    if concat:
        x = g.node("Concat", [x], name=f"{path}/Concat", axis=1)
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
    g = Graph("conv_silu", opset=OPSET)
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


def _tail(*, qdq: bool = False, concat: bool = False) -> onnx.ModelProto:
    """Build the mask prototypes: cv1, upsample, cv2, cv3; with `concat` a Concat of one input before each SiLU.

    The plane is 20x20 in and 40x40 out, a quarter of the plane of a 640x640 image.
    """
    g = Graph("conv_silu_tail", opset=OPSET)
    x = g.input("features", [1, 64, 20, 20])
    x = _module(g, x, PROTO_1, qdq=qdq, concat=concat)
    weight = g.weight(f"{PROTO}.upsample.weight", (64, 64, 2, 2), spread=math.sqrt(3 / 64))
    bias = g.weight(f"{PROTO}.upsample.bias", (64,), spread=0.1)
    name = f"{_path((PROTO, 64, 64, 2, 2))}/upsample/ConvTranspose"
    x = g.node("ConvTranspose", [x, weight, bias], name=name, kernel_shape=[2, 2], strides=[2, 2])
    for module in (PROTO_2, PROTO_3):
        x = _module(g, x, module, qdq=qdq, concat=concat)
    if qdq:
        x = g.qdq(x, name="/_output_quantizer", scale=INNER_SCALE)
    g.output(x, [1, 32, 40, 40])
    return g.model()


OK, FAILS, REMOVED = Class.OK, Class.BUILD_FAILED, Class.API_REMOVED
reported = Expectation.reported
builds = partial(reported, OK, level="builds", scope="model")
fails = partial(reported, FAILS, signature="no-implementation-silu", scope="model")
fails_tail = partial(fails, signature="no-implementation-head")
X86, JETSON = "linux/amd64", "jetson"
NO_IMPLICIT = reported(REMOVED, ">=11", links.MIGRATION, "nvidia", signature="implicit-int8-removed")
BUILDS_FOR_A_USER = builds(None, MINMAX, of="an RTX 3090 and an Orin")
NO_CALIBRATOR = "the thread names no calibrator"
NO_WEAK_TYPING = reported(REMOVED, ">=11", links.MIGRATION, "nvidia", signature="weak-typing-removed")

_one = partial(_model, FIRST)
_two = partial(_model, *TWO)
ENTROPY = Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy"))
MIN_MAX = Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("minmax"))
EXPLICIT = Recipe(flags=("INT8",))
CONV_TENSOR = "/model.0/conv/Conv_output_0"
SIGMOID_TENSOR = "/model.0/act/Sigmoid_output_0"


def _convs(precision: Precision, *modules: Module) -> tuple[tuple[str, Precision], ...]:
    return tuple((f"{_path(module)}/conv/Conv", precision) for module in modules)


_workaround = partial(Variant, role=Role.WORKAROUND, counterpart="int8-entropy")
_control = partial(Variant, role=Role.CONTROL, counterpart="int8-entropy")
TAIL = (PROTO_1, PROTO_2, PROTO_3)
_twin = partial(Variant, recipe=EXPLICIT, role=Role.TWIN, precision=_convs(Precision.INT8, FIRST))

FIRST_VARIANTS = (
    Variant(
        name="int8-entropy",
        title="Convolution and SiLU in INT8, entropy calibrator (IInt8EntropyCalibrator2)",
        build=_one,
        recipe=ENTROPY,
        expectations=(
            *(
                fails(versions, REPORT, of=of, note=NO_CALIBRATOR, platform=JETSON, compute_capability="8.7")
                for versions, of in (
                    ("==8.5.*", "JetPack 5.1.2 (8.5.2) by the reporter's word, AGX Orin"),
                    ("==8.6.*", "8.6.2 of JetPack 6.0, AGX Orin"),
                )
            ),
            builds("==9.2.*", REPORT, "nvidia", note=f"a maintainer built it; {NO_CALIBRATOR}", platform=X86),
            builds("==10.0.*", REPORT, "summary", note=f"of the thread; {NO_CALIBRATOR}", platform=X86),
            builds(
                None,
                CALIBRATORS,
                note="with the second entropy calibrator, as here; with the first it fails at /model.0",
            ),
            NO_IMPLICIT,
        ),
    ),
    _workaround(
        name="int8-minmax",
        title="Convolution and SiLU in INT8, min-max calibrator (IInt8MinMaxCalibrator)",
        build=_one,
        recipe=MIN_MAX,
        expectations=(
            BUILDS_FOR_A_USER,
            builds(
                ">=10,<11,!=10.2.*",
                CALIBRATION_102,
                scope="sibling",
                of="a YOLO26",
                note="10.2.0 is excepted, and why is not said",
                platform=X86,
            ),
            NO_IMPLICIT,
        ),
    ),
    Variant(
        name="int8-fp16",
        title="Convolution and SiLU with INT8 and FP16 both permitted",
        build=_one,
        recipe=Recipe(Typing.WEAK, flags=("INT8", "FP16"), calibrator=Calibrator("entropy")),
        expectations=(
            reported(
                FAILS,
                "==8.6.*",
                WITH_FP16,
                scope="sibling",
                of="8.6.1 on Windows, RTX 3060, a YOLOv8n-seg",
                note="at which node was not seen",
                platform=X86,
                compute_capability="8.6",
            ),
            NO_IMPLICIT,
        ),
    ),
    _workaround(
        name="int8-mark-conv",
        title="Marking the convolution's result as a network output, as the maintainers advise",
        build=_one,
        recipe=replace(ENTROPY, mark_outputs=(CONV_TENSOR,)),
        expectations=(NO_IMPLICIT,),
    ),
    _workaround(
        name="int8-mark-sigmoid",
        title="Marking the Sigmoid's result as a network output, as the maintainers advise",
        build=_one,
        recipe=replace(ENTROPY, mark_outputs=(SIGMOID_TENSOR,)),
        expectations=(NO_IMPLICIT,),
    ),
    _control(
        name="int8-relu",
        title="Convolution and ReLU in INT8, entropy calibrator",
        build=partial(_one, relu=True),
        recipe=ENTROPY,
        expectations=(NO_IMPLICIT,),
    ),
    Variant(
        name="int8-two",
        title="Two convolutions with SiLU in a row, entropy calibrator",
        build=_two,
        recipe=ENTROPY,
        expectations=(
            fails(
                None,
                MINMAX,
                of="an RTX 3090 and an Orin",
                note="at /model.1/conv/Conv, unless the calibrator is min-max",
            ),
            NO_IMPLICIT,
        ),
    ),
)

TAIL_VARIANTS = (
    Variant(
        name="int8-tail",
        title="The end of the YOLO segmentation head, its result a network output, entropy calibrator",
        build=_tail,
        recipe=ENTROPY,
        expectations=(
            fails_tail(
                "==8.6.*",
                TENSORRTX,
                of="8.6.1, a YOLOv8n-seg by layer calls, RTX 3090",
                platform=X86,
                compute_capability="8.6",
            ),
            fails_tail(
                "==8.6.*",
                TAIL_REPORT,
                of="8.6.1 on Windows, a YOLOv8n-seg without a calibrator",
                note="and on a newer version, which the user does not name",
                platform=X86,
            ),
            reported(
                FAILS,
                "==10.6.*",
                TAIL_106,
                scope="sibling",
                of="10.6.0, RTX 4060 Laptop, a YOLO11n-seg, in INT8 and in half",
                note="non-reproducible by its label; at which node was not read",
                platform=X86,
                compute_capability="8.9",
            ),
            NO_IMPLICIT,
        ),
    ),
    Variant(
        name="int8-tail-minmax",
        title="The end of the YOLO segmentation head with the min-max calibrator, as reported of 10.3 and 10.11",
        build=_tail,
        recipe=MIN_MAX,
        counterpart="int8-tail",
        expectations=(
            builds(
                "==8.6.*",
                TAIL_REPORT,
                scope="sibling",
                of="8.6.1 on Windows, by the Python API",
                note="with which calibrator is not said",
                platform=X86,
            ),
            fails_tail(
                "==10.3.*",
                TAIL_NOW,
                of="10.3.0, AGX Orin, a YOLO11n-seg",
                platform=JETSON,
                compute_capability="8.7",
            ),
            fails_tail(
                "==10.11.*",
                TAIL_NOW,
                of="a YOLO11n-seg, seen by Ultralytics itself",
                note="on an A100 10.9 seems to build it once the calibration cache is there",
                platform=X86,
            ),
            NO_IMPLICIT,
        ),
    ),
    _workaround(
        name="int8-tail-concat",
        title="A Concat of one input between convolution and SiLU keeps the end of the head from fusing",
        build=partial(_tail, concat=True),
        recipe=ENTROPY,
        counterpart="int8-tail",
        expectations=(
            builds(None, TENSORRTX_CONCAT, of="a YOLOv5-seg by layer calls, for the API of TensorRT 10"),
            NO_IMPLICIT,
        ),
    ),
    _control(
        name="tail-fp32",
        title="The end of the YOLO segmentation head in FP32",
        build=_tail,
        counterpart="int8-tail-minmax",
        precision=_convs(Precision.FP32, *TAIL),
        expectations=(builds("==10.11.*", TAIL_NOW, note="the export without int8=True", platform=X86),),
    ),
)

EXPLICIT_VARIANTS = (
    _twin(
        name="qdq",
        title="Convolution and SiLU in explicit INT8",
        build=partial(_one, qdq=True),
        counterpart="int8-entropy",
        expectations=(
            builds(
                "==8.5.*",
                DENSE_SWISH,
                scope="sibling",
                of="8.5.2, AGX Orin",
                note="one dense convolution, BatchNormalization and Swish",
                platform=JETSON,
                compute_capability="8.7",
            ),
        ),
    ),
    _twin(
        name="qdq-identity",
        title="Convolution and SiLU in explicit INT8 with an Identity before the output",
        build=partial(_one, qdq=True, identity=True),
        role=Role.CONTROL,
        counterpart="qdq",
    ),
    _twin(
        name="qdq-relu",
        title="Convolution and ReLU in explicit INT8",
        build=partial(_one, qdq=True, relu=True),
        counterpart="int8-relu",
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
        precision=_convs(Precision.INT8, *TWO),
    ),
    _twin(
        name="qdq-tail",
        title="The end of the YOLO segmentation head in explicit INT8",
        build=partial(_tail, qdq=True),
        counterpart="int8-tail",
        precision=_convs(Precision.INT8, *TAIL),
    ),
    _twin(
        name="qdq-tail-concat",
        title="The end of the YOLO segmentation head in explicit INT8 with a Concat of one input before SiLU",
        build=partial(_tail, qdq=True, concat=True),
        counterpart="int8-tail-concat",
        precision=_convs(Precision.INT8, *TAIL),
    ),
)

FLOAT_VARIANTS = (
    _control(
        name="fp16",
        title="Convolution and SiLU with FP16 permitted by the builder flag",
        build=_one,
        recipe=Recipe(Typing.WEAK, flags=("FP16",)),
        expectations=(
            BUILDS_FOR_A_USER,
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
    ),
    _control(
        name="fp32",
        title="Convolution and SiLU in FP32",
        build=_one,
        precision=_convs(Precision.FP32, FIRST),
        expectations=(BUILDS_FOR_A_USER,),
    ),
)

CASE = Case(
    name="conv_silu",
    title="Convolution with SiLU in INT8",
    summary=(
        "YOLO models calibrated for INT8 do not build: no implementation is found for a convolution fused with its "
        "Sigmoid and Mul. For the first convolution this is reported of TensorRT 8.5 and 8.6 on Jetson, and 9.2 and "
        "10.0 are said to build it on x86; the maintainers advise to mark the convolution or the Sigmoid as a network "
        "output, which nobody confirms. The end of the segmentation head fails on 8.6 and still on 10.3 (Jetson) "
        "and 10.11 (x86), there with the min-max calibrator that helped the first. A Jetson comes with the version "
        "of its JetPack, so what avoids the failure matters; on JetPack 6 Ultralytics puts 10.7 in its place."
    ),
    links=(
        *(
            REPORT,
            TAIL_NOW,
            TAIL_REPORT,
            TENSORRTX,
            TENSORRTX_CONCAT,
            MINMAX,
            TAIL_106,
            MASK_BRANCH,
            FIRST_WITH_NMS,
        ),
        *(CALIBRATORS, WITH_FP16, DENSE_SWISH, CALIBRATION_102, CHECK_LINKS),
    ),
    variants=FIRST_VARIANTS + TAIL_VARIANTS + EXPLICIT_VARIANTS + FLOAT_VARIANTS,
    seed=1,
)

"""InstanceNormalization in an INT8 model: who computes it, and what keeps INT8 around it.

The report is a tracker of four inputs, calibrated for INT8 on TensorRT 8.6 with NATIVE_INSTANCENORM set; its graph is
not shown, and docs/reports.md goes through it line by line. It met an INT64 warning, a CUDA error out of its own
calibrator and hundreds of `Missing scale and zero-point` warnings.

- The parser makes the node a native normalisation layer (flag set; the default from 10.0) or the plugin
  `InstanceNormalization_TRT` (flag cleared; the default before 10.0, and the only way on 8.5, whose parser has no
  flags). A variant with the flag cleared needs TensorRT's plugin library; without it the parse fails
  (`instancenorm-plugin-missing`). On Blackwell and later GPUs the plugin has lost the cuDNN it needs (10.7 notes):
  these variants are to fail there. A claim is about every GPU or one compute capability, and these are several: hence
  the notes.
- Neither computes a 3-D or 4-D tensor in INT8. Only the plugin has an INT8 kernel: 5-D tensors in CDHW32, the channel
  count a multiple of 32. So "runs in INT8" means that the convolutions do. Q/DQ variants demand it; calibrated ones do
  not: there the builder may pick any permitted type by its timings.
- From 9.2 on the parser demands one type for input, scale and bias; that of 8.6 does not look. ONNX demands it too
  (`invalid-onnx` tags the variant that breaks the rule), but FP16 converters leave such models behind.

The wrong calibrators (`calibrator-*`) are users' errors, told from product failures by their role, and by the signature
`calibrator-cuda-error` where a CUDA call fails. Their class is what was seen, as everywhere: a class is a function of
the outcome alone. The report shows a CUDA error out of its calibrator, and a summary of it lists buffer, type and
layout among what to look at: that one of these was the cause is a guess. CUDA refuses to copy from a host address taken
for a device one, and past the end of a half-filled buffer; a kernel that reads past it may go unnoticed. Float64 values
are read as twice as many float32 ones, which nothing refuses.

No variant has BF16: the operator list of 10.1 names it and its importer refuses it, but ONNX allows it only from opset
22.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import onnx
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

TRT, PARSER = links.TRT, links.PARSER
REPORT = links.issue(3659, "InstanceNormalization, INT8 with a calibrator")
SLOWER = links.issue(3962, "10 slower than 8.6 with InstanceNormalization")
CUDNN = links.issue(1611, "cuDNN error of the plugin, INT8")
CUDNN_VERSION = links.issue(3578, "cuDNN version mismatch of the plugin, 8.6")
PLUGIN = Link(
    f"{TRT}/blob/v11.1/plugin/instanceNormalizationPlugin/instanceNormalizationPlugin.cu",
    "InstanceNormalization_TRT: supportsFormatCombination",
)
CHANGELOG = Link(f"{TRT}/blob/v11.1/CHANGELOG.md", "TensorRT OSS change log")
OPERATORS_101 = Link(f"{PARSER}/release/10.1-GA/docs/operators.md", "ONNX parser 10.1: operators")
HEADER_85 = Link(f"{PARSER}/release/8.5-GA/NvOnnxParser.h", "NvOnnxParser.h of 8.5: no flags")
IMPORTER_85 = Link(f"{PARSER}/release/8.5-GA/builtin_op_importers.cpp#L2179", "ONNX parser 8.5: importer")
IMPORTER_86 = Link(f"{PARSER}/release/8.6-GA/onnx2trt_utils.cpp#L1237", "ONNX parser 8.6: importer")
IMPORTER_92 = Link(
    f"{PARSER}/306247b30da17ec10b578d17c408fe04864d6fe5/builtin_op_importers.cpp#L2486",
    "ONNX parser 9.2: importer",
)
IMPORTER_100 = Link(f"{PARSER}/release/10.0-GA/onnxOpImporters.cpp#L2638", "ONNX parser 10.0: importer")
IMPORTER_101 = Link(f"{PARSER}/release/10.1-GA/onnxOpImporters.cpp#L2675", "ONNX parser 10.1: importer")
PARSER_11 = Link(f"{TRT}/blob/v11.1/include/NvOnnxParser.h#L90", "NvOnnxParser.h 11.1: OnnxParserFlag")

OK, INACCURATE, REMOVED = Class.OK, Class.INACCURATE, Class.API_REMOVED
BUILD_FAILED, PARSE_FAILED = Class.BUILD_FAILED, Class.PARSE_FAILED
reported, guessed = Expectation.reported, Expectation.guessed
builds, may_build = partial(reported, OK, level="builds"), partial(guessed, OK, level="builds")
CONV1, CONV2 = "/block1/conv/Conv", "/block2/conv/Conv"
NORM1, NORM2 = "/block1/norm/InstanceNormalization", "/block2/norm/InstanceNormalization"
NORMS_FP32 = ((NORM1, Precision.FP32), (NORM2, Precision.FP32))
CONVS_INT8 = ((CONV1, Precision.INT8), (CONV2, Precision.INT8))

NATIVE, BY_PLUGIN = (("NATIVE_INSTANCENORM", True),), (("NATIVE_INSTANCENORM", False),)
Fault = Literal["host_pointer", "float64", "non_contiguous"]


def _block(  # noqa: PLR0913  (one switch for each thing that a variant changes)
    graph: Graph,
    tensor: str,
    name: str,
    channels: tuple[int, int],
    *,
    kernel: tuple[int, ...] = (3, 3),
    qdq: bool = False,
    qdq_norm: bool = False,
    dtype: int = TensorProto.FLOAT,
) -> str:
    """Append Conv, InstanceNormalization, Relu; `qdq` quantises the Conv's inputs, `qdq_norm` the norm's."""
    source, target = channels
    weight = graph.weight(f"{name}.conv.weight", (target, source, *kernel), dtype=dtype)
    if qdq:
        tensor = graph.qdq(tensor, name=f"/{name}/conv/_input_quantizer")
        weight = graph.weight_qdq(weight, name=f"/{name}/conv/_weight_quantizer")
    bias = graph.weight(f"{name}.conv.bias", (target,), spread=0.1, dtype=dtype)
    pads = [1] * (2 * len(kernel))
    name_of_conv = f"/{name}/conv/Conv"
    tensor = graph.node("Conv", [tensor, weight, bias], name=name_of_conv, kernel_shape=kernel, pads=pads)
    if qdq_norm:
        tensor = graph.qdq(tensor, name=f"/{name}/norm/_input_quantizer")
    scale = graph.weight(f"{name}.norm.weight", (target,), centre=1.0, spread=0.1, dtype=dtype)
    shift = graph.weight(f"{name}.norm.bias", (target,), spread=0.1, dtype=dtype)
    name_of_norm = f"/{name}/norm/InstanceNormalization"
    tensor = graph.node("InstanceNormalization", [tensor, scale, shift], name=name_of_norm, epsilon=1e-5)
    return graph.node("Relu", [tensor], name=f"/{name}/act/Relu")


def _two_blocks(*, qdq: bool = False, qdq_norm: bool = False) -> onnx.ModelProto:
    """Return x [1,32,64,64] -> two Conv/InstanceNormalization/Relu blocks of 64 channels -> y."""
    graph = Graph("instance_norm", opset=17)
    x = graph.input("x", (1, 32, 64, 64))
    x = _block(graph, x, "block1", (32, 64), qdq=qdq, qdq_norm=qdq_norm)
    x = _block(graph, x, "block2", (64, 64), qdq=qdq, qdq_norm=qdq_norm)
    graph.output(x, (1, 64, 64, 64))
    return graph.model()


def _as_reported(*, qdq: bool = False) -> onnx.ModelProto:
    """Return the two blocks with the report's four network inputs, and a Reshape by an INT64 initialiser.

    The report names the inputs; their shapes and how the model joins them are made up.
    """
    graph = Graph("instance_norm_as_reported", opset=17)
    patches = graph.input("im_patches", (1, 32, 64, 64))
    features = graph.input("train_feat", (1, 64, 64, 64))
    labels = graph.input("target_labels", (1, 1, 64, 64))
    boxes = graph.input("train_ltrb", (1, 4, 64, 64))
    x = _block(graph, patches, "block1", (32, 64), qdq=qdq)
    x = _block(graph, x, "block2", (64, 64), qdq=qdq)
    x = graph.node("Mul", [graph.node("Add", [x, features], name="/Add"), labels], name="/Mul")
    x = graph.node("Concat", [x, boxes], name="/Concat", axis=1)
    shape = graph.constant("/Reshape_shape", [1, 68, 4096, 1], (4,), TensorProto.INT64)
    x = graph.node("Reshape", [x, shape], name="/Reshape")
    graph.output(x, (1, 68, 4096, 1))
    return graph.model()


def _int64_shape() -> onnx.ModelProto:
    """Return one FP32 block and a Reshape whose shape is an INT64 initialiser."""
    graph = Graph("instance_norm_int64_shape", opset=17)
    x = _block(graph, graph.input("x", (1, 32, 64, 64)), "block1", (32, 64))
    shape = graph.constant("/Reshape_shape", [1, 64, 4096, 1], (4,), TensorProto.INT64)
    x = graph.node("Reshape", [x, shape], name="/Reshape")
    graph.output(x, (1, 64, 4096, 1))
    return graph.model()


def _volumetric(*, qdq: bool = False) -> onnx.ModelProto:
    """Return two 5-D blocks of 32 channels, the one form for which the plugin has an INT8 kernel."""
    graph = Graph("instance_norm_5d", opset=17)
    x = graph.input("x", (1, 32, 4, 8, 8))
    x = _block(graph, x, "block1", (32, 32), kernel=(3, 3, 3), qdq=qdq, qdq_norm=qdq)
    x = _block(graph, x, "block2", (32, 32), kernel=(3, 3, 3), qdq=qdq, qdq_norm=qdq)
    graph.output(x, (1, 32, 4, 8, 8))
    return graph.model()


def _half(*, norm_dtype: int = TensorProto.FLOAT16) -> onnx.ModelProto:
    """Return one FP16 block whose InstanceNormalization has scale and bias of the given type.

    FP32 breaks ONNX's rule of one type, so that these types change after the full check of the model.
    """
    graph = Graph("instance_norm_fp16", opset=17)
    x = graph.input("x", (1, 32, 32, 32), TensorProto.FLOAT16)
    x = _block(graph, x, "block1", (32, 64), dtype=TensorProto.FLOAT16)
    graph.output(x, (1, 64, 32, 32), TensorProto.FLOAT16)
    model = graph.model()
    if norm_dtype != TensorProto.FLOAT16:
        for tensor in model.graph.initializer:
            if ".norm." in tensor.name:
                values = onnx.numpy_helper.to_array(tensor).astype("float32")
                tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
        onnx.checker.check_model(model)
    return model


def _implicit(parser_flags: tuple[tuple[str, bool], ...] = NATIVE, fault: Fault | None = None) -> Recipe:
    return Recipe(
        Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy", fault=fault), parser_flags=parser_flags
    )


LISTED = "the operator list has FP32 and FP16"
NOT_LISTED = "the operator list never has INT8 for InstanceNormalization"
WARNS = "with `Missing scale and zero-point` warnings for tensors inside the normalisation"
BLACKWELL = "fails on Blackwell and later GPUs"
ONE_TYPE = "asserts that input, scale and bias have one type"
MIXED = "mixed-types-norm"
NO_FLAG = reported(
    REMOVED, "<8.6", HEADER_85, "source", note="parser flags came with 8.6", signature="parser-flag-missing"
)
NO_IMPLICIT = reported(
    REMOVED,
    ">=11",
    links.MIGRATION,
    "nvidia",
    note="neither calibrators nor BuilderFlag.INT8; put Q/DQ into the graph",
    signature="implicit-int8-removed",
)

_calibrated = partial(Variant, recipe=_implicit(), precision=NORMS_FP32)
CALIBRATED_VARIANTS = (
    _calibrated(
        name="int8-native",
        title="INT8 from the entropy calibrator, native normalisation",
        build=_two_blocks,
        expectations=(
            builds(">=8.6,<9", REPORT, "summary", note=WARNS),
            may_build(">=9,<11", WARNS, link=REPORT),
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _calibrated(
        name="int8-plugin",
        title="INT8 from the entropy calibrator, normalisation by the plugin",
        build=_two_blocks,
        recipe=_implicit(BY_PLUGIN),
        expectations=(
            may_build(">=8.6,<11", f"issue 1611 has a cuDNN error on 8.0; {BLACKWELL}", link=PLUGIN),
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _calibrated(
        name="int8-as-reported",
        title="INT8 from the entropy calibrator with four network inputs and an INT64 shape, as reported",
        build=_as_reported,
        expectations=(
            builds(">=8.6,<9", REPORT, "summary", note=f"{WARNS}; the CUDA error came from the calibrator"),
            may_build(">=9,<11", WARNS, link=REPORT),
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _calibrated(
        name="int8-5d-plugin",
        title="INT8 from the entropy calibrator on 5-D tensors, where the plugin has an INT8 kernel",
        build=_volumetric,
        recipe=_implicit(BY_PLUGIN),
        role=Role.CONTROL,
        counterpart="int8-plugin",
        precision=((NORM1, Precision.INT8), (NORM2, Precision.INT8)),
        expectations=(
            may_build(">=8.6,<11", f"unless FP32 was timed as faster; {BLACKWELL}", link=PLUGIN),
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
)

SINCE_86 = (
    may_build(">=8.6,<10", NOT_LISTED, link=links.OPERATORS_86),
    may_build(">=10", NOT_LISTED, link=OPERATORS_101),
)
DEFAULT_CLAIMS = (may_build(">=8.5,<8.6", link=IMPORTER_85), *SINCE_86)
NATIVE_CLAIMS = (NO_FLAG, *SINCE_86)
PLUGIN_CLAIMS = (NO_FLAG, may_build(">=8.6", BLACKWELL, link=PLUGIN))
_explicit = partial(
    Variant,
    recipe=Recipe(flags=("INT8",)),
    role=Role.TWIN,
    precision=(*CONVS_INT8, *NORMS_FP32),
)
_explicit_native = partial(_explicit, recipe=Recipe(flags=("INT8",), parser_flags=NATIVE))
_explicit_plugin = partial(_explicit, recipe=Recipe(flags=("INT8",), parser_flags=BY_PLUGIN))
EXPLICIT_VARIANTS = (
    _explicit(
        name="qdq",
        title="Q/DQ round the convolutions in place of calibration, normalisation by the version's default",
        build=partial(_two_blocks, qdq=True),
        role=Role.WORKAROUND,
        counterpart="int8-native",
        expectations=DEFAULT_CLAIMS,
    ),
    _explicit_native(
        name="qdq-native",
        title="Q/DQ round the convolutions, native normalisation",
        build=partial(_two_blocks, qdq=True),
        counterpart="int8-native",
        expectations=NATIVE_CLAIMS,
    ),
    _explicit_plugin(
        name="qdq-plugin",
        title="Q/DQ round the convolutions, normalisation by the plugin",
        build=partial(_two_blocks, qdq=True),
        counterpart="int8-plugin",
        expectations=PLUGIN_CLAIMS,
    ),
    _explicit_native(
        name="qdq-as-reported",
        title="Q/DQ round the convolutions with four network inputs and an INT64 shape",
        build=partial(_as_reported, qdq=True),
        counterpart="int8-as-reported",
        expectations=NATIVE_CLAIMS,
    ),
    _explicit(
        name="qdq-into-norm",
        title="Q/DQ straight into the normalisation as well: it stays in FP32",
        build=partial(_two_blocks, qdq=True, qdq_norm=True),
        role=Role.CONTROL,
        counterpart="qdq",
        expectations=DEFAULT_CLAIMS,
    ),
    _explicit_plugin(
        name="qdq-into-norm-plugin",
        title="Q/DQ straight into the normalisation by the plugin: it stays in FP32",
        build=partial(_two_blocks, qdq=True, qdq_norm=True),
        role=Role.CONTROL,
        counterpart="qdq-plugin",
        expectations=PLUGIN_CLAIMS,
    ),
    _explicit_plugin(
        name="qdq-5d-plugin",
        title="Q/DQ into convolutions and normalisation of 5-D tensors: the plugin gets FP32 from its DQ",
        build=partial(_volumetric, qdq=True),
        counterpart="int8-5d-plugin",
        expectations=PLUGIN_CLAIMS,
    ),
)

FP32_VARIANTS = (
    Variant(
        name="fp32",
        title="FP32 with the version's default: the plugin before 10.0, the native layer from 10.0",
        build=_two_blocks,
        role=Role.CONTROL,
        counterpart="int8-native",
        precision=NORMS_FP32,
        expectations=(
            may_build(">=8.5,<8.6", link=IMPORTER_85),
            builds(">=8.6,<10", links.OPERATORS_86, "nvidia", note=LISTED),
            builds(">=10,<11", OPERATORS_101, "nvidia", note=f"{LISTED}; slower than 8.6 in issue 3962"),
            may_build(">=11", "the native layer is still the default", link=PARSER_11),
        ),
    ),
    Variant(
        name="fp32-native",
        title="FP32 by the native normalisation layer",
        build=_two_blocks,
        recipe=Recipe(parser_flags=NATIVE),
        role=Role.CONTROL,
        counterpart="fp32-plugin",
        precision=NORMS_FP32,
        expectations=(
            NO_FLAG,
            builds(">=8.6,<10", links.OPERATORS_86, "nvidia", note=LISTED),
            builds(">=10,<11", OPERATORS_101, "nvidia", note=LISTED),
            may_build(">=11", link=PARSER_11),
        ),
    ),
    Variant(
        name="fp32-plugin",
        title="FP32 by the plugin InstanceNormalization_TRT",
        build=_two_blocks,
        recipe=Recipe(parser_flags=BY_PLUGIN),
        role=Role.CONTROL,
        counterpart="fp32-native",
        precision=NORMS_FP32,
        expectations=(
            NO_FLAG,
            builds(
                ">=8.6,<10",
                links.OPERATORS_86,
                "nvidia",
                note=f"{LISTED}; issue 3578 has a cuDNN version mismatch",
            ),
            may_build(">=10", f"from 10.2 its version on IPluginV3; {BLACKWELL}", link=CHANGELOG),
        ),
    ),
    Variant(
        name="int64-shape",
        title="A Reshape by an INT64 initialiser: cast to INT32 with a warning up to 8.6, native from 9.0",
        build=_int64_shape,
        role=Role.CONTROL,
        counterpart="fp32",
        precision=((NORM1, Precision.FP32),),
        expectations=(
            builds(">=8.5,<9", REPORT, "summary", note="warns that the model has INT64 weights"),
            may_build(">=9", "INT64 is a type of its own, the warning is gone", link=CHANGELOG),
        ),
    ),
)

_fp16 = partial(Variant, recipe=Recipe(flags=("FP16",)), precision=((CONV1, Precision.FP16),))
FP16_VARIANTS = (
    _fp16(
        name="fp16-fp32-scale",
        title="FP16 input with FP32 scale and bias: parses up to 8.6, refused from 9.2",
        build=partial(_half, norm_dtype=TensorProto.FLOAT),
        expectations=(
            may_build(">=8.5,<8.6", "no look at types, and the plugin wants FP32 scales", link=IMPORTER_85),
            may_build(">=8.6,<9", "no look at types, and the plugin wants FP32 scales", link=IMPORTER_86),
            reported(PARSE_FAILED, ">=9.2,<10", IMPORTER_92, "source", note=ONE_TYPE, signature=MIXED),
            reported(PARSE_FAILED, ">=10,<10.1", IMPORTER_100, "source", note=ONE_TYPE, signature=MIXED),
            reported(PARSE_FAILED, ">=10.1,<10.2", IMPORTER_101, "source", note=ONE_TYPE, signature=MIXED),
            guessed(
                PARSE_FAILED,
                ">=10.2",
                "no later source was read, but the parser of TensorRT-RTX 1.7 asserts it too",
                link=IMPORTER_101,
                signature=MIXED,
            ),
        ),
        tags=("invalid-onnx",),
    ),
    _fp16(
        name="fp16-fp16-scale",
        title="FP16 input, scale and bias: the form that 9.2 and later demand",
        build=_half,
        role=Role.WORKAROUND,
        counterpart="fp16-fp32-scale",
        expectations=(
            guessed(INACCURATE, ">=8.5,<8.6", "hands FP16 scales to the plugin as FP32", link=IMPORTER_85),
            guessed(INACCURATE, ">=8.6,<9", "hands FP16 scales to the plugin as FP32", link=IMPORTER_86),
            guessed(
                OK, ">=9.2", "converts the scales for the plugin", link=IMPORTER_101, level="right numbers"
            ),
        ),
    ),
    _fp16(
        name="fp16-native",
        title="FP16 input, scale and bias by the native layer: right on 8.6 too",
        build=_half,
        recipe=Recipe(flags=("FP16",), parser_flags=NATIVE),
        role=Role.WORKAROUND,
        counterpart="fp16-fp16-scale",
        expectations=(
            NO_FLAG,
            builds(">=8.6,<9", links.OPERATORS_86, "nvidia", note=LISTED),
            may_build(">=9.2", LISTED, link=OPERATORS_101),
        ),
    ),
)

_wrong = partial(_calibrated, build=_two_blocks, role=Role.NEGATIVE_CONTROL, counterpart="int8-native")
WRONG_CALIBRATORS = (
    _wrong(
        name="calibrator-host-pointer",
        title="A user's error: the calibrator hands over host memory",
        recipe=_implicit(fault="host_pointer"),
        expectations=(
            guessed(
                BUILD_FAILED,
                ">=8.6,<11",
                "a cause of the reported CUDA error, unless the GPU can read pageable host memory",
                link=REPORT,
                signature="calibrator-cuda-error",
            ),
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _wrong(
        name="calibrator-float64",
        title="A user's error: the calibrator hands over float64, which is read as float32",
        recipe=_implicit(fault="float64"),
        expectations=(
            guessed(INACCURATE, ">=8.6,<11", "no CUDA call fails, the scales are of noise", link=REPORT),
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _wrong(
        name="calibrator-non-contiguous",
        title="A user's error: the calibrator hands over every second element",
        recipe=_implicit(fault="non_contiguous"),
        expectations=(
            guessed(
                BUILD_FAILED,
                ">=8.6,<11",
                "a cause of the reported CUDA error, unless TensorRT reads the batch without copying it",
                link=REPORT,
                signature="calibrator-cuda-error",
            ),
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
)

CASE = Case(
    name="instance_norm",
    title="InstanceNormalization in an INT8 model",
    summary=(
        "A calibrated INT8 build of a model with InstanceNormalization floods the log with missing scales. "
        "The node itself runs in INT8 on no version, 5-D tensors apart; what matters is whether the "
        "convolutions do. Parser flag, Q/DQ placement and the types of scale and bias decide what builds on "
        "which version."
    ),
    links=(REPORT, SLOWER, CUDNN, CUDNN_VERSION, PLUGIN, CHANGELOG, links.MIGRATION),
    variants=CALIBRATED_VARIANTS + EXPLICIT_VARIANTS + FP32_VARIANTS + FP16_VARIANTS + WRONG_CALIBRATORS,
)

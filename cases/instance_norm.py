"""InstanceNormalization in an INT8 model: who computes it, and how to keep INT8 around it.

The report is a tracker of four inputs, calibrated for INT8 on TensorRT 8.6 with NATIVE_INSTANCENORM set; its graph is
not shown. It met an INT64 warning, a CUDA error out of its own calibrator and hundreds of `Missing scale and
zero-point` warnings.

- The parser makes the node a native normalisation layer (flag set; the default from 10.0) or the plugin
  `InstanceNormalization_TRT` (flag cleared; the default before 10.0, and the only way on 8.5, whose parser has no
  flags). A variant with the flag cleared needs TensorRT's plugin library; without it the parse fails
  (`instancenorm-plugin-missing`). On Blackwell and later GPUs the plugin has lost the cuDNN it needs (10.7 notes):
  these variants are to fail there.
- Neither computes a 3-D or 4-D tensor in INT8. Only the plugin has an INT8 kernel: 5-D tensors in CDHW32, the channel
  count a multiple of 32. So "runs in INT8" means that the convolutions do. Q/DQ variants demand it; calibrated ones do
  not: there the builder may pick any permitted type by its timings.
- From 9.2 on the parser demands one type for input, scale and bias; that of 8.6 does not look. ONNX demands it too
  (`invalid-onnx` tags the variant that breaks the rule), but FP16 converters leave such models behind.

The wrong calibrators (`calibrator-*`) are users' errors, told from product failures by their role, and by the signature
`calibrator-cuda-error` where a CUDA call fails. Their class is as seen, as everywhere: a class is a function of
the outcome alone. The report shows a CUDA error out of its calibrator, and a summary of it lists buffer, type and
layout among the suspects: which of these was the cause nobody says. CUDA refuses to copy from a host address taken
for a device one, and past the end of a half-filled buffer; a kernel that reads past it may go unnoticed. Float64 values
are read as twice as many float32 ones, which nothing refuses.

No variant has BF16: the operator list of 10.1 names it and its importer refuses it, but ONNX allows it only from opset
22.

The importers of 8.5 (builtin_op_importers.cpp, line 2179) and 8.6 (onnx2trt_utils.cpp, line 1237) do not compare the
types; the flag's default stands in NvOnnxParser.h of 11.1, line 90. Issues 1611 and 3578 are of cuDNN errors of the
plugin, 3962 of latency; no claim is made from them. Issue 3659 is open, so nothing is claimed to be mended.
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
HEADER_85 = Link(f"{PARSER}/release/8.5-GA/NvOnnxParser.h", "NvOnnxParser.h of 8.5: no flags")
IMPORTER_92 = Link(
    f"{PARSER}/306247b30da17ec10b578d17c408fe04864d6fe5/builtin_op_importers.cpp#L2486",
    "ONNX parser 9.2: importer",
)
IMPORTER_100 = Link(f"{PARSER}/release/10.0-GA/onnxOpImporters.cpp#L2638", "ONNX parser 10.0: importer")
IMPORTER_101 = Link(f"{PARSER}/release/10.1-GA/onnxOpImporters.cpp#L2675", "ONNX parser 10.1: importer")

OK, REMOVED, PARSE_FAILED = Class.OK, Class.API_REMOVED, Class.PARSE_FAILED
reported = Expectation.reported
builds = partial(reported, OK, level="builds")
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


#: What the operator lists give InstanceNormalization: FP32 and FP16, and never INT8.
LISTED = tuple(
    builds(
        f"=={version}.*",
        links.operators(version),
        "nvidia",
        note="the list has the operator in FP32 and FP16; it tells of no build, nor of the native layer",
    )
    for version in ("8.6", "9.2", "10.0", "10.1")
)
X86 = "linux/amd64"
OF_THE_TRACKER = "8.6.1, a tracker, no GPU named"
REPORTED = builds(
    "==8.6.*",
    REPORT,
    "summary",
    scope="model",
    of=OF_THE_TRACKER,
    platform=X86,
    note=(
        "once its calibrator was put right, with hundreds of `Missing scale and zero-point` warnings for unnamed "
        "constants and shuffles, and one that INT64 is cast down; a maintainer advises 9.2 or 9.3"
    ),
)
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
            REPORTED,
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
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _calibrated(
        name="int8-as-reported",
        title="INT8 from the entropy calibrator with four network inputs and an INT64 shape, as reported",
        build=_as_reported,
        expectations=(
            REPORTED,
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
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
)

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
    ),
    _explicit_native(
        name="qdq-native",
        title="Q/DQ round the convolutions, native normalisation",
        build=partial(_two_blocks, qdq=True),
        counterpart="int8-native",
        expectations=(NO_FLAG,),
    ),
    _explicit_plugin(
        name="qdq-plugin",
        title="Q/DQ round the convolutions, normalisation by the plugin",
        build=partial(_two_blocks, qdq=True),
        counterpart="int8-plugin",
        expectations=(NO_FLAG,),
    ),
    _explicit_native(
        name="qdq-as-reported",
        title="Q/DQ round the convolutions with four network inputs and an INT64 shape",
        build=partial(_as_reported, qdq=True),
        counterpart="int8-as-reported",
        expectations=(NO_FLAG,),
    ),
    _explicit(
        name="qdq-into-norm",
        title="Q/DQ straight into the normalisation as well: it stays in FP32",
        build=partial(_two_blocks, qdq=True, qdq_norm=True),
        role=Role.CONTROL,
        counterpart="qdq",
    ),
    _explicit_plugin(
        name="qdq-into-norm-plugin",
        title="Q/DQ straight into the normalisation by the plugin: it stays in FP32",
        build=partial(_two_blocks, qdq=True, qdq_norm=True),
        role=Role.CONTROL,
        counterpart="qdq-plugin",
        expectations=(NO_FLAG,),
    ),
    _explicit_plugin(
        name="qdq-5d-plugin",
        title="Q/DQ into convolutions and normalisation of 5-D tensors: the plugin gets FP32 from its DQ",
        build=partial(_volumetric, qdq=True),
        counterpart="int8-5d-plugin",
        expectations=(NO_FLAG,),
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
        expectations=LISTED,
    ),
    Variant(
        name="fp32-native",
        title="FP32 by the native normalisation layer",
        build=_two_blocks,
        recipe=Recipe(parser_flags=NATIVE),
        role=Role.CONTROL,
        counterpart="fp32-plugin",
        precision=NORMS_FP32,
        expectations=(NO_FLAG, *LISTED),
    ),
    Variant(
        name="fp32-plugin",
        title="FP32 by the plugin InstanceNormalization_TRT",
        build=_two_blocks,
        recipe=Recipe(parser_flags=BY_PLUGIN),
        role=Role.CONTROL,
        counterpart="fp32-native",
        precision=NORMS_FP32,
        expectations=(NO_FLAG, LISTED[0]),
    ),
    Variant(
        name="int64-shape",
        title="A Reshape by an INT64 initialiser: cast to INT32 with a warning up to 8.6, native from 9.0",
        build=_int64_shape,
        role=Role.CONTROL,
        counterpart="fp32",
        precision=((NORM1, Precision.FP32),),
        expectations=(
            builds(
                "==8.6.*",
                REPORT,
                "summary",
                scope="model",
                of=OF_THE_TRACKER,
                platform=X86,
                note="warns that the model has INT64 weights, which are cast down to INT32",
            ),
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
            reported(PARSE_FAILED, "==9.2.*", IMPORTER_92, "source", note=ONE_TYPE, signature=MIXED),
            reported(PARSE_FAILED, "==10.0.*", IMPORTER_100, "source", note=ONE_TYPE, signature=MIXED),
            reported(PARSE_FAILED, "==10.1.*", IMPORTER_101, "source", note=ONE_TYPE, signature=MIXED),
        ),
        tags=("invalid-onnx",),
    ),
    _fp16(
        name="fp16-fp16-scale",
        title="FP16 input, scale and bias: the form that 9.2 and later demand",
        build=_half,
        role=Role.WORKAROUND,
        counterpart="fp16-fp32-scale",
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
            *LISTED,
        ),
    ),
)

CUDA_ERROR = reported(
    Class.BUILD_FAILED,
    "==8.6.*",
    REPORT,
    "summary",
    scope="sibling",
    of=OF_THE_TRACKER,
    platform=X86,
    note="a CUDA error out of its own calibrator; of buffer, type and layout the summary names no culprit",
    signature="calibrator-cuda-error",
)
_wrong = partial(_calibrated, build=_two_blocks, role=Role.NEGATIVE_CONTROL, counterpart="int8-native")
WRONG_CALIBRATORS = (
    _wrong(
        name="calibrator-host-pointer",
        title="A user's error: the calibrator hands over host memory",
        recipe=_implicit(fault="host_pointer"),
        expectations=(
            CUDA_ERROR,
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _wrong(
        name="calibrator-float64",
        title="A user's error: the calibrator hands over float64, which is read as float32",
        recipe=_implicit(fault="float64"),
        expectations=(
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
    _wrong(
        name="calibrator-non-contiguous",
        title="A user's error: the calibrator hands over every second element",
        recipe=_implicit(fault="non_contiguous"),
        expectations=(
            CUDA_ERROR,
            NO_FLAG,
            NO_IMPLICIT,
        ),
    ),
)

CASE = Case(
    name="instance_norm",
    title="InstanceNormalization in an INT8 model",
    summary=(
        "On 8.6.1 a calibrated INT8 build of a tracker with InstanceNormalization met a cast of INT64, a CUDA error "
        "out of its own calibrator and hundreds of missing scales; NATIVE_INSTANCENORM, and 9.2 or 9.3, are the "
        "maintainers' advice. The node itself runs in INT8 on no version, 5-D tensors apart; what matters is whether "
        "the convolutions do. Parser flag, Q/DQ placement and the types of scale and bias decide what builds on "
        "which version. On Hopper 8.6.1 reads an FP16 scale as FP32 for its plugin, without a word, and gives NaN; "
        "NATIVE_INSTANCENORM and 10.6.0 give right numbers. 10.6.0 does not build the FP32 block with a Reshape behind "
        "it: its compiler fails."
    ),
    links=(REPORT, SLOWER, CUDNN, CUDNN_VERSION, PLUGIN, CHANGELOG, links.MIGRATION),
    variants=CALIBRATED_VARIANTS + EXPLICIT_VARIANTS + FP32_VARIANTS + FP16_VARIANTS + WRONG_CALIBRATORS,
    seed=2,
)

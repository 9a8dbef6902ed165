"""A custom plugin between Q and DQ: where the pairs belong, and which formats the plugin must accept.

Two reports disagree until the plugin's formats are named. In TensorRT issue 3055 an INT8-only plugin fails as
`Q -> DQ -> plugin -> Q -> DQ` and works as `Q -> plugin -> DQ`. In issue 3844 the second form fails too: for a plugin
that accepts INT8 only in the vectorised formats CHW4 and CHW32, on a layer norm's 3-D tensor (the 4-D control tells
whether that is for want of a channel dimension), and for one that accepts INT8 and FP32. Node names are those of its
log: `QuantizeLinear_3`, `LayerNorm_4`, `DequantizeLinear_5`.

The op for the project's plugin library to implement:

- `CompatIdentity`: one output, a copy of the first input, of the same type and shape. A second input may be there and
  is ignored; it exists to feed the plugin an INT8 constant.
- The ONNX node is in the domain `compat`, which the parser ignores: it looks up the op type as the plugin's name, with
  the attributes `plugin_version` and `plugin_namespace` (here empty).
- `plugin_version` "1" is an IPluginV2DynamicExt (8.5 and later), "2" an IPluginV3 (10.0 and later).
- The attribute `formats`, a string, reaches the creator as a plugin field of characters with a closing zero. It says
  the formats that `supportsFormatCombination` accepts of the first input; the output has to be the same: `int8_linear`
  INT8 in kLINEAR, `int8_vectorised` INT8 in kCHW4 or kCHW32, `fp32` FP32 in kLINEAR, `int8_fp32` INT8 or FP32 in
  kLINEAR. The ignored second input is INT8 in kLINEAR with each of them.
- The output's type, which is asked for before formats are chosen, is that of the first input.

`Recipe.plugin` repeats op and formats, so that the harness knows which variants need the library. The variants without
a plugin stand in for it on engines that take none.

Issue 3844 prints `LayerNorm_4: could not find any supported formats consistent with input/output data types`, and a
summary of it `!n->candidateRequirements.empty()` for a plugin of FP32 and INT8. It names no version (8.x, by the form
of its log) and no GPU; its plugin normalises, ours copies. The plugin of issue 3055 has many inputs, ours one.
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
    Plugin,
    Precision,
    Recipe,
    Role,
    Typing,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

Formats = Literal["int8_linear", "int8_vectorised", "fp32", "int8_fp32"]

OP = "CompatIdentity"
DOMAIN = "compat"

REPORT = links.issue(3844, "Q, INT8 plugin, DQ")
PLACEMENT = links.issue(3055, "QAT for the plugin layer")
CONSTANT = links.issue(3919, "quantised constant into an IPluginV3")
LAYER_NORM = links.issue(4084, "Q/DQ round LayerNorm")
IMPORTERS_85 = Link(f"{links.PARSER}/release/8.5-GA/builtin_op_importers.cpp", "ONNX parser 8.5: importers")
DOCUMENTATION = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/"
    "quantized-types-explicit-quantization.html",
    "NVIDIA: explicit quantisation, Q/DQ interaction with plugins",
)

OK, FAILS = Class.OK, Class.BUILD_FAILED
reported = Expectation.reported
builds = partial(reported, OK, level="builds")
#: Builds, in the precision that the variant wants.
keeps = partial(reported, OK, level="precision")
NODE, POOL = "LayerNorm_4", "MaxPool_4"
SHAPE_3D = (1, 16, 64)
SHAPE_4D = (1, 32, 16, 16)
#: Inputs of unit variance keep within 127 steps of this.
SCALE = 0.05


def _plugin(graph: Graph, inputs: list[str], formats: Formats, version: str = "1") -> str:
    attributes = {"plugin_version": version, "plugin_namespace": "", "formats": formats}
    return graph.node(OP, inputs, name=NODE, domain=DOMAIN, **attributes)


def _finish(graph: Graph, tensor: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    graph.output(tensor, shape)
    return graph.model()


def _q_plugin_dq(
    formats: Formats, shape: tuple[int, ...] = SHAPE_3D, *, version: str = "1"
) -> onnx.ModelProto:
    """Return x -> Q -> plugin -> DQ -> y: the plugin itself takes and gives INT8."""
    graph = Graph("q_plugin_dq")
    x = graph.quantize(graph.input("x", shape), name="QuantizeLinear_3", scale=SCALE)
    x = _plugin(graph, [x], formats, version)
    return _finish(graph, graph.dequantize(x, name="DequantizeLinear_5", scale=SCALE), shape)


def _q_dq_plugin_q_dq(formats: Formats) -> onnx.ModelProto:
    """Return x -> Q -> DQ -> plugin -> Q -> DQ -> y: pairs round the plugin as round a native op."""
    graph = Graph("q_dq_plugin_q_dq")
    x = graph.quantize(graph.input("x", SHAPE_3D), name="QuantizeLinear_2", scale=SCALE)
    x = graph.dequantize(x, name="DequantizeLinear_3", scale=SCALE)
    x = _plugin(graph, [x], formats)
    x = graph.quantize(x, name="QuantizeLinear_5", scale=SCALE)
    return _finish(graph, graph.dequantize(x, name="DequantizeLinear_6", scale=SCALE), SHAPE_3D)


def _int8_constant(version: str) -> onnx.ModelProto:
    """Return x -> Q -> plugin -> DQ -> y, an INT8 initialiser without a DQ as the plugin's second input."""
    graph = Graph("int8_constant")
    x = graph.quantize(graph.input("x", SHAPE_4D), name="QuantizeLinear_3", scale=SCALE)
    values = [i % 255 - 127 for i in range(32 * 32)]
    weight = graph.constant(f"{NODE}.weight", values, (32, 32), TensorProto.INT8)
    x = _plugin(graph, [x, weight], "int8_linear", version)
    return _finish(graph, graph.dequantize(x, name="DequantizeLinear_5", scale=SCALE), SHAPE_4D)


def _max_pool(graph: Graph, tensor: str) -> str:
    # Without padding: the reference evaluator pads with NaN, which INT8 does not have.
    return graph.node("MaxPool", [tensor], name=POOL, kernel_shape=(2, 2), strides=(2, 2))


def _q_native_dq() -> onnx.ModelProto:
    """Return x -> Q -> MaxPool -> DQ -> y: a native op that takes and gives INT8 in the plugin's place."""
    graph = Graph("q_native_dq")
    x = graph.quantize(graph.input("x", SHAPE_4D), name="QuantizeLinear_3", scale=SCALE)
    x = _max_pool(graph, x)
    return _finish(graph, graph.dequantize(x, name="DequantizeLinear_5", scale=SCALE), (1, 32, 8, 8))


def _q_dq_native_q_dq() -> onnx.ModelProto:
    """Return the same with pairs round the MaxPool, through which the optimiser may move them."""
    graph = Graph("q_dq_native_q_dq")
    x = graph.qdq(graph.input("x", SHAPE_4D), name="/in", scale=SCALE)
    return _finish(graph, graph.qdq(_max_pool(graph, x), name="/out", scale=SCALE), (1, 32, 8, 8))


def _layer_norm(*, decomposed: bool = False) -> onnx.ModelProto:
    """Return x -> Q -> DQ -> layer norm -> Q -> DQ -> y, the norm as one op (opset 17) or as its parts."""
    graph = Graph("layer_norm", opset=13 if decomposed else 17)
    x = graph.qdq(graph.input("x", SHAPE_3D), name="/in", scale=SCALE)
    scale = graph.weight(f"{NODE}.weight", (64,), centre=1.0, spread=0.1)
    bias = graph.weight(f"{NODE}.bias", (64,), spread=0.1)
    if not decomposed:
        x = graph.node("LayerNormalization", [x, scale, bias], name=NODE, axis=-1, epsilon=1e-5)
        return _finish(graph, graph.qdq(x, name="/out", scale=SCALE), SHAPE_3D)
    two, epsilon = graph.constant("two", [2.0], ()), graph.constant("epsilon", [1e-5], ())
    mean = graph.node("ReduceMean", [x], name=f"{NODE}/ReduceMean", axes=[-1], keepdims=1)
    centred = graph.node("Sub", [x, mean], name=f"{NODE}/Sub")
    square = graph.node("Pow", [centred, two], name=f"{NODE}/Pow")
    variance = graph.node("ReduceMean", [square], name=f"{NODE}/ReduceMean_1", axes=[-1], keepdims=1)
    shifted = graph.node("Add", [variance, epsilon], name=f"{NODE}/Add")
    deviation = graph.node("Sqrt", [shifted], name=f"{NODE}/Sqrt")
    x = graph.node("Div", [centred, deviation], name=f"{NODE}/Div")
    x = graph.node("Mul", [x, scale], name=f"{NODE}/Mul")
    x = graph.node("Add", [x, bias], name=f"{NODE}/Add_1")
    return _finish(graph, graph.qdq(x, name="/out", scale=SCALE), SHAPE_3D)


def _plugin_recipe(formats: Formats, typing: Typing = Typing.GRAPH) -> Recipe:
    return Recipe(typing, flags=("INT8",) if typing is Typing.GRAPH else (), plugin=Plugin(OP, formats))


EMPTY, NO_FORMAT, CONSTANT_REFUSED = "candidates-removed", "no-plugin-format", "quantized-constant"
LINEAR = _plugin_recipe("int8_linear")
LINEAR_STRONG = _plugin_recipe("int8_linear", Typing.STRONG)
NO_STRONG_TYPING = reported(
    Class.API_REMOVED,
    "<9",
    links.HEADER_86,
    "source",
    note="they came with 9",
    signature="strong-typing-missing",
)
#: A user tried both placements with a plugin of many inputs.
_placed = partial(
    reported,
    versions=">=8.5,<8.7",
    link=PLACEMENT,
    of="8.5.3.1 and 8.6.0.12, RTX 3090",
    platform="linux/amd64",
    compute_capability="8.6",
)
IT_WORKED = _placed(OK, level="builds", note="on which of the two versions is not said")
#: The thread names no version, nor does the summary of it.
_unnamed = partial(reported, versions=None, link=REPORT)
IN_FP32 = _unnamed(OK, kind="summary", level="precision", note="Q/DQ is not propagated through a custom op")

_int8 = partial(Variant, recipe=LINEAR, precision=((NODE, Precision.INT8),))
_fp32 = partial(Variant, precision=((NODE, Precision.FP32),))

PAIRS_ROUND_PLUGIN = (
    _int8(
        name="q-dq-plugin-q-dq-int8",
        title="Q/DQ pairs round an INT8-only plugin: no format is left for it",
        build=partial(_q_dq_plugin_q_dq, "int8_linear"),
        expectations=(_placed(FAILS, signature=EMPTY),),
    ),
    _int8(
        name="q-dq-plugin-q-dq-int8-strong",
        title="Q/DQ pairs round an INT8-only plugin in a strongly typed network",
        build=partial(_q_dq_plugin_q_dq, "int8_linear"),
        recipe=LINEAR_STRONG,
        role=Role.TWIN,
        counterpart="q-dq-plugin-q-dq-int8",
        expectations=(NO_STRONG_TYPING,),
    ),
    _fp32(
        name="q-dq-plugin-q-dq-fp32",
        title="Q/DQ pairs round an FP32-only plugin: it runs in FP32",
        build=partial(_q_dq_plugin_q_dq, "fp32"),
        recipe=_plugin_recipe("fp32"),
        role=Role.CONTROL,
        counterpart="q-dq-plugin-q-dq-int8",
        expectations=(IN_FP32,),
    ),
    _fp32(
        name="q-dq-plugin-q-dq-int8-fp32",
        title="Q/DQ pairs round a plugin for INT8 and FP32: builds, but it runs in FP32",
        build=partial(_q_dq_plugin_q_dq, "int8_fp32"),
        recipe=_plugin_recipe("int8_fp32"),
        role=Role.WORKAROUND,
        counterpart="q-dq-plugin-q-dq-int8",
        expectations=(IN_FP32,),
    ),
)

LINEAR_BETWEEN = (
    _int8(
        name="q-plugin-dq-int8",
        title="An INT8-only plugin in linear format straight between Q and DQ: the advised form",
        build=partial(_q_plugin_dq, "int8_linear"),
        role=Role.WORKAROUND,
        counterpart="q-dq-plugin-q-dq-int8",
        expectations=(IT_WORKED,),
    ),
    _int8(
        name="q-plugin-dq-int8-strong",
        title="The advised form in a strongly typed network",
        build=partial(_q_plugin_dq, "int8_linear"),
        recipe=LINEAR_STRONG,
        role=Role.TWIN,
        counterpart="q-plugin-dq-int8",
        expectations=(NO_STRONG_TYPING,),
    ),
    _int8(
        name="q-plugin-dq-int8-4d",
        title="The advised form on a 4-D tensor",
        build=partial(_q_plugin_dq, "int8_linear", SHAPE_4D),
        role=Role.CONTROL,
        counterpart="q-plugin-dq-int8",
    ),
    _int8(
        name="q-plugin-dq-int8-v3",
        title="The advised form with an IPluginV3, the interface to keep for 11",
        build=partial(_q_plugin_dq, "int8_linear", version="2"),
        role=Role.WORKAROUND,
        counterpart="q-plugin-dq-int8",
    ),
)

OTHERS_BETWEEN = (
    _int8(
        name="q-plugin-dq-int8-vectorised",
        title="A plugin for INT8 in CHW4 or CHW32 only, on a 3-D tensor: no supported format",
        build=partial(_q_plugin_dq, "int8_vectorised"),
        recipe=_plugin_recipe("int8_vectorised"),
        expectations=(
            _unnamed(
                FAILS,
                of="a plugin for layer norm",
                note="the log calls QuantizeLinear's output FLOAT: a log of the parser, says a summary",
                signature=NO_FORMAT,
            ),
        ),
    ),
    _int8(
        name="q-plugin-dq-int8-vectorised-4d",
        title="A plugin for INT8 in CHW4 or CHW32 only, on a 4-D tensor of 32 channels",
        build=partial(_q_plugin_dq, "int8_vectorised", SHAPE_4D),
        recipe=_plugin_recipe("int8_vectorised"),
        role=Role.CONTROL,
        counterpart="q-plugin-dq-int8-vectorised",
    ),
    _int8(
        name="q-plugin-dq-int8-fp32",
        title="A plugin for INT8 and FP32 straight between Q and DQ: an assertion on 8.x",
        build=partial(_q_plugin_dq, "int8_fp32"),
        recipe=_plugin_recipe("int8_fp32"),
        expectations=(_unnamed(FAILS, kind="summary", signature=EMPTY),),
    ),
    _int8(
        name="q-plugin-dq-int8-fp32-strong",
        title="A plugin for INT8 and FP32 straight between Q and DQ in a strongly typed network",
        build=partial(_q_plugin_dq, "int8_fp32"),
        recipe=_plugin_recipe("int8_fp32", Typing.STRONG),
        role=Role.TWIN,
        counterpart="q-plugin-dq-int8-fp32",
        expectations=(NO_STRONG_TYPING,),
    ),
    _fp32(
        name="q-plugin-dq-fp32",
        title="A user's error: a plugin without INT8 straight between Q and DQ",
        build=partial(_q_plugin_dq, "fp32"),
        recipe=_plugin_recipe("fp32"),
        role=Role.NEGATIVE_CONTROL,
        counterpart="q-dq-plugin-q-dq-fp32",
    ),
)

ADA = "RTX 4000 Ada"
_constant = partial(reported, link=CONSTANT, scope="model", compute_capability="8.9")
INT8_CONSTANTS = (
    _int8(
        name="int8-constant-v3",
        title="An INT8 constant into an IPluginV3: refused by 10.0, fixed in 10.1",
        build=partial(_int8_constant, "2"),
        expectations=(
            _constant(FAILS, "==10.0.*", of=f"10.0.1, {ADA}", signature=CONSTANT_REFUSED),
            _constant(OK, "==10.1.*", of=ADA, level="builds"),
        ),
    ),
    _int8(
        name="int8-constant-v2",
        title="An INT8 constant into an IPluginV2: the way round the refusal of 10.0",
        build=partial(_int8_constant, "1"),
        role=Role.WORKAROUND,
        counterpart="int8-constant-v3",
        expectations=(_constant(OK, "==10.0.*", of=f"10.0.1, {ADA}", level="builds"),),
    ),
)

_native = partial(Variant, recipe=Recipe(flags=("INT8",)))
POOL_CLAIMS = tuple(
    builds(
        f"=={version}.*",
        links.operators(version),
        "nvidia",
        note="the operator list has INT8, that of 10.0 none",
    )
    for version in ("8.5", "8.6", "9.2")
)
WITHOUT_PLUGIN = (
    _native(
        name="q-native-dq",
        title="A native MaxPool on the INT8 tensor straight between Q and DQ",
        build=_q_native_dq,
        role=Role.TWIN,
        counterpart="q-plugin-dq-int8-4d",
        precision=((POOL, Precision.INT8),),
        expectations=POOL_CLAIMS,
    ),
    _native(
        name="q-dq-native-q-dq",
        title="Q/DQ pairs round a native MaxPool, through which TensorRT moves them",
        build=_q_dq_native_q_dq,
        role=Role.TWIN,
        counterpart="q-dq-plugin-q-dq-int8",
        precision=((POOL, Precision.INT8),),
        expectations=POOL_CLAIMS,
    ),
    _native(
        name="layernorm-native",
        title="LayerNormalization (opset 17) in the plugin's place: the maintainer's advice",
        build=_layer_norm,
        role=Role.WORKAROUND,
        counterpart="q-plugin-dq-int8-vectorised",
        precision=((NODE, Precision.FP32),),
        expectations=(
            reported(
                Class.PARSE_FAILED,
                ">=8.5,<8.6",
                IMPORTERS_85,
                "source",
                note="it has no LayerNormalization and looks for a plugin of that name",
                signature="plugin-not-found",
            ),
            keeps(
                None,
                LAYER_NORM,
                "nvidia",
                scope="sibling",
                of="norms in general, without Q/DQ round them",
                note="they generally run in FP32, says NVIDIA; in FP32 or FP16, says a user",
            ),
        ),
    ),
    _native(
        name="layernorm-decomposed",
        title="Layer norm as its parts (opset 13): for 8.5, which has no LayerNormalization",
        build=partial(_layer_norm, decomposed=True),
        role=Role.WORKAROUND,
        counterpart="layernorm-native",
        precision=((f"{NODE}/Div", Precision.FP32),),
    ),
)

CASE = Case(
    name="q_plugin_dq",
    title="A custom plugin between Q and DQ",
    summary=(
        "An INT8 plugin does not build though Q/DQ stands round it. TensorRT carries no Q/DQ through a "
        "custom op: the DQ in front and the Q behind have to go, and the plugin has to accept INT8 in a "
        "format that the tensor's rank allows; for a layer norm the maintainers advise the native operator. On Hopper "
        "8.6.1 builds an INT8 plugin, a copy of its input, straight between Q and DQ; 10.6.0 builds it in a strongly "
        "typed network alone."
    ),
    links=(REPORT, PLACEMENT, CONSTANT, LAYER_NORM, DOCUMENTATION),
    variants=PAIRS_ROUND_PLUGIN + LINEAR_BETWEEN + OTHERS_BETWEEN + INT8_CONSTANTS + WITHOUT_PLUGIN,
    seed=4,
)

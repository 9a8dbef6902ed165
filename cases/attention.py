"""Attention: written out as MatMul, Softmax, MatMul, and as the operator Attention of opset 23.

TensorRT runs either as one fused kernel where it has one for the types and the head size; the kernel's name is among a
build's layers (`_gemm_mha_v2`). The reports are of whole models: a vision transformer whose fused attention
is wrong in FP16 and BF16 on one GPU generation, one whose FP16 scores overflow, projections that share an input and are
wrong once the compiler makes one product of them. Each graph here is the attention alone, so that a
report about numbers is about a larger graph than ours; its claim says so. The If of issue 4739 has projections beside
the attention, that of 4757 has attention in both branches.

Left out: head sizes between those here, longer sequences and masks of other shapes, which came to no other result on
any version that was tried; quantised attention, which is a case of its own.

SAM 3 of issue 4837 is 1008x1008, here 64 tokens; FP32 is exact there, and marking tensors restores FP16. No claim is
made from issue 4723 (DINOv3 in FP16 overflows in the softmax on 10.3). Nobody reports `fp16-mask` and `fp16-head512`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx import TensorProto

from harness.case import (
    Case,
    Class,
    Expectation,
    Graph,
    Link,
    Precision,
    Profile,
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

WRONG_ON_SM120 = links.issue(4837, "fused attention wrong on SM 12.0")
BF16_CRASH = links.issue(4842, "a BF16 build crashes on SM 12.0")
WRONG_ON_103 = links.issue(4419, "wrong numbers on 10.3")
DEPTH_3 = Link(
    "https://github.com/ika-rwth-aachen/ros2-depth-anything-v3-trt/issues/16",
    "ros2-depth-anything-v3-trt issue 16: JetPack 6.2",
)
DEPTH_2 = Link(
    "https://github.com/spacewalk01/depth-anything-tensorrt/issues/49",
    "depth-anything-tensorrt issue 49: wrong on an AGX Orin",
)
IN_IF = links.issue(4739, "Attention inside an If on 10.16")
IN_BRANCHES = links.issue(4757, "Attention inside both branches of an If")
FP16_SCORES = links.issue(4723, "DINOv3 in FP16")
FP32_SCORES = Link(
    "https://github.com/lightly-ai/lightly-train/pull/917",
    "lightly-train change 917: attention kept in FP32 against overflow",
)
SHARED_INPUT = Link(
    "https://github.com/NVIDIA/TensorRT-Edge-LLM/issues/151", "TensorRT-Edge-LLM issue 151: V corrupted"
)
CACHE = links.issue(4738, "Attention with keys and values of before")
PARSER_1014 = links.changes("10.14", "the parser takes Attention")
KERNELS = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/getting-started/release-notes-10/10.14.1.html",
    "TensorRT 10.14.1: head sizes padded for fused attention",
)

FLOAT, HALF, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
BOOL = TensorProto.BOOL
FLAGS: dict[int, tuple[str, ...]] = {FLOAT: (), HALF: ("FP16",), BF16: ("BF16",)}
IN: dict[int, Precision] = {FLOAT: Precision.FP32, HALF: Precision.FP16, BF16: Precision.BF16}
TOKENS = 64
SCORES, VALUES = "/attn/MatMul", "/attn/MatMul_1"
PROJECTIONS = ("/attn/q/MatMul", "/attn/k/MatMul", "/attn/v/MatMul")

OK, WRONG, NO_PARSER, FAILS = Class.OK, Class.INACCURATE, Class.PARSE_FAILED, Class.BUILD_FAILED
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


def _attend(  # noqa: PLR0913
    g: Graph, qkv: list[str], size: int, *, heads: bool = True, mask: str = "", dtype: int, scores: int
) -> None:
    """Add scores, softmax and values; `scores` is the type of all up to the softmax, `dtype` that of the rest."""
    q, k, v = qkv
    k = g.node("Transpose", [k], name="/attn/Transpose", perm=[0, 1, 3, 2] if heads else [0, 2, 1])
    if scores != dtype:
        q, k = (g.node("Cast", [x], name=f"/attn/{side}/Cast", to=scores) for side, x in (("q", q), ("k", k)))
    x = g.node("MatMul", [q, k], name=SCORES)
    x = g.node("Mul", [x, g.constant("scale", [1 / math.sqrt(size)], [], scores)], name="/attn/Mul")
    if mask:
        x = g.node("Add", [x, mask], name="/attn/Add")
    x = g.node("Softmax", [x], name="/attn/Softmax", axis=-1)
    if scores != dtype:
        x = g.node("Cast", [x], name="/attn/Cast", to=dtype)
    g.node("MatMul", [x, v], name=VALUES, output="output")


def _written_out(  # noqa: PLR0913
    dtype: int = HALF,
    *,
    heads: int = 4,
    size: int = 64,
    scores: int | None = None,
    mask: bool = False,
    tokens: int | str = TOKENS,
) -> onnx.ModelProto:
    """Build attention as PyTorch exports it below opset 23."""
    g = Graph("attention")
    shape = [1, heads, tokens, size]
    qkv = [g.input(name, shape, dtype) for name in ("q", "k", "v")]
    added = g.input("mask", [1, 1, TOKENS, TOKENS], dtype) if mask else ""
    _attend(g, qkv, size, mask=added, dtype=dtype, scores=scores or dtype)
    g.output("output", shape, dtype)
    return g.model()


def _projected(dtype: int = HALF) -> onnx.ModelProto:
    """Build one head whose three projections share their input, at batch size 1."""
    g = Graph("projections")
    x = g.input("hidden_states", [1, TOKENS, 64], dtype)
    qkv = [
        g.node("MatMul", [x, g.weight(f"{name[1:]}.weight", (64, 64), dtype=dtype)], name=name)
        for name in PROJECTIONS
    ]
    _attend(g, qkv, 64, heads=False, dtype=dtype, scores=dtype)
    g.output("output", [1, TOKENS, 64], dtype)
    return g.model()


def _operator(
    dtype: int = HALF,
    *,
    kv_heads: int = 4,
    flat: bool = False,
    cache: bool = False,
    concatenated: bool = False,
    **attributes: Any,  # noqa: ANN401  (those of Attention)
) -> onnx.ModelProto:
    """Build the operator with 4 heads of 64; `flat` has them in one dimension, `cache` has the past keys and values.

    `concatenated`: the cache is joined in front of the operator, which then has one output.
    """
    g = Graph("attention_operator", opset=23)
    shapes = {"q": [1, 4, TOKENS, 64], "k": [1, kv_heads, TOKENS, 64], "v": [1, kv_heads, TOKENS, 64]}
    if flat:
        shapes = {name: [1, TOKENS, shape[1] * 64] for name, shape in shapes.items()}
        attributes |= {"q_num_heads": 4, "kv_num_heads": kv_heads}
    inputs, outputs = [g.input(name, shape, dtype) for name, shape in shapes.items()], ["output"]
    if cache:
        past = [g.input(f"past_{name}", [1, kv_heads, 16, 64], dtype) for name in ("key", "value")]
        inputs, outputs = [*inputs, "", *past], ["output", "present_key", "present_value"]
    if concatenated:
        inputs = ["q", *outputs[1:]]
        for present, old, new in zip(outputs[1:], past, ("k", "v"), strict=True):
            g.node("Concat", [old, new], name=f"/attn/{new}/Concat", output=present, axis=2)
    of_operator = outputs[:1] if concatenated else outputs
    g.node_of_several("Attention", inputs, of_operator, name="/attn/Attention", **attributes)
    g.output("output", shapes["q"], dtype)
    for name in outputs[1:]:
        g.output(name, [1, kv_heads, 16 + TOKENS, 64], dtype)
    return g.model()


def _chosen(*, operator: bool) -> onnx.ModelProto:
    """Build attention in one branch of an If, as the operator or written out; the other branch hands v on."""
    attends, passes, g = Graph("attends"), Graph("passes"), Graph("chosen", opset=23)
    shape = [1, 4, TOKENS, 64]
    qkv = [g.input(name, shape, HALF) for name in ("q", "k", "v")]
    if operator:
        attends.node("Attention", qkv, name="/attn/Attention", output="output")
    else:
        _attend(attends, qkv, 64, dtype=HALF, scores=HALF)
    attends.output("output", shape, HALF)
    passes.node("Identity", qkv[2:], name="/Identity", output="passed")
    passes.output("passed", shape, HALF)
    condition = g.input("attend", [], BOOL)
    x = g.node("If", [condition], name="/If", then_branch=attends.body(), else_branch=passes.body())
    g.output(x, shape, HALF)
    return g.model()


def _plain(
    name: str,
    title: str,
    dtype: int = HALF,
    *claims: Expectation,
    role: Role = Role.REPRODUCER,
    scores: int | None = None,
    **graph: Any,  # noqa: ANN401  (arguments of _written_out)
) -> Variant:
    """Return a variant of attention written out; both products are to run in the types that the graph gives them."""
    return Variant(
        name=name,
        title=title,
        build=partial(_written_out, dtype, scores=scores, **graph),
        recipe=Recipe(flags=FLAGS[dtype]),
        role=role,
        counterpart=None if role is Role.REPRODUCER else "fp16",
        precision=((SCORES, IN[scores or dtype]), (VALUES, IN[dtype])),
        expectations=claims,
    )


def _operation(
    name: str,
    title: str,
    dtype: int = HALF,
    *claims: Expectation,
    instead_of: str | None = None,
    written_out: str | None = None,
    **graph: Any,  # noqa: ANN401  (arguments of _operator)
) -> Variant:
    """Return a variant of the operator, known to parsers from TensorRT 10.14 on.

    It is a workaround `instead_of` another, or the same as one that is `written_out`.
    """
    no_parser = reported(NO_PARSER, "<10.14", PARSER_1014, "nvidia")
    return Variant(
        name=name,
        title=title,
        build=partial(_operator, dtype, **graph),
        recipe=Recipe(flags=FLAGS[dtype]),
        role=Role.WORKAROUND if instead_of else Role.REPRODUCER,
        counterpart=instead_of or written_out,
        expectations=(no_parser, *claims),
        tags=("opset23",),
    )


def _on_sm120(outcome: Class, note: str) -> Expectation:
    return reported(
        outcome,
        "==10.16.*",
        WRONG_ON_SM120,
        scope="model",
        of="10.16.1, a SAM 3",
        note=note,
        level="right numbers" if outcome is OK else None,
        compute_capability="12.0",
    )


CRASHES = reported(
    Class.CRASHED,
    ">=11.0,<11.3",
    BF16_CRASH,
    scope="model",
    of="11.0.0.114, 11.1.0.106 and 11.2.1.2, an RTX 5090, a DETR",
    note="a segmentation fault of the build; the same graph in FP16 builds, on a version that is not named",
    compute_capability="12.0",
)
_alike = partial(reported, scope="sibling")
WRONG_NUMBERS = (
    _alike(
        WRONG,
        "==10.3.*",
        WRONG_ON_103,
        of="a transformer with dynamic dimensions, precision not named",
        note="10.5 and 10.8 are right; NVIDIA supposes a bug of 10.3 that later versions mended",
    ),
    _alike(
        WRONG,
        "==10.3.*",
        DEPTH_3,
        of="a Depth Anything 3 with JetPack 6.2",
        note="the scale changes from frame to frame, on a desktop it does not",
        platform="jetson",
    ),
    _alike(
        OK,
        "==10.16.*",
        DEPTH_3,
        of="10.16.1 in tensorrt:26.03-py3, an Orin NX with JetPack 6.2",
        level="right numbers",
        platform="jetson",
    ),
    _alike(
        WRONG,
        "==10.3.*",
        DEPTH_2,
        of="10.3.0.30, an AGX Orin, a Depth Anything v2",
        note="10.12 on Windows is right, and v1 is on both",
        platform="jetson",
    ),
)
_of_if = partial(reported, scope="model")
IS_IMPORTED = reported(OK, "==10.14.*", PARSER_1014, "nvidia", level="builds")
NO_CACHE = reported(
    NO_PARSER, "==10.16.*", CACHE, of="10.16.0.72, on any GPU by its title", signature="attention-outputs"
)

WRITTEN_OUT = (
    _plain("fp16", "Attention of 4 heads of 64 in FP16", HALF, _on_sm120(WRONG, "FP16 loses all detections")),
    _plain(
        "bf16",
        "Attention of 4 heads of 64 in BF16",
        BF16,
        *NO_BF16,
        _on_sm120(WRONG, "BF16 as well"),
        CRASHES,
    ),
    _plain(
        "fp32", "Attention of 4 heads of 64 in FP32", FLOAT, _on_sm120(OK, "FP32 is exact"), role=Role.CONTROL
    ),
    Variant(
        name="fp32-dynamic",
        title="Attention in FP32 over a number of tokens that is dynamic",
        build=partial(_written_out, FLOAT, tokens="tokens"),
        recipe=Recipe(
            profiles=tuple(Profile(name, (1, 4, 16, 64), (1, 4, 64, 64), (1, 4, 128, 64)) for name in "qkv")
        ),
        expectations=WRONG_NUMBERS,
    ),
    _plain(
        "fp16-fp32-scores",
        "Scores and softmax in FP32, values in FP16: advised against overflow",
        HALF,
        role=Role.WORKAROUND,
        scores=FLOAT,
    ),
    _plain("fp16-mask", "Attention in FP16 with a mask that is added", mask=True),
    _plain("fp16-head512", "One head of 512 in FP16, as in the decoder of an autoencoder", heads=1, size=512),
    _plain(
        "fp16-head33",
        "Heads of 33 in FP16, which no fused kernel takes unpadded",
        HALF,
        reported(OK, "==10.14.*", KERNELS, "nvidia", level="builds", note="padded, and then fused"),
        size=33,
    ),
)
SHARED = (
    Variant(
        name="qkv-shared",
        title="Projections to q, k and v of one input, at batch size 1, in FP16",
        build=_projected,
        recipe=Recipe(flags=FLAGS[HALF]),
        precision=tuple((node, Precision.FP16) for node in PROJECTIONS),
        expectations=(
            reported(
                WRONG,
                "==10.13.*",
                SHARED_INPUT,
                scope="model",
                of="10.13.3.9 on a Thor",
                note="the projections are fused into one product",
                platform="jetson",
                compute_capability="11.0",
            ),
        ),
    ),
    Variant(
        name="qkv-shared-mark-v",
        title="The projection to v marked as a network output, which takes it out of the fusion",
        build=_projected,
        recipe=Recipe(flags=FLAGS[HALF], mark_outputs=(f"{PROJECTIONS[2]}_output_0",)),
        role=Role.WORKAROUND,
        counterpart="qkv-shared",
        precision=tuple((node, Precision.FP16) for node in PROJECTIONS),
        expectations=(
            reported(
                OK,
                "==10.13.*",
                SHARED_INPUT,
                scope="model",
                of="10.13.3.9 on a Thor",
                level="right numbers",
                note="the reporter suspected a buffer used twice; another user found the fusion",
                platform="jetson",
                compute_capability="11.0",
            ),
        ),
    ),
)
OPERATORS = (
    _operation("op-fp16", "The operator Attention in FP16", HALF, IS_IMPORTED, written_out="fp16"),
    _operation(
        "op-bf16",
        "The operator Attention in BF16",
        BF16,
        _of_if(OK, "==10.16.*", IN_IF, level="builds", note="outside of the If"),
        written_out="bf16",
    ),
    _operation("op-fp32", "The operator Attention in FP32", FLOAT, written_out="fp32"),
    _operation("op-fp32-flat", "The operator in FP32 with its heads in one dimension", FLOAT, flat=True),
    _operation(
        "op-causal-gqa", "The operator with 2 heads of keys for 4 and is_causal", kv_heads=2, is_causal=1
    ),
    _operation("op-softcap", "The operator with softcap", softcap=2.0),
    _operation("op-cache", "The operator with past and present keys and values", HALF, NO_CACHE, cache=True),
    _operation(
        "op-cache-fp32", "The operator in FP32 with past and present keys", FLOAT, NO_CACHE, cache=True
    ),
    _operation(
        "op-cache-concat",
        "Past keys and values joined in front of the operator",
        cache=True,
        concatenated=True,
        instead_of="op-cache",
    ),
)
IN_A_BRANCH = (
    Variant(
        name="op-if",
        title="The operator in a branch of an If, in FP16",
        build=partial(_chosen, operator=True),
        recipe=Recipe(flags=FLAGS[HALF]),
        precision=(),
        expectations=(
            reported(NO_PARSER, "<10.14", PARSER_1014, "nvidia"),
            _of_if(FAILS, "==10.16.*", IN_IF, of="BF16", signature="attention-in-branch"),
            _of_if(FAILS, "==10.16.*", IN_BRANCHES, of="10.16.1.11, in both branches"),
        ),
        tags=("opset23",),
    ),
    Variant(
        name="if-written-out",
        title="Attention written out in the branch",
        build=partial(_chosen, operator=False),
        recipe=Recipe(flags=FLAGS[HALF]),
        role=Role.WORKAROUND,
        counterpart="op-if",
        precision=(),
        expectations=(_of_if(OK, "==10.16.*", IN_IF, of="BF16", level="builds"),),
        tags=("opset23",),
    ),
)

CASE = Case(
    name="attention",
    title="Attention in FP16 and BF16, written out and as an operator",
    summary=(
        "Fused attention is where a transformer's FP16 and BF16 numbers went wrong, on one GPU generation or by "
        "overflow, and where an engine's speed comes from. Which spellings of attention a version builds, and which "
        "types and head sizes of the operator Attention (opset 23) it has a kernel for."
    ),
    links=(
        WRONG_ON_SM120,
        BF16_CRASH,
        WRONG_ON_103,
        DEPTH_3,
        DEPTH_2,
        IN_IF,
        IN_BRANCHES,
        FP16_SCORES,
        FP32_SCORES,
        SHARED_INPUT,
        CACHE,
        PARSER_1014,
        KERNELS,
    ),
    variants=(*WRITTEN_OUT, *SHARED, *OPERATORS, *IN_A_BRANCH),
    topics=("attention",),
)

"""FP32 matrix products, 3-D convolutions and BF16 with TensorRT for RTX on a Turing GPU.

NVIDIA's support matrix says in a footnote that FP32 matrix products and 3-D convolutions are not supported on Turing.
RTX 1.4 to 1.6 build an engine for it all the same, of which an engineer of NVIDIA reports that with dynamic shapes it
returns zeros and says nothing, and with static ones it has no execution context. The pull requests name no version;
their repository built against 1.6.1 on their days, so that they stand in the column of 1.6. From 1.7 on the builder
refuses. Recurrent layers and a transformer block are matrix products as well. FP16 helps, and INT8 only where
the tensors around it are FP16.

RTX 1.4 needs a GPU to build quantised graphs, whatever it builds for; from 1.5 on they are built without.

Change 4546 reports a null context for static FP32 products and 3-D convolutions, zeros for dynamic ones, a
segmentation fault for BF16, and no trouble for FP16 and transposed 3-D convolutions. Change 4646 reports a null
context for linear layers and attention, and with a dynamic batch an error that enqueueV3 logs and does not raise. The
words of the support matrix of 1.4 were not read; its mark is that of 1.5. Nobody reports recurrent layers.
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
    Level,
    Link,
    Profile,
    Quantiser,
    Recipe,
    Role,
    Scope,
    Variant,
)

if TYPE_CHECKING:
    import onnx

_TORCH = "https://github.com/pytorch/TensorRT/pull"
OBSERVED = Link(f"{_TORCH}/4546", "pytorch/TensorRT pull request 4546")
LINEAR = Link(f"{_TORCH}/4646", "pytorch/TensorRT pull request 4646")
FOOTNOTES = {
    version: Link(
        f"https://docs.nvidia.com/deeplearning/tensorrt-rtx/latest/getting-started/support-matrix-1/{version}.html",
        f"TensorRT-RTX {version} support matrix",
    )
    for version in ("1.4", "1.5")
}

FP32, FP16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
TOKENS, WIDTH, HEADS = 16, 32, 2
SCALE = 0.02


def _gemm(dtype: int = FP32, batch: int | str = 4, *, int8: bool = False) -> onnx.ModelProto:
    """Build a linear layer: a matrix product and a bias."""
    g = Graph("gemm")
    x = g.input("x", [batch, WIDTH], dtype)
    weight = g.weight("fc.weight", (WIDTH, 64), dtype=dtype)
    if int8:
        x = g.qdq(x, name="/fc/input_quantizer", scale=SCALE)
        weight = g.weight_qdq(weight, name="/fc/weight_quantizer", axis=1)
    y = g.node("MatMul", [x, weight], name="/fc/MatMul")
    y = g.node("Add", [y, g.weight("fc.bias", (64,), dtype=dtype)], name="/fc/Add")
    g.output(y, [batch, 64], dtype)
    return g.model()


def _recurrent(op: str, gates: int, dtype: int = FP32) -> onnx.ModelProto:
    """Build one recurrent layer over eight steps."""
    g = Graph("recurrent", opset=14)
    x = g.input("x", [8, 1, WIDTH], dtype)
    weights = [
        g.weight(f"rnn.weight_{side}", (1, gates * WIDTH, WIDTH), spread=0.3, dtype=dtype)
        for side in ("ih", "hh")
    ]
    y = g.node(op, [x, *weights], name=f"/rnn/{op}", hidden_size=WIDTH)
    g.output(y, [8, 1, 1, WIDTH], dtype)
    return g.model()


def _conv(  # noqa: PLR0913  (what a convolution can be)
    dtype: int = FP32,
    dimensions: int = 3,
    *,
    group: int = 1,
    int8: bool = False,
    transposed: bool = False,
    opset: int = 13,
) -> onnx.ModelProto:
    """Build a convolution of eight channels, which the transposed one doubles in each dimension."""
    g = Graph("conv", opset=opset)
    x = g.input("x", [1, 8, *[6] * dimensions], dtype)
    size = 4 if transposed else 3
    weight = g.weight("conv.weight", (8, 8 // group, *[size] * dimensions), dtype=dtype)
    if int8:
        x = g.qdq(x, name="/conv/input_quantizer", scale=SCALE)
        weight = g.weight_qdq(weight, name="/conv/weight_quantizer")
    if transposed:
        y = g.conv_transpose(x, weight, name="/conv/ConvTranspose", dimensions=dimensions)
    else:
        y = g.conv(x, weight, name="/conv/Conv", group=group, dimensions=dimensions)
    g.output(y, [1, 8, *[12 if transposed else 6] * dimensions], dtype)
    return g.model()


def _product(  # noqa: PLR0913  (both sides, and how they are quantised)
    g: Graph, a: str, b: str, *, name: str, to: Quantiser | None, a_scale: float = SCALE
) -> str:
    """Add a matrix product, between Q/DQ pairs where it is quantised."""
    if to is not None:
        a = g.qdq(a, name=f"{name}/a_quantizer", scale=a_scale, to=to)
        b = g.qdq(b, name=f"{name}/b_quantizer", scale=SCALE, to=to)
    return g.node("MatMul", [a, b], name=f"{name}/MatMul")


def _vit(dtype: int = FP32, batch: int | str = 1, *, int8: bool = False) -> onnx.ModelProto:
    """Build the attention half of a vision transformer's block; in INT8 every product has Q/DQ on both sides."""
    g = Graph("vit_block", opset=19 if int8 and dtype == FP16 else 17)
    to = Quantiser(scale_type=dtype) if int8 else None
    tokens = g.input("tokens", [batch, TOKENS, WIDTH], dtype)
    norm = [g.weight(f"norm.{part}", (WIDTH,), centre=at, spread=0.1, dtype=dtype) for part, at in NORM]
    x = g.node("LayerNormalization", [tokens, *norm], name="/norm/LayerNormalization")
    split = g.constant("split", [0, TOKENS, HEADS, WIDTH // HEADS], [4], TensorProto.INT64)
    head = {}
    for name, order in ORDERS.items():
        weight = g.weight(f"attn.{name}.weight", (WIDTH, WIDTH), dtype=dtype)
        y = _product(g, x, weight, name=f"/attn/{name}", to=to)
        y = g.node("Reshape", [y, split], name=f"/attn/{name}/Reshape")
        head[name] = g.node("Transpose", [y], name=f"/attn/{name}/Transpose", perm=order)
    x = _product(g, head["q"], head["k"], name="/attn/scores", to=to)
    x = g.node("Mul", [x, g.constant("scale", [(WIDTH // HEADS) ** -0.5], [], dtype)], name="/attn/Mul")
    x = g.node("Softmax", [x], name="/attn/Softmax", axis=-1)
    x = _product(g, x, head["v"], name="/attn/mix", to=to, a_scale=1 / 127)
    x = g.node("Transpose", [x], name="/attn/Transpose", perm=ORDERS["v"])
    join = g.constant("join", [0, TOKENS, WIDTH], [3], TensorProto.INT64)
    x = g.node("Reshape", [x, join], name="/attn/Reshape")
    x = _product(g, x, g.weight("attn.proj.weight", (WIDTH, WIDTH), dtype=dtype), name="/attn/proj", to=to)
    g.output(g.node("Add", [tokens, x], name="/Add"), [batch, TOKENS, WIDTH], dtype)
    return g.model()


NORM = (("weight", 1.0), ("bias", 0.0))
#: How the axes of queries, keys and values are ordered: heads before tokens, and keys the other way round.
ORDERS = {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}

#: What NVIDIA tells of Turing, for the targets that build for it.
_on_turing = partial(
    Expectation.reported, kind="nvidia", engine=Engine.TENSORRT_RTX, compute_capability="7.5"
)
#: The support matrices of 1.4 and 1.5 mark FP32 on Turing; the words of the mark were read in that of 1.5.
UNSUPPORTED = tuple(
    _on_turing(
        Class.RUN_FAILED,
        f"=={version}.*",
        link,
        scope="sibling",
        note="no FP32 products or 3-D convolutions on Turing, says a footnote; not how they fail",
        targets=(f"rtx{version.replace('.', '')}-sm75",),
    )
    for version, link in FOOTNOTES.items()
)


def _said(
    outcome: Class, link: Link, note: str, level: Level | None = None, scope: Scope = "graph"
) -> Expectation:
    """Return the report of NVIDIA's engineer on Turing."""
    return _on_turing(
        outcome,
        "==1.6.*",
        link,
        scope=scope,
        of="1.6.1 by the repository's pin",
        level=level,
        note=note,
        targets=("rtx16-sm75",),
    )


NO_CONTEXT = _said(Class.LOAD_FAILED, OBSERVED, "createExecutionContext() returns null")
ZEROS = _said(Class.INACCURATE, OBSERVED, "all zero, of the right shape and type, and no error")
RUNS = _said(Class.OK, OBSERVED, "only FP32 products are affected", "runs")
RUN_ALIKE = _said(Class.OK, OBSERVED, "only FP32 products are affected", "runs", "sibling")
DECONVOLVES = _said(Class.OK, OBSERVED, "transposed 3-D convolutions work", "runs")
DIES = _said(Class.CRASHED, OBSERVED, "a segmentation fault; at what point is not said")
NO_ATTENTION = _said(Class.LOAD_FAILED, LINEAR, "linear layers and attention: a null execution context")
WRONG_ATTENTION = _said(
    Class.INACCURATE,
    LINEAR,
    "3 of 19 cases over linear layers and attention, not said which; logged at enqueueV3 and not raised",
    scope="sibling",
)

BATCHES = Profile("x", (1, WIDTH), (4, WIDTH), (8, WIDTH))
IMAGES = Profile("tokens", (1, TOKENS, WIDTH), (2, TOKENS, WIDTH), (4, TOKENS, WIDTH))
IN_FP16, IN_BF16, IN_INT8 = (Recipe(flags=(name,)) for name in ("FP16", "BF16", "INT8"))

helps = partial(Variant, role=Role.WORKAROUND)
control = partial(Variant, role=Role.CONTROL)
twin = partial(Variant, role=Role.TWIN)

GEMM = (
    Variant("gemm-fp32", "A linear layer in FP32", _gemm, expectations=(NO_CONTEXT, *UNSUPPORTED)),
    Variant(
        "gemm-fp32-batch",
        "A linear layer in FP32, of dynamic batch",
        partial(_gemm, batch="N"),
        Recipe(profiles=(BATCHES,)),
        expectations=(ZEROS, *UNSUPPORTED),
    ),
    helps(
        "gemm-fp16",
        "The linear layer in FP16",
        partial(_gemm, FP16),
        IN_FP16,
        counterpart="gemm-fp32",
        expectations=(RUNS,),
    ),
    helps(
        "gemm-fp16-batch",
        "The linear layer in FP16, of dynamic batch",
        partial(_gemm, FP16, "N"),
        Recipe(flags=("FP16",), profiles=(BATCHES,)),
        counterpart="gemm-fp32-batch",
        expectations=(RUNS,),
    ),
    control(
        "gemm-bf16",
        "The linear layer in BF16",
        partial(_gemm, BF16),
        IN_BF16,
        counterpart="gemm-fp32",
        expectations=(DIES,),
    ),
    twin(
        "gemm-int8",
        "The linear layer with Q/DQ, FP32 around it",
        partial(_gemm, int8=True),
        IN_INT8,
        counterpart="gemm-fp32",
    ),
)
RECURRENT = (
    Variant("lstm-fp32", "An LSTM in FP32", partial(_recurrent, "LSTM", 4)),
    Variant("gru-fp32", "A GRU in FP32", partial(_recurrent, "GRU", 3)),
    Variant("rnn-fp32", "An RNN in FP32", partial(_recurrent, "RNN", 1)),
    helps(
        "lstm-fp16",
        "The LSTM in FP16",
        partial(_recurrent, "LSTM", 4, FP16),
        IN_FP16,
        counterpart="lstm-fp32",
        expectations=(RUN_ALIKE,),
    ),
)
CONVOLUTIONS = (
    Variant("conv3d-fp32", "A 3-D convolution in FP32", _conv, expectations=(NO_CONTEXT, *UNSUPPORTED)),
    helps(
        "conv3d-fp16",
        "The 3-D convolution in FP16",
        partial(_conv, FP16),
        IN_FP16,
        counterpart="conv3d-fp32",
    ),
    twin(
        "conv3d-int8",
        "The 3-D convolution with Q/DQ, FP32 around it",
        partial(_conv, int8=True),
        IN_INT8,
        counterpart="conv3d-fp32",
    ),
    control(
        "deconv3d-fp32",
        "A transposed 3-D convolution in FP32",
        partial(_conv, transposed=True),
        counterpart="conv3d-fp32",
        expectations=(DECONVOLVES,),
    ),
    control(
        "depthwise-bf16",
        "A depthwise convolution in BF16",
        partial(_conv, BF16, 2, group=8, opset=22),
        IN_BF16,
        counterpart="conv3d-fp32",
        expectations=(DIES,),
        tags=("opset22",),
    ),
)
VIT = (
    Variant(
        "vit-fp32",
        "Attention of a transformer block in FP32",
        _vit,
        expectations=(NO_ATTENTION, *UNSUPPORTED),
    ),
    Variant(
        "vit-fp32-batch",
        "Attention of a transformer block in FP32, of dynamic batch",
        partial(_vit, batch="N"),
        Recipe(profiles=(IMAGES,)),
        expectations=(WRONG_ATTENTION, *UNSUPPORTED),
    ),
    helps(
        "vit-fp16",
        "The attention in FP16",
        partial(_vit, FP16),
        IN_FP16,
        counterpart="vit-fp32",
        expectations=(RUN_ALIKE,),
    ),
    twin(
        "vit-int8",
        "The attention with Q/DQ, FP32 around it",
        partial(_vit, int8=True),
        IN_INT8,
        counterpart="vit-fp32",
    ),
    helps(
        "vit-int8-fp16",
        "The attention with Q/DQ, FP16 around it",
        partial(_vit, FP16, int8=True),
        Recipe(flags=("INT8", "FP16")),
        counterpart="vit-int8",
        tags=("opset19",),
    ),
)

CASE = Case(
    name="turing",
    title="FP32 matrix products, 3-D convolutions and BF16 on Turing (TensorRT for RTX)",
    summary=(
        "Engines that TensorRT for RTX 1.4 to 1.6 build for cards of the RTX 20 and GTX 16 series, and that are "
        "reported to return zeros, or to have no execution context; 1.7 refuses to build them. TensorRT 10.6.0 ran "
        "this depthwise convolution of BF16, of 8 channels, in an FP16 kernel on an H100, and its numbers were wrong "
        "without a word; that is one graph on one GPU, and nobody has looked why."
    ),
    links=(OBSERVED, LINEAR, *FOOTNOTES.values()),
    variants=(*GEMM, *RECURRENT, *CONVOLUTIONS, *VIT),
)

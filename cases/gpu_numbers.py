"""Engines that build and are reported to give wrong numbers, which only a GPU shows.

Each is cut down to the operators that its report blames. Reports are of whole models unless a claim says
otherwise, of other sizes, and of one or two GPUs: whether the cut still shows it nobody knows until a GPU says so,
and a build without one proves nothing here. ONNX Runtime gives the right numbers in every report.

Left out: reports without a graph (issues 4748 and 4820), and those whose graph could not be made out of operators
(issue 4473).

Issue 4813 is of a whole detector, here one attention of two levels; issue 4646 has a batch of 45056, here 8; issue
4511 has a constant of ones, here mixed. No claim is made from Torch-TensorRT 4074, where GridSample goes wrong since
10.14.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onnx import TensorProto

from harness.case import Case, Class, Engine, Expectation, Graph, Link, Role, Variant, links

if TYPE_CHECKING:
    import onnx

DEFORMABLE = links.issue(4813, "DETR-style models wrong on 11.1")
GATHERED = Link(
    "https://github.com/lightly-ai/lightly-train/pull/917", "lightly-train change 917: GridSample avoided"
)
OPSET_20 = links.issue(4646, "GridSample of opset 20")
OPSET_20_MODE = Link(
    "https://github.com/onnx/onnx-tensorrt/pull/1060", "ONNX parser: linear of opset 20 taken for nearest"
)
MIXED = Link(
    "https://github.com/pytorch/TensorRT/issues/4074", "pytorch/TensorRT issue 4074: GridSample since 10.14"
)
VOLUME = links.issue(4618, "GridSample of a volume")
VOLUME_112 = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/getting-started/release-notes-11/11.2.1.html",
    "TensorRT 11.2.1: GridSample of volumes",
)
SEGFORMER = links.issue(4853, "SegFormer wrong for batches")
CUMSUM = links.issue(4551, "two CumSum")
CUMSUM_PARSER = Link(
    "https://github.com/onnx/onnx-tensorrt/issues/1034", "onnx-tensorrt issue 1034: CumSum since 10.8"
)
CUMSUM_REVERSE = links.issue(4513, "CumSum and reverse")
GEMV = links.issue(3969, "two products of one row")
CONSTANT_OR = links.issue(4511, "Or and Cast")

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
OK, WRONG, NO_PARSER = Class.OK, Class.INACCURATE, Class.PARSE_FAILED
reported = Expectation.reported
is_right = partial(reported, OK, level="right numbers")


def _grid_sample(opset: int, *, batch: int = 1, volume: bool = False) -> onnx.ModelProto:
    """Build one GridSample; opset 16's `bilinear` is called `linear` in opset 20."""
    g = Graph("grid_sample", opset=opset)
    inside, outside = ([4, 6, 6], [3, 4, 4]) if volume else ([1, 64], [1, 9])
    channels = 2 if volume else 1
    inputs = [
        g.input("x", [batch, channels, *inside]),
        g.input("grid", [batch, *outside, len(inside)]),
    ]
    mode = "linear" if opset >= 20 else "bilinear"  # noqa: PLR2004  (the opset that renamed it)
    g.node("GridSample", inputs, name="/GridSample", output="output", mode=mode, align_corners=0)
    g.output("output", [batch, channels, *outside])
    return g.model()


def _deformable() -> onnx.ModelProto:
    """Build deformable attention over two levels: sampled values, weighted and summed over points."""
    heads, size, queries, points = 4, 8, 10, 4
    g = Graph("deformable_attention", opset=16)
    value = g.input("value", [1, 8 * 8 + 4 * 4, heads, size])
    places = g.input("places", [heads, queries, 2 * points, 2])
    weights = g.input("weights", [heads, 1, queries, 2 * points])
    value = g.node("Transpose", [value], name="/Transpose", perm=[0, 2, 3, 1])
    sampled = []
    for level, (start, end, side) in enumerate(((0, 64, 8), (64, 80, 4))):
        x = _cut(g, value, f"/level{level}/Slice", start, end, axis=3)
        x = _reshaped(g, x, f"/level{level}/Reshape", [heads, size, side, side])
        at = _cut(g, places, f"/level{level}/Slice_1", level * points, (level + 1) * points, axis=2)
        sampled.append(g.node("GridSample", [x, at], name=f"/level{level}/GridSample", mode="bilinear"))
    x = g.node("Mul", [g.node("Concat", sampled, name="/Concat", axis=3), weights], name="/Mul")
    x = g.node("ReduceSum", [x, g.constant("last", [3], [1], INT64)], name="/ReduceSum", keepdims=0)
    g.node("Transpose", [x], name="/Transpose_1", output="output", perm=[2, 0, 1])
    g.output("output", [queries, heads, size])
    return g.model()


def _cut(g: Graph, x: str, name: str, start: int, end: int, *, axis: int) -> str:  # noqa: PLR0913
    limits = [g.constant(f"{name}_{at}", [at], [1], INT64) for at in (start, end, axis)]
    return g.node("Slice", [x, *limits], name=name)


def _reshaped(g: Graph, x: str, name: str, shape: list[int]) -> str:
    return g.node("Reshape", [x, g.constant(f"{name}_shape", shape, [len(shape)], INT64)], name=name)


def _segformer(batch: int) -> onnx.ModelProto:
    """Build attention whose keys and values are of an image that a convolution has made smaller."""
    tokens, size, heads, side, fewer = 64, 32, 2, 8, 16
    g = Graph("segformer_block", opset=17)
    x = g.input("hidden_states", [batch, tokens, size])

    def linear(x: str, name: str) -> str:
        return g.node("MatMul", [x, g.weight(f"{name}.weight", (size, size))], name=f"/{name}/MatMul")

    def norm(x: str, name: str) -> str:
        scale, bias = (
            g.weight(f"{name}.weight", (size,), centre=1.0),
            g.weight(f"{name}.bias", (size,), spread=0.1),
        )
        return g.node("LayerNormalization", [x, scale, bias], name=f"/{name}/LayerNormalization", axis=-1)

    def heads_of(x: str, name: str, length: int, perm: list[int]) -> str:
        x = _reshaped(g, linear(x, name), f"/{name}/Reshape", [batch, length, heads, size // heads])
        return g.node("Transpose", [x], name=f"/{name}/Transpose", perm=perm)

    query = norm(x, "norm")
    image = g.node("Transpose", [query], name="/sr/Transpose", perm=[0, 2, 1])
    image = _reshaped(g, image, "/sr/Reshape", [batch, size, side, side])
    weight = g.weight("sr.weight", (size, size, 2, 2))
    image = g.node("Conv", [image, weight], name="/sr/Conv", kernel_shape=[2, 2], strides=[2, 2])
    image = _reshaped(g, image, "/sr/Reshape_1", [batch, size, fewer])
    source = norm(g.node("Transpose", [image], name="/sr/Transpose_1", perm=[0, 2, 1]), "sr_norm")
    keys = heads_of(source, "key", fewer, [0, 2, 3, 1])
    scores = g.node("MatMul", [heads_of(query, "query", tokens, [0, 2, 1, 3]), keys], name="/MatMul")
    scores = g.node("Softmax", [scores], name="/Softmax", axis=-1)
    y = g.node("MatMul", [scores, heads_of(source, "value", fewer, [0, 2, 1, 3])], name="/MatMul_1")
    y = g.node("Transpose", [y], name="/Transpose", perm=[0, 2, 1, 3])
    y = linear(_reshaped(g, y, "/Reshape", [batch, tokens, size]), "dense")
    g.node("Add", [x, y], name="/Add", output="output")
    g.output("output", [batch, tokens, size])
    return g.model()


def _sums(*, axes: tuple[int, int] = (0, 0), reverse: tuple[int, int] = (0, 0)) -> onnx.ModelProto:
    """Build two cumulative sums of one input, each a network output."""
    g = Graph("cumsum", opset=14)
    x = g.input("data", [4, 5])
    for index, (axis, backwards) in enumerate(zip(axes, reverse, strict=True)):
        at = g.constant(f"axis_{axis}", [axis], [], INT64)
        g.node("CumSum", [x, at], name=f"/CumSum_{index}", output=f"output_{index}", reverse=backwards)
        g.output(f"output_{index}", [4, 5])
    return g.model()


def _rows(*, padded: bool) -> onnx.ModelProto:
    """Build two products in a row of one row each; padded, of two rows, of which the first is cut out at the end."""
    g = Graph("gemv")
    x = g.input("input", [1, 1, 64])
    if padded:
        x = g.node("Concat", [x, x], name="/Concat", axis=1)
    for name in ("/fc1/MatMul", "/fc2/MatMul"):
        x = g.node("MatMul", [x, g.weight(f"{name[1:4]}.weight", (64, 64))], name=name)
    limits = [
        g.constant(name, [value], [1], INT64) for name, value in (("start", 0), ("end", 1), ("axis", 1))
    ]
    g.node("Slice" if padded else "Identity", [x, *limits] if padded else [x], name="/last", output="output")
    g.output("output", [1, 1, 64])
    return g.model()


def _or_cast() -> onnx.ModelProto:
    """Build an Or with a constant, and the Cast behind it."""
    g = Graph("or_cast")
    shape = [1, 3, 4, 4]
    constant = g.constant("or_constant", [index % 3 == 0 for index in range(48)], shape, BOOL)
    x = g.node("Or", [g.input("input", shape, BOOL), constant], name="/Or")
    g.node("Cast", [x], name="/Cast", output="output", to=TensorProto.FLOAT)
    g.output("output", shape)
    return g.model()


RTX_5090 = "10.13.3, RTX 5090, a batch of 45056"
BLOCK = "a SegFormer and its encoder block, in FP32 and FP16, an L4 and an RTX PRO 2000 Blackwell"
GRIDS = (
    Variant(
        name="grid-sample-16",
        title="GridSample of opset 16, one dimension high, in a batch",
        build=partial(_grid_sample, 16, batch=8),
        role=Role.CONTROL,
        counterpart="grid-sample-20",
        expectations=(
            is_right("==10.13.*", OPSET_20, of=RTX_5090, note="of opset 18", compute_capability="12.0"),
        ),
    ),
    Variant(
        name="grid-sample-20",
        title="GridSample of opset 20, one dimension high, in a batch",
        build=partial(_grid_sample, 20, batch=8),
        expectations=(
            reported(WRONG, "==10.13.*", OPSET_20, of=RTX_5090, compute_capability="12.0"),
            reported(WRONG, "==11.1.*", OPSET_20_MODE, note="linear is taken for nearest"),
            reported(
                WRONG,
                "==1.5.*",
                OPSET_20_MODE,
                note="linear is taken for nearest",
                engine=Engine.TENSORRT_RTX,
            ),
        ),
        tags=("opset20",),
    ),
    Variant(
        name="grid-sample-volume",
        title="GridSample of a volume, opset 20",
        build=partial(_grid_sample, 20, volume=True),
        expectations=(
            reported(
                NO_PARSER,
                "==10.6.*",
                VOLUME,
                of="10.6.0 on Windows, RTX 4070 Ti Super",
                signature="gridsample-volume",
                compute_capability="8.9",
            ),
            reported(NO_PARSER, "==10.1.*", links.operators("10.1"), "nvidia", note="its input must be 4-D"),
            reported(NO_PARSER, "<11.2", VOLUME_112, "nvidia", note="new in 11.2.1"),
            reported(OK, "==11.2.*", VOLUME_112, "nvidia", of="11.2.1", level="builds"),
        ),
        tags=("opset20",),
    ),
)
WHOLE_MODELS = (
    Variant(
        name="deformable-attention",
        title="Deformable attention: values sampled, weighted and summed",
        build=_deformable,
        expectations=(
            is_right(
                "==10.13.*",
                DEFORMABLE,
                scope="model",
                of="10.13.3.9, a detector of static batch 1",
                note="another user's drops a detection there, built for a dynamic batch; change 917 of lightly-train "
                "avoids GridSample for 10.13.3 on a T4",
            ),
            reported(
                WRONG,
                "==10.14.*",
                DEFORMABLE,
                scope="model",
                of="10.14.1, a detector of a second reporter",
                compute_capability="8.6",
            ),
            *(
                reported(
                    WRONG,
                    "==11.1.*",
                    DEFORMABLE,
                    scope="model",
                    of="11.1.0, a detector in FP32",
                    compute_capability=gpu,
                )
                for gpu in ("8.9", "12.0")
            ),
        ),
    ),
    Variant(
        name="segformer-batch2",
        title="SegFormer's attention over a smaller image, batch size 2",
        build=partial(_segformer, 2),
        expectations=(
            reported(WRONG, "==10.11.*", SEGFORMER, scope="model", of=BLOCK),
            reported(WRONG, "==11.1.*", SEGFORMER, scope="model", of=BLOCK),
        ),
    ),
    Variant(
        name="segformer-batch1",
        title="SegFormer's attention over a smaller image, batch size 1",
        build=partial(_segformer, 1),
        role=Role.CONTROL,
        counterpart="segformer-batch2",
        expectations=(
            is_right("==10.11.*", SEGFORMER, scope="model", of=BLOCK),
            is_right("==11.1.*", SEGFORMER, scope="model", of=BLOCK),
        ),
    ),
)
SMALL = (
    Variant(
        name="cumsum-axes",
        title="Two CumSum over two axes",
        build=partial(_sums, axes=(0, 1)),
        expectations=(
            reported(
                WRONG,
                ">=10.8,<10.12",
                CUMSUM_PARSER,
                of="10.11.0.33, an A10",
                note="since 10.8, where the layer that is blamed came, says the user",
                compute_capability="8.6",
            ),
        ),
    ),
    Variant(
        name="cumsum-reverse",
        title="Two CumSum, one of them reversed",
        build=partial(_sums, reverse=(0, 1)),
        expectations=(reported(WRONG, None, CUMSUM_REVERSE, note="the version of the report was not read"),),
    ),
    Variant(
        name="gemv-pair",
        title="Two products of one row, one behind the other",
        build=partial(_rows, padded=False),
        expectations=(
            is_right(
                "==8.6.*",
                GEMV,
                scope="model",
                of="8.6.3, RTX 3090",
                platform="linux/amd64",
                compute_capability="8.6",
            ),
            reported(WRONG, "==10.0.*", GEMV, scope="model", of="10.0.1, RTX 3090", compute_capability="8.6"),
            reported(
                WRONG,
                "==10.1.*",
                GEMV,
                "nvidia",
                note="a known issue in the release notes, quoted there: try to pad to two rows",
            ),
        ),
    ),
    Variant(
        name="gemv-pair-padded",
        title="Two products of two rows, one behind the other, which NVIDIA's notes say to try",
        build=partial(_rows, padded=True),
        role=Role.WORKAROUND,
        counterpart="gemv-pair",
    ),
    Variant(
        name="or-cast",
        title="Or with a constant, and a Cast",
        build=_or_cast,
        expectations=(
            reported(
                Class.BUILD_FAILED,
                "==10.12.*",
                CONSTANT_OR,
                scope="sibling",
                of="10.12.0.36, RTX 3080, a constant of ones that is broadcast",
                signature="no-implementation",
                compute_capability="8.6",
            ),
        ),
        tags=("few-values",),
    ),
)

CASE = Case(
    name="gpu_numbers",
    title="Engines that build and give wrong numbers",
    summary=(
        "Sampling grids, cumulative sums, products of one row and attention over a smaller image build on every "
        "version, and are reported to give wrong numbers on some. Each report cut down to the operators that it "
        "blames. GridSample of opset 20, whose modes are called linear and cubic, is wrong on 8.6.1 and 10.6.0 "
        "(measured): their parsers take them for nearest, as a change to the parser says (onnx-tensorrt 1060)."
    ),
    links=(
        DEFORMABLE,
        GATHERED,
        OPSET_20,
        OPSET_20_MODE,
        MIXED,
        VOLUME,
        SEGFORMER,
        CUMSUM,
        CUMSUM_PARSER,
        CUMSUM_REVERSE,
        GEMV,
        CONSTANT_OR,
    ),
    variants=(*GRIDS, *WHOLE_MODELS, *SMALL),
)

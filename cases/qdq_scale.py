"""The scale of a whole tensor, written as a scalar or as a vector of one element.

ONNX takes both for per-tensor quantisation, and quantisers write both. To a parser a vector is one scale a channel, of
which there happens to be one. The graphs of a pair differ in nothing but the shape of scales and zero points: `[]` or
`[1]`, on the data, on the weights or on both, so that a precision that only one of them keeps is lost by that alone.
Nobody has reported it: the case comes of a survey of TensorRT for RTX, and has no claims.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from onnx import TensorProto

from harness.case import (
    Case,
    Graph,
    Link,
    Precision,
    Quantiser,
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    import onnx

OPERATOR = Link("https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html", "ONNX: DequantizeLinear")

Kind = Literal["conv", "matmul"]
Type = Literal["int8", "fp8"]
CHANNELS, SIZE = 16, 8
#: The harness's inputs are uniform in [-1, 1], and so are the weights.
INPUT_SCALE = 0.01
WEIGHT_SCALES: dict[Type, float] = {"int8": 0.01, "fp8": 0.0025}
NODE = "/layer"
QUANTISERS: dict[Type, Quantiser] = {
    "int8": Quantiser(),
    "fp8": Quantiser(TensorProto.FLOAT8E4M3FN),
}
PRECISIONS: dict[Type, Precision] = {"int8": Precision.INT8, "fp8": Precision.FP8}
FLAGS: dict[Type, tuple[str, ...]] = {"int8": ("INT8",), "fp8": ("FP8",)}


def _layer(kind: Kind, to: Type, *, data: bool, weights: bool) -> onnx.ModelProto:
    """Build one operator with per-tensor Q/DQ on both inputs, its scales vectors where `data` and `weights` say so."""
    g = Graph("scale", opset=19 if to == "fp8" else 13)
    quantiser = QUANTISERS[to]
    dims = [1, CHANNELS, SIZE, SIZE] if kind != "matmul" else [1, SIZE, CHANNELS]
    g.input("input", dims)
    x = g.qdq("input", name="/input_quantizer", scale=[INPUT_SCALE] if data else INPUT_SCALE, to=quantiser)
    name = g.weight("weight", (CHANNELS, CHANNELS) if kind == "matmul" else (CHANNELS, CHANNELS, 3, 3))
    scale = WEIGHT_SCALES[to]
    weight = g.qdq(name, name="/weight_quantizer", scale=[scale] if weights else scale, to=quantiser)
    if kind == "conv":
        g.conv(x, weight, name=NODE, output="output")
    else:
        g.node("MatMul", [x, weight], name=NODE, output="output")
    g.output("output", dims)
    return g.model()


SHAPES = {
    (True, True): "vector",
    (True, False): "data-vector",
    (False, True): "weights-vector",
    (False, False): "scalar",
}
WORDS = {
    "vector": "scales written as vectors of one element",
    "data-vector": "the scale of the data alone as a vector of one element",
    "weights-vector": "the scale of the weights alone as a vector of one element",
    "scalar": "scales written as scalars",
}
OPERATORS: dict[Kind, str] = {
    "conv": "convolution",
    "matmul": "matrix product",
}
#: One more graph is one more line: operator, type, and whether the scale of data and of weights is a vector.
GRAPHS: tuple[tuple[Kind, Type, bool, bool], ...] = (
    ("conv", "int8", True, True),
    ("conv", "int8", True, False),
    ("conv", "int8", False, True),
    ("conv", "int8", False, False),
    ("matmul", "int8", True, True),
    ("matmul", "int8", False, False),
    ("conv", "fp8", True, True),
    ("conv", "fp8", False, False),
    ("matmul", "fp8", True, True),
    ("matmul", "fp8", False, False),
)


def _variant(kind: Kind, to: Type, data: bool, weights: bool) -> Variant:  # noqa: FBT001  (a row of the table)
    shape = SHAPES[data, weights]
    return Variant(
        name=f"{to}-{kind}-{shape}",
        title=f"{to.upper()} {OPERATORS[kind]}, {WORDS[shape]}",
        build=partial(_layer, kind, to, data=data, weights=weights),
        recipe=Recipe(flags=FLAGS[to]),
        role=Role.WORKAROUND if shape == "scalar" else Role.REPRODUCER,
        counterpart=f"{to}-{kind}-vector" if shape == "scalar" else None,
        precision=((NODE, PRECISIONS[to]),),
        tags=("opset19",) if to == "fp8" else (),
    )


CASE = Case(
    name="qdq_scale",
    title="A scale written as a vector of one element",
    summary=(
        "Per-tensor quantisation may be written with a scalar scale or with a vector of one element. ONNX Runtime "
        "computes the same from both. An engine may take the vector for a scale a channel, and build the layer in a "
        "float without a word: TensorRT for RTX does so with a convolution. TensorRT 8.6.1 and 10.6.0 run it in INT8 "
        "either way; in FP8, weakly typed, 10.6.0 runs neither."
    ),
    links=(OPERATOR, links.QUANTISED_TYPES),
    variants=tuple(_variant(*graph) for graph in GRAPHS),
)

"""Sorts of ONNX operators, as far as their precision depends on it."""

from __future__ import annotations

import re

#: These multiply data by weights, or data by data.
MULTIPLYING = frozenset(
    {
        "Conv",
        "ConvTranspose",
        "ConvInteger",
        "QLinearConv",
        "Gemm",
        "MatMul",
        "MatMulInteger",
        "QLinearMatMul",
    }
)
#: Nodes that an engine may rightly make vanish: they move, rename or quantise data and do no arithmetic of their own.
MAY_VANISH = frozenset(
    {
        "Identity",
        "Dropout",
        "Cast",
        "Constant",
        "Shape",
        "Reshape",
        "Flatten",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "Slice",
        "Concat",
        "Split",
        "QuantizeLinear",
        "DequantizeLinear",
    }
)
#: Operators without a precision of their own: they move data as they are, or run other graphs.
MOVING = MAY_VANISH | {
    *("ConstantOfShape", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Pad", "Range"),
    *("ScatterElements", "ScatterND", "Size", "SpaceToDepth", "Tile", "Where", "If", "Loop", "Scan"),
}

#: ONNX's, ONNX Runtime's of the same names, and those of TensorRT's parser, which name the type.
_QUANTISES = re.compile(r"(?:TRT_(?:MX)?(?P<type>[A-Z]+\d+)?)?(?:Dynamic|Block)?Quantize(?:Linear)?")
_DEQUANTISES = re.compile(r"(?:TRT_(?:MX)?(?P<type>[A-Z]+\d+)?)?(?:Block)?Dequantize(?:Linear)?")


def quantises(op: str) -> re.Match[str] | None:
    """Return a match for an operator that quantises; its group `type` is the type that its name tells, or None."""
    return _QUANTISES.fullmatch(op)


def dequantises(op: str) -> re.Match[str] | None:
    """Return a match for an operator that dequantises; its group `type` is the type that its name tells, or None."""
    return _DEQUANTISES.fullmatch(op)

"""Models that hold a failure in their middle."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import onnx
from onnx import TensorProto, helper

from harness.case import Graph

Seed = Literal["plain", "concat", "vector", "deconvolution"]
CHANNELS, SIZE = 16, 16


def _module(
    g: Graph, x: str, name: str, *, channels: int = CHANNELS, scale: float | list[float] | None = 0.02
) -> str:
    """Add an INT8 convolution and ReLU; without a `scale` its data have no Q/DQ of their own."""
    if scale is not None:
        x = g.qdq(x, name=f"/{name}/input", scale=scale)
    weight = g.weight_qdq(g.weight(f"{name}.weight", (CHANNELS, channels, 3, 3)), name=f"/{name}/weight")
    bias = g.weight(f"{name}.bias", (CHANNELS,), spread=0.1)
    return g.node("Relu", [g.conv(x, weight, name=f"/{name}/Conv", bias=bias)], name=f"/{name}/Relu")


def network(seed: Seed = "plain", *, depth: int = 8) -> onnx.ModelProto:
    """Return a quantised network of residual blocks, with a seed's part between its two halves."""
    g = Graph(f"embedded_{seed}", opset=17)
    x = g.input("images", [1, CHANNELS, SIZE, SIZE])
    x = _blocks(g, x, "front", depth // 2)
    size = SIZE
    if seed == "concat":
        branches = [_module(g, x, name) for name in ("left", "right")]
        branches = [
            g.qdq(branch, name=f"/joined{index}", scale=scale)
            for index, (branch, scale) in enumerate(zip(branches, (0.02, 0.03), strict=True))
        ]
        x = g.node("Concat", branches, name="/Concat", axis=1)
        x = _module(g, x, "joined", channels=2 * CHANNELS, scale=None)
    elif seed == "vector":
        x = _module(g, x, "vector", scale=[0.02])
    elif seed == "deconvolution":
        weight = g.weight("up.weight", (CHANNELS, CHANNELS, 4, 4))
        weight = g.weight_qdq(weight, name="/up/weight", axis=1)
        x = g.conv_transpose(g.qdq(x, name="/up/input", scale=0.02), weight, name="/up/ConvTranspose")
        size *= 2
    x = _blocks(g, x, "back", depth // 2)
    g.output(x, [1, CHANNELS, size, size])
    return g.model()


def _blocks(g: Graph, x: str, name: str, count: int) -> str:
    for index in range(count // 2):
        y = _module(g, _module(g, x, f"{name}{index}a"), f"{name}{index}b")
        x = g.node("Add", [x, y], name=f"/{name}{index}/Add")
    return x


def classifier() -> onnx.ModelProto:
    """Return FP32 convolutions, then two linear layers."""
    g = Graph("classifier", opset=17)
    x = g.input("images", [1, CHANNELS, SIZE, SIZE])
    for index in range(4):
        weight = g.weight(f"conv{index}.weight", (CHANNELS, CHANNELS, 3, 3))
        x = g.node("Relu", [g.conv(x, weight, name=f"/conv{index}")], name=f"/relu{index}")
    x = g.node("GlobalAveragePool", [x], name="/pool")
    x = g.node("Flatten", [x], name="/flatten", axis=1)
    x = g.node("MatMul", [x, g.weight("fc1.weight", (CHANNELS, 32))], name="/fc1/MatMul")
    x = g.node("Add", [g.node("Relu", [x], name="/fc1/Relu"), g.weight("fc1.bias", (32,))], name="/fc1/Add")
    g.output(g.node("MatMul", [x, g.weight("fc2.weight", (32, 10))], name="/fc2/MatMul"), [1, 10])
    return g.model()


def products() -> onnx.ModelProto:
    """Return three INT8 products, of which the last takes the other two, joined with scales that differ."""
    g = Graph("products", opset=17)

    def product(x: str, name: str, rows: int) -> str:
        weight = g.weight_qdq(g.weight(f"{name}.weight", (rows, 64)), name=f"/{name}/weight", axis=1)
        return g.node("MatMul", [x, weight], name=f"/{name}/MatMul")

    x = g.qdq(g.input("x", [8, 64]), name="/input", scale=0.03)
    joined = [
        g.qdq(product(x, name, 64), name=f"/{name}/output", scale=scale)
        for name, scale in (("left", 0.03), ("right", 0.05))
    ]
    g.output(product(g.node("Concat", joined, name="/Concat", axis=-1), "joined", 128), [8, 64])
    return g.model()


def blocked() -> onnx.ModelProto:
    """Return a network with a bias in INT32, a deconvolution of stride and dilation, and a TopK of 4000."""
    g = Graph("blocked", opset=17)
    x = _module(g, g.input("images", [1, CHANNELS, SIZE, SIZE]), "first")
    stored = g.constant("second.bias", range(-8, 8), [CHANNELS], TensorProto.INT32)
    scales = g.constant("second.bias_scale", [1e-4] * CHANNELS, [CHANNELS])
    bias = g.node("DequantizeLinear", [stored, scales], name="/second/bias/DequantizeLinear", axis=0)
    weight = g.weight_qdq(g.weight("second.weight", (CHANNELS, CHANNELS, 3, 3)), name="/second/weight")
    x = g.conv(g.qdq(x, name="/second/input", scale=0.02), weight, name="/second/Conv", bias=bias)
    weight = g.weight("up.weight", (CHANNELS, CHANNELS, 3, 3))
    x = g.conv_transpose(x, weight, name="/up/ConvTranspose", kernel=3, dilation=2)
    x = g.node("Flatten", [g.node("Relu", [x], name="/up/Relu")], name="/Flatten")
    most = g.constant("most", [4000], [1], TensorProto.INT64)
    values, _ = g.node_of_several("TopK", [x, most], 2, name="/TopK")
    g.output(values, [1, 4000])
    return g.model()


def amid(model: onnx.ModelProto, nodes: int) -> onnx.ModelProto:
    """Return a model of float tensors in a chain of others: so many nodes in all, the new ones before it and behind."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph, new = made.graph, nodes - len(model.graph.node)
    first, last, core = graph.input[0], graph.output[0], list(graph.node)
    before = [*(f"before_{at}" for at in range(new // 2)), first.name]
    after = [last.name, *(f"after_{at}" for at in range(new - new // 2))]
    first.name, last.name = before[0], after[-1]
    chains = [
        [
            helper.make_node("Log" if at % 2 else "Sigmoid", [source], [goal], name=f"/{goal}")
            for at, (source, goal) in enumerate(pairwise(row))
        ]
        for row in (before, after)
    ]
    del graph.node[:]
    graph.node.extend([*chains[0], *core, *chains[1]])
    onnx.checker.check_model(made)
    return made

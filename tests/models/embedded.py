"""What users stumble over, in the middle of larger models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

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
    """Return a model inside a chain of others: so many nodes in all, half of the new ones before it, half behind.

    The chain ends in the first network input of a float type, and goes on from the first output of one.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    new = max(0, nodes - len(graph.node))
    core = list(graph.node)
    entry = next((value for value in graph.input if _float(value)), None)
    leaving = next((value for value in graph.output if _float(value)), None)
    before = list(_chain(graph, "before", entry, new // 2, backwards=True)) if entry is not None else []
    after = list(_chain(graph, "after", leaving, new - len(before))) if leaving is not None else []
    del graph.node[:]
    graph.node.extend([*before, *core, *after])
    onnx.checker.check_model(made)
    return made


def _float(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _chain(
    graph: onnx.GraphProto, name: str, value: onnx.ValueInfoProto, count: int, *, backwards: bool = False
) -> Iterator[onnx.NodeProto]:
    """Yield a chain that begins at an output of the graph, or ends in an input, and put the new end in its place."""
    elem, old = value.type.tensor_type.elem_type, value.name
    constant = numpy_helper.from_array(np.array([1.5], np.float32), f"{name}.constant")
    if elem != TensorProto.FLOAT:
        # Weights of the chain are of its own type.
        constant = helper.make_tensor(constant.name, elem, [1], [1.5])
    graph.initializer.append(constant)
    tensors = [f"{name}_{index}" for index in range(count + 1)]
    tensors[-1 if backwards else 0] = old
    value.name = tensors[0] if backwards else tensors[-1]
    for index in range(count):
        source, goal = tensors[index], tensors[index + 1]
        op = ("Add", "Relu", "Mul", "Neg", "Sigmoid", "Sub", "Tanh", "Max")[index % 8]
        second = {"Add": constant.name, "Mul": constant.name, "Sub": constant.name}.get(op)
        if op == "Max":
            # A branch: what was five nodes ago comes in again.
            second = tensors[max(0, index - 5)]
        inputs = [source, second] if second else [source]
        yield helper.make_node(op, inputs, [goal], name=f"/{name}/{op}_{index}")

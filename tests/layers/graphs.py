"""The original models of the ONNX Runtime samples in `data/`; written again, they are the same bytes."""

from __future__ import annotations

import onnx

from harness.case import Graph
from harness.case.model import serialise

CHANNELS = 16


def quantised() -> bytes:
    """Two convolutions that become QLinearConv, then a pool that does not."""
    graph = Graph("quantised")
    tensor = graph.input("input", (1, CHANNELS, 8, 8))
    for name, group in (("/conv", 1), ("/depthwise", CHANNELS)):
        weight = graph.weight(f"{name}.weight", (CHANNELS, CHANNELS // group, 1, 1))
        operands = [graph.qdq(tensor, name=f"{name}/in"), graph.weight_qdq(weight, name=f"{name}/w")]
        tensor = graph.node("Conv", operands, name=name, kernel_shape=[1, 1], group=group)
    tensor = graph.qdq(tensor, name="/out")
    graph.output(
        graph.node("MaxPool", [tensor], name="/pool", kernel_shape=[2, 2], strides=[2, 2]),
        (1, CHANNELS, 4, 4),
    )
    return serialise(graph.model())


def floating() -> bytes:
    """Two convolutions with SiLU, then an unnamed ReLU: blocked layout and fused activations."""
    graph = Graph("floating")
    tensor = graph.input("input", (1, CHANNELS, 8, 8))
    for name in ("/a", "/b"):
        weight = graph.weight(f"{name}.weight", (CHANNELS, CHANNELS, 1, 1))
        convolved = graph.node("Conv", [tensor, weight], name=f"{name}/Conv", kernel_shape=[1, 1])
        gate = graph.node("Sigmoid", [convolved], name=f"{name}/Sigmoid")
        tensor = graph.node("Mul", [convolved, gate], name=f"{name}/Mul")
    weight = graph.weight("/c.weight", (CHANNELS, CHANNELS, 1, 1))
    tensor = graph.node("Conv", [tensor, weight], name="", output="c", kernel_shape=[1, 1])
    graph.output(graph.node("Relu", [tensor], name="", output="d"), (1, CHANNELS, 8, 8))
    return serialise(graph.model())


def unnamed() -> bytes:
    """A quantised convolution in a graph whose nodes have no names."""
    graph = Graph("unnamed")
    graph.input("input", (1, CHANNELS, 8, 8))
    graph.weight("weight", (CHANNELS, CHANNELS, 1, 1))
    scale = graph.weight_scale("weight", per_channel=False)
    for tensor, size in (("input", 0.05), ("weight", scale)):
        graph.quantize(tensor, name="", output=f"{tensor}_q", scale=size)
        graph.dequantize(f"{tensor}_q", name="", output=f"{tensor}_dq", scale=size, prefix=tensor)
    graph.node("Conv", ["input_dq", "weight_dq"], name="", output="convolved", kernel_shape=[1, 1])
    graph.quantize("convolved", name="", output="convolved_q", scale=0.05)
    graph.output(
        graph.dequantize("convolved_q", name="", output="output", scale=0.05, prefix="convolved"),
        (1, CHANNELS, 8, 8),
    )
    return serialise(graph.model())


def half() -> bytes:
    """A convolution and a Mish in FP16, which no kernel for this processor computes."""
    graph = Graph("half")
    tensor = graph.input("input", (1, CHANNELS, 8, 8))
    weight = graph.weight("weight", (CHANNELS, CHANNELS, 1, 1))
    operands = [
        graph.node("Cast", [value], name=f"/cast/{value}", to=onnx.TensorProto.FLOAT16)
        for value in (tensor, weight)
    ]
    convolved = graph.node("Conv", operands, name="/conv", kernel_shape=[1, 1])
    tensor = graph.node("Softplus", [convolved], name="", output="softened")
    tensor = graph.node("Tanh", [tensor], name="/tanh")
    tensor = graph.node("Mul", [convolved, tensor], name="/mul")
    graph.output(tensor, (1, CHANNELS, 8, 8), onnx.TensorProto.FLOAT16)
    return serialise(graph.model())

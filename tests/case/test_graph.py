"""The graph builder: names, quantiser spelling, and numbers that the reference evaluator confirms."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Graph
from harness.case.graph_reader import GraphReader, sorted_nodes

pytestmark = pytest.mark.unit


def arrays(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {entry.name: numpy_helper.to_array(entry) for entry in model.graph.initializer}


def attributes(model: onnx.ModelProto, op: str) -> dict[str, object]:
    node = next(node for node in model.graph.node if node.op_type == op)
    return {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}


def test_output_is_named_after_its_node() -> None:
    """A node's output is `<name>_output_0` unless told; a nameless node needs telling."""
    g = Graph("g")
    x = g.input("x", [1])
    assert g.node("Relu", [x], name="/act") == "/act_output_0"
    assert g.node("Relu", [x], name="", output="y") == "y"
    with pytest.raises(ValueError, match="needs its output named"):
        g.node("Relu", [x], name="")


def test_weights_depend_on_name_and_shape_alone() -> None:
    """The same name and shape give the same values in any graph, another name gives others."""

    def values(name: str, *, first: str = "") -> np.ndarray:
        g = Graph("g")
        if first:
            g.weight(first, (4, 4))
        g.weight(name, (2, 3))
        g.input("x", [1])
        g.node("Relu", ["x"], name="", output="y")
        g.output("y", [1])
        return arrays(g.model())[name]

    assert np.array_equal(values("a"), values("a", first="b"))
    assert not np.array_equal(values("a"), values("b"))


@pytest.mark.parametrize(("per_channel", "axis"), [(True, {"axis": 0}), (False, {})])
def test_weight_quantiser_reaches_the_ends_of_int8(per_channel: bool, axis: dict[str, int]) -> None:
    """The scale is the largest magnitude over 127, so that the largest weight becomes 127 or -127."""
    g = Graph("g")
    x = g.input("x", [1, 2, 4, 4])
    weight = g.weight_qdq(g.weight("w", (3, 2, 3, 3)), name="/wq", per_channel=per_channel)
    g.conv(x, weight, name="/conv", output="y")
    g.output("y", [1, 3, 4, 4])
    model = g.model()
    given = arrays(model)
    whole = np.abs(given["w"] / given["/wq_scale"].reshape((-1, 1, 1, 1))).reshape(3, -1)
    assert whole.max() == pytest.approx(127, rel=1e-6)
    if per_channel:
        assert whole.max(axis=1) == pytest.approx(127, rel=1e-6)
    assert attributes(model, "QuantizeLinear") == axis
    assert given["/wq_zero_point"].dtype == np.int8


def test_stored_int8_weight_is_the_rounded_weight() -> None:
    """`stored_weight` stores what quantising `weight` of the same name gives, with a scale a channel."""
    shape = (3, 2, 3, 3)
    plain, stored = Graph("g"), Graph("g")
    for g in (plain, stored):
        g.input("x", [1, 2, 4, 4])
    plain.weight("w", shape)
    plain.conv("x", "w", name="/conv", output="y")
    read = stored.stored_weight("w", shape, name="/dq")
    stored.conv("x", read, name="/conv", output="y")
    for g in (plain, stored):
        g.output("y", [1, 3, 4, 4])
    exact, whole = arrays(plain.model())["w"], arrays(stored.model())
    assert whole["w"].dtype == np.int8
    assert np.abs(whole["w"]).max() == 127
    error = np.abs(whole["w"] * whole["w_scale"].reshape((-1, 1, 1, 1)) - exact)
    assert np.all(error <= whole["w_scale"].reshape((-1, 1, 1, 1)) * 0.500001)


@pytest.mark.parametrize(("kernel", "stride", "size"), [(1, 1, 8), (3, 1, 8), (3, 2, 4)])
def test_conv_pads_by_half_its_kernel(kernel: int, stride: int, size: int) -> None:
    """The output is the input's size over the stride; the model's own shape check holds it to that."""
    g = Graph("g")
    x = g.input("x", [1, 2, 8, 8])
    g.conv(x, g.weight("w", (4, 2, kernel, kernel)), name="/conv", kernel=kernel, stride=stride, output="y")
    g.output("y", [1, 4, size, size])
    assert attributes(g.model(), "Conv")["strides"] == [stride, stride]


def test_a_wrong_output_shape_is_refused() -> None:
    """The checker infers shapes, so that a stated shape that is not the graph's raises."""
    g = Graph("g")
    g.node("Relu", [g.input("x", [1, 2])], name="/act", output="y")
    g.output("y", [1, 3])
    with pytest.raises(onnx.shape_inference.InferenceError):
        g.model()


def test_a_branch_sees_the_tensors_around_it() -> None:
    """It reads a constant and an input of the network; a node that runs it reads them too."""
    node, info = helper.make_node, helper.make_tensor_value_info
    inner = [node("Identity", ["w"], ["same"]), node("Add", ["x", "same"], ["o"])]
    branch = helper.make_graph(inner, "b", [], [info("o", TensorProto.FLOAT, [2])])
    held = helper.make_tensor("held", TensorProto.FLOAT, [2], [3, 4])
    nodes = [
        node("Constant", [], ["w"], value=held),
        node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    ]
    inputs = [info("c", TensorProto.BOOL, []), info("x", TensorProto.FLOAT, ["n"])]
    outer = GraphReader(helper.make_graph(nodes, "g", inputs, []))
    assert outer.readers("x") == outer.readers("w") == [nodes[1]]
    assert outer.constants == {"w"}
    assert outer.shapes["x"] == ("n",)
    within = GraphReader(branch, outer)
    assert within.constants == {"w", "same"}
    assert within.inputs == {"c", "x"}
    value = within.value("same")
    assert value is not None
    assert value.tolist() == [3, 4]
    assert within.value("o") is None
    assert (within.types["w"], within.shapes["w"]) == (TensorProto.FLOAT, (2,))
    assert within.producer("o") == inner[1]


def test_nodes_are_sorted_and_a_circle_of_them_ends() -> None:
    def sorted_names(*pairs: tuple[str, str]) -> list[str]:
        nodes: list[onnx.NodeProto] = [helper.make_node("Relu", [read], [made]) for read, made in pairs]
        return [each.output[0] for each in sorted_nodes(nodes)]

    assert sorted_names(("b", "c"), ("x", "a"), ("a", "b")) == ["a", "b", "c"]
    assert sorted(sorted_names(("a", "b"), ("b", "a"))) == ["a", "b"]

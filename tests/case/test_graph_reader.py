"""One reader answers who makes and reads a tensor, and its type, shape and value."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from harness.case.graph_reader import GraphReader, sorted_nodes

pytestmark = pytest.mark.unit


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

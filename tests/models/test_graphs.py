"""Parts of a model: without some nodes, of some nodes alone, and the tensors that a subgraph reads."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Graph, Profile
from harness.case.graph_reader import reads
from harness.models.graphs import Cutter
from tests.models.test_reduce import model, value

pytestmark = pytest.mark.unit


def chain() -> onnx.ModelProto:
    """Return x -> a -> (b -> c), (d) with a weight of b's alone."""
    g = Graph("chain")
    x = g.input("x", [2, 4])
    a = g.node("Relu", [x], name="/a")
    b = g.node("Mul", [a, g.weight("w", (4,))], name="/b")
    g.output(g.node("Tanh", [b], name="/c"), [2, 4])
    g.output(g.node("Exp", [a], name="/d"), [2, 4])
    return g.model()


def names(values: object) -> list[str]:
    return [value.name for value in values]  # type: ignore[attr-defined]


def test_what_read_a_node_is_fed_from_outside_and_what_fed_it_stays() -> None:
    part = Cutter(chain()).without({"/b"})
    assert part is not None
    graph = part.model.graph
    assert names(graph.node) == ["/a", "/c", "/d"]
    assert names(graph.input) == ["x", "/b_output_0"]
    assert names(graph.output) == ["/c_output_0", "/d_output_0"]
    assert names(graph.initializer) == []
    assert [dim.dim_value for dim in graph.input[1].type.tensor_type.shape.dim] == [2, 4]
    onnx.checker.check_model(part.model, full_check=True)


def test_an_output_of_the_network_goes_with_the_node_that_made_it() -> None:
    part = Cutter(chain()).without({"/c", "/d"})
    assert part is not None
    assert names(part.model.graph.output) == ["/b_output_0"]
    assert Cutter(chain()).without({"/a", "/b", "/c", "/d"}) is None


def test_q_dq_before_a_node_goes_with_it() -> None:
    g = Graph("quantised")
    x = g.node("Relu", [g.input("x", [1, 4, 8, 8])], name="/r")
    weight = g.weight_qdq(g.weight("w", (4, 4, 3, 3)), name="/w")
    g.output(g.conv(g.qdq(x, name="/x"), weight, name="/conv"), [1, 4, 8, 8])
    part = Cutter(g.model()).without({"/conv"})
    assert part is not None
    assert names(part.model.graph.node) == ["/r"]
    assert names(part.model.graph.output) == ["/r_output_0"]


def test_a_dynamic_tensor_comes_with_the_shapes_that_it_takes() -> None:
    g = Graph("dynamic")
    x = g.input("x", ["batch", 4])
    y = g.node("Concat", [x, x], name="/twice", axis=0)
    g.output(g.node("Relu", [y], name="/r"), ["more", 4])
    profiles = (Profile("x", (1, 4), (2, 4), (8, 4)),)
    part = Cutter(g.model(), profiles).without({"/twice"})
    assert part is not None
    assert part.profiles == (Profile("/twice_output_0", (4, 4), (4, 4), (4, 4)),)
    onnx.checker.check_model(part.model)


def test_what_reads_a_tensor_of_unknown_shape_goes_too() -> None:
    g = Graph("foreign")
    x = g.input("x", [2, 4])
    odd = g.node("Odd", [x], name="/odd", domain="com.example")
    y = g.node("Relu", [odd], name="/behind")
    g.output(g.node("Exp", [x], name="/beside"), [2, 4])
    g.output(g.node("Tanh", [y], name="/far"), [2, 4])
    part = Cutter(g.model()).without({"/odd"})
    assert part is not None
    assert part.behind == ("/behind", "/far")
    assert "/beside" in names(part.model.graph.node)
    assert "/behind" not in names(part.model.graph.node)


def test_a_constant_stays_one_of_ones() -> None:
    g = Graph("constant")
    scale = g.node("Exp", [g.weight("w", (4,))], name="/scale")
    g.output(g.node("Mul", [g.input("x", [2, 4]), scale], name="/mul"), [2, 4])
    part = Cutter(g.model()).without({"/scale"})
    assert part is not None
    assert (names(part.model.graph.input), names(part.model.graph.initializer)) == (
        ["x"],
        ["/scale_output_0"],
    )
    assert onnx.numpy_helper.to_array(part.model.graph.initializer[0]).tolist() == [1, 1, 1, 1]
    onnx.checker.check_model(part.model, full_check=True)


@pytest.mark.parametrize("handed_on", [False, True])
def test_a_subgraph_reads_or_hands_on_a_tensor_from_around_it(handed_on: bool) -> None:
    nodes = [] if handed_on else [helper.make_node("Add", ["outer", "own"], ["sum"])]
    outputs = [helper.make_tensor_value_info("outer", TensorProto.FLOAT, [1])] if handed_on else []
    own = [helper.make_tensor("own", TensorProto.FLOAT, [1], [1.0])]
    body = helper.make_graph(nodes, "b", [], outputs, own)
    assert list(reads(helper.make_node("If", ["cond"], ["y"], then_branch=body))) == ["cond", "outer"]


def test_a_shape_that_the_graph_computes_becomes_a_constant() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Shape", ["r"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["goal"], axis=0),
        helper.make_node("Reshape", ["r", "goal"], ["y"]),
    ]
    start = model(
        nodes, [value("x", [2, 3, 4])], [value("y", [2, 12])], zero=np.array([0]), rest=np.array([-1])
    )
    part = Cutter(start).cut([4])
    assert part is not None
    (goal,) = part.graph.initializer
    assert numpy_helper.to_array(goal).tolist() == [2, -1]
    assert [each.name for each in part.graph.input] == ["r"]


def test_what_a_subgraph_takes_from_around_it_is_fed() -> None:
    """A body sees the tensors of the graph around it; none of them stands among the node's inputs."""
    branch = helper.make_graph([helper.make_node("Neg", ["r"], ["o"])], "b", [], [value("o", [2])])
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    ]
    start = model(nodes, [value("x", [2]), value("c", [], TensorProto.BOOL)], [value("y", [2])])
    part = Cutter(start).cut([1])
    assert part is not None
    assert [each.name for each in part.graph.input] == ["c", "r"]
    onnx.checker.check_model(part, full_check=True)


def test_nothing_is_cut_where_the_type_of_what_is_fed_is_unknown() -> None:
    nodes = [helper.make_node("Own", ["x"], ["o"], domain="own"), helper.make_node("Relu", ["o"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", [2])], [value("y", [2])])
    start = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    )
    assert Cutter(start).cut([1]) is None

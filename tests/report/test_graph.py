"""The reproducer's graph: what results.json says of it and where the picture puts it."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import TensorProto

from harness.case import Graph
from harness.report.graph import MOST_NODES, GraphView, NodeView, graph_of, layout
from harness.report.writer import results_json
from tests.report import factory

pytestmark = pytest.mark.unit


def chain(*edges: tuple[str, tuple[str, ...]]) -> GraphView:
    """Return a graph whose nodes are named for their one output."""
    return GraphView(tuple(NodeView(name, "Op", inputs, (name,)) for name, inputs in edges), inputs=("x",))


def places(graph: GraphView) -> dict[str, tuple[int, int]]:
    return {node.name: (at.rank, at.order) for node, at in zip(graph.nodes, layout(graph), strict=True)}


def test_nodes_edges_and_types_are_those_of_the_model() -> None:
    """Names are those that engines report, types are inferred along the graph."""
    graph = graph_of(factory.model().SerializeToString())
    assert [(node.name, node.op) for node in graph.nodes] == [(node.name, node.op) for node in factory.NODES]
    assert graph.nodes[0].inputs == ("images", factory.WEIGHT)
    assert graph.nodes[2].inputs[0] == graph.nodes[0].outputs[0]
    assert (graph.inputs, graph.constants) == (("images",), (factory.WEIGHT,))
    types = dict(graph.types)
    assert types["images"] == types[graph.nodes[0].outputs[0]] == "float32 1x1x4x4"


def test_a_node_without_a_name_is_called_as_engines_call_it() -> None:
    """Otherwise no precision would be found for it."""
    g = Graph("unnamed")
    x = g.input("x", [1, "n"], TensorProto.FLOAT16)
    g.output(g.node("Relu", [x], name="", output="y"), [1, "n"], TensorProto.FLOAT16)
    graph = graph_of(g.model().SerializeToString())
    assert graph.nodes[0].name == "node_of_y"
    assert dict(graph.types)["x"] == "float16 1xn"


def test_unknown_operators_and_broken_models_break_nothing() -> None:
    """A plugin has no shape inference, and a damaged model still has a row in the report."""
    g = Graph("plugin")
    x = g.input("x", [1])
    g.output(g.node("Mystery", [x], name="m", domain="nobody"), [1])
    assert graph_of(g.model().SerializeToString()).nodes[0].op == "Mystery"
    assert graph_of(b"not a model") == GraphView()


def test_a_large_model_is_told_not_drawn() -> None:
    """Three hundred boxes are no picture."""
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node] * (MOST_NODES + 1), "large", [], [])
    assert graph_of(onnx.helper.make_model(graph).SerializeToString()) == GraphView()


def test_producers_stand_above_consumers() -> None:
    """Data flows down."""
    graph = chain(("a", ("x",)), ("b", ("a",)), ("c", ("a",)), ("d", ("b", "c")))
    found = places(graph)
    assert [found[name][0] for name in "abcd"] == [0, 1, 1, 2]
    assert found["b"][1] != found["c"][1]
    assert found["a"][1] == found["d"][1]


def test_what_reads_constants_alone_stands_just_above_its_reader() -> None:
    """A weight's Q/DQ pair belongs beside the convolution, not at the top of the page."""
    graph = chain(("a", ("x",)), ("b", ("a",)), ("wq", ("w",)), ("wdq", ("wq",)), ("conv", ("b", "wdq")))
    found = places(graph)
    assert (found["wdq"][0], found["wq"][0], found["conv"][0]) == (1, 0, 2)


def test_branches_do_not_cross_needlessly() -> None:
    """Two parallel chains keep their sides."""
    graph = chain(
        ("a", ("x",)), ("l1", ("a",)), ("r1", ("a",)), ("r2", ("r1",)), ("l2", ("l1",)), ("z", ("l2", "r2"))
    )
    found = places(graph)
    assert (found["l1"][1] < found["r1"][1]) == (found["l2"][1] < found["r2"][1])


def test_layout_is_the_same_every_time_and_puts_no_two_boxes_in_one_place() -> None:
    """Same results, same bytes."""
    for variant in factory.case().variants:
        graph = graph_of(variant.model_bytes())
        assert layout(graph) == layout(graph)
        assert len(set(layout(graph))) == len(graph.nodes)


def test_a_cycle_is_laid_out_all_the_same() -> None:
    """It is no valid model, but a report must not hang on one."""
    assert len(layout(chain(("a", ("b",)), ("b", ("a",))))) == 2
    assert layout(GraphView()) == ()


def test_results_json_has_the_graph_of_every_variant() -> None:
    """Other tools draw it too."""
    data = json.loads(results_json(factory.results()))
    graph = data["cases"][0]["variants"][0]["graph"]
    assert [node["op"] for node in graph["nodes"]] == ["Conv", "Sigmoid", "Mul"]
    assert graph["nodes"][0].keys() == {"name", "op", "inputs", "outputs"}

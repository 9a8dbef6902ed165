"""The reproducer's graph: as results.json has it."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import TensorProto

from harness.case import Graph
from harness.known.model import GraphView
from harness.report.views import MOST_NODES, graph_of
from harness.report.writer import results_json
from tests.report import factory

pytestmark = pytest.mark.unit


def test_nodes_edges_and_types_are_those_of_the_model() -> None:
    """Names are those that engines report, types are inferred along the graph."""
    graph = graph_of(factory.model().SerializeToString())
    assert [(node.name, node.op) for node in graph.nodes] == [(node.name, node.op) for node in factory.NODES]
    assert graph.nodes[0].inputs == ("images", factory.WEIGHT)
    assert graph.nodes[2].inputs[0] == graph.nodes[0].outputs[0]
    assert graph.inputs == ("images",)
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


def test_results_json_has_the_graph_of_every_variant() -> None:
    """Other tools draw it too."""
    data = json.loads(results_json(factory.results()))
    graph = data["cases"][0]["variants"][0]["graph"]
    assert [node["op"] for node in graph["nodes"]] == ["Conv", "Sigmoid", "Mul"]
    assert graph["nodes"][0].keys() == {"name", "op", "inputs", "outputs"}

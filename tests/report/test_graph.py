"""The reproducer's graph: what results.json says of it and where the picture puts it."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from harness.case import Graph, load_cases
from harness.report.graph import MOST_NODES, GraphView, NodeView, graph_of
from harness.report.page.layout import BOX, END, LANE, Layout, layout
from harness.report.writer import results_json
from tests.report import factory

pytestmark = pytest.mark.unit


def chain(*edges: tuple[str, tuple[str, ...]]) -> GraphView:
    """Return a graph whose nodes are named for their one output."""
    return GraphView(tuple(NodeView(name, "Op", inputs, (name,)) for name, inputs in edges), inputs=("x",))


def places(graph: GraphView) -> dict[str, tuple[int, int]]:
    found = layout(graph).nodes
    return {node.name: (at.rank, at.across) for node, at in zip(graph.nodes, found, strict=True)}


def ranks(picture: Layout) -> dict[int, list[tuple[int, int]]]:
    """Return middle and width of all that stands in each rank, from the left; lanes too."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place in picture.nodes:
        found.setdefault(place.rank, []).append((place.across, BOX))
    for end in picture.ends:
        found.setdefault(end.place.rank, []).append((end.place.across, END))
    for wire in picture.wires:
        for first, last, across in wire.lanes:
            for rank in range(first, last + 1):
                found.setdefault(rank, []).append((across, LANE))
    return {rank: sorted(row) for rank, row in found.items()}


def tangle(seed: int) -> GraphView:
    """Return a graph of forty nodes that read whatever came before them."""
    chance = random.Random(seed)  # noqa: S311
    made = ["x"]
    edges = []
    for number in range(40):
        read = tuple(chance.choice(made[-12:]) for _ in range(chance.randint(1, 3)))
        edges.append((f"n{number}", read))
        made.append(f"n{number}")
    return chain(*edges)


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
    data = ("a", ("x",)), ("b", ("a",)), ("c", ("b",)), ("d", ("c",))
    found = places(chain(*data, ("wq", ("w",)), ("wdq", ("wq",)), ("conv", ("d", "wdq"))))
    # The paths are of unequal length: the longest one to the weight's pair would leave it at the top.
    assert (found["wq"][0], found["wdq"][0], found["conv"][0]) == (2, 3, 4)


def test_branches_do_not_cross_needlessly() -> None:
    """Two parallel chains keep their sides."""
    graph = chain(
        ("a", ("x",)), ("l1", ("a",)), ("r1", ("a",)), ("r2", ("r1",)), ("l2", ("l1",)), ("z", ("l2", "r2"))
    )
    found = places(graph)
    assert (found["l1"][1] < found["r1"][1]) == (found["l2"][1] < found["r2"][1])


def test_layout_is_the_same_every_time() -> None:
    """Same results, same bytes."""
    for variant in factory.case().variants:
        graph = graph_of(variant.model_bytes())
        assert layout(graph) == layout(graph)


def every_graph() -> list[GraphView]:
    cases = load_cases(Path(__file__).parents[2] / "cases")
    return [graph_of(variant.model_bytes()) for case in cases for variant in case]


def test_nothing_stands_on_anything_and_no_wire_runs_behind_a_box() -> None:
    """Every wire has a lane of its own in each rank that it passes, on all cases and on tangles."""
    lanes = 0
    for graph in [*every_graph(), *map(tangle, range(8))]:
        picture = layout(graph)
        for row in ranks(picture).values():
            assert row[0][0] >= row[0][1] // 2
            for (left, one), (right, other) in pairwise(row):
                assert right - left >= (one + other) // 2
        items = [*picture.nodes, *(end.place for end in picture.ends)]
        for wire in picture.wires:
            passed = [rank for first, last, _ in wire.lanes for rank in range(first, last + 1)]
            assert passed == list(range(items[wire.source].rank + 1, items[wire.sink].rank))
            lanes += len(passed)
    assert lanes > 100


def test_a_picture_is_no_wider_than_its_widest_rank() -> None:
    """A chain of blocks must not drift to one side: on a phone it would leave the screen."""
    for graph in [*every_graph(), *map(tangle, range(8))]:
        rows = ranks(layout(graph)).values()
        widest = max(sum(width for _, width in row) for row in rows)
        assert max(across + width // 2 for row in rows for across, width in row) <= widest


def test_a_chain_is_straight() -> None:
    """A bend would say that something is there."""
    graph = chain(("a", ("x",)), ("b", ("a",)), ("c", ("b",)), ("d", ("c",)), ("e", ("c", "d")))
    found = places(graph)
    assert found["a"][1] == found["b"][1] == found["c"][1]


def test_the_wire_round_a_node_keeps_to_the_side_on_which_it_enters() -> None:
    """Mish multiplies what Softplus read with what Tanh made: the two wires do not cross."""
    first = layout(chain(("n", ("x",)), ("s", ("n",)), ("t", ("s",)), ("mul", ("n", "t"))))
    second = layout(chain(("n", ("x",)), ("s", ("n",)), ("t", ("s",)), ("mul", ("t", "n"))))
    for picture, left in ((first, True), (second, False)):
        (lanes,) = (wire.lanes for wire in picture.wires if wire.lanes)
        ((top, bottom, across),) = lanes
        assert (top, bottom) == (1, 2)
        assert (across < picture.nodes[1].across) is left


def test_inputs_and_outputs_stand_beside_their_nodes() -> None:
    """An input that is read late stands just above its reader, and an output that is read on has its own end."""
    edges = (("a", ("x",)), ("b", ("a",)), ("c", ("b", "late")), ("d", ("c",)))
    graph = GraphView(chain(*edges).nodes, inputs=("x", "late", "unread"), outputs=("d", "b"))
    picture = layout(graph)
    assert [(end.tensor, end.place.rank) for end in picture.ends] == [
        ("x", -1),
        ("late", 1),
        ("d", 4),
        ("b", 2),
    ]
    joined = {(wire.source, wire.sink) for wire in picture.wires}
    assert joined == {(4, 0), (0, 1), (1, 2), (5, 2), (2, 3), (3, 6), (1, 7)}


def test_a_cycle_is_laid_out_all_the_same() -> None:
    """It is no valid model, but a report must not hang on one."""
    assert len(layout(chain(("a", ("b",)), ("b", ("a",)))).nodes) == 2
    assert layout(GraphView()) == Layout()


def test_results_json_has_the_graph_of_every_variant() -> None:
    """Other tools draw it too."""
    data = json.loads(results_json(factory.results()))
    graph = data["cases"][0]["variants"][0]["graph"]
    assert [node["op"] for node in graph["nodes"]] == ["Conv", "Sigmoid", "Mul"]
    assert graph["nodes"][0].keys() == {"name", "op", "inputs", "outputs"}

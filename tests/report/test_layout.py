"""Wires of small graphs: ports, ends and nodes that read nothing."""

from __future__ import annotations

import pytest

from harness.report.graph import GraphView, NodeView
from harness.report.page.layout import Wire, layout

pytestmark = pytest.mark.unit


def graph(text: str, inputs: str = "x", outputs: str = "", constants: str = "") -> GraphView:
    """Return a graph of nodes as "name read read; name read", each with one output that is called as the node."""
    words = [node.split() for node in text.split(";")]
    nodes = tuple(NodeView(name, "Op", tuple(read), (name,)) for name, *read in words)
    return GraphView(nodes, tuple(inputs.split()), tuple(outputs.split()), tuple(constants.split()))


def test_a_wire_tells_its_port_and_where_it_goes_straight() -> None:
    """Constants and inputs that are left out have no port; lanes that need no bend are one."""
    nodes = (
        NodeView("/split", "Split", ("x", "", "w"), ("left", "", "right")),
        NodeView("/relu", "Relu", ("left",), ("up",)),
        NodeView("/clip", "Clip", ("right", "", "w", "up", "left"), ("y",)),
    )
    found = layout(GraphView(nodes, ("x",), ("y", "y"), ("w",)))
    assert found.wires == (
        Wire("x", 3, 0),
        Wire("left", 0, 1),
        Wire("right", 0, 2, 0, 3, ((1, 1, 1),)),
        Wire("up", 1, 2, 1, 3),
        Wire("left", 0, 2, 2, 3, ((1, 1, 19),)),
        Wire("y", 2, 4),
    )


def test_what_is_left_out_joins_nothing() -> None:
    """An output and an input without a name are not the same tensor."""
    nodes = NodeView("/a", "Op", ("x",), ("a", "")), NodeView("/b", "Op", ("", "x"), ("b",))
    found = layout(GraphView(nodes, ("x",)))
    assert [place.rank for place in found.nodes] == [0, 0]
    assert {(wire.tensor, wire.source, wire.sink) for wire in found.wires} == {("x", 2, 0), ("x", 2, 1)}


def test_a_node_that_reads_itself_has_no_wire_for_it() -> None:
    """It is no valid model; a wire from a box into itself would be drawn across it."""
    joined = [(wire.source, wire.sink) for wire in layout(graph("a x a; b a")).wires]
    assert joined == [(2, 0), (0, 1)]

"""Pictures of small graphs, to the sixteenth of a box, and what is promised of every picture."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from harness.report.graph import GraphView, NodeView
from harness.report.page.layout import BOX, Layout, Wire, layout

pytestmark = pytest.mark.unit


def graph(text: str, inputs: str = "x", outputs: str = "", constants: str = "") -> GraphView:
    """Return a graph of nodes as "name read read; name read", each with one output that is called as the node."""
    words = [node.split() for node in text.split(";")]
    nodes = tuple(NodeView(name, "Op", tuple(read), (name,)) for name, *read in words)
    return GraphView(nodes, tuple(inputs.split()), tuple(outputs.split()), tuple(constants.split()))


def drawn(found: GraphView) -> list[str]:
    """Return the ranks from the top, each from the left: what stands there, and in the middle of which sixteenth."""
    picture = layout(found)
    rows: dict[int, list[tuple[int, str]]] = {}
    for node, place in zip(found.nodes, picture.nodes, strict=True):
        rows.setdefault(place.rank, []).append((place.across, node.name))
    for end in picture.ends:
        rows.setdefault(end.place.rank, []).append((end.place.across, f"({end.tensor})"))
    for wire in picture.wires:
        for first, last, across in wire.lanes:
            for rank in range(first, last + 1):
                reader = found.nodes[wire.sink].name if wire.sink < len(found.nodes) else "end"
                rows.setdefault(rank, []).append((across, f"{wire.tensor}|{reader}"))
    return [
        f"{rank}: " + ", ".join(f"{name} {across}" for across, name in sorted(rows[rank]))
        for rank in sorted(rows)
    ]


def crossings(picture: Layout) -> int:
    """Count, rank by rank, the pairs of wires that change sides; a wire enters a box beside the ones before it."""
    places = [*picture.nodes, *(end.place for end in picture.ends)]
    passed: dict[int, list[tuple[float, float]]] = {}
    for wire in picture.wires:
        lean = BOX * ((wire.port + 1) / (wire.ports + 1) - 0.5)
        at = [float(places[wire.source].across)]
        at += [float(across) for first, last, across in wire.lanes for _ in range(first, last + 1)]
        at.append(places[wire.sink].across + lean)
        for below, both in enumerate(pairwise(at), start=places[wire.source].rank):
            passed.setdefault(below, []).append(both)
    return sum((a - b) * (c - d) < 0 for row in passed.values() for (a, c), (b, d) in combinations(row, 2))


PICTURES = {
    "the wire round two nodes stays on its side": (
        graph("n x; s n; t s; mul n t", outputs="mul"),
        ["-1: (x) 9", "0: n 9", "1: n|mul 1, s 10", "2: n|mul 1, t 10", "3: mul 9", "4: (mul) 9"],
    ),
    "attention: the residual leaves heads and their chain straight": (
        graph("a x; q a; k a; v a; qk q k; sm qk; o sm v; add a o", outputs="add"),
        [
            "-1: (x) 25",
            "0: a 25",
            "1: a|add 1, q 10, k 26, v 42",
            "2: a|add 1, qk 18, v|o 42",
            "3: a|add 1, sm 18, v|o 42",
            "4: a|add 1, o 21",
            "5: add 19",
            "6: (add) 19",
        ],
    ),
    "branches stand in the order in which they are joined": (
        graph("a x; p a; q a; r a; cat r q p"),
        ["-1: (x) 24", "0: a 24", "1: r 8, q 24, p 40", "2: cat 24"],
    ),
    "a constant's node has two readers: just above the first, and a lane to the second": (
        graph("k w; a x; b a; c b k; d c; e d k", constants="w"),
        ["-1: (x) 8", "0: a 8", "1: b 8, k 24", "2: c 16, k|e 25", "3: d 16, k|e 25", "4: e 17"],
    ),
    "of two constants' nodes in a chain only the one that is read late goes down": (
        graph("k w; m k; a x; c a k; d c; e d m", constants="w"),
        ["-1: (x) 8", "0: a 8, k 24", "1: c 16, k|m 25", "2: d 8, m 24", "3: e 16"],
    ),
    "a tensor that nobody makes has no wire, and a constant's node that nobody reads stays": (
        graph("k w; a x strange", outputs="k a"),
        ["-1: (x) 24", "0: k 8, a 24", "1: (k) 8, (a) 24"],
    ),
    "ends: read twice, read late, never read, read on, and handed through": (
        graph("a x mask; b a; c b late; d c mask", "x mask late unread", "d b x"),
        [
            "-1: (x) 7, (mask) 19",
            "0: a 12, mask|d 21",
            "1: b 8, (late) 22, mask|d 29",
            "2: (b) 6, c 20, mask|d 29",
            "3: d 21",
            "4: (d) 21",
        ],
    ),
    "an input that is read late stands beside a lane and a box": (
        graph("a x; b y a; c x a", "x y"),
        ["-1: (x) 8", "0: x|c 3, a 12, (y) 26", "1: c 8, b 24"],
    ),
    "what is fed from its own rank is pulled by nothing there": (
        graph("a c; b y; c x", "x y"),
        ["-1: (x) 24, (y) 40", "0: a 8, c 24, b 40"],
    ),
    "the wires of a cycle": (
        graph("a c; b a; c b; d g x; e a; f c x; g b; h b", "x", "g"),
        [
            "-1: (x) 44",
            "0: a 16, d 40, x|f 49",
            "1: e 8, b 24, x|f 49",
            "2: g 8, c 24, h 40, x|f 49",
            "3: (g) 8, f 27",
        ],
    ),
    "two nodes read the same three, and lanes enter between boxes": (
        graph("a x; b a x; c a b; d x b; e x a b", outputs="a"),
        [
            "-1: (x) 23",
            "0: x|e 11, a 20, x|b 29, x|d 31",
            "1: x|e 1, a|c 3, (a) 10, a|e 17, b 26, x|d 35",
            "2: e 8, c 24, d 40",
        ],
    ),
    "lanes stand beside the boxes that they pass": (
        graph("a x; b x a; c x b a; d a c", outputs="a"),
        [
            "-1: (x) 7",
            "0: x|c 3, x|b 5, a 14",
            "1: a|d 1, x|c 3, b 12, a|c 21, (a) 28",
            "2: a|d 1, c 12",
            "3: d 11",
        ],
    ),
    "lanes of one input beside one another": (
        graph("a x; b x a; c b x; d a x", outputs="d"),
        ["-1: (x) 18", "0: x|b 6, a 15, x|c 24, x|d 26", "1: b 8, x|c 17, d 26", "2: c 9, (d) 26"],
    ),
    "a part that stands alone is beside the rest": (
        graph("a x; b y; c a; d a; e x; f e d; g a", "x y", "a"),
        ["-1: (x) 18, (y) 45", "0: e 10, a 26, b 45", "1: e|f 1, c 10, d 26, g 42, (a) 56", "2: f 23"],
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_small_pictures(name: str) -> None:
    """Numbers move only when somebody means them to: every picture on every page moves with them."""
    found, rows = PICTURES[name]
    assert drawn(found) == rows


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


@pytest.mark.parametrize(
    ("found", "least"),
    [
        (graph("a x; b x; c x; p c; q b; r a", outputs="p q r"), 0),
        (graph("a x; b y; c b; d a", "x y", "c d"), 0),
        (graph("a x; p a; q a; r a; cat r q p"), 0),
        (graph("a x; q a; k a; v a; qk q k; sm qk; o sm v; add a o", outputs="add"), 0),
        (graph("a x; b a; c b; s a c; d s; e d; t s e", outputs="t"), 0),
        # Past two nodes, and into another between them.
        (graph("a x; b a; c b; d c; e d a b", outputs="e c"), 1),
        (graph("a x; b x a; c b x; d a x", outputs="d"), 1),
        # Two that read the same two.
        (graph("a x; b x; c a b; d a b"), 1),
        # Three and three: nine pairs of nodes.
        (graph("a x; b x; c x; p a b c; q a b c; r a b c"), 9),
    ],
)
def test_wires_cross_no_more_than_they_must(found: GraphView, least: int) -> None:
    assert crossings(layout(found)) == least

"""Where nodes, ends and wires of a graph stand in its picture: layered, deterministic, no wire behind a box.

Ranks are longest paths. A wire that passes ranks stands in each of them in a lane of its own, so that it can be
followed with the eye: the dummy vertices of Sugiyama, Tagawa and Toda, "Methods for visual understanding of
hierarchical system structures", 1981.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harness.report.graph import GraphView

#: Widths of what stands in a rank, with the gap beside it, in sixteenths of a box: box, name of an end, lane.
BOX, END, LANE = 16, 12, 2
_ORDERINGS = 6
#: Odd: the last goes down, and leaves a chain straight until something is in its way.
_SETTLINGS = 7
#: How much a wire pulls at what it joins: a box at a box, a lane at a lane, and anything else.
_PULLS = {(BOX, BOX): 8.0, (LANE, LANE): 4.0}
_PULL = 1.0


@dataclass(frozen=True)
class Place:
    """A rank, counted from the top, and the middle's distance from the left in sixteenths of a box."""

    rank: int
    across: int


@dataclass(frozen=True)
class End:
    """A graph's input or output by its tensor, and where its name stands."""

    tensor: str
    place: Place


@dataclass(frozen=True)
class Wire:
    """A tensor's way from one item to another.

    Items are numbered: nodes, then ends. `port` of `ports` says where it enters a node, from the left. `lanes` are
    where it goes straight down: first rank, last rank, distance from the left.
    """

    tensor: str
    source: int
    sink: int
    port: int = 0
    ports: int = 1
    lanes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Layout:
    """The picture: places of the nodes in their order, ends above rank 0 or below their node, and wires."""

    nodes: tuple[Place, ...] = ()
    ends: tuple[End, ...] = ()
    wires: tuple[Wire, ...] = ()


@dataclass
class _Work:
    """The picture in the making: rank, width and neighbours of every item; lanes are items too."""

    ranks: list[int]
    widths: list[int]
    above: list[list[tuple[int, float]]] = field(default_factory=list)
    below: list[list[tuple[int, float]]] = field(default_factory=list)

    def add(self, rank: int, width: int) -> int:
        self.ranks.append(rank)
        self.widths.append(width)
        return len(self.ranks) - 1

    def join(self, upper: int, lower: int, lean: float) -> None:
        """Join two items; `lean` is where the wire enters the lower one, from -0.5 at its left to 0.5."""
        self.above[lower].append((upper, lean))
        self.below[upper].append((lower, lean))


@lru_cache(512)
def layout(graph: GraphView) -> Layout:
    """Return the picture of a graph; nothing in it is random, and a node that is fed upwards breaks nothing."""
    if not graph.nodes:
        return Layout()
    work = _Work(_ranks(graph), [BOX] * len(graph.nodes))
    names = _ends(graph, work)
    wires = list(_wires(graph, {name: len(graph.nodes) + at for at, (name, _) in enumerate(names)}))
    chains = [_chain(work, wire) for wire in wires]
    _join(work, wires, chains)
    rows = _ordered(work)
    across = _settled(work, rows)
    places = [Place(*both) for both in zip(work.ranks, across, strict=True)]
    ends = (End(name, places[len(graph.nodes) + at]) for at, (name, _) in enumerate(names))
    lanes = (tuple(_straight(places[item] for item in chain)) for chain in chains)
    return Layout(
        tuple(places[: len(graph.nodes)]),
        tuple(ends),
        tuple(
            Wire(wire.tensor, wire.source, wire.sink, wire.port, wire.ports, found)
            for wire, found in zip(wires, lanes, strict=True)
        ),
    )


def _made(graph: GraphView) -> dict[str, int]:
    return {name: index for index, node in enumerate(graph.nodes) for name in node.outputs if name}


def _ranks(graph: GraphView) -> list[int]:
    """Return the nodes' ranks; a chain that starts from constants is pulled down to its reader."""
    made = _made(graph)
    above = [
        [made[name] for name in node.inputs if made.get(name, index) < index]
        for index, node in enumerate(graph.nodes)
    ]
    ranks: list[int] = []
    fed: list[bool] = []
    for node, sources in zip(graph.nodes, above, strict=True):
        ranks.append(max((ranks[source] + 1 for source in sources), default=0))
        fed.append(bool(set(node.inputs) & set(graph.inputs)) or any(fed[source] for source in sources))
    nearest: dict[int, int] = {}
    for index in reversed(range(len(ranks))):
        if not fed[index] and index in nearest:
            ranks[index] = nearest[index] - 1
        for source in above[index]:
            nearest[source] = min(nearest.get(source, ranks[index]), ranks[index])
    return ranks


def _ends(graph: GraphView, work: _Work) -> list[tuple[str, int]]:
    """Add the graph's inputs, just above their first reader, and outputs, just below their node."""
    found: list[tuple[str, int]] = []
    made = _made(graph)
    for name in dict.fromkeys(graph.inputs):
        readers = [work.ranks[at] for at, node in enumerate(graph.nodes) if name in node.inputs]
        if readers:
            found.append((name, work.add(min(readers) - 1, END)))
    outputs = [name for name in dict.fromkeys(graph.outputs) if name in made]
    return found + [(name, work.add(work.ranks[made[name]] + 1, END)) for name in outputs]


def _wires(graph: GraphView, ends: Mapping[str, int]) -> Iterator[Wire]:
    made = _made(graph)
    constants = set(graph.constants)
    for index, node in enumerate(graph.nodes):
        read = [name for name in node.inputs if name and name not in constants]
        for port, name in enumerate(read):
            source = made.get(name, ends.get(name))
            if source is not None and source != index:
                yield Wire(name, source, index, port, len(read))
    for name, end in ends.items():
        if name in made:
            yield Wire(name, made[name], end)


def _chain(work: _Work, wire: Wire) -> list[int]:
    """Add a lane in each rank that the wire passes, and return them from the top."""
    between = range(work.ranks[wire.source] + 1, work.ranks[wire.sink])
    return [work.add(rank, LANE) for rank in between]


def _join(work: _Work, wires: Sequence[Wire], chains: Sequence[Sequence[int]]) -> None:
    work.above, work.below = [[] for _ in work.ranks], [[] for _ in work.ranks]
    for wire, chain in zip(wires, chains, strict=True):
        if work.ranks[wire.sink] <= work.ranks[wire.source]:
            continue
        stops = [wire.source, *chain, wire.sink]
        lean = (wire.port + 1) / (wire.ports + 1) - 0.5
        for upper, lower in pairwise(stops):
            work.join(upper, lower, lean if lower == wire.sink else 0.0)


def _ordered(work: _Work) -> list[list[int]]:
    """Return the items of each rank from the left: barycentres, down and up in turns, the fewest crossings kept."""
    by_rank: dict[int, list[int]] = {}
    for item, rank in enumerate(work.ranks):
        by_rank.setdefault(rank, []).append(item)
    rows = [by_rank[rank] for rank in sorted(by_rank)]
    tried = []
    for turn in range(_ORDERINGS):
        rows = [list(row) for row in rows]
        down = turn % 2 == 0
        for row in rows if down else reversed(rows):
            at = {item: place for every in rows for place, item in enumerate(every)}
            row.sort(key=lambda item: _barycentre(work, item, at, down=down))
        tried.append(rows)
    return min(tried, key=lambda rows: _crossings(work, rows))


def _barycentre(work: _Work, item: int, at: Mapping[int, int], *, down: bool) -> tuple[float, int]:
    near = work.above[item] if down else work.below[item]
    where = [at[other] + (0.0 if down else lean) for other, lean in near]
    return (sum(where) / len(where) if where else float(at[item]), at[item])


def _crossings(work: _Work, rows: Sequence[Sequence[int]]) -> int:
    at = {item: place for row in rows for place, item in enumerate(row)}
    ends = [[at[lower] + lean for lower, lean in joined] for joined in work.below]
    pairs = (pair for row in rows for pair in combinations(row, 2))
    return sum(left > right for one, other in pairs for left in ends[one] for right in ends[other])


def _settled(work: _Work, rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the distances from the left: each item as near to what it is joined to as its row allows."""
    across = [0] * len(work.ranks)
    widest = max(sum(work.widths[item] for item in row) for row in rows)
    for turn in range(_SETTLINGS):
        down = turn % 2 == 0
        for row in rows if down else reversed(rows):
            _settle(work, row, across, work.above if down else work.below, widest)
    left = min(place - work.widths[item] // 2 for item, place in enumerate(across))
    return [place - left for place in across]


def _apart(widths: Sequence[int]) -> list[int]:
    """Return the middles of things that stand side by side, the first at 0."""
    places = [0]
    for one, other in pairwise(widths):
        places.append(places[-1] + (one + other) // 2)
    return places


def _settle(
    work: _Work,
    row: Sequence[int],
    across: list[int],
    joined: Sequence[Sequence[tuple[int, float]]],
    widest: int,
) -> None:
    """Move the items of a row to the least weighted squares from where they are pulled, in order and apart.

    That is isotonic regression of where each would stand but for the width of those before it. No row goes beyond the
    widest one: a long chain of blocks would drift to one side for ever.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  (half a second, which only a page needs to spend)

    offsets = _apart([work.widths[item] for item in row])
    wanted, weights = [], []
    for item, offset in zip(row, offsets, strict=True):
        near = [
            (across[other], _PULLS.get((work.widths[item], work.widths[other]), _PULL))
            for other, _ in joined[item]
        ]
        weight = sum(pull for _, pull in near)
        wanted.append((sum(at * pull for at, pull in near) / weight if near else across[item]) - offset)
        weights.append(weight or _PULL)
    least = (work.widths[row[0]] - widest) // 2
    most = (widest - work.widths[row[-1]]) // 2 - offsets[-1]
    # One alone stands where it wants to: most rows are a node, and the call costs more than the rest of the picture.
    shifts = isotonic_regression(wanted, weights=weights).x.tolist() if len(wanted) > 1 else wanted
    for item, shift, offset in zip(row, shifts, offsets, strict=True):
        across[item] = min(most, max(least, math.floor(shift + 0.5))) + offset


def _straight(places: Iterable[Place]) -> Iterator[tuple[int, int, int]]:
    """Join lanes below one another that need no bend."""
    for across, run in groupby(places, key=lambda place: place.across):
        ranks = [place.rank for place in run]
        yield ranks[0], ranks[-1], across

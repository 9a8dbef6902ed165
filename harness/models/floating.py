"""Finds the fewest quantised nodes to leave in floating point."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import onnx

from harness.judge.cell import Judged
from harness.layers.asked import asked
from harness.layers.operators import MULTIPLYING
from harness.models.blockers import blamed
from harness.models.check import works
from harness.models.rewrites import unquantised

#: Where a search ends with what it has.
MOST_TRIES, MOST_SECONDS = 100, 120.0


@dataclass(frozen=True)
class LeftFloat:
    """Nodes left in floating point, the model of that and its outcome; none where nothing helps.

    `of` are all that are quantised. `least` says that none of the nodes can be spared; else the search was cut short.
    """

    nodes: tuple[str, ...]
    of: tuple[str, ...]
    model: onnx.ModelProto | None
    judged: Judged | None
    least: bool
    tries: int
    seconds: float


def quantised_nodes(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the nodes that multiply quantised tensors, be it weights alone, in the model's order."""
    floats = {"", "fp16", "bf16"}
    return tuple(
        node.name for node in asked(model) if node.op in MULTIPLYING and node.precision not in floats
    )


def leave_float(
    model: onnx.ModelProto,
    before: Judged,
    attempt: Callable[[onnx.ModelProto], Judged],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> LeftFloat:
    """Return the fewest nodes whose Q/DQ is to go so that a target builds the rest and loses no precision.

    First those that are blamed, then all; of a set that helps one part after the other is given its Q/DQ back, halves,
    then quarters, down to single nodes, as long as it still helps.
    """
    began, every = clock(), quantised_nodes(model)
    tried: dict[tuple[str, ...], tuple[onnx.ModelProto, Judged] | None] = {}
    tries, over = 0, False

    def helps(nodes: tuple[str, ...]) -> bool:
        """Tell whether leaving these nodes in floating point helps; no, once the search is over."""
        nonlocal tries, over
        if nodes in tried:
            return tried[nodes] is not None
        if tries >= MOST_TRIES or clock() - began > MOST_SECONDS:
            over = True
            return False
        left = unquantised(model, nodes)
        judged = None if left is None else attempt(left)
        tries += judged is not None
        tried[nodes] = (left, judged) if left is not None and judged is not None and works(judged) else None
        return tried[nodes] is not None

    suspects = tuple(node for node in every if node in blamed(before))
    start = next((nodes for nodes in (suspects, every) if nodes and helps(nodes)), ())
    nodes = _fewest(start, helps)
    left, judged = tried.get(nodes) or (None, None)
    return LeftFloat(nodes, every, left, judged, not over, tries, clock() - began)


def _fewest(nodes: tuple[str, ...], helps: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """Return those of some nodes that help of which none can be spared any more."""
    size = len(nodes)
    while size > 1:
        size = (size + 1) // 2
        before: tuple[str, ...] = ()
        # Where some can be spared only after others, single nodes are gone through again.
        while nodes != before:
            before = nodes
            for part in [nodes[start : start + size] for start in range(0, len(nodes), size)]:
                rest = tuple(node for node in nodes if node not in part)
                if rest and helps(rest):
                    nodes = rest
            if size > 1:
                break
    return nodes

"""Finds all that keeps a model from being built: a refused node is cut out, and the search goes on with the rest."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import onnx

from harness.case import Profile
from harness.judge import complaints
from harness.judge.cell import Judged
from harness.judge.complaints import find_place
from harness.judge.diagnosis import Diagnosis, diagnose
from harness.layers.datatype import NARROW
from harness.layers.operators import MULTIPLYING
from harness.layers.parse import map_names
from harness.models.check import engine_made, ran
from harness.models.graphs import Cutter
from harness.record.outcome import Node, ParserError
from harness.words import OF_A_NODE, PREDICATE, Class

#: Where a search ends: a try is a tenth of a second, or that of a large model a few seconds.
MOST_TRIES, MOST_SECONDS = 200, 30.0
_REGION = re.compile(r"\{ForeignNode\[.*\]\}")
_SAID_OF_INT8 = re.compile(r"\bINT8\b")
_NARROW = frozenset(map(str, NARROW))


@dataclass(frozen=True)
class Blocker:
    """One refusal of a target: the nodes, of one operator unless they are a fused region, and why.

    `named` says that the engine names them; where it names an operator alone, they are all nodes of it that may be
    meant.
    """

    nodes: tuple[str, ...]
    operator: str
    cls: Class
    reason: str
    diagnosis: Diagnosis | None
    named: bool = True
    after_cut: bool = False


@dataclass(frozen=True)
class Blockers:
    """The blockers of a model on a target in the order in which they were found; `end` is the fate of the rest.

    `behind` are nodes that were cut out with them, for nobody knows the shape of their inputs.
    """

    found: tuple[Blocker, ...]
    end: str
    behind: tuple[str, ...] = ()
    tries: int = 0
    seconds: float = 0.0


def blockers(
    model: onnx.ModelProto,
    first: Judged,
    attempt: Callable[[onnx.ModelProto, tuple[Profile, ...]], Judged],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Blockers:
    """Return all that keeps a model from being built; `first` is the outcome of the whole.

    `attempt` returns the outcome of a part. The search ends after MOST_TRIES tries or MOST_SECONDS, and says so.
    """
    began, tries, judged = clock(), 0, first
    cutter = Cutter(model, first.cell.variant.recipe.profiles)
    found: list[Blocker] = []
    behind: tuple[str, ...] = ()
    while True:
        mine = list(accused(judged, after_cut=bool(found)))
        end = _ended(judged, mine, found, tries, clock() - began)
        if end:
            return Blockers(tuple(found), end, behind, tries, clock() - began)
        found += mine
        part = cutter.without({node for each in found for node in each.nodes})
        if part is None:
            end = "nothing is left that could be built"
            return Blockers(tuple(found), end, behind, tries, clock() - began)
        behind = part.behind
        judged = attempt(part.model, part.profiles)
        tries += 1


def accused(judged: Judged, *, after_cut: bool = False) -> Iterator[Blocker]:
    """Yield each refusal of a failed target whose node is known or can be told from its operator."""
    if judged.classification.cls not in OF_A_NODE:
        return
    seen: set[str] = set()
    for error in judged.outcome.parser_errors:
        blocker = _of_parser(judged, error)
        if blocker and not seen.intersection(blocker.nodes):
            seen.update(blocker.nodes)
            yield replace(blocker, after_cut=after_cut)
    if not seen and (blocker := _of_builder(judged)):
        yield replace(blocker, after_cut=after_cut)


def blamed(judged: Judged) -> tuple[str, ...]:
    """Return the nodes that lost their precision, or those that are refused, as far as they are known."""
    lost = [each.node for each in judged.classification.lost]
    return tuple(dict.fromkeys(lost or [node for each in accused(judged) for node in each.nodes]))


def _ended(judged: Judged, mine: list[Blocker], found: list[Blocker], tries: int, seconds: float) -> str:
    """Return how a search ends here, "" where it goes on."""
    what = "the rest" if found else "it"
    cls = judged.classification.cls
    if engine_made(judged):
        return f"{what} builds"
    if not ran(judged):
        return f"{what} was not tried: {judged.classification.reason}"
    if not mine:
        return (
            f"{what} {PREDICATE[cls]}, and no node of the main graph is named: {judged.classification.reason}"
        )
    if tries >= MOST_TRIES or seconds > MOST_SECONDS:
        return f"the search ended after {tries} tries and {seconds:.0f} s; there may be more"
    return ""


def _of_parser(judged: Judged, error: ParserError) -> Blocker | None:
    alone = replace(judged.outcome, parser_errors=(error,))
    place = find_place(alone, error.text, operator=error.operator, node=error.node)
    if place.node not in _operators(judged):
        return None
    # What the logger says is of all refusals, and the first signature that it matches need not be this one's.
    quiet = replace(alone, messages=(), native_output="", error="")
    diagnosis = diagnose(quiet, judged.classification)
    if diagnosis is None and len(judged.outcome.parser_errors) == 1:
        diagnosis = judged.diagnosis
    reason = error.text.strip().splitlines()[0] if error.text.strip() else judged.classification.reason
    return Blocker(
        (place.node,), _operators(judged)[place.node], judged.classification.cls, reason, diagnosis
    )


def _of_builder(judged: Judged) -> Blocker | None:
    found, known = judged.diagnosis, _operators(judged)
    make = partial(
        Blocker, cls=judged.classification.cls, reason=judged.classification.reason, diagnosis=found
    )
    # The only node of an operator is taken for the place of what names no node, and may not be what is meant.
    doubtful = (
        found is not None
        and found.operator in MULTIPLYING
        and _SAID_OF_INT8.search(found.title)
        and found.node not in found.message
    )
    if found and found.node in known and not doubtful:
        return make((found.node,), known[found.node])
    for text in (found.message if found else "", *complaints.errors(judged.outcome)):
        region = _REGION.search(text)
        nodes = map_names(region.group(), judged.outcome.nodes) if region else ()
        if nodes:
            return make(nodes, "" if len(nodes) > 1 else known[nodes[0]])
    meant = _meant(found, judged.outcome.nodes) if found and found.operator else ()
    if not meant:
        return None
    operators = tuple(dict.fromkeys(node.op for node in meant))
    return make(tuple(node.name for node in meant), " or ".join(operators), named=len(meant) == 1)


def _meant(found: Diagnosis, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nodes that a failure may mean that names an operator alone.

    A text about INT8 means nodes with Q/DQ, and where none of the operator has it such a one of its kin: an engine
    uses the same words for a deconvolution as for a convolution.
    """
    mine = tuple(node for node in nodes if node.op == found.operator)
    if not _SAID_OF_INT8.search(found.title):
        return mine
    kin = tuple(node for node in nodes if node.op in MULTIPLYING)
    narrow = (tuple(node for node in each if node.precision in _NARROW) for each in (mine, kin))
    return next(filter(None, (*narrow, mine)), ())


def _operators(judged: Judged) -> dict[str, str]:
    return {node.name: node.op for node in judged.outcome.nodes}

"""Finds all that keeps a model from being built: a refused node is cut out, and the search goes on with the rest."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import onnx
from msgspec import structs
from onnx import helper

from harness.case import Profile, effective_name
from harness.judge import complaints
from harness.judge.cell import Judged, network_of
from harness.judge.complaints import find_place
from harness.judge.diagnosis import Diagnosis, diagnose
from harness.known.further import Blocker, Blockers
from harness.known.listed import State
from harness.layers.datatype import NARROW
from harness.layers.names import region_in
from harness.layers.operators import MULTIPLYING
from harness.layers.parse import map_names
from harness.models.answers import engine_made, ran
from harness.models.graphs import Cutter, ModelPart
from harness.models.own.shapes import evaluated
from harness.models.reading import bounded
from harness.models.static import held_against
from harness.record.outcome import Node, ParserError
from harness.words import OF_A_NODE, PREDICATE

#: The bounds of a search: a try takes a tenth of a second, and a few seconds with a large model.
MOST_TRIES, MOST_SECONDS = 200, 30.0
#: Operators that run a graph: a builder that names no node stumbles over one of these.
_OF_GRAPHS = frozenset({"If", "Loop", "Scan"})
#: An engine's words for a part whose sizes the cut left open: no fault of the model.
_OF_THE_CUT = re.compile(r"no optimization profile has been defined", re.IGNORECASE)
_MOST_OPERATORS = 4
#: Seconds that the run may take which tells the sizes that no inference knows.
_SECONDS = 20.0
_SAID_OF_INT8 = re.compile(r"\bINT8\b")
_NARROW = frozenset(map(str, NARROW))


def blockers(
    model: onnx.ModelProto,
    first: Judged,
    attempt: Callable[[onnx.ModelProto, tuple[Profile, ...]], Judged],
    *,
    clock: Callable[[], float] = time.monotonic,
    most_seconds: float = MOST_SECONDS,
) -> Blockers:
    """Return all that keeps a model from being built; `first` is the outcome of the whole.

    `attempt` returns the outcome of a part. The search ends after MOST_TRIES tries or `most_seconds`, and says so.
    """
    began, tries, judged = clock(), 0, first
    profiles = first.cell.variant.recipe.profiles
    cutter = Cutter(model, profiles, lambda: _seen(first.cell.variant.model_bytes(), profiles))
    found: list[Blocker] = []
    part: ModelPart | None = None
    while True:
        mine = list(accused(judged, after_cut=bool(found)))
        found += mine
        gone = {node for each in found for node in each.nodes}
        end = _ended(judged, mine, tries)
        if part and engine_made(judged):
            end += _untried(model, first, gone | set(map(effective_name, part.model.graph.node)))
        if not end and (tries >= MOST_TRIES or clock() - began > most_seconds):
            spent = f"{tries} tries and {clock() - began:.0f} s"
            end = f"the search ended after {spent}; there may be more (--seconds gives more time)"
        following = None if end else cutter.without(gone)
        if following is None:
            end = end or "nothing is left that could be built"
            behind = part.behind if part else ()
            return Blockers(tuple(found), end, behind, tries, round(clock() - began, 3))
        part, judged = following, attempt(following.model, following.profiles)
        tries += 1


def _untried(model: onnx.ModelProto, first: Judged, seen: set[str]) -> str:
    """Return how many nodes no try held, and what NVIDIA's tables say of them; "" if all were tried."""
    # The Q/DQ of a node that was cut out goes with it.
    passed_over = {"Constant", "QuantizeLinear", "DequantizeLinear"}
    left = {effective_name(node) for node in model.graph.node if node.op_type not in passed_over} - seen
    told = f"; {len(left)} of {len(model.graph.node)} nodes were not tried{_blocked(first, left)}"
    return told if left else ""


def _blocked(judged: Judged, names: set[str]) -> str:
    """Return which of these nodes NVIDIA's tables block on the target of an outcome, in words; "" if none."""
    target, variant = judged.cell.target, judged.cell.variant
    if not target.traits.tabled:
        return ""
    held = held_against(variant.model_bytes(), plugins=bool(variant.recipe.libraries)).on(target)
    blocked = [each for each in held if each.state is State.BLOCKED and each.node in names]
    told = ", ".join(f"{each.operator} {each.node!r}" for each in blocked[:_MOST_OPERATORS])
    return f"; NVIDIA's tables block {len(blocked)} of them: {told}" if blocked else ""


def _seen(data: bytes, profiles: tuple[Profile, ...]) -> Mapping[str, onnx.ValueInfoProto]:
    """Return the types and shapes of all tensors in one run of the reference evaluator; none if it fails."""
    found, _ = bounded(_run, data, profiles, size=len(data), seconds=_SECONDS)
    return {name: helper.make_tensor_value_info(name, *kind) for each in found for name, kind in each.items()}


def _run(data: bytes, profiles: tuple[Profile, ...]) -> Iterator[dict[str, tuple[int, tuple[int, ...]]]]:
    model = onnx.load_model_from_string(data)
    names = [name for node in model.graph.node for name in node.output if name]
    for found in evaluated([model], profiles, also=names):
        values = found.outputs or {}
        yield {
            name: (helper.np_dtype_to_tensor_dtype(each.dtype), each.shape) for name, each in values.items()
        }


def accused(judged: Judged, *, after_cut: bool = False) -> Iterator[Blocker]:
    """Yield each refusal of a failed target whose node is known or can be told from its operator."""
    if judged.classification.cls not in OF_A_NODE:
        return
    seen: set[str] = set()
    for error in judged.outcome.parser_errors:
        blocker = _of_parser(judged, error)
        if blocker and not seen.intersection(blocker.nodes):
            seen.update(blocker.nodes)
            yield structs.replace(blocker, after_cut=after_cut)
    if not seen and (blocker := _of_builder(judged)):
        yield structs.replace(blocker, after_cut=after_cut)


def blamed(judged: Judged) -> tuple[str, ...]:
    """Return the nodes that lost their precision, or those that are refused, as far as they are known."""
    lost = [each.node for each in judged.classification.lost]
    return tuple(dict.fromkeys(lost or [node for each in accused(judged) for node in each.nodes]))


def _ended(judged: Judged, mine: list[Blocker], tries: int) -> str:
    """Return how a search ends here, "" if it goes on."""
    what = "the rest" if tries else "it"
    cls = judged.classification.cls
    if engine_made(judged):
        return f"{what} builds"
    if not ran(judged):
        return f"{what} was not tried: {judged.classification.reason}"
    if tries and _OF_THE_CUT.search(judged.classification.reason):
        return f"{what} was not tried: of a part of it no sizes are known"
    if not mine:
        return (
            f"{what} {PREDICATE[cls]}, and no node of the main graph is named: {judged.classification.reason}"
        )
    return ""


def _of_parser(judged: Judged, error: ParserError) -> Blocker | None:
    alone = replace(judged.outcome, parser_errors=(error,))
    place = find_place(alone, error.text, operator=error.operator, node=error.node)
    if place.node not in _operators(judged):
        return None
    # The log holds all refusals, and the first signature that it matches may be another one's.
    quiet = replace(alone, messages=(), native_output="", error="")
    diagnosis = diagnose(
        quiet, judged.classification, model=judged.cell.variant.model_bytes, network=network_of(judged.cell)
    )
    if diagnosis is None and len(judged.outcome.parser_errors) == 1:
        diagnosis = judged.diagnosis
    return _blocker(judged, (place.node,), diagnosis, error.text.strip().partition("\n")[0])


def _of_builder(judged: Judged) -> Blocker | None:
    found, nodes = judged.diagnosis, judged.outcome.nodes
    if found and found.node in _operators(judged) and not _is_doubtful(found):
        return _blocker(judged, (found.node,), found)
    for text in (found.message if found else "", *complaints.errors(judged.outcome)):
        region = region_in(text)
        inside = map_names(region, nodes) if region else ()
        if inside:
            region_of = _blocker(judged, inside, found)
            return structs.replace(region_of, operator="") if len(inside) > 1 else region_of
    meant = _meant(found, nodes) if found and found.operator else ()
    meant = meant or tuple(node for node in nodes if node.op in _OF_GRAPHS)
    if not meant:
        return None
    return structs.replace(_blocker(judged, tuple(node.name for node in meant), found), named=len(meant) == 1)


def _is_doubtful(found: Diagnosis) -> bool:
    """Tell whether a text without a node was laid to the only node of its operator, and may mean another."""
    about_int8 = found.operator in MULTIPLYING and _SAID_OF_INT8.search(found.title)
    return bool(about_int8 and found.node not in found.message)


def _blocker(judged: Judged, nodes: tuple[str, ...], cause: Diagnosis | None, reason: str = "") -> Blocker:
    """Return a refusal of nodes of one operator, by a known cause if there is one."""
    operators, cls = _operators(judged), judged.classification.cls
    operator = " or ".join(dict.fromkeys(operators[node] for node in nodes))
    found = Blocker(nodes, operator, cls, reason or judged.classification.reason)
    if cause is None:
        return found
    said = {"title": cause.title, "cause": cause.cause, "advice": cause.advice}
    return structs.replace(found, signature=cause.id, **said)


def _meant(found: Diagnosis, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nodes that a failure may mean that names an operator alone.

    A text about INT8 means nodes with Q/DQ, and if no node of the operator has it, one of its kin: an engine
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

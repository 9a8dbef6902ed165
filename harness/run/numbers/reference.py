"""The outputs expected of a model, those of the ONNX reference evaluator, and how far an engine's are from them.

Two runtimes order scores that nearly tie otherwise, each rightly: rows of outputs behind TopK, NonMaxSuppression or a
sort are put where those are that they match, and not compared by their places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx.inliner import inline_local_functions

from harness.case.graph_reader import GraphReader, opsets, sorted_nodes
from harness.case.model import effective_name
from harness.record.outcome import Accuracy
from harness.run.numbers.wire import Array, is_carried

#: Domains whose operators the reference evaluator knows.
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})
_RANKING = frozenset({"TopK", "NonMaxSuppression"})
#: Operators that join all rows into something else.
_JOINING = ("Reduce", "Arg", "MatMul", "Gemm", "Conv", "CumSum")
#: Rows of which all pairs are compared.
_MOST_ROWS = 1024
#: How far rows may be apart that match, and scores that tie, as a part of the largest value.
_LIKE, _TIE = 1e-2, 1e-3


@dataclass(frozen=True)
class Reference:
    """The reference outputs by name, or None and the reason why, with the node that it stopped at, if one did.

    `ranked` are outputs whose rows are matched: a rank orders them.
    """

    outputs: Mapping[str, Array] | None
    reason: str = ""
    node: str = ""
    operator: str = ""
    ranked: frozenset[str] = frozenset()


class _Stopped(Exception):
    """A node that the evaluator cannot compute."""

    def __init__(self, node: onnx.NodeProto) -> None:
        super().__init__()
        self.node = node


def reference(model: onnx.ModelProto, inputs: Mapping[str, Array], *, also: Sequence[str] = ()) -> Reference:
    """Return the ONNX reference evaluator's outputs, and the tensors named in `also`.

    `also` is for tensors that a recipe marks as outputs. Q/DQ is evaluated as written, so that an engine that
    quantises as the graph says is held to the quantised numbers. The model's own functions are put in place, and
    nodes out of order are sorted. Operators of other domains, those that the evaluator lacks, and results that the
    specification leaves open give a reason instead of outputs.
    """
    try:
        model = _plain(model)
    except Exception as error:  # noqa: BLE001  (ONNX's inliner raises errors of its own for odd functions)
        return Reference(None, f"the model's functions cannot be put in place: {type(error).__name__}")
    foreign = sorted(
        {f"{node.domain}::{node.op_type}" for node in model.graph.node if node.domain not in _KNOWN_DOMAINS}
    )
    if foreign:
        return Reference(None, f"the reference evaluator does not know {', '.join(foreign)}")
    names = list(dict.fromkeys([*(value.name for value in model.graph.output), *also]))
    values = _evaluated(model, names, inputs)
    if isinstance(values, Reference):
        return values
    outputs = {
        name: np.asarray(value) for name, value in zip(names, values, strict=True) if is_carried(value)
    }
    return (
        Reference(outputs, ranked=ranked_outputs(model))
        if outputs
        else Reference(None, "no output of the graph is a tensor of numbers")
    )


def _evaluated(
    model: onnx.ModelProto, names: Sequence[str], inputs: Mapping[str, Array]
) -> list[Any] | Reference:
    """Return the values of tensors, or the reason why there are none."""
    # A tenth of a second, which only the children that evaluate need.
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    from harness.run.numbers.operators import REPLACED, Doubtful  # noqa: PLC0415

    try:
        with np.errstate(all="ignore"):
            opset = opsets(model).get("", 0)
            operators = [operator for operator, right in REPLACED.items() if opset < right]
            evaluator = ReferenceEvaluator(model, new_ops=operators)
            for each in evaluator.rt_nodes_:
                each.run = _told(each)
            return list(evaluator.run(names, dict(inputs)))
    except Doubtful as doubt:
        return Reference(None, f"the reference is doubtful: {doubt}")
    except _Stopped as stopped:
        name, operator = effective_name(stopped.node), stopped.node.op_type
        why = f"the reference evaluator failed at {operator} {name!r} with these inputs"
        return Reference(None, why, name, operator)
    except NotImplementedError:
        return Reference(None, "the reference evaluator lacks an operator of the model")
    except Exception as error:  # noqa: BLE001  (another project's code, on any model)
        return Reference(
            None, f"the reference evaluator failed before the first node: {type(error).__name__}"
        )


def _told(each: Any) -> Callable[..., Any]:  # noqa: ANN401  (the evaluator's own class, which has no types)
    """Return the method that runs a node, which names the node if it fails."""
    # A tenth of a second, as above.
    from harness.run.numbers.operators import Doubtful  # noqa: PLC0415

    run = each.run

    def told(*args: Any, **others: Any) -> Any:  # noqa: ANN401
        try:
            return run(*args, **others)
        except (Doubtful, MemoryError):
            raise
        except Exception as error:
            raise _Stopped(each.onnx_node) from error

    return told


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model without functions of its own, its nodes in order, ONNX's domain by its short name."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    if made.functions:
        made = inline_local_functions(made)
    for opset in made.opset_import:
        opset.domain = "" if opset.domain == "ai.onnx" else opset.domain
    for node in made.graph.node:
        node.domain = "" if node.domain == "ai.onnx" else node.domain
    nodes = sorted_nodes(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


_LARGEST = float(np.finfo(np.float64).max)
#: Types of indices, classes and answers, of which it counts how many differ; narrower ones are quantised numbers.
_COUNTED = (np.bool_, np.int32, np.int64, np.uint32, np.uint64)


def compare(
    expected: Mapping[str, Array], actual: Mapping[str, Array | None], ranked: frozenset[str] = frozenset()
) -> tuple[Accuracy, ...]:
    """Return one Accuracy for each reference output, in the reference's order; rows of `ranked` ones are matched.

    An output that is missing or has another shape has `shape_matches` False, and figures of 0 without a meaning. An
    output that is all zero in the reference has no magnitude: `max_rel` is then absolute, and the cosine 1 if the
    output is zero too, else 0. Positions at which the reference itself is not finite are left out.
    """
    if ranked:
        actual = {
            **actual,
            **matched({name: each for name, each in expected.items() if name in ranked}, actual),
        }
    return tuple(_compare(name, wanted, actual.get(name)) for name, wanted in expected.items())


def _compare(name: str, expected: Array, actual: Array | None) -> Accuracy:
    if actual is None or actual.shape != expected.shape:
        return Accuracy(name, max_abs=0.0, max_rel=0.0, cosine=0.0, shape_matches=False)
    # float64 holds every value of the types compared but INT64 and UINT64 beyond 2^53, of which it hides the last
    # digits alone.
    wanted, got = expected.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    comparable = np.isfinite(wanted)
    not_finite = int(np.count_nonzero(comparable & ~np.isfinite(got)))
    comparable &= np.isfinite(got)
    wanted, got = wanted[comparable], got[comparable]
    if not wanted.size:
        return Accuracy(
            name, max_abs=0.0, max_rel=0.0, cosine=0.0 if not_finite else 1.0, not_finite=not_finite
        )
    # Figures are written to JSON, which has no infinity, and extremes of float64 leave it.
    with np.errstate(over="ignore"):
        max_abs = min(float(np.max(np.abs(got - wanted))), _LARGEST)
    magnitude = float(np.max(np.abs(wanted)))
    return Accuracy(
        name,
        max_abs=max_abs,
        max_rel=min(max_abs / magnitude, _LARGEST) if magnitude else max_abs,
        cosine=_cosine(wanted, got),
        not_finite=not_finite,
        elements=wanted.size,
        differing=int(np.count_nonzero(got != wanted)) if expected.dtype in _COUNTED else None,
    )


def _cosine(left: Array, right: Array) -> float:
    # Scaled first: squares of float32 extremes leave float64.
    scale = float(np.max(np.abs(left))), float(np.max(np.abs(right)))
    if not all(scale):
        return 1.0 if not any(scale) else 0.0
    left, right = left / scale[0], right / scale[1]
    cosine = float(left @ right) / float(np.sqrt((left @ left) * (right @ right)))
    return min(1.0, max(-1.0, cosine))


def ranked_outputs(model: onnx.ModelProto) -> frozenset[str]:
    """Return the outputs that a rank orders: behind TopK or NonMaxSuppression, with nothing that joins their rows."""
    reader, behind = GraphReader(model.graph), set[str]()
    for node in reader.nodes:
        ranks = node.op_type in _RANKING
        if ranks or (not behind.isdisjoint(node.input) and not node.op_type.startswith(_JOINING)):
            behind.update(filter(None, node.output))
    return frozenset(behind & reader.outputs)


def matched(expected: Mapping[str, Array], actual: Mapping[str, Array | None]) -> dict[str, Array | None]:
    """Return outputs of one ranked list with their rows where those are that they match best, all by one order.

    The order is that of the output which tells most of a row: its widest. Without a list of one length it is left as
    it is.
    """
    found = dict(actual)
    for (batches, many), pairs in _lists(expected, actual).items():
        if not 1 < many <= _MOST_ROWS:
            continue
        wanted, got = (
            np.concatenate([each.astype(np.float64).reshape(batches, many, -1) for each in side], axis=2)
            for side in zip(*pairs.values(), strict=True)
        )
        moved = np.stack([_moved(*rows) for rows in zip(wanted, got, strict=True)])
        ends = np.cumsum([each.size // (batches * many) for each, _ in pairs.values()])
        for name, columns in zip(pairs, np.split(moved, ends[:-1], axis=2), strict=True):
            own = pairs[name][1]
            found[name] = columns.reshape(own.shape).astype(own.dtype)
    return found


def _lists(
    expected: Mapping[str, Array], actual: Mapping[str, Array | None]
) -> dict[tuple[int, int], dict[str, tuple[Array, Array]]]:
    """Return pairs of outputs by the list that they are columns of: by its batches and its length."""
    lists: dict[tuple[int, int], dict[str, tuple[Array, Array]]] = {}
    for name, wanted in expected.items():
        got = actual.get(name)
        if got is not None and got.shape == wanted.shape and wanted.ndim and wanted.size:
            axis = min(1, wanted.ndim - 1)
            key = (math.prod(wanted.shape[:axis]), wanted.shape[axis])
            lists.setdefault(key, {})[name] = (wanted, got)
    return lists


def _moved(wanted: Array, got: Array) -> Array:
    """Return rows in the order in which they match; those that tie with the last may be any, and are left out."""
    moved, scale = got[_order(wanted, got)], np.abs(wanted).max(axis=0)
    with np.errstate(invalid="ignore"):
        scores = [at for at in range(wanted.shape[1]) if scale[at] and (np.diff(wanted[:, at]) <= 0).all()]
        for at in scores:
            tied = [np.abs(rows[:, at] - wanted[-1, at]) <= _TIE * scale[at] for rows in (wanted, moved)]
            moved = np.where((tied[0] & tied[1])[:, None], wanted, moved)
    return moved


def _order(wanted: Array, got: Array) -> Array:
    """Return the order of rows that brings each to one that it matches: the nearest that is left."""
    scale = np.maximum(np.abs(wanted).max(axis=0), np.finfo(np.float64).tiny)
    wanted, got = np.nan_to_num(wanted / scale), np.nan_to_num(got / scale)
    order, left = np.full(len(wanted), -1), np.ones(len(wanted), bool)
    # The surest first: a row without its like takes what is left at the end.
    near = np.stack([np.abs(got - row).max(axis=1) for row in wanted])
    for at in np.argsort(near.min(axis=1), kind="stable"):
        distance = np.where(left, near[at], np.inf)
        best = at if left[at] and distance[at] <= distance.min() else int(distance.argmin())
        if distance[best] <= _LIKE:
            order[at], left[best] = best, False
    order[order < 0] = np.flatnonzero(left)
    return order

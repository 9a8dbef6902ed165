"""Finds outputs whose rows a rank orders, and puts the rows of one list beside those of another that they match.

Two runtimes order scores that nearly tie otherwise, each rightly: rows behind TopK, NonMaxSuppression or a sort are
matched and not compared by their places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx

from harness.case.graph_reader import GraphReader
from harness.run.numbers.wire import Array

_RANKING = frozenset({"TopK", "NonMaxSuppression"})
#: Operators that join all rows into something else.
_JOINING = ("Reduce", "Arg", "MatMul", "Gemm", "Conv", "CumSum")
#: Rows of which all pairs are compared.
_MOST_ROWS = 1024
#: How far rows may be apart that match, and scores that tie, as a part of the largest value.
_LIKE, _TIE = 1e-2, 1e-3


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
    pairs = {
        name: (wanted, got)
        for name, wanted in expected.items()
        if (got := actual.get(name)) is not None and got.shape == wanted.shape and wanted.ndim
    }
    lists: dict[tuple[int, int], list[str]] = {}
    for name, (wanted, _) in pairs.items():
        axis = min(1, wanted.ndim - 1)
        lists.setdefault((math.prod(wanted.shape[:axis]), wanted.shape[axis]), []).append(name)
    for (batches, many), names in lists.items():
        if 1 < many <= _MOST_ROWS and batches:
            ends = [[_rows(each, batches, many) for each in pairs[name]] for name in names]
            moved = [
                _moved(*(np.concatenate([pair[side][at] for pair in ends], axis=1) for side in (0, 1)))
                for at in range(batches)
            ]
            first = 0
            for name, (_, got) in zip(names, ends, strict=True):
                columns = slice(first, first := first + got.shape[2])
                shape, kind = pairs[name][1].shape, pairs[name][1].dtype
                found[name] = np.stack([rows[:, columns] for rows in moved]).reshape(shape).astype(kind)
    return found


def _rows(array: Array, batches: int, many: int) -> Array:
    """Return an output as rows of each batch, in doubles."""
    return array.astype(np.float64).reshape(batches, many, -1)


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

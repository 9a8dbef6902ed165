"""Searches for the smallest model that still shows a failure, by nodes, then by shapes.

The order of candidates depends on the model alone, and so does the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import onnx

from harness.case import effective_name, model_sha256
from harness.case.model import serialise
from harness.models.graphs import Cutter, valid
from harness.models.reduce import simpler


class Spent(Exception):
    """The time or the tries are used up; the best model so far stands."""


class Search:
    """A search: `best` is the smallest model so far that shows the failure.

    `shows` tells whether a model does, and `keep` takes each better one. `near` are the nodes that the failure may be
    about, by name. `held` returns a model with the weights that lay beside it, None as long as they are too many.
    """

    def __init__(  # noqa: PLR0913
        self,
        model: onnx.ModelProto,
        shows: Callable[[onnx.ModelProto], bool],
        *,
        near: Sequence[str] = (),
        seconds: float = 600.0,
        tries: int = 1_000_000,
        keep: Callable[[onnx.ModelProto], None] = lambda _: None,
        held: simpler.Edit = lambda _: None,
    ) -> None:
        self.best = model
        self.tries = 0
        self._shows, self._keep, self._held = shows, keep, held
        self._near = near
        self._most = tries
        self._until = time.monotonic() + seconds
        self._seen = {model_sha256(serialise(model))}
        self._valid = _strictest(model)

    def run(self) -> bool:
        """Search until nothing gets smaller; returns False if time or tries end it before."""
        try:
            self._start()
            while self._round():
                pass
        except Spent:
            return False
        return True

    def _start(self) -> None:
        """Take out descriptions, then go to the nodes that the failure is about."""
        self._try(simpler.undecorated(self.best))
        cutter = Cutter(self.best)
        indices = [i for i, node in enumerate(cutter.nodes) if effective_name(node) in self._near]
        for chosen in [indices[:1], indices] if len(indices) > 1 else [indices]:
            if chosen and self._around(cutter, chosen):
                return

    def _around(self, cutter: Cutter, chosen: Iterable[int]) -> bool:
        """Try the nodes and their neighbours, twice as far each time."""
        ball, steps = set(chosen), 1
        while not self._try(cutter.cut(ball)):
            before = len(ball)
            for _ in range(steps):
                ball |= {other for index in ball for other in cutter.neighbours[index]}
            steps *= 2
            if len(ball) in (before, len(cutter.nodes)):
                return False
        return True

    def _round(self) -> bool:
        """Go through all ways to get smaller once; tell whether one did."""
        before = serialise(self.best)
        self._chunks()
        if self._try(self._held(self.best)):
            self._valid = _strictest(self.best)
        for edit in list(simpler.resizes(self.best)):
            self._try(edit(self.best))
        return serialise(self.best) != before

    def _chunks(self) -> None:
        """Take out runs of nodes, half of all first, then ever shorter ones down to single nodes, the last first.

        Every two in a row are tried: a QuantizeLinear and its DequantizeLinear only go together.
        """
        cutter = Cutter(self.best)
        kept = list(range(len(cutter.nodes)))
        size = max(1, len(kept) // 2)
        while True:
            before, end = len(kept), len(kept)
            while end > 0:
                start = max(0, end - size)
                rest = kept[:start] + kept[end:]
                gone = self._try(cutter.cut(rest))
                kept = rest if gone else kept
                end = end - 1 if size == 2 and not gone else start  # noqa: PLR2004  (a pair)
            if size == 1 and len(kept) == before:
                return
            size = max(1, size // 2)

    def _try(self, candidate: onnx.ModelProto | None) -> bool:
        """Take a candidate as the best if it shows the failure; no model is tried twice."""
        sha256 = "" if candidate is None else model_sha256(serialise(candidate))
        if candidate is None or sha256 in self._seen or not self._valid(candidate):
            return False
        if self.tries >= self._most or time.monotonic() >= self._until:
            raise Spent
        self._seen.add(sha256)
        self.tries += 1
        shown = self._shows(candidate)
        if shown:
            self.best = candidate
            self._keep(candidate)
        return shown


def _strictest(model: onnx.ModelProto) -> Callable[[onnx.ModelProto], bool]:
    """Return the strictest check that the model itself passes: an engine is asked about no model that is wrong."""
    return next((each for each in (_sound, valid) if each(model)), lambda _: True)


def _sound(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception:  # noqa: BLE001  (of an invalid model they raise anything)
        return False
    return True

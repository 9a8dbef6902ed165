"""Makes a failing model small while it goes on showing the same failure.

`Sought` defines "the same"; the functions behind it make candidates; `Search` tries them.

Polygraphy's `debug reduce` (0.53.6) starts the command that it is given once a try, without a time limit, and each
start loads the engine anew; a warm agent takes a tenth of a second. It looks for one place where the model may end and
one where it may begin: between the two it takes out only nodes that lead nowhere, and it cuts no shapes. An exit code
or a pattern is its failure, so that one failure is traded for another.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import onnx
from onnx import numpy_helper

from harness.case import effective_name, model_sha256
from harness.case.graph_reader import STANDARD, inferred, is_stored
from harness.case.model import fed_inputs, serialise
from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.models.graphs import Cutter, copied, valid
from harness.record.outcome import Accuracy
from harness.words import GOOD, PREDICATE, Class, said

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(frozen=True)
class Sought:
    """The outcome of a model on one target, as far as it has to stay so.

    `signature`, `operator` and `line` (the error, without the names of nodes and without numbers) are "" if they may be
    any.
    """

    cls: Class
    signature: str = ""
    operator: str = ""
    line: str = ""

    def shown_by(self, judged: Judged) -> bool:
        """Tell whether another model shows the same."""
        return (
            judged.classification.cls is self.cls
            and self.signature in ("", judged.signature)
            and self.operator in ("", judged.diagnosis.operator if judged.diagnosis else "")
            and (not self.line or self.line in failures(judged))
        )

    def __str__(self) -> str:
        cause = " at ".join(filter(None, (self.signature, self.operator)))
        told = ", ".join(filter(None, (cause, self.line)))
        return f"{PREDICATE[self.cls]} ({told})" if told else PREDICATE[self.cls]


def sought(judged: Judged, keep: str) -> Sought:
    """Return the part of a failure that has to stay: "class" or "signature", which is that and its operator.

    Without a signature it is the class and the error. Raises HandledError if the model does not fail.
    """
    cls, target = judged.classification.cls, judged.cell.target.name
    if cls in GOOD:
        raise HandledError(
            f"the model {PREDICATE[cls]} on {target}: there is nothing to keep; name the target where it does not"
        )
    if keep == "class":
        return Sought(cls)
    found = judged.diagnosis
    # A cause that the graph alone tells is as near to another one as to this.
    line = failures(judged)[0] if found is None or cls is Class.PRECISION_LOST else ""
    return Sought(cls, found.id if found else "", found.operator if found else "", line)


def failures(judged: Judged) -> tuple[str, ...]:
    """Return the errors, a line each, without names of nodes and numbers, which change with the model around them.

    Of lost precision these are the operators, with the type wanted and the type they ran in.
    """
    found = judged.classification
    if found.cls is Class.PRECISION_LOST:
        ops = {node.name: node.op for node in judged.outcome.nodes}
        lines = (
            f"{ops.get(node, '')} ran in {said(got)}, not {said(want)}" for node, want, got in found.lost
        )
        return tuple(dict.fromkeys(lines))
    if found.cls is Class.INACCURATE:
        return tuple(dict.fromkeys(map(_wrong, judged.outcome.accuracy)))
    reason = found.reason
    for name in sorted((node.name for node in judged.outcome.nodes), key=len, reverse=True):
        reason = re.sub(rf"(?<![\w/]){re.escape(name)}[\w/.:]*", "", reason)
    return (" ".join(_NUMBER.sub("#", _QUOTED.sub("", reason)).split()),)


def named(judged: Judged) -> tuple[str, ...]:
    """Return the nodes that a failure is about, as far as it tells."""
    nodes = [node.name for node in judged.outcome.nodes]
    lost = [each.node for each in judged.classification.lost]
    place = judged.diagnosis.node if judged.diagnosis else ""
    told = f"{place} {judged.classification.reason}"
    named = (name for name in nodes if re.search(rf"(?<![\w/]){re.escape(name)}(?![\w/])", told))
    return tuple(dict.fromkeys([*lost, *named]))


def _wrong(accuracy: Accuracy) -> str:
    if not accuracy.shape_matches:
        return "an output of another shape"
    return "values that are no numbers" if accuracy.not_finite else "numbers that are off"


Edit = Callable[[onnx.ModelProto], "onnx.ModelProto | None"]
#: Operators whose weights' extents neither checker nor inference looks at.
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})


def resizes(model: onnx.ModelProto) -> Iterator[Edit]:
    """Yield ways to shrink a model's extents: by place first, then by number, each to the least size first."""
    places = {
        (axis, int(dim.dim_value))
        for value in fed_inputs(model)
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
    }
    numbers = {extent for _, extent in places}
    numbers |= {int(each) for tensor in model.graph.initializer for each in tensor.dims}
    ways = [*sorted(places, reverse=True), *((None, each) for each in sorted(numbers, reverse=True))]
    for axis, extent in ways:
        for power in range((extent - 1).bit_length() if extent > 1 else 0):
            yield partial(resized, old=extent, new=2**power, axis=axis)


def resized(model: onnx.ModelProto, old: int, new: int, axis: int | None) -> onnx.ModelProto | None:
    """Return a model with other extents on one axis of its inputs, or, for None, on any axis of inputs and weights."""
    made, changed = copied(model), False
    for value in fed_inputs(made):
        for at, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value == old and axis in (None, at):
                dim.dim_value, changed = new, True
    if axis is None and _RECURRENT.isdisjoint(node.op_type for node in made.graph.node):
        for each in made.graph.initializer:
            changed |= _shrunk(each, old, new)
    return restated(made) if changed else None


def _shrunk(weight: onnx.TensorProto, old: int, new: int) -> bool:
    """Cut a weight where its extent is the old one; tell whether that changed it."""
    if old not in weight.dims or not is_stored(weight):
        return False
    kept = tuple(slice(new if extent == old else extent) for extent in weight.dims)
    array = numpy_helper.to_array(weight)[kept].copy()
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    return True


def restated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose outputs have the shapes that inference gives them, and no other tensor any."""
    made = copied(model)
    if all(node.domain in STANDARD for node in made.graph.node):
        del made.graph.value_info[:]
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    found = {value.name: value for value in inferred(made, data_prop=True).output}
    for value, before in zip(made.graph.output, model.graph.output, strict=True):
        value.CopyFrom(found[value.name])
        if not value.type.tensor_type.HasField("shape"):
            # A network's output has a rank; its extents are unknown now.
            for _ in before.type.tensor_type.shape.dim:
                value.type.tensor_type.shape.dim.add()
            value.type.tensor_type.shape.SetInParent()
    return made


def undecorated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without descriptions and metadata."""
    made = copied(model)
    named = (made.graph.node, made.graph.initializer, made.graph.input, made.graph.output)
    for part in (made, made.graph, *(each for group in named for each in group)):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    return made


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
        held: Edit = lambda _: None,
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
        """Take out descriptions, then all but the nodes that the failure is about, and ever more on both sides."""
        self._try(undecorated(self.best))
        cutter = Cutter(self.best)
        every = range(len(cutter.nodes))
        named, beside = [at for at in every if effective_name(cutter.nodes[at]) in self._near], 0
        while named and beside < len(every):
            window = {near for at in named for near in range(at - beside, at + beside + 1)}
            if self._try(cutter.cut(window.intersection(every))):
                return
            beside = 2 * beside + 1

    def _round(self) -> bool:
        """Go through all ways to get smaller once; tell whether one did."""
        before = serialise(self.best)
        self._chunks()
        if self._try(self._held(self.best)):
            self._valid = _strictest(self.best)
        for edit in list(resizes(self.best)):
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

"""Makes variants ready for any engine, in bounded child processes: model, nodes, inputs and reference numbers.

A variant that cannot be made ready costs its own cells alone.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from harness.agent.tensors import write_shape
from harness.case import Case, Variant, check_variant, model_sha256
from harness.case.model import Built, Unbuildable
from harness.case.registry import load_declared
from harness.errors import HandledError
from harness.layers.asked import asked
from harness.record.outcome import Node, State
from harness.run.child import ChildFailed, stream
from harness.run.numbers.given import check_calibration, check_expected, check_inputs, read_npz
from harness.run.numbers.inputs import NotFeedable, check_sizes, make_inputs
from harness.run.numbers.reference import Reference, reference
from harness.run.numbers.wire import Array, to_wire


@dataclass(frozen=True)
class Weights:
    """Files in a folder, by their names there, as the model's external data names them; `size` is that of all."""

    folder: Path
    files: tuple[str, ...]
    size: int

    def __str__(self) -> str:
        """Return their size in words."""
        return f"{self.size / 2**30:.1f} GiB"


Parts = tuple[tuple[str, bytes], ...]
#: The reference of a variant that has not run yet: evaluating one takes longer than a build, and many are only built.
UNEVALUATED = Reference(None, "not evaluated")


@dataclass(frozen=True)
class Prepared:
    """The model, inputs and reference of a variant, the same for every target.

    `unfed` says why there are no inputs: an engine then builds the model and does not run it. Without
    `timed` it is run once and neither timed nor profiled. `calibration` are own batches, along the first axis of each
    array, and `libraries` own plugins, compiled. `plain`: ONNX Runtime is held to itself without its optimisations.
    """

    model: bytes
    sha256: str
    nodes: tuple[Node, ...]
    inputs: dict[str, Array]
    reference: Reference
    unfed: str = ""
    timed: bool = True
    plain: bool = False
    calibration: dict[str, Array] = field(default_factory=dict)
    libraries: tuple[bytes, ...] = ()

    def wire_inputs(self) -> Parts:
        """Return the inputs as a job's parts: the raw bytes under their name, the shape under `shape:<name>`."""
        return _wired(self.inputs)

    def wire_calibration(self) -> Parts:
        """Return the data of a calibrator as a job's parts: own batches under `calibration:<name>`, or the inputs."""
        own = {f"calibration:{name}": batches for name, batches in self.calibration.items()}
        return _wired(own or self.inputs)

    def wire_libraries(self) -> Parts:
        """Return the libraries of own plugins as a job's parts, by their hashes."""
        return tuple((f"library:{hashlib.sha256(data).hexdigest()}", data) for data in self.libraries)


def _wired(arrays: Mapping[str, Array]) -> Parts:
    parts = []
    for name, array in arrays.items():
        _, shape, data = to_wire(array)
        parts += [(name, data), (f"shape:{name}", write_shape(shape))]
    return tuple(parts)


def unevaluated(variant: Variant) -> Prepared:
    """Build a variant's model and inputs, without reference numbers.

    Raises HandledError if it cannot be done, and NotFeedable if a network input is of a kind that is not fed.
    """
    data = variant.model_bytes()
    model = onnx.load_model_from_string(data)
    try:
        given = _given(variant, model)
        inputs = given.get("inputs") or make_inputs(model, variant.recipe.profiles)
    except ValueError as error:
        raise HandledError(f"variant {variant.name!r}: {error}") from error
    return Prepared(
        model=data,
        sha256=model_sha256(data),
        nodes=asked(model),
        inputs=inputs,
        reference=Reference(given["expected"]) if "expected" in given else UNEVALUATED,
        calibration=given.get("calibration", {}),
    )


def _given(variant: Variant, model: onnx.ModelProto) -> dict[str, dict[str, Array]]:
    """Return a variant's own arrays, as far as it has any; raises HandledError if they are not the model's."""
    if variant.data is None:
        return {}
    paths = {what: variant.data.path(what) for what in ("inputs", "expected", "calibration")}
    given = {what: read_npz(path, what) for what, path in paths.items() if path is not None}
    label, sizes = f"variant {variant.name!r}", check_sizes(model, variant.recipe.profiles)
    if "inputs" in given:
        check_inputs(label, sizes, given["inputs"], "its data")
    check_expected(label, model, given.get("expected", {}))
    if "calibration" in given:
        given["calibration"] = check_calibration(label, sizes, given["calibration"], "its calibration")
    return given


def evaluated(variant: Variant, ready: Prepared) -> Prepared:
    """Return a prepared variant with its reference numbers: its own or the evaluator's."""
    if ready.reference != UNEVALUATED:
        return ready
    model = onnx.load_model_from_string(ready.model)
    return replace(ready, reference=reference(model, ready.inputs, also=variant.recipe.mark_outputs))


#: The limits for building one model, and for one variant's inputs and reference.
SECONDS = 120.0
MEMORY_MIB = 4096
#: Variants that are made ready in one child beside the one that was asked for; a process takes as long as 20 of them.
_TOGETHER = 31


def memory_for(size: int) -> int:
    """Return the MiB that a child may take that holds a model of so many bytes: parsed, copied, its types inferred."""
    return MEMORY_MIB + (8 * size >> 20)


_Key = tuple[str, str]


class Refused(Exception):
    """A variant cannot be made ready; its cells are recorded in `state` with `reason`."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(state, reason)
        self.state = state
        self.reason = reason


def with_models(cases: Iterable[Case], folder: Path, *, seconds: float = SECONDS) -> tuple[Case, ...]:
    """Return the cases of a folder with every model built, and the names in each variant looked up in its graph.

    A variant whose model cannot be built, or that names a missing node, is `Unbuildable`; one that has come through
    here stays as it is. Case modules are user code: a `build` that raises, hangs, crashes or takes all memory does so
    in a child.
    """
    given = tuple(cases)
    through = {
        (case.name, variant.name): isinstance(variant.build, Built | Unbuildable)
        for case in given
        for variant in case
    }
    made = _built(folder.absolute(), [key for key, done in through.items() if not done], seconds)

    def with_model(case: Case, variant: Variant) -> Variant:
        return replace(variant, build=made.get((case.name, variant.name), variant.build))

    return tuple(
        replace(case, variants=tuple(with_model(case, variant) for variant in case)) for case in given
    )


def _built(folder: Path, todo: Sequence[_Key], seconds: float) -> dict[_Key, Built | Unbuildable]:
    """Return the model of each variant, or why it has none; one that ends its child costs itself alone."""
    made: dict[_Key, Built | Unbuildable] = {}
    while rest := [key for key in todo if key not in made]:
        try:
            for key, model in stream(_models, folder, rest, seconds=seconds, memory_mib=MEMORY_MIB):
                made[key] = model  # noqa: PERF403  (models from before a failure are kept)
        except ChildFailed as error:
            case, name = next(key for key in rest if key not in made)
            sentence = f"the model of variant {case}.{name} cannot be built: its process {error}"
            made[case, name] = Unbuildable(sentence)
    return made


def _models(folder: Path, keys: Sequence[_Key]) -> Iterator[tuple[_Key, Built | Unbuildable]]:
    cases = load_declared(folder, {case for case, _ in keys})
    variants = {(case.name, variant.name): variant for case in cases for variant in case}
    for key in keys:
        try:
            variant = variants[key]
            built = Built(variant.model_bytes())
            check_variant(variant, built())
            yield key, built
        except HandledError as error:
            yield key, Unbuildable(str(error))


class PreparedVariants:
    """Each variant prepared, once and in a child process; safe to share between threads.

    `order` is in which they will be asked for: those that follow are made ready in the same child, for a process a
    variant takes longer than its work. References are evaluated apart, for variants that ran.
    """

    def __init__(
        self, order: Iterable[Variant] = (), *, seconds: float = SECONDS, memory_mib: int = MEMORY_MIB
    ) -> None:
        self._stream = functools.partial(stream, seconds=seconds, memory_mib=memory_mib)
        # By identity, with the variant kept alive: hashing one walks hundreds of claims.
        self._order = {id(variant): variant for variant in order}
        self._made: dict[int, tuple[Variant, Prepared | Refused]] = {}
        self._evaluated: dict[int, tuple[Variant, Prepared | Refused]] = {}
        self._locks: dict[int, threading.Lock] = {}
        self._making = threading.Lock()

    def of(self, variant: Variant, needed: Callable[[], bool] = lambda: True) -> Prepared:
        """Return a variant prepared; raises Refused, also when `needed` says that it is not waited for any more."""
        with self._making if id(variant) in self._order else self._lock(variant):
            if id(variant) not in self._made:
                following = self._following(variant)
                if following:
                    self._make_together([variant, *following], needed)
                else:
                    self._made[id(variant)] = variant, self.make(variant, needed)
            found = self._made[id(variant)][1]
            if isinstance(found, Refused):
                if not needed():
                    del self._made[id(variant)]
                raise found
            return found

    def weights(self, variant: Variant) -> Weights | None:  # noqa: ARG002
        """Return the weights that stay beside a variant's model, None if it holds all of them."""
        return None

    def evaluated(
        self, variant: Variant, ready: Prepared, needed: Callable[[], bool] = lambda: True
    ) -> Prepared:
        """Return a prepared variant with its reference numbers; raises as `of` does."""
        if ready.reference != UNEVALUATED:
            return ready
        with self._lock(variant):
            _, found = self._evaluated.get(id(variant), (variant, None))
            if found is None:
                found = self._one(variant, _evaluated, _with_model(variant), ready, needed=needed)
                if needed():
                    self._evaluated[id(variant)] = variant, found
        if isinstance(found, Refused):
            raise found
        return found

    def _lock(self, variant: Variant) -> threading.Lock:
        return self._locks.setdefault(id(variant), threading.Lock())

    def _following(self, variant: Variant) -> list[Variant]:
        """Return the variants that come next and are still to be made."""
        keys = list(self._order)
        start = keys.index(id(variant)) + 1 if id(variant) in self._order else len(keys)
        return [self._order[key] for key in keys[start:] if key not in self._made][:_TOGETHER]

    def _make_together(self, variants: Sequence[Variant], needed: Callable[[], bool]) -> None:
        """Make variants ready in one child, up to the first that fails; the first of them is made in any case."""
        todo, models = [], []
        for variant in variants:
            try:
                models.append(_with_model(variant))
                todo.append(variant)
            except HandledError as error:
                self._made[id(variant)] = variant, Refused("infra_error", str(error))
        made = 0
        try:
            for found in self._stream(_prepared, models, needed=needed):
                self._made[id(todo[made])] = todo[made], found
                made += 1
        except ChildFailed as error:
            if made < len(todo):
                self._made[id(todo[made])] = todo[made], _failed(todo[made], error)

    def make(self, variant: Variant, needed: Callable[[], bool]) -> Prepared | Refused:
        """Return one variant made ready, or how that failed."""
        try:
            return self._one(variant, _prepared, [_with_model(variant)], needed=needed)
        except HandledError as error:
            return Refused("infra_error", str(error))

    def _one(
        self,
        variant: Variant,
        function: Callable[..., Iterator[Prepared | Refused]],
        *arguments: object,
        needed: Callable[[], bool],
    ) -> Prepared | Refused:
        found: Prepared | Refused
        try:
            (found,) = self._stream(function, *arguments, needed=needed)
        except ChildFailed as error:
            return _failed(variant, error)
        return found


def _with_model(variant: Variant) -> Variant:
    return replace(variant, build=Built(variant.model_bytes()))


def _failed(variant: Variant, error: ChildFailed) -> Refused:
    return Refused("infra_error", f"variant {variant.name!r} cannot be made ready: its process {error}")


def _prepared(variants: Sequence[Variant]) -> Iterator[Prepared | Refused]:
    for variant in variants:
        try:
            yield unevaluated(variant)
        except NotFeedable as refusal:
            yield Refused("not_applicable", str(refusal))
        except HandledError as error:
            yield Refused("infra_error", str(error))


def _evaluated(variant: Variant, ready: Prepared) -> Iterator[Prepared]:
    yield evaluated(variant, ready)

"""A variant made ready for any engine: its model, nodes, inputs and reference numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import onnx

from harness.agent.tensors import write_shape
from harness.case import model_sha256
from harness.errors import HandledError
from harness.layers import asked
from harness.run.numbers import Array, Reference, check_sizes, make_inputs, reference, to_wire
from harness.run.numbers.given import check_calibration, check_expected, check_inputs, read_npz

if TYPE_CHECKING:
    from harness.case import Variant
    from harness.record.outcome import Node


Parts = tuple[tuple[str, bytes], ...]
#: The reference of what nobody has run yet: evaluating one takes longer than a build, and many are only built.
UNEVALUATED = Reference(None, "not evaluated")


@dataclass(frozen=True)
class Prepared:
    """What every target is given for a variant, and held to.

    `unfed` says why there are no inputs: an engine then builds the model and does not run it. What is not `timed` is
    run once and neither timed nor profiled. `calibration` are own batches, along the first axis of each array, and
    `libraries` own plugins, compiled.
    """

    model: bytes
    sha256: str
    nodes: tuple[Node, ...]
    inputs: dict[str, Array]
    reference: Reference
    unfed: str = ""
    timed: bool = True
    calibration: dict[str, Array] = field(default_factory=dict)
    libraries: tuple[bytes, ...] = ()

    def wire_inputs(self) -> Parts:
        """Return the inputs as a job's parts: the raw bytes under their name, the shape under `shape:<name>`."""
        return _wired(self.inputs)

    def wire_calibration(self) -> Parts:
        """Return what a calibrator takes as a job's parts: own batches under `calibration:<name>`, or the inputs."""
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


def prepare_variant(variant: Variant) -> Prepared:
    """Build a variant's model, inputs and reference numbers.

    Raises HandledError where it cannot be done, and NotFeedable where a network input is nothing that is fed. An
    operator that never ends takes this process along: `prepare_in_child` bounds it.
    """
    return evaluated(variant, unevaluated(variant))


def unevaluated(variant: Variant) -> Prepared:
    """Build a variant's model and inputs alone; raises as `prepare_variant` does."""
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
    """Return a variant's own arrays, as far as it has any; raises HandledError where they are not the model's."""
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
    """Return what is ready with its reference numbers, those that it has or the evaluator's."""
    if ready.reference != UNEVALUATED:
        return ready
    model = onnx.load_model_from_string(ready.model)
    return replace(ready, reference=reference(model, ready.inputs, also=variant.recipe.mark_outputs))

"""Makes variants ready with a user's data: inputs, expected outputs, batches for a calibrator, plugins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from harness.bounded import LARGE, read_bytes
from harness.case import Calibrator, Typing, Variant
from harness.case.model import Library, fed_inputs, model_sha256
from harness.errors import HandledError
from harness.layers.asked import asked
from harness.layers.operators import MULTIPLYING
from harness.models.own.model import OwnModel
from harness.models.own.shapes import made_up
from harness.models.reading import MOST_EVALUATED
from harness.run.child import ChildFailed, stream
from harness.run.numbers.given import check_calibration, check_expected, check_inputs
from harness.run.numbers.inputs import NotFeedable, check_sizes
from harness.run.numbers.reference import Reference, ranked_outputs, reference
from harness.run.numbers.wire import Array, to_wire
from harness.run.prepared import Prepared, PreparedVariants, Refused, Weights, memory_for
from harness.words import Precision

_ELF = b"\x7fELF"
#: Seconds that inputs, and then the reference of a model may take: engines wait for them.
_SECONDS = 30.0


@dataclass(frozen=True)
class Given:
    """The data that the user gives: `inputs` by network input, and `expected` by network output, if any.

    `calibration` are batches by network input, the first axis of each array, `libraries` compiled plugins, and
    `weights` those that stay beside the model.
    """

    inputs: Mapping[str, Array] = field(default_factory=dict)
    expected: Mapping[str, Array] = field(default_factory=dict)
    calibration: Mapping[str, Array] = field(default_factory=dict)
    libraries: tuple[tuple[Library, bytes], ...] = ()
    weights: Weights | None = None

    def put_into(self, ready: Prepared) -> Prepared:
        """Return a prepared variant with the data for its building."""
        libraries = tuple(data for _, data in self.libraries)
        return replace(ready, calibration=dict(self.calibration), libraries=libraries)


class OwnPrepared(PreparedVariants):
    """PreparedVariants for own models, with the data that the user gives, if any."""

    def __init__(self, given: Mapping[str, Given] | None = None) -> None:
        super().__init__()
        self._given = dict(given or {})

    def weights(self, variant: Variant) -> Weights | None:
        """Return the weights that stay beside a variant's model."""
        return self.given_to(variant).weights

    def given_to(self, variant: Variant) -> Given:
        """Return the data that the user gave for a variant."""
        return self._given.get(variant.name, Given())

    def make(self, variant: Variant, needed: Callable[[], bool]) -> Prepared | Refused:
        """Return one variant made ready with the user's data, or how that failed."""
        given = self.given_to(variant)
        fed = replace(given, calibration={}, libraries=())
        made: list[Prepared | Refused] = []
        memory = memory_for(len(variant.model_bytes()))
        try:
            made.extend(stream(_own, variant, fed, seconds=_SECONDS, memory_mib=memory, needed=needed))
        except ChildFailed as error:
            if not made:
                return Refused("infra_error", f"the model cannot be made ready: its process {error}")
            # An engine builds and runs models that the evaluator is too slow for, or dies of.
            why = f"no reference was computed: the process that evaluates the model {error}; --expected gives one"
            made = [
                replace(each, reference=replace(each.reference, outputs=None, reason=why))
                for each in made
                if isinstance(each, Prepared)
            ]
        found = made[-1]
        if isinstance(found, Refused):
            return found
        return replace(given.put_into(found), plain=found.reference.outputs is None)


def fitted(own: OwnModel, given: Given) -> Given:
    """Return the data for a model, every calibration array with its axis of batches.

    Raises HandledError if given arrays are not those that the model takes and gives.
    """
    fed = given.inputs or given.calibration
    if not (fed or given.expected):
        return given
    model = onnx.load_model_from_string(own.variant.model_bytes())
    sizes = check_sizes(model, own.variant.recipe.profiles, beside=True) if fed else {}
    if given.inputs:
        check_inputs(own.label, sizes, given.inputs)
    check_expected(own.label, model, given.expected)
    if given.expected and not given.inputs and any(fed_inputs(model)):
        raise HandledError(
            f"{own.label}: outputs are expected, and nobody says of which inputs; give these too"
        )
    if not given.calibration:
        return given
    return replace(given, calibration=check_calibration(own.label, sizes, given.calibration))


def _own(variant: Variant, given: Given) -> Iterator[Prepared | Refused]:
    """Yield the model made ready, and once more with the evaluator's reference, if there is to be one."""
    data = variant.model_bytes()
    model = onnx.load_model_from_string(data)
    ready = Prepared(
        data,
        model_sha256(data),
        asked(model),
        {},
        Reference(None, "it was only built", ranked=ranked_outputs(model)),
    )
    try:
        inputs = dict(given.inputs) or made_up(model, variant.recipe.profiles)
    except (NotFeedable, ValueError) as refusal:
        # An engine builds models that cannot be fed.
        yield replace(ready, unfed=str(refusal))
        return
    if given.expected:
        expected = Reference(dict(given.expected), ranked=ready.reference.ranked)
    elif given.weights or len(data) > MOST_EVALUATED:
        held = given.weights or f"{len(data) / 2**30:.1f} GiB"
        why = f"no reference was computed: the model has {held}"
        expected = replace(ready.reference, reason=why)
    else:
        ready = replace(ready, inputs=inputs)
        yield ready
        expected = reference(model, inputs, also=variant.recipe.mark_outputs)
    yield replace(ready, inputs=inputs, reference=replace(expected, ranked=ready.reference.ranked))


def read_libraries(paths: Iterable[Path]) -> tuple[tuple[Library, bytes], ...]:
    """Return compiled libraries with their entries in a recipe; raises HandledError for any other file."""
    found = []
    for path in paths:
        try:
            data = read_bytes(path, LARGE)
        except OSError as error:
            raise HandledError(
                f"--plugin {path}: cannot be read ({error.strerror}); give a compiled .so"
            ) from error
        if not data.startswith(_ELF):
            raise HandledError(f"--plugin {path}: is no shared library of Linux; give a compiled .so")
        found.append((Library(path.name, hashlib.sha256(data).hexdigest()), data))
    return tuple(found)


def built_with(model: OwnModel, given: Given) -> OwnModel:
    """Return a model whose recipe has the calibrator and the libraries that the user gives.

    With a calibrator all nodes that multiply are to run in INT8, unless the graph or the user says otherwise.
    """
    recipe, variant = model.variant.recipe, model.variant
    libraries = tuple(library for library, _ in given.libraries)
    if not given.calibration:
        return replace(model, variant=replace(variant, recipe=replace(recipe, libraries=libraries)))
    if recipe.typing is Typing.STRONG:
        raise HandledError(
            "--calibration: a strongly typed network takes no calibrator; leave out --typing strong"
        )
    many = len(next(iter(given.calibration.values())))
    recipe = replace(
        recipe,
        flags=tuple(dict.fromkeys((*recipe.flags, "INT8"))),
        calibrator=Calibrator("entropy", batches=many, data=_sha256(given.calibration)),
        libraries=libraries,
    )
    assumed, wishes = model.assumed, model.wishes
    if any(node.precision not in ("", "fp16", "bf16") for node in model.nodes):
        assumed = (*assumed, "it has Q/DQ: TensorRT takes its scales from there and asks no calibrator")
    elif variant.precision is None:
        wishes = tuple((node.name, Precision.INT8) for node in model.nodes if node.op in MULTIPLYING)
        variant = replace(variant, precision=wishes)
    return replace(model, variant=replace(variant, recipe=recipe), wishes=wishes, assumed=assumed)


def _sha256(arrays: Mapping[str, Array]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        dtype, shape, data = to_wire(arrays[name])
        found.update(repr((name, dtype, shape)).encode())
        found.update(data)
    return found.hexdigest()

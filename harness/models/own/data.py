"""Inputs and expected outputs that the user gives, and how a variant is made ready with them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from harness.bounded import LARGE, check_file
from harness.case.model import model_sha256
from harness.errors import HandledError
from harness.layers import asked
from harness.models.own.building import check_calibration
from harness.models.reading import MOST_EVALUATED
from harness.run.child import ChildFailed, stream
from harness.run.numbers import Array, NotFeedable, Reference, check_sizes, make_inputs, reference
from harness.run.numbers.wire import dtype_of, is_carried
from harness.run.prepare_in_child import MEMORY_MIB, SECONDS, PreparedVariants, Refused
from harness.run.prepared import Prepared
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from harness.case import Profile, Variant
    from harness.case.model import Library
    from harness.run.weights import Weights


@dataclass(frozen=True)
class Given:
    """What the user gives: `inputs` by network input, and `expected` by network output, or none.

    `calibration` are batches by network input, the first axis of each array, `libraries` compiled plugins, and
    `weights` those that stay beside the model.
    """

    inputs: Mapping[str, Array] = field(default_factory=dict)
    expected: Mapping[str, Array] = field(default_factory=dict)
    calibration: Mapping[str, Array] = field(default_factory=dict)
    libraries: tuple[tuple[Library, bytes], ...] = ()
    weights: Weights | None = None

    def put_into(self, ready: Prepared) -> Prepared:
        """Return what is ready with what is given for its building."""
        libraries = tuple(data for _, data in self.libraries)
        return replace(ready, calibration=dict(self.calibration), libraries=libraries)


def read_npz(path: Path, option: str) -> dict[str, Array]:
    """Return the arrays of an .npz file by name; raises HandledError, with the option, where it cannot be read."""
    try:
        check_file(path, LARGE)
        _refuse_bomb(path)
        held = np.load(path, allow_pickle=False)
        if not isinstance(held, np.lib.npyio.NpzFile):
            raise HandledError(f"{option} {path}: holds one array without a name; write it with numpy.savez")
        with held as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    # RuntimeError: it is encrypted, or packed as this Python cannot unpack.
    except (
        OSError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        MemoryError,
        RuntimeError,
    ) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HandledError(
            f"{option} {path}: cannot be read ({reason}); write it with numpy.savez"
        ) from error
    odd = [name for name, array in arrays.items() if not is_carried(array)]
    if odd:
        raise HandledError(f"{option} {path}: {odd[0]!r} is no array of numbers; leave it out")
    return arrays


def _refuse_bomb(path: Path) -> None:
    """Raise ValueError where a file unpacks to more than a model may take."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > LARGE:
            raise ValueError(f"it unpacks to {size >> 20} MiB, and may to {LARGE >> 20}")


class OwnPrepared(PreparedVariants):
    """PreparedVariants for own models, with the data that the user gives where there are any."""

    def __init__(self, given: Mapping[str, Given] | None = None) -> None:
        super().__init__()
        self._given = dict(given or {})

    def weights(self, variant: Variant) -> Weights | None:
        """Return the weights that stay beside a variant's model."""
        given = self._given.get(variant.name)
        return given.weights if given else None

    def _make(self, variant: Variant, needed: Callable[[], bool]) -> Prepared | Refused:
        given = self._given.get(variant.name, Given())
        fed = replace(given, calibration={}, libraries=())
        try:
            (made,) = stream(_own, variant, fed, seconds=SECONDS, memory_mib=_memory(variant), needed=needed)
        except ChildFailed as error:
            return Refused("infra_error", f"the model cannot be made ready: its process {error}")
        found: Prepared | Refused = made
        return found if isinstance(found, Refused) else given.put_into(found)


def _memory(variant: Variant) -> int:
    return MEMORY_MIB + (4 * len(variant.model_bytes()) >> 20)


def check_given(label: str, model: onnx.ModelProto, variant: Variant, given: Given) -> Given:
    """Return what is given, every calibration array with its axis of batches.

    Raises HandledError where given arrays are not those that the model takes and gives.
    """
    fed = given.inputs or given.calibration
    every = check_sizes(model, variant.recipe.profiles, beside=True) if fed else {}
    sizes = every if given.inputs else {}
    for name, array in given.inputs.items():
        if name not in sizes:
            raise HandledError(f"{label}: has no input {name!r}; {did_you_mean(name, sizes)}")
        _check_one(label, name, array, *sizes[name])
    missing = [name for name in sizes if name not in given.inputs]
    if missing:
        raise HandledError(
            f"{label}: input {missing[0]!r} is not in --inputs; give all of {', '.join(sizes)}"
        )
    outputs = [value.name for value in model.graph.output]
    for name in given.expected:
        if name not in outputs:
            raise HandledError(f"{label}: has no output {name!r}; {did_you_mean(name, outputs)}")
    if not given.calibration:
        return given
    return replace(given, calibration=check_calibration(label, every, given.calibration))


def _check_one(label: str, name: str, array: Array, dtype: str, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        own, given = ("x".join(map(str, each)) or "a scalar" for each in (shape, array.shape))
        raise HandledError(
            f"{label}: input {name!r} is {own} and --inputs has {given}; give that, or name the shape with --shapes"
        )
    if array.dtype != dtype_of(dtype):
        raise HandledError(
            f"{label}: input {name!r} is {dtype} and --inputs has {array.dtype}; convert it with astype"
        )


def _own(variant: Variant, given: Given) -> Iterator[Prepared | Refused]:
    data = variant.model_bytes()
    model = onnx.load_model_from_string(data)
    ready = Prepared(data, model_sha256(data), asked(model), {}, Reference(None, "it was only built"))
    try:
        inputs = dict(given.inputs) or made_up(model, variant.recipe.profiles)
    except (NotFeedable, ValueError) as refusal:
        # An engine builds what nobody can feed.
        yield replace(ready, unfed=str(refusal))
        return
    if given.expected:
        expected = Reference(dict(given.expected))
    elif given.weights or len(data) > MOST_EVALUATED:
        held = given.weights or f"{len(data) / 2**30:.1f} GiB"
        expected = Reference(None, f"no reference was computed: the model has {held}")
    else:
        expected = reference(model, inputs, also=variant.recipe.mark_outputs)
    yield replace(ready, inputs=inputs, reference=expected)


def made_up(model: onnx.ModelProto, profiles: Sequence[Profile]) -> dict[str, Array]:
    """Return made-up inputs in which what looks up rows of a constant table, as token types do, names rows it has.

    Raises what `make_inputs` raises.
    """
    inputs = make_inputs(model, profiles, beside=True)
    rows = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    looked_up = {name: name for name in inputs}
    most: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in rows:
            rows[node.output[0]] = rows[node.input[0]]
        elif node.op_type == "Cast" and node.input[0] in looked_up:
            looked_up[node.output[0]] = looked_up[node.input[0]]
        elif node.op_type == "Gather" and node.input[1] in looked_up and rows.get(node.input[0]):
            axis = next((item.i for item in node.attribute if item.name == "axis"), 0)
            name, held = looked_up[node.input[1]], rows[node.input[0]][axis]
            most[name] = min(held, most.get(name, held))
    return {
        name: array % np.asarray(most[name], array.dtype)
        if most.get(name) and array.dtype.kind in "iu"
        else array
        for name, array in inputs.items()
    }

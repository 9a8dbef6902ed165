"""Arrays that somebody gives in place of made-up ones: read from .npz files, and checked against the model's inputs."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx

from harness.bounded import LARGE, check_file
from harness.errors import HandledError
from harness.run.numbers.wire import Array, dtype_of, is_carried
from harness.text import did_you_mean

Sizes = Mapping[str, tuple[str, tuple[int, ...]]]


def read_npz(path: Path, option: str) -> dict[str, Array]:
    """Return the arrays of an .npz file by name; raises HandledError, with the option, if it cannot be read."""
    try:
        check_file(path, LARGE)
        _refuse_bomb(path)
        arrays = _held(path)
    except Exception as error:  # numpy, zip, zlib and a parser of Python raise anything
        reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
        raise HandledError(
            f"{option} {path}: cannot be read ({reason}); write it with numpy.savez"
        ) from error
    if not arrays:
        raise HandledError(f"{option} {path}: holds no array; write it with numpy.savez")
    odd = [name for name, array in arrays.items() if not is_carried(array)]
    if odd:
        raise HandledError(f"{option} {path}: {odd[0]!r} is no array of numbers; leave it out")
    return arrays


def _held(path: Path) -> dict[str, Array]:
    # Opened here: numpy leaves a file open that it cannot read.
    with path.open("rb") as opened:
        if not zipfile.is_zipfile(opened):
            raise ValueError("it is no .npz file")
        opened.seek(0)
        with np.load(opened, allow_pickle=False) as file:
            return {name: np.asarray(file[name]) for name in file.files}


def _refuse_bomb(path: Path) -> None:
    """Raise ValueError if a file unpacks to more than a model may take."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > LARGE:
            raise ValueError(f"it unpacks to {size >> 20} MiB, and may to {LARGE >> 20}")


def check_inputs(label: str, sizes: Sizes, arrays: Mapping[str, Array], option: str = "--inputs") -> None:
    """Raise HandledError unless arrays are those of all network inputs; `sizes` are their types and shapes."""
    for name in [each for each in arrays if each in sizes]:
        _check_one(label, name, arrays[name], sizes[name], option)
    _check_names(label, sizes, arrays, option)


def _check_names(label: str, sizes: Sizes, arrays: Mapping[str, Array], option: str) -> None:
    for name in arrays:
        if name not in sizes:
            raise HandledError(f"{label}: has no input {name!r}; {did_you_mean(name, sizes)}")
    missing = [name for name in sizes if name not in arrays]
    if missing:
        raise HandledError(
            f"{label}: input {missing[0]!r} is not in {option}; give all of {', '.join(sizes)}"
        )


def check_expected(label: str, model: onnx.ModelProto, arrays: Mapping[str, Array]) -> None:
    """Raise HandledError if an array is of no network output, of another shape, or holds no numbers."""
    outputs = {value.name: value.type.tensor_type for value in model.graph.output}
    for name, array in arrays.items():
        if name not in outputs:
            raise HandledError(f"{label}: has no output {name!r}; {did_you_mean(name, list(outputs))}")
        if outputs[name].HasField("shape"):
            _check_shape(label, name, outputs[name].shape, array)
        # An infinity may be meant: its place is not compared. Infinities alone would agree with anything.
        if array.dtype.kind == "f" and array.size and (np.isnan(array).any() or np.isinf(array).all()):
            raise HandledError(
                f"{label}: what is expected of output {name!r} holds NaN, or infinities alone; leave it out"
            )


def _check_shape(label: str, name: str, shape: onnx.TensorShapeProto, array: Array) -> None:
    """Raise HandledError unless an array fits a shape of which some extents may not be known."""
    known = [dim.dim_value if dim.HasField("dim_value") else "?" for dim in shape.dim]
    if len(known) != array.ndim or any(
        each not in ("?", extent) for each, extent in zip(known, array.shape, strict=True)
    ):
        raise HandledError(
            f"{label}: output {name!r} is {_sizes(known)} and what is expected has {_sizes(array.shape)}; "
            "give an array of that shape"
        )


def _sizes(extents: Iterable[object]) -> str:
    return "x".join(map(str, extents)) or "a scalar"


def _check_one(label: str, name: str, array: Array, size: tuple[str, tuple[int, ...]], option: str) -> None:
    dtype, shape = size
    if array.shape != shape:
        raise HandledError(
            f"{label}: input {name!r} is {_sizes(shape)} and {option} has {_sizes(array.shape)}; give that; "
            "--shapes is for dynamic ones"
        )
    if array.dtype != dtype_of(dtype):
        raise HandledError(
            f"{label}: input {name!r} is {dtype} and {option} has {array.dtype}; convert it with astype"
        )


def check_calibration(
    label: str, sizes: Sizes, arrays: Mapping[str, Array], option: str = "--calibration"
) -> dict[str, Array]:
    """Return batches by network input, the first axis of each; raises HandledError if they do not fit the inputs.

    An array of just its input's shape is one batch. `sizes` are type and shape of each network input.
    """
    _check_names(label, sizes, arrays, option)
    found = {name: _batches(f"{label}: {option}", name, arrays[name], *sizes[name]) for name in sizes}
    many = {name: len(batches) for name, batches in found.items()}
    if len(set(many.values())) > 1:
        told = ", ".join(f"{count} of {name!r}" for name, count in many.items())
        raise HandledError(f"{label}: {option} has {told}; give as many batches of each input")
    return found


def _batches(label: str, name: str, array: Array, dtype: str, shape: tuple[int, ...]) -> Array:
    batches = array[None] if array.shape == shape else array
    if batches.shape[1:] != shape or batches.ndim != len(shape) + 1 or not len(batches):
        own, given = _sizes(shape), _sizes(array.shape)
        if array.shape[1:] == shape:
            raise HandledError(f"{label} holds no batch of input {name!r}")
        raise HandledError(
            f"{label}: a batch of input {name!r} is {own} and not {given}; "
            f"give BATCHESx{own}, as reshape(-1, {', '.join(map(str, shape))}) makes it of samples"
        )
    if array.dtype != dtype_of(dtype):
        raise HandledError(
            f"{label}: input {name!r} is {dtype} and not {array.dtype}; convert it with astype"
        )
    return batches

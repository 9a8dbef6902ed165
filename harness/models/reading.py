"""Reads a model file, with the weights that lie beside it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError

from harness.bounded import LARGE, check_file
from harness.errors import HandledError
from harness.layers.operators import dequantises, quantises
from harness.run.numbers.wire import length_of
from harness.run.weights import Weights

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes of a model above which no reference is computed: the evaluator would take minutes and many times the memory.
MOST_EVALUATED = 512 << 20
#: Bytes of a tensor that is read with the model in any case, and of a file of weights.
_SMALL, _MOST = 64 << 10, 1 << 40


def read_model(file: Path, remedy: str) -> onnx.ModelProto:
    """Return a model with its weights, wherever they are stored; an agent is sent the model alone.

    Raises HandledError, ending with `remedy`, for a file that is missing, is no model, has no node, whose weights are
    missing, or that is larger than protobuf can hold with them.
    """
    try:
        check_file(file, LARGE)
        model = onnx.load(file, load_external_data=False)
        _refuse_large(file, model)
        onnx.load_external_data_for_model(model, str(file.parent))
    except DecodeError as error:
        raise HandledError(f"{file}: is no ONNX model ({error}); {remedy}") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HandledError(f"{file}: cannot be read ({reason}); {remedy}") from error
    if not model.graph.node:
        raise HandledError(f"{file}: has no node in its graph; {remedy}")
    return model


def read_beside(file: Path, remedy: str) -> tuple[onnx.ModelProto, Weights | None]:
    """Return a model, and its weights where they stay beside it, for they are more than anybody evaluates.

    The model then holds those alone that say how others are to be read: scales, and whatever is small. Raises as
    `read_model` does, and where a place of weights is no file in the model's folder, or ends before they do.
    """
    try:
        check_file(file, LARGE)
        model = onnx.load(file, load_external_data=False)
        beside = [each for each in model.graph.initializer if each.data_location == onnx.TensorProto.EXTERNAL]
        if sum(map(_length, beside)) <= MOST_EVALUATED:
            return read_model(file, remedy), None
        weights = _weights(file.parent.resolve(), beside)
        scaled = (node for node in model.graph.node if quantises(node.op_type) or dequantises(node.op_type))
        named = {name for node in scaled for name in node.input[1:]}
        for tensor in beside:
            if tensor.name in named or _length(tensor) <= _SMALL:
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(file.parent))
                tensor.data_location = onnx.TensorProto.DEFAULT
                del tensor.external_data[:]
    except DecodeError as error:
        raise HandledError(f"{file}: is no ONNX model ({error}); {remedy}") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HandledError(f"{file}: cannot be read ({reason}); {remedy}") from error
    if not model.graph.node:
        raise HandledError(f"{file}: has no node in its graph; {remedy}")
    return model, weights


def _weights(folder: Path, tensors: list[onnx.TensorProto]) -> Weights:
    """Return the files that tensors lie in; raises OSError for a place outside the folder, or one that is too short."""
    ends: dict[str, int] = {}
    for tensor in tensors:
        said = {entry.key: entry.value for entry in tensor.external_data}
        name = said.get("location", "")
        ends[name] = max(ends.get(name, 0), int(said.get("offset") or 0) + _length(tensor))
    for name, end in ends.items():
        path = (folder / name).resolve()
        if not name or not path.is_relative_to(folder):
            raise OSError(errno.EPERM, f"its weights are to lie at {name!r}, which is not beside it")
        check_file(path, _MOST)
        if path.stat().st_size < end:
            raise OSError(errno.EIO, f"{name} has {path.stat().st_size} bytes, and its weights take {end}")
    return Weights(folder, tuple(sorted(ends)), sum((folder / name).stat().st_size for name in ends))


def _length(tensor: onnx.TensorProto) -> int:
    """Return how many bytes a tensor takes, wherever they are."""
    return length_of(tensor.data_type, tensor.dims)


def _refuse_large(file: Path, model: onnx.ModelProto) -> None:
    """Raise HandledError where weights beside the model are more than fit into it, before they are read."""
    held = 0
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            said = {entry.key: entry.value for entry in tensor.external_data}
            place = file.parent / said.get("location", "")
            held += int(said["length"]) if "length" in said else place.stat().st_size
    if held > LARGE:
        raise HandledError(
            f"{file}: has {held / 2**30:.1f} GiB of weights, and a model with its weights may have 2; "
            "cut it into parts, or give a smaller one of the same layers"
        )

"""Reads a model file, with the weights that lie beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError

from harness.bounded import LARGE, check_file
from harness.errors import HandledError

if TYPE_CHECKING:
    from pathlib import Path


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

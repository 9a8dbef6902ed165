"""A folder of models with data in ONNX's own layout: NAME/model.onnx, NAME/test_data_set_0/input_0.pb, output_0.pb."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError

from harness.bounded import read_bytes
from harness.errors import HandledError
from harness.models.reading import read_model
from harness.models.suites.suite import Item, Suite, Value, item

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MODEL, _DATA = "model.onnx", "test_data_set_0"
_REMEDY = "mend or delete it"
_OTHER = re.compile(r"[^a-z0-9_.-]+")
_FILE = re.compile(r"(?:input|output)_\d+\.pb")


def suite(path: Path) -> Suite:
    """Return the suite of a folder; raises HandledError where there is no folder, or no model in it."""
    if not path.is_dir():
        raise HandledError(f"{path}: is no folder of models; give a suite's name or a folder")
    if not any(path.glob(f"*/{_MODEL}")):
        raise HandledError(
            f"{path}: holds no model; each is to be in a folder of its own, as in {path}/NAME/{_MODEL}"
        )
    name = _word(path.resolve().name)
    source = f"models of the folder {path.resolve().name}"
    return Suite(name, f"Models of {path.resolve().name}", source, functools.partial(_items, path))


def _items(path: Path) -> Iterator[Item]:
    """Yield an item for each model in the folder, by name, with its first set of data where it has one."""
    seen: dict[str, str] = {}
    for file in sorted(path.glob(f"*/{_MODEL}")):
        folder = file.parent
        name = _word(folder.name)
        if name in seen:
            raise HandledError(f"{folder}: is called {name} here, and so is {seen[name]}; rename one")
        seen[name] = folder.name
        graph = read_model(file, _REMEDY)
        inputs, outputs = (_values(folder / _DATA, kind) for kind in ("input", "output"))
        yield item(name, graph, inputs, outputs)


def _values(folder: Path, kind: str) -> list[Value]:
    """Return the tensors of a set of data in their order; of what is no tensor, None."""
    files = sorted(folder.glob(f"{kind}_*.pb"), key=_number)
    if [_number(file) for file in files] != list(range(len(files))):
        names = ", ".join(file.name for file in files)
        raise HandledError(f"{folder}: ONNX numbers them from 0: {names}; number them so")
    return [_tensor(file) for file in files]


def _number(file: Path) -> int:
    if not _FILE.fullmatch(file.name):
        raise HandledError(f"{file}: data is called input_0.pb or output_0.pb; rename it")
    return int(file.stem.rpartition("_")[2])


def _tensor(file: Path) -> Value:
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(read_bytes(file))
    except (OSError, DecodeError):
        return None
    try:
        onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise HandledError(f"{file}: is no tensor that can be read ({error}); mend or delete it") from error
    return tensor


def _word(name: str) -> str:
    """Return a name as an id has it: small letters, digits, "-", "_" and "."."""
    word = _OTHER.sub("-", name.lower()).lstrip("_.-")
    if not word:
        raise HandledError(f"{name!r}: has no letter or digit to be called by; rename it")
    return word

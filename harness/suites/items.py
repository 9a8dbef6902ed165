"""The models of a suite with their data: ONNX's node tests, or a folder in ONNX's own layout.

Such a folder holds NAME/model.onnx, NAME/test_data_set_0/input_0.pb, output_0.pb and so on.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from harness.bounded import read_bytes
from harness.case.model import fed_inputs
from harness.errors import HandledError
from harness.models.graphs import RANDOM
from harness.models.own.model import word
from harness.models.reading import opsets_used, read_model
from harness.run.numbers.wire import Array, is_carried
from harness.text import did_you_mean

#: The value of an input or output: an array, an ONNX tensor, or a value that no engine is fed (a list, None).
Value = object
#: Dropout drops values only if its third input says that a model is being trained.
_TRAINING = 2
#: Stands between the name of a node test and the opset of its expansion: "test_elu_expanded_ver18".
_EXPANDED = "_expanded"
_MODEL, _DATA = "model.onnx", "test_data_set_0"
_FILE = re.compile(r"(?:input|output)_\d+\.pb")


@dataclass(frozen=True)
class Item:
    """One model: `id` is a variant's name; `opset` is "17", or "ai.onnx.ml 3" in another domain than ONNX's own.

    `unfed` says why there are no inputs, and `uncompared` why no outputs are expected; both are empty otherwise.
    """

    id: str
    operator: str
    opset: str
    model: bytes = field(repr=False)
    inputs: Mapping[str, Array] = field(default_factory=dict, repr=False)
    expected: Mapping[str, Array] = field(default_factory=dict, repr=False)
    unfed: str = ""
    uncompared: str = ""


@dataclass(frozen=True)
class Suite:
    """A collection of models.

    `items` makes all of them anew at every call; it raises HandledError for one that cannot be made.
    """

    name: str
    title: str
    items: Callable[[], Iterator[Item]] = field(repr=False)


def find_suite(name: str) -> Suite:
    """Return a suite by its name, or the one in a folder; raises HandledError if there is neither."""
    if name == ONNX_NODE.name:
        return ONNX_NODE
    if "/" in name or Path(name).is_dir():
        return folder_suite(Path(name))
    raise HandledError(f"no suite {name!r}, and no folder; {did_you_mean(name, [ONNX_NODE.name])}")


def folder_suite(path: Path) -> Suite:
    """Return the suite of a folder; raises HandledError without a folder, or a model in it."""
    if not path.is_dir():
        raise HandledError(f"{path}: is no folder of models; give a suite's name or a folder")
    if not any(path.glob(f"*/{_MODEL}")):
        raise HandledError(
            f"{path}: holds no model; each is to be in a folder of its own, as in {path}/NAME/{_MODEL}"
        )
    if word(path.resolve().name) == ONNX_NODE.name:
        raise HandledError(f"{path}: is called as ONNX's own suite is; rename the folder")
    name = path.resolve().name
    return Suite(word(name), f"Models of {name}", functools.partial(_in_folder, path))


def _in_folder(path: Path) -> Iterator[Item]:
    """Yield an item for each model in the folder, by name, with its first set of data if it has one."""
    seen: dict[str, str] = {}
    for file in sorted(path.glob(f"*/{_MODEL}")):
        folder = file.parent
        name = word(folder.name)
        if name in seen:
            raise HandledError(f"{folder}: is called {name} here, and so is {seen[name]}; rename one")
        seen[name] = folder.name
        graph = read_model(file, "mend or delete it")
        inputs, outputs = (_values(folder / _DATA, kind) for kind in ("input", "output"))
        yield item(name, graph, inputs, outputs)


def _values(folder: Path, kind: str) -> list[Value]:
    """Return the tensors of a set of data in their order, None for a file without one."""
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
        numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise HandledError(f"{file}: is no tensor that can be read ({error}); mend or delete it") from error
    return tensor


def _node_tests() -> Iterator[Item]:
    """Yield a model a test; the expansion of an operator's function counts as that operator."""
    with warnings.catch_warnings():
        # The expected outputs are computed here, overflows and all.
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    models = {test.name: test.model for test in tests if test.model is not None}
    for test in tests:
        if test.model is not None and test.data_sets:
            inputs, outputs = test.data_sets[0]
            operator = _operator(models[test.name.partition(_EXPANDED)[0]])
            yield item(test.name.removeprefix("test_").lower(), test.model, inputs, outputs, operator)


ONNX_NODE = Suite("onnx-node", "Every ONNX operator", _node_tests)


def _operator(model: onnx.ModelProto) -> str:
    """Return the operator of a model, "graph" if it has several."""
    operators = {(node.domain, node.op_type) for node in model.graph.node}
    return operators.pop()[1] if len(operators) == 1 else "graph"


def item(
    name: str,
    model: onnx.ModelProto,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    operator: str = "",
) -> Item:
    """Return an item of a model's data, in the order of the graph's inputs and outputs.

    `operator` is by default that of its nodes.
    """
    unfed, fed = _named([value.name for value in fed_inputs(model)], inputs, "input", "it is not fed")
    names = [value.name for value in model.graph.output]
    uncompared, expected = _named(names, outputs, "output", "nothing of it is compared")
    if drawn := sorted({node.op_type for node in model.graph.node if _is_random(node)}):
        uncompared, expected = (
            f"{', '.join(drawn)} draws at random, so that no numbers are to be expected",
            {},
        )
    return Item(
        id=name,
        operator=operator or _operator(model),
        opset=opsets_used(model),
        model=model.SerializeToString(deterministic=True),
        inputs={} if unfed else fed,
        expected=expected,
        unfed=unfed,
        # Those of several outputs that can be compared are.
        uncompared="" if expected else uncompared,
    )


def _named(names: Sequence[str], values: Sequence[Value], kind: str, so: str) -> tuple[str, dict[str, Array]]:
    """Return those values that the wire carries by name, and why it is not all of them."""
    if len(names) != len(values):
        return f"the graph has {len(names)} {kind}s and its data {len(values)}, so that {so}", {}
    arrays = {name: _array(value) for name, value in zip(names, values, strict=True)}
    odd = [name for name, array in arrays.items() if array is None]
    kept = {name: array for name, array in arrays.items() if array is not None}
    return f"{kind} {odd[0]!r} is no tensor of numbers, so that {so}" if odd else "", kept


def _array(value: Value) -> Array | None:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    return np.asarray(value) if is_carried(value) else None


def _is_random(node: onnx.NodeProto) -> bool:
    trained = node.op_type == "Dropout" and any(node.input[_TRAINING:])
    return node.op_type in RANDOM or trained

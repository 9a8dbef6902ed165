"""What a suite is: models, each with its operator, its inputs and what it is to give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from harness.case.inputs import fed_inputs
from harness.run.numbers import Array
from harness.run.numbers.wire import is_carried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

#: What an input or output may come as: an array, ONNX's own tensor, or what no engine is fed (a list, None).
Value = object
#: Operators whose outputs are drawn at random: no two engines agree on them, nor are they to.
_RANDOM = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip
#: Dropout drops nothing unless its third input says that a model is being trained.
_TRAINING = 2


@dataclass(frozen=True)
class Item:
    """One model: `id` is a variant's name; `opset` is "17", or "ai.onnx.ml 3" in another domain than ONNX's own.

    `unfed` says why there are no inputs, and `uncompared` why there is nothing expected; both are empty otherwise.
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
    """A collection of models: `source` says in words where they are from, `link` on the web, if anywhere.

    `items` makes them, all of them anew at every call; it raises HandledError for one that cannot be made.
    """

    name: str
    title: str
    source: str
    items: Callable[[], Iterator[Item]] = field(repr=False)
    link: str = ""


def item(
    name: str,
    model: onnx.ModelProto,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    place: tuple[str, str] | None = None,
) -> Item:
    """Return an item of a model's data, in the order of the graph's inputs and outputs.

    Operator and opset, `place`, are those that the model itself is about unless given.
    """
    unfed, fed = _named([value.name for value in fed_inputs(model)], inputs, "input", "it is not fed")
    uncompared, expected = _named(
        [value.name for value in model.graph.output], outputs, "output", "nothing of it is compared"
    )
    drawn = sorted({node.op_type for node in model.graph.node if _is_random(node)})
    if drawn:
        uncompared = f"{', '.join(drawn)} draws at random, so that no numbers are to be expected"
    operator, opset = place or describe(model)
    return Item(
        id=name,
        operator=operator,
        opset=opset,
        model=model.SerializeToString(deterministic=True),
        inputs={} if unfed else fed,
        expected={} if drawn else expected,
        unfed=unfed,
        # Of several outputs those that can be are compared.
        uncompared=uncompared if drawn or not expected else "",
    )


def describe(model: onnx.ModelProto) -> tuple[str, str]:
    """Return the operator and the opset that a model is about; "graph" and ONNX's own opset where it has several."""
    operators = {(node.domain, node.op_type) for node in model.graph.node}
    domain, operator = operators.pop() if len(operators) == 1 else ("", "graph")
    domain = "" if domain == "ai.onnx" else domain
    versions = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}
    version = versions.get(domain)
    return operator, " ".join(filter(None, (domain, "?" if version is None else str(version))))


def _named(names: Sequence[str], values: Sequence[Value], what: str, so: str) -> tuple[str, dict[str, Array]]:
    """Return those values that the wire carries by name, and why it is not all of them."""
    if len(names) != len(values):
        return f"the graph has {len(names)} {what}s and its data {len(values)}, so that {so}", {}
    arrays = {name: _array(value) for name, value in zip(names, values, strict=True)}
    odd = [name for name, array in arrays.items() if array is None]
    kept = {name: array for name, array in arrays.items() if array is not None}
    return f"{what} {odd[0]!r} is no tensor of numbers, so that {so}" if odd else "", kept


def _array(value: Value) -> Array | None:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    return np.asarray(value) if is_carried(value) else None


def _is_random(node: onnx.NodeProto) -> bool:
    trained = node.op_type == "Dropout" and any(node.input[_TRAINING:])
    return node.op_type in _RANDOM or trained

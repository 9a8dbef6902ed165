"""Makes models simpler: smaller shapes, no descriptions; pure functions of the model.

An edit is a function from a model to another one, or None if it does not apply any more; the boldest come first.
Its result may be invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import onnx
from onnx import numpy_helper

from harness.case.graph_reader import STANDARD, inferred, is_stored
from harness.case.model import fed_inputs
from harness.models.graphs import copied

Edit = Callable[[onnx.ModelProto], "onnx.ModelProto | None"]
#: Operators whose weights' extents neither checker nor inference looks at.
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})


def resizes(model: onnx.ModelProto) -> Iterator[Edit]:
    """Yield ways to shrink a model's extents: by place first, then by number, each to the least size first."""
    places = {
        (axis, int(dim.dim_value))
        for value in fed_inputs(model)
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
    }
    numbers = {extent for _, extent in places}
    numbers |= {int(each) for tensor in model.graph.initializer for each in tensor.dims}
    ways = [*sorted(places, reverse=True), *((None, each) for each in sorted(numbers, reverse=True))]
    for axis, extent in ways:
        for power in range((extent - 1).bit_length() if extent > 1 else 0):
            yield partial(resized, old=extent, new=2**power, axis=axis)


def resized(model: onnx.ModelProto, old: int, new: int, axis: int | None) -> onnx.ModelProto | None:
    """Return a model with other extents on one axis of its inputs, or, for None, on any axis of inputs and weights."""
    made, changed = copied(model), False
    for value in fed_inputs(made):
        for at, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value == old and axis in (None, at):
                dim.dim_value, changed = new, True
    if axis is None and _RECURRENT.isdisjoint(node.op_type for node in made.graph.node):
        for tensor in made.graph.initializer:
            if old in tensor.dims and is_stored(tensor):
                kept = tuple(slice(new if extent == old else extent) for extent in tensor.dims)
                array = numpy_helper.to_array(tensor)[kept].copy()
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
                changed = True
    return restated(made) if changed else None


def restated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose outputs have the shapes that inference gives them, and no other tensor any."""
    made = copied(model)
    if all(node.domain in STANDARD for node in made.graph.node):
        del made.graph.value_info[:]
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    found = {value.name: value for value in inferred(made, data_prop=True).output}
    for value, before in zip(made.graph.output, model.graph.output, strict=True):
        value.CopyFrom(found[value.name])
        if not value.type.tensor_type.HasField("shape"):
            # A network's output has a rank; its extents are unknown now.
            for _ in before.type.tensor_type.shape.dim:
                value.type.tensor_type.shape.dim.add()
            value.type.tensor_type.shape.SetInParent()
    return made


def undecorated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without descriptions and metadata."""
    made = copied(model)
    named = (made.graph.node, made.graph.initializer, made.graph.input, made.graph.output)
    for part in (made, made.graph, *(each for group in named for each in group)):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    return made

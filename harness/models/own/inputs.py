"""Makes up inputs of a user's model: whole numbers that name places of a tensor stay within it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx

from harness.case import Profile
from harness.case.graph_reader import Extents, GraphReader, attribute, inferred, name_at
from harness.models.graphs import with_shapes
from harness.run.numbers.inputs import make_inputs
from harness.run.numbers.wire import Array

#: Operators that hand the values of their first input on.
_CARRYING = frozenset(
    "Cast Concat Expand Flatten Gather Identity Reshape Slice Split Squeeze Tile Transpose Unsqueeze".split()  # noqa: SIM905
)
_ALONG_AXIS = frozenset({"Gather", "GatherElements", "Scatter", "ScatterElements"})


def made_up(model: onnx.ModelProto, profiles: Sequence[Profile]) -> dict[str, Array]:
    """Return made-up inputs; those that name rows or places of a tensor, as token types do, name some that it has.

    Raises as `make_inputs` does.
    """
    inputs = make_inputs(model, profiles, beside=True)
    if not any(array.dtype.kind in "iu" for array in inputs.values()):
        return inputs
    most = _most(with_shapes(model, {name: array.shape for name, array in inputs.items()}), inputs)
    return {name: _below(most.get(name, 0), array) for name, array in inputs.items()}


def _most(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Return by input the number of places that its values may name."""
    reader = GraphReader(inferred(model, data_prop=True))
    came_from = {name: {name} for name, array in inputs.items() if array.dtype.kind in "iu"}
    most: dict[str, int] = {}
    for node in reader.nodes:
        for tensor, many in _named(node, reader.shapes):
            for name in came_from.get(tensor, ()):
                most[name] = min(many, most.get(name, many))
        if node.op_type in _CARRYING:
            read = node.input if node.op_type == "Concat" else node.input[:1]
            held = set().union(*(came_from.get(name, set()) for name in read))
            came_from |= {name: held for name in node.output if held}
    return most


def _named(node: onnx.NodeProto, shapes: Mapping[str, Extents]) -> Iterator[tuple[str, int]]:
    """Yield the tensor that names places of another one, and how many there are."""
    data, indices = shapes.get(name_at(node.input, 0)) or (), name_at(node.input, 1)
    axes: Extents = ()
    if node.op_type in _ALONG_AXIS:
        # The data may lack the axis: that fault is the engine's to tell.
        axes = data[attribute(node, "axis", 0) :][:1]
    elif node.op_type in ("GatherND", "ScatterND"):
        many, first = (shapes.get(indices) or (0,))[-1], attribute(node, "batch_dims", 0)
        axes = data[first:][:many] if isinstance(many, int) else ()
    known = [each for each in axes if isinstance(each, int) and each > 0]
    if known:
        yield indices, min(known)


def _below(most: int, array: Array) -> Array:
    """Return whole numbers made less than `most`, if their type has that many."""
    fits = most and array.dtype.kind in "iu" and most <= np.iinfo(array.dtype).max
    return array % np.asarray(most, array.dtype) if fits else array

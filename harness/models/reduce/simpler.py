"""Makes models simpler: smaller shapes, fewer outputs, nodes bypassed; pure functions of the model.

An edit is a function from a model to another one, or None where it does not apply any more; the boldest come first.
Its result may be invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple

import onnx
from onnx import TensorProto, numpy_helper

from harness.case.model import fed_inputs
from harness.layers.asked import inferred
from harness.models.graphs import (
    STANDARD,
    Cutter,
    assembled,
    copied,
    has_subgraph,
    is_stored,
    reads,
    static_shape,
)

#: Attributes that hold an extent or a number of parts.
_EXTENTS = (
    *(
        "group",
        "kernel_shape",
        "output_shape",
        "split",
        "num_outputs",
        "num_groups",
        "blocksize",
        "block_size",
    ),
    *("num_heads", "q_num_heads", "kv_num_heads", "hidden_size"),
)
#: Types that NumPy lacks, or that are no numbers.
_ODD = frozenset(
    number
    for name, number in TensorProto.DataType.items()
    if name in ("UNDEFINED", "STRING", "BFLOAT16")
    or "FLOAT8" in name
    or "FLOAT4" in name
    or "INT4" in name
    or "INT2" in name
    or "COMPLEX" in name
)

Edit = Callable[[onnx.ModelProto], "onnx.ModelProto | None"]


class Resize(NamedTuple):
    """Extents of `old` become `new`: those of inputs alone, of weights too, or of whatever holds that number.

    `axis` is the one axis of inputs that is meant, None for any.
    """

    old: int
    new: int
    scope: Literal["inputs", "weights", "attributes"]
    axis: int | None = None


def resizes(model: onnx.ModelProto) -> Iterator[Edit]:
    """Yield ways to shrink a model's extents: by place first, then by number, each to the least size first."""
    fed = fed_inputs(model)
    places = sorted({(axis, extent) for value in fed for axis, extent in _static(value) if extent > 1})
    for axis, extent in sorted(places, reverse=True):
        for new in _sizes(extent):
            yield partial(resized, how=Resize(extent, new, "inputs", axis))
    numbers = {extent for _, extent in places}
    numbers |= {int(each) for tensor in model.graph.initializer for each in tensor.dims if each > 1}
    for extent in sorted(numbers, reverse=True):
        for new in _sizes(extent):
            for scope in ("inputs", "weights", "attributes"):
                yield partial(resized, how=Resize(extent, new, scope))


def resized(model: onnx.ModelProto, how: Resize) -> onnx.ModelProto | None:
    """Return a model with other extents, None where nothing in it has the old one."""
    made, changed = copied(model), False
    for value in fed_inputs(made):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value == how.old and how.axis in (None, axis):
                dim.dim_value, changed = how.new, True
    if how.scope != "inputs":
        changed |= _each(_trimmed, made.graph.initializer, how)
    if how.scope == "attributes":
        changed |= _each(_renumbered, [item for node in made.graph.node for item in node.attribute], how)
        changed |= _each(_revalued, made.graph.initializer, how)
    return restated(made) if changed and _is_sound(made.graph) else None


#: Rows of gates in the weights of an operator that recurs.
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _is_sound(graph: onnx.GraphProto) -> bool:
    """Tell whether the weights of LSTM, GRU and RNN belong together, at which neither checker nor inference looks."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    waiting = list(graph.node)
    while waiting:
        node = waiting.pop()
        if node.op_type in _GATES and not _fit(node, shapes):
            return False
        waiting += [inner for item in node.attribute for inner in item.g.node]
    return True


def _fit(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    weights, recurrence = (shapes.get(name) for name in node.input[1:3])
    if weights is None or recurrence is None or len(weights) != 3 or len(recurrence) != 3:  # noqa: PLR2004
        return True
    hidden = next((int(item.i) for item in node.attribute if item.name == "hidden_size"), recurrence[2])
    rows = _GATES[node.op_type] * hidden
    return recurrence[1:] == (rows, hidden) and weights[:2] == (recurrence[0], rows)


def _each(change: Callable[..., bool], parts: Iterable[object], how: Resize) -> bool:
    """Change each part; tell whether one did change."""
    return True in [change(part, how.old, how.new) for part in parts]


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
            # A network's output has a rank; what its extents are now is not known.
            for _ in before.type.tensor_type.shape.dim:
                value.type.tensor_type.shape.dim.add()
            value.type.tensor_type.shape.SetInParent()
    return made


def undecorated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without descriptions, metadata and domains that none of its nodes is of."""
    made, graph = copied(model), model.graph
    named = (made.graph.node, made.graph.initializer, made.graph.input, made.graph.output)
    for part in (made, made.graph, *(each for group in named for each in group)):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    used = {node.domain for node in graph.node} | {""}
    if not made.functions and not any(map(has_subgraph, graph.node)):
        kept = [each for each in made.opset_import if each.domain in used]
        del made.opset_import[:]
        made.opset_import.extend(kept)
    return made


def fewer_outputs(model: onnx.ModelProto) -> Iterator[Edit]:
    """Yield ways to leave out one output of the model, where the node that makes it is of use without it."""
    for value in reversed(model.graph.output):
        yield partial(_without_output, name=value.name)


def _without_output(model: onnx.ModelProto, name: str) -> onnx.ModelProto | None:
    made = copied(model)
    others = {each for node in made.graph.node for each in reads(node)}
    others |= {value.name for value in made.graph.output if value.name != name}
    maker = next((set(node.output) for node in made.graph.node if name in node.output), set())
    if maker.isdisjoint(others):
        return None
    index = [value.name for value in made.graph.output].index(name)
    del made.graph.output[index]
    return made


def _static(value: onnx.ValueInfoProto) -> Iterator[tuple[int, int]]:
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if dim.HasField("dim_value"):
            yield axis, int(dim.dim_value)


def _sizes(extent: int) -> Iterator[int]:
    size = 1
    while size < extent:
        yield size
        size *= 2


def _trimmed(tensor: onnx.TensorProto, old: int, new: int) -> bool:
    """Cut a tensor's axes of one extent down to another; tell whether it has one."""
    if old not in tensor.dims or not _plain(tensor):
        return False
    array = numpy_helper.to_array(tensor)
    where = tuple(slice(new if extent == old else extent) for extent in array.shape)
    tensor.CopyFrom(numpy_helper.from_array(array[where].copy(), tensor.name))
    return True


def _renumbered(item: onnx.AttributeProto, old: int, new: int) -> bool:
    if item.type == onnx.AttributeProto.INT and item.i == old and item.name in _EXTENTS:
        item.i = new
        return True
    if item.type == onnx.AttributeProto.INTS and old in item.ints and item.name in _EXTENTS:
        item.ints[:] = [new if each == old else each for each in item.ints]
        return True
    return False


def _revalued(tensor: onnx.TensorProto, old: int, new: int) -> bool:
    """Put another number into a shape that is given as a constant."""
    if tensor.data_type != TensorProto.INT64 or len(tensor.dims) != 1 or not is_stored(tensor):
        return False
    array = numpy_helper.to_array(tensor)
    if old not in array:
        return False
    array = array.copy()
    array[array == old] = new
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return True


def _plain(tensor: onnx.TensorProto) -> bool:
    """Tell whether a tensor is in the model, and of a type that NumPy itself has."""
    return tensor.data_type not in _ODD and is_stored(tensor)


def bypassed(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """Yield the model without a node, or two in a row, their output replaced by their input.

    A candidate for each such place where type and shape are the same before and after.
    """
    cutter = Cutter(model)
    for index, node in enumerate(cutter.nodes):
        for output in filter(None, node.output):
            for name in _upstream(cutter, index):
                before = cutter.types.get(name)
                if before is not None and _same(before, cutter.types.get(output)):
                    found = _without(model, index, output, before)
                    if found is not None:
                        yield found


def _upstream(cutter: Cutter, index: int) -> Iterator[str]:
    """Yield the inputs of the nodes before a node, then its own."""
    near = list(filter(None, cutter.nodes[index].input))
    for other in sorted(cutter.neighbours[index]):
        if set(cutter.nodes[other].output) & set(near):
            yield from filter(None, cutter.nodes[other].input)
    yield from near


def _without(
    model: onnx.ModelProto, index: int, output: str, before: onnx.ValueInfoProto
) -> onnx.ModelProto | None:
    """Return the model without a node, `before` read in place of its output; None where a subgraph reads that."""
    nodes = list(copied(model).graph.node)
    del nodes[index]
    readers = [node for node in nodes if output in reads(node)]
    if any(output not in node.input for node in readers):
        return None
    for node in readers:
        node.input[:] = [before.name if each == output else each for each in node.input]
    outputs = [value for value in model.graph.output if value.name not in (output, before.name)]
    if len(outputs) < len(model.graph.output) and any(before.name in node.output for node in nodes):
        # The input is now the output of the model.
        outputs.append(before)
    return assembled(model, nodes, model.graph.input, outputs)


def _same(one: onnx.ValueInfoProto, other: onnx.ValueInfoProto | None) -> bool:
    """Tell whether two tensors have the same type and the same static shape."""
    shapes = static_shape(one), static_shape(other)
    kinds = {value.type.tensor_type.elem_type for value in (one, other) if value is not None}
    return shapes[0] == shapes[1] is not None and len(kinds) == 1 and 0 not in kinds

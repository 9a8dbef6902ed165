"""Simpler models of the same nodes: smaller shapes, fewer attributes, duller weights; pure functions of the model.

What is yielded are edits, the boldest first: functions from a model to another one, or None where they do not apply
any more. Nobody says that what comes of one is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from harness.case.inputs import fed_inputs
from harness.models.tensors import inferred, is_stored, reads

#: Axes, shapes and the like: of these a changed value is another operation.
_WHOLE = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING})
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
#: What NumPy does not hold as the model does, or what are no numbers.
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
    made, changed = _copy(model), False
    for value in fed_inputs(made):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value == how.old and how.axis in (None, axis):
                dim.dim_value, changed = how.new, True
    if how.scope != "inputs":
        changed |= _each(_trimmed, made.graph.initializer, how)
    if how.scope == "attributes":
        changed |= _each(_renumbered, [item for node in made.graph.node for item in node.attribute], how)
        changed |= _each(_revalued, made.graph.initializer, how)
    return restated(made) if changed else None


def _each(change: Callable[..., bool], parts: Iterable[object], how: Resize) -> bool:
    """Change each part; tell whether one did change."""
    return True in [change(part, how.old, how.new) for part in parts]


def restated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose outputs have the shapes that inference gives them, and no other tensor any."""
    made = _copy(model)
    if all(node.domain in ("", "ai.onnx") for node in made.graph.node):
        del made.graph.value_info[:]
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    found = {value.name: value for value in inferred(made).graph.output}
    for value, before in zip(made.graph.output, model.graph.output, strict=True):
        value.CopyFrom(found[value.name])
        if not value.type.tensor_type.HasField("shape"):
            # A network's output has a rank; what its extents are now is not known.
            for _ in before.type.tensor_type.shape.dim:
                value.type.tensor_type.shape.dim.add()
            value.type.tensor_type.shape.SetInParent()
    return made


def undecorated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without what is only said of it: descriptions, metadata, domains that nothing is of."""
    made, graph = _copy(model), model.graph
    named = (made.graph.node, made.graph.initializer, made.graph.input, made.graph.output)
    for part in (made, made.graph, *(each for group in named for each in group)):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    used = {node.domain for node in graph.node} | {""}
    if not made.functions and not any(map(_has_subgraph, graph.node)):
        kept = [each for each in made.opset_import if each.domain in used]
        del made.opset_import[:]
        made.opset_import.extend(kept)
    return made


def _has_subgraph(node: onnx.NodeProto) -> bool:
    return any(item.HasField("g") or item.graphs for item in node.attribute)


def fewer_outputs(model: onnx.ModelProto) -> Iterator[Edit]:
    """Yield ways to leave out one output of the model, where the node that makes it is of use without it."""
    for value in reversed(model.graph.output):
        yield partial(_without_output, name=value.name)


def fewer_attributes(model: onnx.ModelProto) -> Iterator[Edit]:
    """Yield ways to leave out one attribute, or the last input, of one node."""
    for number, node in enumerate(model.graph.node):
        # The last first: what is left out moves none that is tried after it.
        for index in reversed(range(len(node.attribute))):
            yield partial(_without_attribute, number=number, index=index)
        if len(node.input) > 1:
            yield partial(_without_input, number=number)


def duller(model: onnx.ModelProto) -> Iterator[Edit]:
    """Yield ways to make weights alike, ones or else zeros: first of all at once, then of each that is not yet."""
    chosen = [tensor.name for tensor in model.graph.initializer if _varies(tensor)]
    for names in (chosen, *([name] for name in chosen)):
        for number in (1, 0):
            yield partial(_filled, names=names, number=number)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def _without_output(model: onnx.ModelProto, name: str) -> onnx.ModelProto | None:
    made = _copy(model)
    others = {each for node in made.graph.node for each in reads(node)}
    others |= {value.name for value in made.graph.output if value.name != name}
    maker = next((set(node.output) for node in made.graph.node if name in node.output), set())
    if maker.isdisjoint(others):
        return None
    index = [value.name for value in made.graph.output].index(name)
    del made.graph.output[index]
    return made


def _without_attribute(model: onnx.ModelProto, number: int, index: int) -> onnx.ModelProto:
    made = _copy(model)
    del made.graph.node[number].attribute[index]
    return restated(_tidied(made))


def _without_input(model: onnx.ModelProto, number: int) -> onnx.ModelProto:
    made = _copy(model)
    made.graph.node[number].input.pop()
    return restated(_tidied(made))


def _tidied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Take out constants and network inputs that no node takes."""
    used = {name for node in model.graph.node for name in reads(node)}
    used |= {value.name for value in model.graph.output}
    for values in (model.graph.initializer, model.graph.input):
        for index in reversed(range(len(values))):
            if values[index].name not in used:
                del values[index]
    return model


def _varies(tensor: onnx.TensorProto) -> bool:
    """Tell whether a tensor holds weights that are not all alike: axes and shapes are no weights."""
    if tensor.data_type in _WHOLE or not _plain(tensor):
        return False
    array = numpy_helper.to_array(tensor)
    return bool(array.size > 1 and (array != array.flat[0]).any())


def _filled(model: onnx.ModelProto, names: Sequence[str], number: int) -> onnx.ModelProto | None:
    made = _copy(model)
    chosen = [each for each in made.graph.initializer if each.name in names and _varies(each)]
    for tensor in chosen:
        array = np.full_like(numpy_helper.to_array(tensor), number)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return made if chosen else None


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

"""Makes up sizes for dynamic axes that the user gives none: batch 1, sequences 16, height and width 64 or what fits."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

import onnx
from onnx import helper

from harness.case.inputs import fed_inputs
from harness.models.tensors import constants_of, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Extents = tuple[int | str | None, ...]
    Shape = tuple[int, ...]

#: Sizes of a height or a width, in the order that they are tried: what networks halve five times.
_SPATIAL = (64, 32, *range(96, 641, 32))
#: Bytes above which a weight is not worth a copy: it decides no shape.
_LARGE = 4096
#: Ranks of images and volumes, with batch and channels.
_IMAGES = (4, 5)
#: Channels of an image that come last, at most.
_COLOURS = 4
_NAMED = (
    (re.compile(r"batch|^[nb]$|^bs$", re.IGNORECASE), "BATCH"),
    (re.compile(r"seq|time|len|token|frame|past|^[tl]$", re.IGNORECASE), "SEQUENCE"),
    (re.compile(r"height|width|^[hwd]$|^(img|image)_?[hw]$", re.IGNORECASE), "SPATIAL"),
)


class _Axis(IntEnum):
    """What an axis counts; of axes that share a name the largest decides."""

    BATCH = 1
    CHANNELS = 3
    SEQUENCE = 16
    SPATIAL = 64


def made_up_shapes(model: onnx.ModelProto, given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return a shape for each input with dynamic axes that is not `given`; axes of one name have one size.

    A height and a width have the first size in which shape inference finds no fault, 64 where it finds some in all.
    """
    declared = {value.name: extents(value) for value in fed_inputs(model)}
    kinds, known = _kinds(declared.values()), _sizes_of_names(declared, given)
    wanted = {name: own for name, own in declared.items() if name not in given and not _is_static(own)}

    def shapes(spatial: int) -> dict[str, Shape]:
        return {name: tuple(_sizes(own, kinds, known, spatial)) for name, own in wanted.items()}

    first = shapes(_SPATIAL[0])
    light = _without_weights(model)
    if first == shapes(_SPATIAL[1]) or not _fits(light, given):
        return first
    found = (each for each in map(shapes, _SPATIAL) if _fits(light, {**each, **given}))
    return next(found, first)


def extents(value: onnx.ValueInfoProto) -> Extents:
    """Return the size of each axis of an input: a number, or the name or None of a dynamic one."""
    return tuple(
        int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None
        for dim in value.type.tensor_type.shape.dim
    )


def _is_static(own: Extents) -> bool:
    return all(isinstance(each, int) for each in own)


def _sizes_of_names(declared: Mapping[str, Extents], given: Mapping[str, Shape]) -> dict[str, int]:
    """Return the sizes of named axes by the shapes that are given."""
    pairs = (zip(declared[name], shape, strict=False) for name, shape in given.items())
    return {own: size for each in pairs for own, size in each if isinstance(own, str)}


def _kinds(declared: Iterable[Extents]) -> dict[str, _Axis]:
    found: dict[str, _Axis] = {}
    for own in declared:
        for index, name in enumerate(own):
            if isinstance(name, str):
                found[name] = max(found.get(name, _Axis.BATCH), _kind(own, index))
    return found


def _kind(own: Extents, index: int) -> _Axis:
    """Return what an axis counts by its name, else by its place."""
    name = own[index]
    for pattern, kind in _NAMED if isinstance(name, str) else ():
        if pattern.search(str(name)):
            return _Axis[kind]
    if index == 0 and len(own) > 1:
        return _Axis.BATCH
    if len(own) not in _IMAGES:
        return _Axis.SEQUENCE
    last = own[-1]
    channels = len(own) - 1 if isinstance(last, int) and last <= _COLOURS else 1
    return _Axis.CHANNELS if index == channels else _Axis.SPATIAL


def _sizes(own: Extents, kinds: Mapping[str, _Axis], known: Mapping[str, int], spatial: int) -> Iterator[int]:
    for index, each in enumerate(own):
        if isinstance(each, int):
            yield each
        elif each is not None and each in known:
            yield known[each]
        else:
            kind = kinds[each] if each else _kind(own, index)
            yield spatial if kind is _Axis.SPATIAL else int(kind)


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose large weights are inputs: enough to infer shapes, at the cost of its nodes."""
    graph, made = model.graph, onnx.ModelProto(ir_version=model.ir_version)
    made.opset_import.extend(model.opset_import)
    made.functions.extend(model.functions)
    made.graph.name = graph.name
    made.graph.node.extend(graph.node)
    made.graph.output.extend(graph.output)
    weights = {each.name for each in graph.initializer}
    made.graph.input.extend(each for each in graph.input if each.name not in weights)
    for each in graph.initializer:
        if each.ByteSize() <= _LARGE and each.data_location != onnx.TensorProto.EXTERNAL:
            made.graph.initializer.append(each)
        else:
            made.graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, each.dims))
    return made


def _fits(light: onnx.ModelProto, shapes: Mapping[str, Shape]) -> bool:
    """Tell whether shape inference finds no fault in a model whose inputs have these shapes."""
    model = onnx.ModelProto()
    model.CopyFrom(light)
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            dim.dim_value = size
    try:
        graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    except Exception:  # noqa: BLE001  (of a large, invalid or unknown model it raises anything)
        return False
    known = {name: extents(value) for name, value in values_of(graph).items()}
    known |= {each.name: tuple(each.dims) for each in graph.initializer}
    computed = known.keys() - constants_of(graph)
    if any(isinstance(each, int) and each < 1 for name in computed for each in known[name]):
        return False
    return all(_multiplies(node, known) for node in graph.node if node.op_type == "Gemm")


def _multiplies(node: onnx.NodeProto, known: Mapping[str, Extents]) -> bool:
    """Tell whether a Gemm's matrices can be multiplied, which ONNX's inference does not look at."""
    turned = {each.name: each.i for each in node.attribute if each.name in {"transA", "transB"}}
    left, right = (known.get(name, ()) for name in node.input[:2])
    if len(left) != 2 or len(right) != 2:  # noqa: PLR2004
        return True
    pair = left[0 if turned.get("transA") else 1], right[1 if turned.get("transB") else 0]
    return pair[0] == pair[1] or not _is_static(pair)

"""Rewrites of nodes in a form that engines refuse, into others of the same numbers; models of an older opset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from harness.case.graph_reader import STANDARD, Extents, GraphReader, attribute, inferred, name_at
from harness.models.rewrites.editor import Editor, drop_attributes, edits, rewrite
from harness.run.numbers.wire import Array

#: The first opsets in which Squeeze takes its axes, and Clip its bounds, as inputs.
_AXES_AS_INPUT, _BOUNDS_AS_INPUT = 13, 11
#: The last opset in which all of Reduce but ReduceSum have their axes as an attribute.
_AXES_AS_ATTRIBUTE = 17
_FLOATS: Mapping[int, type[np.floating[Any]]] = {
    onnx.TensorProto.FLOAT: np.float32,
    onnx.TensorProto.FLOAT16: np.float16,
}


@rewrite
def name_axes(model: onnx.ModelProto, _: Collection[str] = ()) -> onnx.ModelProto | None:
    """Return a model whose Squeezes name their axes: those of size 1; an axis of unknown size stays."""
    shapes, editor = GraphReader(inferred(model)).shapes, Editor(model)
    for node in editor.of("Squeeze"):
        extents = shapes.get(node.input[0])
        named = attribute(node, "axes") is not None or name_at(node.input, 1)
        if named or extents is None or all(isinstance(each, int) for each in extents):
            continue
        axes = [at for at, each in enumerate(extents) if each == 1]
        if editor.opset < _AXES_AS_INPUT:
            node.attribute.append(helper.make_attribute("axes", axes))
            editor.changed = True
        else:
            del node.input[1:]
            node.input.append("")
            editor.read(node, 1, editor.constant(f"{node.output[0]}/axes", np.array(axes, np.int64)))
    return editor.done()


@edits
def finite_clip(editor: Editor, _: Collection[str]) -> None:
    """Leave out the bounds of Clip that are infinite."""
    for node in editor.of("Clip"):
        for at, (name, infinite) in enumerate((("min", -np.inf), ("max", np.inf)), start=1):
            if editor.opset < _BOUNDS_AS_INPUT:
                if attribute(node, name) == infinite:
                    drop_attributes(node, name)
                    editor.changed = True
                continue
            bound = editor.value(name_at(node.input, at))
            if bound is not None and bound.size == 1 and bound.item() == infinite:
                editor.read(node, at, "")


@rewrite
def scatter_product(model: onnx.ModelProto, _: Collection[str] = ()) -> onnx.ModelProto | None:
    """Return a model that adds by OneHot of the indices and MatMul in place of ScatterElements."""
    known, editor = GraphReader(inferred(model)), Editor(model)
    for node in editor.of("ScatterElements"):
        data, indices, _updates = node.input
        extents, kind = known.shapes.get(data) or (), _FLOATS.get(known.types.get(data, 0))
        axis = attribute(node, "axis", 0) % max(len(extents), 1)
        whole = extents and _is_whole(extents, known.shapes.get(indices) or (), axis)
        if kind and whole and attribute(node, "reduction") == "add":
            _add_product(editor, node, extents, axis, kind)
    return editor.done()


def _is_whole(extents: Extents, given: Extents, axis: int) -> bool:
    """Tell whether indices leave no place of the other axes out: such would have to be padded."""
    others = [pair for at, pair in enumerate(zip(extents, given, strict=False)) if at != axis]
    known = isinstance(extents[axis], int) and len(given) == len(extents)
    return known and all(extent is not None and extent == other for extent, other in others)


def _add_product(
    editor: Editor, node: onnx.NodeProto, extents: Extents, axis: int, kind: type[np.floating[Any]]
) -> None:
    """Add the product of updates and the OneHot of their indices to the data, in place of a ScatterElements."""
    (data, *moved), name = node.input, node.output[0]
    order = [*(at for at in range(len(extents)) if at != axis), axis]
    last = [editor.add("Transpose", [each], f"{name}/last", perm=order) for each in moved]
    held = [editor.constant(f"{name}/depth", np.array(extents[axis], np.int64))]
    held += [editor.constant(f"{name}/values", np.array([0, 1], kind))]
    row = editor.constant(f"{name}/row", np.array([-2], np.int64))
    hot = editor.add("OneHot", [last[0], *held], f"{name}/hot", axis=-1)
    rows = editor.add("Unsqueeze", [last[1], row], f"{name}/rows")
    sums = editor.add("MatMul", [rows, hot], f"{name}/product")
    sums = editor.add("Squeeze", [sums, row], f"{name}/sums")
    back = [order.index(at) for at in range(len(order))]
    sums = editor.add("Transpose", [sums], f"{name}/back", perm=back)
    editor.instead(name, editor.add("Add", [data, sums], f"{name}/added"))


@rewrite
def opset_17(model: onnx.ModelProto, _: Collection[str] = ()) -> onnx.ModelProto | None:
    """Return a model at opset 17: axes of Reduce as attributes, a part of a Shape by Slice, sizes of a Split named.

    Other operators stay; whoever takes the model checks that it is valid.
    """
    shapes, editor = GraphReader(inferred(model)).shapes, Editor(model)
    for node in list(editor.nodes):
        if node.op_type.startswith("Reduce") and node.op_type != "ReduceSum" and len(node.input) > 1:
            axes = editor.value(node.input[1])
            if axes is None:
                return None
            _name_axes(editor, node, axes)
        elif node.op_type == "Shape" and node.attribute:
            _slice_whole(editor, node)
        elif node.op_type == "Split" and attribute(node, "num_outputs"):
            _name_sizes(editor, node, shapes.get(node.input[0]))
        _drop_newer(node, editor.opset)
    made = editor.done()
    for each in made.opset_import if made else ():
        if each.domain in STANDARD:
            each.version = min(each.version, _AXES_AS_ATTRIBUTE)
    return made


def _name_axes(editor: Editor, node: onnx.NodeProto, axes: Array) -> None:
    """Let a Reduce have its axes as an attribute."""
    del node.input[1:]
    if axes.size:
        node.attribute.append(helper.make_attribute("axes", axes.ravel().tolist()))
    editor.changed = True


def _drop_newer(node: onnx.NodeProto, opset: int) -> None:
    """Leave out attributes that came later, where they have their usual value."""
    if node.domain not in STANDARD or not onnx.defs.has(node.op_type, _AXES_AS_ATTRIBUTE):
        return
    known = onnx.defs.get_schema(node.op_type, _AXES_AS_ATTRIBUTE).attributes
    usual = onnx.defs.get_schema(node.op_type, opset).attributes
    for item in [each for each in node.attribute if each.name not in known and each.name in usual]:
        default = usual[item.name].default_value
        if default.name and helper.get_attribute_value(default) == helper.get_attribute_value(item):
            drop_attributes(node, item.name)


def _slice_whole(editor: Editor, node: onnx.NodeProto) -> None:
    """Let the whole shape be cut where a Shape gives a part of it."""
    ends = attribute(node, "start", 0), attribute(node, "end", np.iinfo(np.int64).max)
    drop_attributes(node, "start", "end")
    part = node.output[0]
    whole = editor.moved(part, f"{part}/whole")
    held = [editor.constant(f"{part}/{name}", np.array([end])) for name, end in zip("be", ends, strict=True)]
    editor.alias(whole, part, "Slice", held)


def _name_sizes(editor: Editor, node: onnx.NodeProto, extents: Extents | None) -> None:
    """Name the sizes of a Split that are as alike as they can be; of an unknown size they are taken for alike."""
    many = attribute(node, "num_outputs")
    length = extents[attribute(node, "axis", 0)] if extents else None
    drop_attributes(node, "num_outputs")
    editor.changed = True
    if isinstance(length, int):
        size = -(-length // many)
        sizes = [size] * (many - 1) + [length - size * (many - 1)]
        node.input.append("")
        editor.read(node, 1, editor.constant(f"{node.output[0]}/sizes", np.array(sizes, np.int64)))

"""A model without its Q/DQ, or without that of some nodes: data pass by, stored weights become floats."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from harness.layers.operators import dequantises
from harness.models.rewrites.editor import Editor

if TYPE_CHECKING:
    import onnx

    from harness.run.numbers import Array

#: What hands values on between a DequantizeLinear and the node that multiplies.
_BETWEEN = frozenset({"Identity", "Cast", "Reshape", "Transpose", "Concat"})


def unquantised(model: onnx.ModelProto, names: Collection[str] | None = None) -> onnx.ModelProto | None:
    """Return a model without Q/DQ, or with the nodes of these names in floating point; None where nothing changes.

    Of a weight that is stored in a narrow type the float is what DequantizeLinear makes of it. Others that read the
    same Q/DQ keep it, unless nodes that only move data stand between.
    """
    editor = Editor(model)
    if names is None:
        for reader in list(editor.nodes):
            if dequantises(reader.op_type):
                bypass(editor, reader)
        return editor.done()
    for node in editor.named(names):
        for index in range(len(node.input)):
            float_operand(editor, node, index)
    return editor.done()


def float_operand(editor: Editor, node: onnx.NodeProto, index: int) -> None:
    """Let one input of a node be in floating point."""
    reader = editor.dequantiser(node.input[index])
    source = in_float(editor, reader) if reader is not None else None
    if source is not None:
        editor.read(node, index, source)
        return
    for each in _readers_before(editor, node.input[index]):
        bypass(editor, each)


def bypass(editor: Editor, reader: onnx.NodeProto) -> None:
    """Let all that read a DequantizeLinear read the float, where there is one."""
    source = in_float(editor, reader)
    if source is not None:
        editor.instead(reader.output[0], source)


def in_float(editor: Editor, reader: onnx.NodeProto) -> str | None:
    """Return the tensor that a DequantizeLinear stands for: what was quantised, or a new constant of what is stored."""
    quantiser = editor.quantiser(reader)
    if quantiser is not None:
        return str(quantiser.input[0])
    stored = editor.value(reader.input[0])
    values = None if stored is None else dequantised(editor, reader, stored)
    return None if values is None else editor.constant(f"{reader.output[0]}/float", values)


def dequantised(editor: Editor, reader: onnx.NodeProto, stored: Array) -> Array | None:
    """Return what a DequantizeLinear makes of stored values; None where its scale is no constant."""
    scale = editor.value(reader.input[1])
    if scale is None:
        return None
    zero = editor.value(reader.input[2]) if len(reader.input) > 2 and reader.input[2] else None  # noqa: PLR2004
    attributes = {item.name: int(item.i) for item in reader.attribute}
    spread = [_spread(each, stored.shape, attributes) for each in (scale, zero) if each is not None]
    shift = spread[1].astype(np.float32) if zero is not None else np.float32(0)
    result: Array = ((stored.astype(np.float32) - shift) * spread[0].astype(np.float32)).astype(scale.dtype)
    return result


def _spread(values: Array, shape: tuple[int, ...], attributes: dict[str, int]) -> Array:
    """Return scales so that each element of a shape has its own."""
    axis = attributes.get("axis", 1)
    if values.size == 1:
        return values.reshape([1] * len(shape))
    if attributes.get("block_size"):
        repeated = np.repeat(values, attributes["block_size"], axis=axis)
        return repeated.take(range(shape[axis]), axis=axis)
    extents = [1] * len(shape)
    extents[axis] = values.size
    return values.reshape(extents)


def _readers_before(editor: Editor, tensor: str) -> Iterator[onnx.NodeProto]:
    """Yield the DequantizeLinears before nodes that only move or join what these make."""
    maker = editor.maker(tensor)
    if maker is None or maker.op_type not in _BETWEEN:
        return
    for name in maker.input if maker.op_type == "Concat" else maker.input[:1]:
        reader = editor.dequantiser(name)
        if reader is not None:
            yield reader
        else:
            yield from _readers_before(editor, name)

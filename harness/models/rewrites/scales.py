"""Rewrites of how scales and quantised constants are written; exact, all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from harness.layers.operators import dequantises, quantises
from harness.models.rewrites.editor import Editor
from harness.models.rewrites.unquantised import bypass

if TYPE_CHECKING:
    import onnx


def scalar_scale(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose per-tensor scales of data are scalars in place of vectors of one element."""
    editor = Editor(model)
    for node in list(editor.nodes):
        if not (quantises(node.op_type) or dequantises(node.op_type)) or node.input[0] in editor.fixed:
            continue
        held = [editor.value(name) for name in node.input[1:]]
        if not held or any(each is None or each.shape != (1,) for each in held):
            continue
        for index, array in enumerate(held, start=1):
            if array is not None:
                name = editor.constant(f"{node.input[index]}/scalar", array.reshape(()))
                editor.read(node, index, name)
        kept = [item for item in node.attribute if item.name != "axis"]
        del node.attribute[:]
        node.attribute.extend(kept)
    return editor.done()


def float_bias(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose biases in INT32 behind DequantizeLinear are their products with the scale."""
    editor = Editor(model)
    for node in list(editor.nodes):
        if dequantises(node.op_type):
            stored = editor.value(node.input[0])
            if stored is not None and stored.dtype == np.int32:
                bypass(editor, node)
    return editor.done()


def float_scalars(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose constants of one element have no Q/DQ."""
    editor = Editor(model)
    for node in list(editor.nodes):
        if dequantises(node.op_type) and node.input[0] in editor.fixed:
            quantiser = editor.quantiser(node)
            held = editor.value(quantiser.input[0] if quantiser is not None else node.input[0])
            if held is not None and held.ndim == 0:
                bypass(editor, node)
    return editor.done()

"""Layer normalisation that an exporter wrote as its pieces, as the one operator that opset 17 has for it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import onnx

from harness.models.rewrites.editor import Editor

if TYPE_CHECKING:
    from harness.run.numbers import Array

_OPSET = 17


def layer_norm(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model of opset 17 with LayerNormalization for each chain of its pieces over the last axis."""
    editor = Editor(model)
    if not any(map(lambda node: _pieces(editor, node), editor.of("Div"))):  # noqa: C417
        return None
    if editor.opset < _OPSET:
        try:
            editor = Editor(onnx.version_converter.convert_version(model, _OPSET))
        except Exception:  # noqa: BLE001  (another project's code, on any model)
            return None
    for node in editor.of("Div"):
        found = _pieces(editor, node)
        if found is not None:
            data, epsilon = found
            _replace(editor, node, data, epsilon)
    return editor.done()


def _pieces(editor: Editor, division: onnx.NodeProto) -> tuple[str, float] | None:
    """Return what a chain that ends in this Div normalises, and its epsilon; None where it is no such chain."""
    root = editor.maker(division.input[1])
    added = editor.maker(root.input[0]) if root is not None and root.op_type == "Sqrt" else None
    centred = editor.maker(division.input[0])
    if added is None or added.op_type != "Add" or centred is None or centred.op_type != "Sub":
        return None
    for mean, constant in (added.input, reversed(added.input)):
        epsilon, variance = editor.value(constant), editor.maker(mean)
        squares = (
            editor.maker(variance.input[0]) if variance is not None and _mean(editor, variance) else None
        )
        if epsilon is None or epsilon.size != 1 or squares is None:
            continue
        average = editor.maker(centred.input[1])
        of_data = average is not None and _mean(editor, average) and average.input[0] == centred.input[0]
        if of_data and _square(editor, squares) == centred.output[0] and _scale(editor, division) is not None:
            return centred.input[0], float(epsilon.reshape(()))
    return None


def _mean(editor: Editor, node: onnx.NodeProto) -> bool:
    """Tell whether a node is the mean over the last axis, which it keeps."""
    axes = [list(item.ints) for item in node.attribute if item.name == "axes"]
    if len(node.input) > 1:
        value = editor.value(node.input[1])
        axes = [] if value is None else [value.ravel().tolist()]
    kept = all(item.i for item in node.attribute if item.name == "keepdims")
    return node.op_type == "ReduceMean" and axes == [[-1]] and kept


def _square(editor: Editor, node: onnx.NodeProto) -> str:
    """Return the tensor that a node gives the square of, "" where it does something else."""
    if node.op_type == "Mul" and node.input[0] == node.input[1]:
        return str(node.input[0])
    power = editor.value(node.input[1]) if node.op_type == "Pow" else None
    return str(node.input[0]) if power is not None and np.all(power == 2) else ""  # noqa: PLR2004


def _scale(editor: Editor, division: onnx.NodeProto) -> tuple[onnx.NodeProto, str, Array] | None:
    """Return the Mul that alone reads the quotient, and its vector."""
    return _only(editor, division.output[0], "Mul")


def _only(editor: Editor, tensor: str, operator: str) -> tuple[onnx.NodeProto, str, Array] | None:
    """Return the node of an operator that alone reads a tensor, with the stored vector that it also takes."""
    readers = editor.readers(tensor)
    if tensor in editor.outputs or len(readers) != 1 or readers[0].op_type != operator:
        return None
    other = next((name for name in readers[0].input if name != tensor), "")
    value = editor.value(other)
    return None if value is None or value.ndim != 1 else (readers[0], other, value)


def _replace(editor: Editor, division: onnx.NodeProto, data: str, epsilon: float) -> None:
    scaled = _scale(editor, division)
    if scaled is None:
        return
    last, inputs = scaled[0], [data, scaled[1]]
    shifted = _only(editor, last.output[0], "Add")
    if shifted is not None and shifted[2].shape == scaled[2].shape:
        last = shifted[0]
        inputs.append(shifted[1])
    old = last.output[0]
    editor.renamed(last)
    editor.add("LayerNormalization", inputs, old, axis=-1, epsilon=epsilon)

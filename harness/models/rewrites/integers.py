"""Rewrites of quantisation other than Q/DQ: integer operators, and weights that Cast and Mul make of INT8."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import onnx

from harness.case.graph_reader import attribute, name_at
from harness.models.rewrites.editor import Editor, edits

_INTEGER = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
#: Inputs of DynamicQuantizeLSTM: weights, their scale, their zero point; and how many LSTM has of its own.
_GATES = ((1, 8, 9), (2, 10, 11))
_LSTM_INPUTS = 8
#: Opsets of DequantizeLinear, and of its axis.
_SINCE, _AXIS_SINCE = 10, 13
_MOVING = frozenset({"Gather", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice"})
_EIGHT_BITS = (np.int8, np.uint8)


@edits
def undo_dynamic(editor: Editor, _: Collection[str]) -> None:
    """Compute in floats, by dequantised weights, in place of data quantised as the model runs.

    Data quantised by their own range have a scale of 1 then, and the Casts and Muls behind stay as they are.
    """
    chosen = _undoable(editor)
    for node in chosen:
        kept = {item.name: attribute(node, item.name) for item in node.attribute}
        operands = [_in_float(editor, node, index) for index in (0, 1)]
        made = editor.add(_INTEGER[node.op_type], operands, f"{node.output[0]}/float", **kept)
        editor.instead(node.output[0], made)
    for scale in dict.fromkeys(source.output[1] for node in chosen for source in _sources(editor, node)):
        editor.instead(scale, editor.constant(f"{scale}/one", np.array(1, np.float32)))
    for node in editor.of("DynamicQuantizeLSTM"):
        _undo_lstm(editor, node)
    for node in editor.of("DequantizeLinear"):
        _undo_table(editor, node)


@edits
def dequantise_weights(editor: Editor, _: Collection[str]) -> None:
    """Send INT8 weights through DequantizeLinear in place of a Cast and a Mul by their scale."""
    for cast in editor.of("Cast"):
        stored, readers = editor.value(cast.input[0]), editor.readers(cast.output[0])
        if stored is None or stored.dtype != np.int8 or [each.op_type for each in readers] != ["Mul"]:
            continue
        mul = readers[0]
        scale = editor.value(next((name for name in mul.input if name != cast.output[0]), ""))
        if scale is None or scale.dtype != np.float32:
            continue
        aligned = (1,) * (stored.ndim - scale.ndim) + scale.shape
        axes = [at for at, size in enumerate(aligned) if size > 1]
        since = _AXIS_SINCE if axes else _SINCE
        fits = scale.ndim <= stored.ndim and len(axes) <= 1
        if not fits or editor.opset < since or any(scale.size != stored.shape[axis] for axis in axes):
            continue
        shape = (-1,) if axes else ()
        constants = {"scale": scale.reshape(shape), "zero": np.zeros(scale.size, np.int8).reshape(shape)}
        names = [editor.constant(f"{mul.output[0]}/{part}", array) for part, array in constants.items()]
        axis = {"axis": axes[0]} if axes else {}
        made = editor.add("DequantizeLinear", [cast.input[0], *names], f"{mul.output[0]}/dequantised", **axis)
        editor.instead(mul.output[0], made)


def _undoable(editor: Editor) -> list[onnx.NodeProto]:
    """Return the integer products that alone read their quantised data, and whose weights are known."""
    nodes = [
        node
        for node in editor.of(*_INTEGER)
        if all(_known(editor, node, index) for index in (0, 1))
        and all(_is_inner(editor, source) for source in _sources(editor, node))
    ]
    while True:
        ids = {id(node) for node in nodes}
        shared = {
            id(source)
            for node in nodes
            for source in _sources(editor, node)
            if not ids.issuperset(map(id, editor.readers(source.output[0])))
        }
        if not shared:
            return nodes
        nodes = [node for node in nodes if shared.isdisjoint(map(id, _sources(editor, node)))]


def _sources(editor: Editor, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that quantise the operands of an integer product as it runs."""
    for name in node.input[:2]:
        maker = editor.producer(name)
        if maker is not None and maker.op_type == "DynamicQuantizeLinear":
            yield maker


def _is_inner(editor: Editor, source: onnx.NodeProto) -> bool:
    """Tell whether the scale of data is read by nodes alone: no output of the network, and in no subgraph."""
    scale = source.output[1]
    return scale not in editor.outputs and all(scale in node.input for node in editor.readers(scale))


def _known(editor: Editor, node: onnx.NodeProto, index: int) -> bool:
    if any(node.input[index] == source.output[0] for source in _sources(editor, node)):
        return True
    zero = name_at(node.input, index + 2)
    return editor.value(node.input[index]) is not None and (not zero or editor.value(zero) is not None)


def _in_float(editor: Editor, node: onnx.NodeProto, index: int) -> str:
    """Return an operand of an integer product in floats: the data before, or stored weights less their zero point."""
    for source in _sources(editor, node):
        if source.output[0] == node.input[index]:
            return str(source.input[0])
    stored = editor.value(node.input[index])
    zero = editor.value(name_at(node.input, index + 2))
    if stored is None:
        raise AssertionError(node.input[index])
    shift = np.float32(0) if zero is None else zero.astype(np.float32)
    if shift.size > 1 and node.op_type == "ConvInteger":
        shift = shift.reshape(-1, *(1,) * (stored.ndim - 1))
    return editor.constant(f"{node.input[index]}/float", stored.astype(np.float32) - shift)


def _undo_lstm(editor: Editor, node: onnx.NodeProto) -> None:
    """Make an LSTM of a DynamicQuantizeLSTM, whose weights (directions, inputs, gates) lie across."""
    made = []
    for places in _GATES:
        weights, scale, zero = (editor.value(node.input[at]) for at in places)
        if weights is None or scale is None or zero is None:
            return
        each = [array.astype(np.float32).reshape(array.shape[0], 1, -1) for array in (scale, zero)]
        made.append(((weights.astype(np.float32) - each[1]) * each[0]).transpose(0, 2, 1))
    for (at, *_), array in zip(_GATES, made, strict=True):
        editor.read(node, at, editor.constant(f"{node.input[at]}/float", array))
    node.op_type, node.domain = "LSTM", ""
    del node.input[_LSTM_INPUTS:]


def _undo_table(editor: Editor, node: onnx.NodeProto) -> None:
    """Look rows up in a float table in place of an 8-bit one whose rows are moved, then dequantised by one scale."""
    moves, tensor = [], node.input[0]
    while (maker := editor.producer(tensor)) is not None and maker.op_type in _MOVING:
        moves.append(maker)
        tensor = maker.input[0]
    stored, *held = (editor.value(name) for name in (tensor, *node.input[1:]))
    known = [np.float32(array.item()) for array in held if array is not None and array.size == 1]
    if not moves or stored is None or stored.dtype not in _EIGHT_BITS or len(known) < len(held):
        return
    scale, zero = (*known, np.float32(0))[:2]
    made = editor.constant(f"{tensor}/float", (stored.astype(np.float32) - zero) * scale)
    for move in reversed(moves):
        kept = {item.name: attribute(move, item.name) for item in move.attribute}
        made = editor.add(move.op_type, [made, *move.input[1:]], f"{move.output[0]}/float", **kept)
    editor.instead(node.output[0], made)

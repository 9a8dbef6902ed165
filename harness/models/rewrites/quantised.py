"""Rewrites of quantisation: scales, zero points and places of Q/DQ that stays; other forms of it undone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import onnx
from onnx import helper

from harness.case.graph_reader import attribute
from harness.layers.operators import dequantises, quantises
from harness.models.graphs import is_quantiser
from harness.models.rewrites.editor import Editor, drop_attributes, edits
from harness.models.rewrites.floats import bypass, dequantised, in_float
from harness.run.numbers.wire import Array

#: The largest symmetric number of 8 bits.
_MOST = 127
#: Operators without outputs below zero. Behind any other a zero point at the lower end is a Relu as well, left out by
#: quantisers.
_POSITIVE = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Softmax", "Abs", "Exp", "Sqrt"})
_INTEGER = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
#: Inputs of DynamicQuantizeLSTM: weights, their scale, their zero point; and how many LSTM has of its own.
_GATES = ((1, 8, 9), (2, 10, 11))
_LSTM_INPUTS = 8
#: Opsets of DequantizeLinear, and of its axis.
_SINCE, _AXIS_SINCE = 10, 13
_MOVING = frozenset({"Gather", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice"})
_EIGHT_BITS = (np.int8, np.uint8)


@edits
def scalar_scale(editor: Editor, _: Collection[str]) -> None:
    """Make scalars of per-tensor scales of data that are vectors of one element."""
    for node in editor.sorted_by(is_quantiser):
        held = editor.values(node.input[1:])
        if held and node.input[0] not in editor.constants and {each.shape for each in held} == {(1,)}:
            for index, array in enumerate(held, start=1):
                name = editor.constant(f"{node.input[index]}/scalar", array.reshape(()))
                editor.read(node, index, name)
            drop_attributes(node, "axis")


@edits
def float_bias(editor: Editor, _: Collection[str]) -> None:
    """Put their products with the scale in place of biases in INT32 behind DequantizeLinear."""
    for node in editor.sorted_by(dequantises):
        stored = editor.value(node.input[0])
        if stored is not None and stored.dtype == np.int32:
            bypass(editor, node)


@edits
def zero_points(editor: Editor, _: Collection[str]) -> None:
    """Make INT8 with zero points of 0 of all 8-bit Q/DQ: a scale takes in the larger side of its range.

    A tensor on one side of its zero point alone goes through a Relu, as the other side was cut off.
    Q/DQ whose scale is unknown before it runs, or whose quantised tensor other nodes read, stays as it is.
    """
    for node in editor.sorted_by(is_quantiser):
        held, stored = editor.values(node.input[1:]), editor.value(node.input[0])
        if held is None or not _is_off_centre(held):
            continue
        if quantises(node.op_type):
            readers = editor.readers(node.output[0])
            undone = all(_undoes(editor, each, held) for each in readers)
            if undone and node.output[0] not in editor.outputs:
                _centre(editor, [node, *readers], *held)
        elif stored is not None and not attribute(node, "block_size", 0):
            _centre_stored(editor, node, stored, held[0])


def _undoes(editor: Editor, node: onnx.NodeProto, held: Sequence[Array]) -> bool:
    """Tell whether a node undoes a QuantizeLinear of this scale and zero point."""
    own = editor.values(node.input[1:]) if dequantises(node.op_type) else None
    return own is not None and len(own) == len(held) and all(map(np.array_equal, own, held))


def _is_off_centre(held: Sequence[Array]) -> bool:
    """Tell whether a scale and a zero point are of 8 bits, and not of symmetric INT8."""
    zero = held[1] if len(held) == 2 else np.array(0.0)  # noqa: PLR2004  (a scale and a zero point)
    return bool(zero.dtype == np.uint8 or (zero.dtype == np.int8 and zero.any()))


def _centre(editor: Editor, pair: Sequence[onnx.NodeProto], scale: Array, zero: Array) -> None:
    ends = np.iinfo(zero.dtype)
    middle = zero.astype(np.float32)
    side = np.maximum(ends.max - middle, middle - ends.min)
    maker = editor.producer(pair[0].input[0])
    if np.all(zero == ends.min) and (maker is None or maker.op_type not in _POSITIVE):
        editor.read(pair[0], 0, editor.add("Relu", pair[0].input[:1], f"{pair[0].input[0]}/relu"))
    _put(editor, pair, (scale.astype(np.float32) * side / _MOST).astype(scale.dtype))


def _centre_stored(editor: Editor, node: onnx.NodeProto, stored: Array, scale: Array) -> None:
    values = dequantised(editor, node, stored)
    if values is None:
        return
    axis = attribute(node, "axis", 1)
    others = None if scale.size == 1 else tuple(at for at in range(values.ndim) if at != axis % values.ndim)
    largest = np.abs(values.astype(np.float32)).max(axis=others, keepdims=True)
    wide = np.where(largest > 0, largest / _MOST, 1)
    kept = np.clip(np.rint(values.astype(np.float32) / wide), -_MOST, _MOST).astype(np.int8)
    editor.read(node, 0, editor.constant(f"{node.input[0]}/symmetric", kept))
    _put(editor, [node], wide.reshape(scale.shape).astype(scale.dtype))


def _put(editor: Editor, nodes: Sequence[onnx.NodeProto], scale: Array) -> None:
    """Give nodes one scale, and a zero point of 0 in INT8."""
    made = editor.constant(f"{nodes[0].input[1]}/symmetric", scale)
    zero = editor.constant(f"{nodes[0].input[2]}/symmetric", np.zeros(scale.shape, np.int8))
    for node in nodes:
        editor.read(node, 1, made)
        editor.read(node, 2, zero)
        drop_attributes(node, "output_dtype")


@edits
def float_scalars(editor: Editor, _: Collection[str]) -> None:
    """Take Q/DQ off constants of one element."""
    for node in editor.sorted_by(dequantises):
        quantiser = editor.quantiser(node)
        held = editor.value((quantiser or node).input[0])
        if node.input[0] in editor.constants and held is not None and held.ndim == 0:
            bypass(editor, node)


@edits
def concat_after(editor: Editor, _: Collection[str]) -> None:
    """Move Q/DQ of unlike scales from the inputs of a Concat behind it, by the largest of them."""
    for concat in editor.of("Concat"):
        readers = [reader for name in concat.input if (reader := editor.dequantiser(name)) is not None]
        held = [editor.scalars(reader.input[1:]) or [] for reader in readers]
        symmetric = all(len(each) > 1 and not each[1].astype(np.float32).any() for each in held)
        if not symmetric or len(held) < len(concat.input) or len({each[0].item() for each in held}) == 1:
            continue
        for reader in readers:
            if source := in_float(editor, reader):
                editor.instead(reader.output[0], source, [concat])
        _quantise(editor, concat.output[0], max(held, key=lambda each: float(each[0])))


def _quantise(editor: Editor, tensor: str, held: Sequence[Array]) -> None:
    """Put a Q/DQ pair of this scale and zero point on a tensor, unless all that read it quantise it."""
    behind = editor.readers(tensor)
    if not behind or all(quantises(each.op_type) for each in behind):
        return
    names = zip(("scale", "zero_point"), held, strict=False)
    constants = [editor.constant(f"{tensor}/{name}", array) for name, array in names]
    narrow = editor.add("QuantizeLinear", [tensor, *constants], f"{tensor}/QuantizeLinear")
    pair = editor.add("DequantizeLinear", [narrow, *constants], f"{tensor}/DequantizeLinear")
    editor.instead(tensor, pair, behind)


@edits
def zeros_in_kernel(editor: Editor, _: Collection[str]) -> None:
    """Put zeros into the kernels of deconvolutions with stride, in place of their dilation."""
    for node in editor.of("ConvTranspose"):
        strides, dilations = attribute(node, "strides", [1]), attribute(node, "dilations", [1])
        weight = editor.value(node.input[1])
        if weight is None or max(strides) == 1 or max(dilations) == 1:
            continue
        extents = [(size - 1) * apart + 1 for size, apart in zip(weight.shape[2:], dilations, strict=True)]
        wide = np.zeros((*weight.shape[:2], *extents), weight.dtype)
        spread = (slice(None), slice(None), *(slice(None, None, apart) for apart in dilations))
        wide[spread] = weight
        editor.read(node, 1, editor.constant(f"{node.input[1]}/with_zeros", wide))
        drop_attributes(node, "dilations", "kernel_shape")
        node.attribute.append(helper.make_attribute("kernel_shape", extents))


@edits
def undo_dynamic(editor: Editor, _: Collection[str]) -> None:
    """Compute in floats, by dequantised weights, in place of data quantised as the model runs.

    Data quantised by their own range have a scale of 1 then, and the Casts and Muls behind stay as they are.
    """
    chosen = _undoable(editor)
    for node in chosen:
        _undo(editor, node)
    for scale in dict.fromkeys(source.output[1] for node in chosen for source in _sources(editor, node)):
        editor.instead(scale, editor.constant(f"{scale}/one", np.array(1, np.float32)))
    for node in editor.of("DynamicQuantizeLSTM"):
        _undo_lstm(editor, node)
    for node in editor.of("DequantizeLinear"):
        _undo_table(editor, node)


def _undo(editor: Editor, node: onnx.NodeProto) -> None:
    """Put the product of floats in place of an integer product."""
    kept = {item.name: attribute(node, item.name) for item in node.attribute}
    operands = [
        each if isinstance(each, str) else editor.constant(f"{name}/float", each)
        for name, each in zip(node.input, _operands(editor, node), strict=False)
        if each is not None
    ]
    editor.instead(
        node.output[0], editor.add(_INTEGER[node.op_type], operands, f"{node.output[0]}/float", **kept)
    )


@edits
def dequantise_weights(editor: Editor, _: Collection[str]) -> None:
    """Send INT8 weights through DequantizeLinear in place of a Cast and a Mul by their scale."""
    for cast in editor.of("Cast"):
        stored, readers = editor.value(cast.input[0]), editor.readers(cast.output[0])
        if stored is None or stored.dtype != np.int8 or [each.op_type for each in readers] != ["Mul"]:
            continue
        factors, made = list(readers[0].input), readers[0].output[0]
        factors.remove(cast.output[0])
        scale = editor.value(factors[0])
        axis = None if scale is None else _axis(scale, stored)
        if scale is not None and axis is not None and editor.opset >= (_AXIS_SINCE if axis else _SINCE):
            shape = (-1,) if axis else ()
            held = {"scale": scale.reshape(shape), "zero": np.zeros(scale.size, np.int8).reshape(shape)}
            names = [editor.constant(f"{made}/{part}", array) for part, array in held.items()]
            name = editor.add("DequantizeLinear", [cast.input[0], *names], f"{made}/dequantised", **axis)
            editor.instead(made, name)


def _axis(scale: Array, stored: Array) -> dict[str, int] | None:
    """Return the axis that a scale has an element for, {} if it has one; None if DequantizeLinear takes no such."""
    aligned = (1,) * (stored.ndim - scale.ndim) + scale.shape
    axes = [at for at, size in enumerate(aligned) if size > 1]
    fits = scale.dtype == np.float32 and len(aligned) == stored.ndim and len(axes) <= 1
    if not fits or any(scale.size != stored.shape[axis] for axis in axes):
        return None
    return {"axis": axes[0]} if axes else {}


def _undoable(editor: Editor) -> list[onnx.NodeProto]:
    """Return the integer products that alone read their quantised data, and whose weights are known."""
    nodes = [node for node in editor.of(*_INTEGER) if _is_undoable(editor, node)]
    while True:
        ids = {id(node) for node in nodes}
        alone = [
            node
            for node in nodes
            if all(ids.issuperset(map(id, editor.readers(each.output[0]))) for each in _sources(editor, node))
        ]
        if len(alone) == len(nodes):
            return nodes
        nodes = alone


def _is_undoable(editor: Editor, node: onnx.NodeProto) -> bool:
    """Tell whether an operand is known or quantised as it runs, by a scale that nodes of the main graph alone read."""
    scales = [source.output[1] for source in _sources(editor, node)]
    inner = all(name in each.input for name in scales for each in editor.readers(name))
    return (
        inner
        and editor.outputs.isdisjoint(scales)
        and all(each is not None for each in _operands(editor, node))
    )


def _sources(editor: Editor, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that quantise the operands of an integer product as it runs."""
    for name in node.input[:2]:
        maker = editor.producer(name)
        if maker is not None and maker.op_type == "DynamicQuantizeLinear":
            yield maker


def _operands(editor: Editor, node: onnx.NodeProto) -> Iterator[str | Array | None]:
    """Yield both operands of an integer product in floats: data by name, weights less their zero point."""
    data = {source.output[0]: str(source.input[0]) for source in _sources(editor, node)}
    for index, name in enumerate(node.input[:2]):
        held = editor.values([name, *filter(None, node.input[index + 2 : index + 3])])
        if name in data or held is None:
            yield data.get(name)
            continue
        stored, shift = (*(each.astype(np.float32) for each in held), np.float32(0))[:2]
        if shift.size > 1 and node.op_type == "ConvInteger":
            shift = shift.reshape(-1, *(1,) * (stored.ndim - 1))
        yield stored - shift


def _undo_lstm(editor: Editor, node: onnx.NodeProto) -> None:
    """Make an LSTM of a DynamicQuantizeLSTM, whose weights (directions, inputs, gates) lie across."""
    made = []
    for places in _GATES:
        held = editor.values([node.input[at] for at in places])
        if held is None:
            return
        weights, *rows = (each.astype(np.float32) for each in held)
        scale, zero = (each.reshape(each.shape[0], 1, -1) for each in rows)
        made.append(((weights - zero) * scale).transpose(0, 2, 1))
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
    stored, held = editor.value(tensor), editor.scalars(node.input[1:])
    if not (moves and held and stored is not None and stored.dtype in _EIGHT_BITS):
        return
    scale, zero = (*(each.astype(np.float32) for each in held), np.float32(0))[:2]
    made = editor.constant(f"{tensor}/float", (stored.astype(np.float32) - zero) * scale)
    for move in reversed(moves):
        kept = {item.name: attribute(move, item.name) for item in move.attribute}
        made = editor.add(move.op_type, [made, *move.input[1:]], f"{move.output[0]}/float", **kept)
    editor.instead(node.output[0], made)

"""Rewrites of Q/DQ that stays: its scales, zero points and constants, and its place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import onnx
from onnx import helper

from harness.case import effective_name
from harness.case.graph_reader import attribute, name_at
from harness.layers.operators import MULTIPLYING, dequantises, quantises
from harness.models.graphs import values_of
from harness.models.rewrites.editor import Editor, drop_attributes, edits, rewrite
from harness.models.rewrites.floats import bypass, dequantised, in_float
from harness.run.numbers.wire import Array

#: The largest symmetric number of 8 bits.
_MOST = 127
#: Operators without outputs below zero. Behind any other a zero point at the lower end is a Relu as well, left out by
#: quantisers.
_POSITIVE = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Softmax", "Abs", "Exp", "Sqrt"})

#: Activations of one input, which an engine fuses into the node before.
_ACTIVATIONS = frozenset(
    {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Elu", "HardSwish", "HardSigmoid"}
    | {"Softplus", "PRelu", "Gelu"}
)
#: Outputs that are marked at a time: each is memory, and a copy.
_MOST_MARKED = 8


@edits
def scalar_scale(editor: Editor, _: Collection[str]) -> None:
    """Make scalars of per-tensor scales of data that are vectors of one element."""
    for node in list(editor.nodes):
        if not (quantises(node.op_type) or dequantises(node.op_type)) or node.input[0] in editor.constants:
            continue
        held = [editor.value(name) for name in node.input[1:]]
        if not held or any(each is None or each.shape != (1,) for each in held):
            continue
        for index, array in enumerate(held, start=1):
            if array is not None:
                name = editor.constant(f"{node.input[index]}/scalar", array.reshape(()))
                editor.read(node, index, name)
        drop_attributes(node, "axis")


@edits
def float_bias(editor: Editor, _: Collection[str]) -> None:
    """Put their products with the scale in place of biases in INT32 behind DequantizeLinear."""
    for node in list(editor.nodes):
        if dequantises(node.op_type):
            stored = editor.value(node.input[0])
            if stored is not None and stored.dtype == np.int32:
                bypass(editor, node)


@edits
def zero_points(editor: Editor, _: Collection[str]) -> None:
    """Make INT8 with zero points of 0 of all 8-bit Q/DQ: a scale takes in the larger side of its range.

    A tensor on one side of its zero point alone goes through a Relu, as the other side was cut off.
    Q/DQ whose scale is unknown before it runs, or whose quantised tensor other nodes read, stays as it is.
    """
    for node in list(editor.nodes):
        if quantises(node.op_type):
            pair = [node, *editor.readers(node.output[0])]
            held = [[editor.value(name) for name in each.input[1:]] for each in pair]
            if node.output[0] not in editor.outputs and all(
                map(_alike, pair[1:], held[1:], held[:1] * len(held))
            ):
                _centre(editor, pair, held[0])
        elif dequantises(node.op_type) and editor.value(node.input[0]) is not None:
            _centre_stored(editor, node, [editor.value(name) for name in node.input[1:]])


def _alike(node: onnx.NodeProto, held: Sequence[Array | None], first: Sequence[Array | None]) -> bool:
    """Tell whether a node undoes a QuantizeLinear of these scales and zero points."""
    if not dequantises(node.op_type) or len(held) != len(first):
        return False
    pairs = zip(held, first, strict=True)
    return all(one is not None and other is not None and np.array_equal(one, other) for one, other in pairs)


def _off_centre(held: Sequence[Array | None]) -> tuple[Array, Array] | None:
    """Return the scale and the zero point of a node of 8 bits, if it is not symmetric INT8."""
    scale, zero = held if len(held) == 2 else (None, None)  # noqa: PLR2004  (a scale and a zero point)
    if scale is None or zero is None:
        return None
    asymmetric = zero.dtype == np.uint8 or (zero.dtype == np.int8 and bool(zero.any()))
    return (scale, zero) if asymmetric else None


def _centre(editor: Editor, pair: Sequence[onnx.NodeProto], held: Sequence[Array | None]) -> None:
    found = _off_centre(held)
    if found is None:
        return
    scale, zero = found
    ends = np.iinfo(zero.dtype)
    middle = zero.astype(np.float32)
    side = np.maximum(ends.max - middle, middle - ends.min)
    maker = editor.producer(pair[0].input[0])
    if np.all(zero == ends.min) and (maker is None or maker.op_type not in _POSITIVE):
        editor.read(pair[0], 0, editor.add("Relu", pair[0].input[:1], f"{pair[0].input[0]}/relu"))
    _put(editor, pair, (scale.astype(np.float32) * side / _MOST).astype(scale.dtype))


def _centre_stored(editor: Editor, node: onnx.NodeProto, held: Sequence[Array | None]) -> None:
    found, stored = _off_centre(held), editor.value(node.input[0])
    if found is None or stored is None or attribute(node, "block_size", 0):
        return
    values = dequantised(editor, node, stored)
    if values is None:
        return
    scale, axis = found[0], attribute(node, "axis", 1)
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
    for node in list(editor.nodes):
        if dequantises(node.op_type) and node.input[0] in editor.constants:
            quantiser = editor.quantiser(node)
            held = editor.value(quantiser.input[0] if quantiser is not None else node.input[0])
            if held is not None and held.ndim == 0:
                bypass(editor, node)


@edits
def concat_after(editor: Editor, _: Collection[str]) -> None:
    """Move Q/DQ of unlike scales from the inputs of a Concat behind it, by the largest of them."""
    for concat, readers, scale in _unlike(editor):
        for reader in readers:
            source = in_float(editor, reader)
            if source is not None:
                editor.instead(reader.output[0], source, [concat])
        behind = editor.readers(concat.output[0])
        if not behind or not all(quantises(each.op_type) for each in behind):
            pair = _pair(editor, concat.output[0], scale, _zero(editor, readers[0]))
            editor.instead(concat.output[0], pair, behind)


@edits
def behind_activation(editor: Editor, _: Collection[str]) -> None:
    """Move Q/DQ between a node that multiplies and its activation behind the activation."""
    for reader in list(editor.nodes):
        quantiser = editor.quantiser(reader) if editor.dequantiser(reader.output[0]) is reader else None
        before = editor.producer(quantiser.input[0]) if quantiser is not None else None
        end = _activated(editor, reader.output[0])
        if quantiser is None or before is None or before.op_type not in MULTIPLYING or end is None:
            continue
        scale, behind = editor.value(reader.input[1]), editor.readers(end)
        if scale is None or scale.size != 1:
            continue
        editor.instead(reader.output[0], quantiser.input[0])
        if behind and not all(quantises(each.op_type) for each in behind):
            pair = _pair(editor, end, scale.reshape(()), _zero(editor, reader))
            editor.instead(end, pair, behind)


@rewrite
def mark_output(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
    """Return a model in which the outputs of the blamed convolutions are outputs of the network too."""
    editor, values = Editor(model), values_of(model)
    convolutions = [node for node in editor.of("Conv", "ConvTranspose") if effective_name(node) in blamed]
    for conv in convolutions[:_MOST_MARKED]:
        value = values.get(conv.output[0])
        if value is not None and conv.output[0] not in editor.outputs:
            editor.output(value)
    return editor.done()


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


def _unlike(editor: Editor) -> Iterator[tuple[onnx.NodeProto, list[onnx.NodeProto], Array]]:
    """Yield each Concat of data quantised by unlike scales for whole tensors, its DequantizeLinears, the top scale."""
    for concat in editor.of("Concat"):
        readers = [reader for name in concat.input if (reader := editor.dequantiser(name)) is not None]
        scales = [editor.value(reader.input[1]) for reader in readers]
        known = [each for each in scales if each is not None and each.size == 1]
        plain = len(known) == len(scales) == len(concat.input) > 1
        unlike = plain and len({each.item() for each in known}) > 1
        zeros = [_zero(editor, each) for each in readers]
        if unlike and not any(each is None or each.astype(np.float32).any() for each in zeros):
            yield concat, readers, max(known, key=lambda each: float(each.item())).reshape(())


def _zero(editor: Editor, reader: onnx.NodeProto) -> Array | None:
    """Return the zero point of a DequantizeLinear as a scalar, if it has a constant one."""
    held = editor.value(name_at(reader.input, 2))
    return held.reshape(()) if held is not None and held.size == 1 else None


def _pair(editor: Editor, tensor: str, scale: Array, zero: Array | None) -> str:
    """Add a Q/DQ pair on a tensor; returns its output."""
    constants = [editor.constant(f"{tensor}/scale", scale)]
    if zero is not None:
        constants.append(editor.constant(f"{tensor}/zero_point", zero))
    narrow = editor.add("QuantizeLinear", [tensor, *constants], f"{tensor}/QuantizeLinear")
    return editor.add("DequantizeLinear", [narrow, *constants], f"{tensor}/DequantizeLinear")


def _activated(editor: Editor, tensor: str) -> str | None:
    """Return the output of the activation of a tensor: of one node, or of Sigmoid and Mul (SiLU)."""
    readers = editor.readers(tensor)
    if len(readers) == 1 and readers[0].op_type in _ACTIVATIONS and tensor not in editor.outputs:
        return str(readers[0].output[0])
    gates = [each for each in readers if each.op_type == "Sigmoid"]
    products = [each for each in readers if each.op_type == "Mul"]
    if len(readers) == 2 and gates and products and gates[0].output[0] in products[0].input:  # noqa: PLR2004
        return str(products[0].output[0])
    return None

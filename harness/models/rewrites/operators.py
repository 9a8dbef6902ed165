"""Rewrites of nodes that a version has no kernel for: convolutions, deconvolutions, layer normalisation in pieces."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
from onnx import helper

from harness.case import effective_name
from harness.layers.operators import MULTIPLYING
from harness.models.rewrites.editor import Editor, attribute, drop_attributes
from harness.models.rewrites.floats import float_operand, half, unquantised
from harness.run.numbers import Array

#: Channels that INT8 kernels take are multiples of this.
_BY = 4
_OPSET = 17


def float_weights(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
    """Return a model without Q/DQ on the weights of the convolutions that are blamed."""
    editor = Editor(model)
    for conv in editor.of("Conv"):
        if effective_name(conv) in blamed and len(conv.input) > 1:
            float_operand(editor, conv, 1)
    return editor.done()


def half_deconvolution(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose quantised deconvolutions have no Q/DQ and compute in FP16 between Casts."""
    found = float_deconvolution(model, ())
    if found is None:
        return None
    return half(found, [effective_name(each) for each in _deconvolutions(Editor(model))])


def float_deconvolution(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose quantised deconvolutions have no Q/DQ."""
    return unquantised(model, [effective_name(each) for each in _deconvolutions(Editor(model))])


def half_products(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
    """Return a model that computes all nodes of the operators that are blamed in FP16, between Casts."""
    operators = {node.op_type for node in model.graph.node if effective_name(node) in blamed} & MULTIPLYING
    return half(model, [effective_name(node) for node in model.graph.node if node.op_type in operators])


def zeros_in_kernel(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose deconvolutions with stride and dilation have zeros in their kernels and no dilation."""
    editor = Editor(model)
    for node in editor.of("ConvTranspose"):
        held = {item.name: list(item.ints) for item in node.attribute if item.ints}
        strides, dilations = held.get("strides", [1]), held.get("dilations", [1])
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
    return editor.done()


def _deconvolutions(editor: Editor) -> list[onnx.NodeProto]:
    return [node for node in editor.of("ConvTranspose") if editor.dequantiser(node.input[0]) is not None]


def padded_channels(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose blamed convolutions have channels of zeros beside their own, up to a multiple of four.

    Of those with groups only depthwise ones are padded, which get as many groups more.
    """
    editor = Editor(model)
    for conv in editor.of("Conv"):
        if effective_name(conv) in blamed:
            _pad(editor, conv)
    return editor.done()


def _pad(editor: Editor, conv: onnx.NodeProto) -> None:
    """Pad the input and the weights of a convolution, and cut its output; nothing where its Q/DQ is not plain."""
    fed, weights = editor.dequantiser(conv.input[0]), editor.dequantiser(conv.input[1])
    source = editor.quantiser(fed) if fed is not None else None
    if fed is None or weights is None or source is None or not _whole(editor, source, fed):
        return
    quantiser = editor.quantiser(weights)
    stored = editor.value((quantiser or weights).input[0])
    bias = editor.value(conv.input[2]) if len(conv.input) > 2 else None  # noqa: PLR2004
    if stored is None or (bias is None) is (len(conv.input) > 2):  # noqa: PLR2004
        return
    more_out, more_in, fed_more = _missing(conv, *stored.shape[:2])
    chain = [weights] if quantiser is None else [quantiser, weights]
    if not (more_out or fed_more) or not all(_symmetric(editor, node, stored.shape[0]) for node in chain):
        return
    name = effective_name(conv)
    if fed_more:
        _pad_data(editor, conv, (source, fed), fed_more, stored.ndim)
    for item in conv.attribute:
        if item.name == "group" and item.i > 1:
            item.i += more_out
    wide = np.pad(stored, [(0, more_out), (0, more_in), *[(0, 0)] * (stored.ndim - 2)])
    tensor = editor.constant(f"{name}/padded_weights", wide)
    for node in chain:
        scales = [_longer(editor, each, more_out) for each in node.input[1:]]
        axis = {item.name: int(item.i) for item in node.attribute if item.name == "axis"}
        tensor = editor.add(node.op_type, [tensor, *scales], f"{name}/{node.op_type}/padded", **axis)
    editor.read(conv, 1, tensor)
    if more_out:
        if bias is not None:
            editor.read(conv, 2, editor.constant(f"{name}/padded_bias", np.pad(bias, (0, more_out))))
        _cut_result(editor, conv, stored.shape[0])


def _missing(conv: onnx.NodeProto, given: int, taken: int) -> tuple[int, int, int]:
    """Return how many channels are missing of the output, the weights and the input of a convolution."""
    groups = attribute(conv, "group", 1)
    if groups == 1:
        return -given % _BY, -taken % _BY, -taken % _BY
    depthwise = groups == given and taken == 1
    return (-given % _BY, 0, -given % _BY) if depthwise else (0, 0, 0)


def _pad_data(
    editor: Editor, conv: onnx.NodeProto, chain: tuple[onnx.NodeProto, ...], more: int, rank: int
) -> None:
    name = effective_name(conv)
    pads = np.zeros(2 * rank, np.int64)
    pads[rank + 1] = more
    tensor = editor.add("Pad", [chain[0].input[0], editor.constant(f"{name}/pads", pads)], f"{name}/padded")
    for node in chain:
        tensor = editor.add(node.op_type, [tensor, *node.input[1:]], f"{name}/{node.op_type}/data")
    editor.read(conv, 0, tensor)


def _cut_result(editor: Editor, conv: onnx.NodeProto, channels: int) -> None:
    old, name = conv.output[0], effective_name(conv)
    ends = {"starts": 0, "ends": channels, "axes": 1}
    bounds = [editor.constant(f"{name}/{key}", np.array([value], np.int64)) for key, value in ends.items()]
    editor.add("Slice", [editor.renamed(conv), *bounds], old)


def _whole(editor: Editor, *nodes: onnx.NodeProto) -> bool:
    """Tell whether Q/DQ nodes have one scale for all of a tensor."""
    scales = [editor.value(node.input[1]) for node in nodes]
    return all(scale is not None and scale.size == 1 for scale in scales)


def _symmetric(editor: Editor, node: onnx.NodeProto, channels: int) -> bool:
    """Tell whether a Q/DQ node of weights has a scale for all, or one a channel that is given, and no zero point."""
    known = [value for value in map(editor.value, node.input[1:]) if value is not None]
    if len(known) < len(node.input) - 1:
        return False
    scale, *zeros = known
    each = scale.size == channels and attribute(node, "axis", 1) == 0
    return (scale.size == 1 or each) and not any(np.any(np.asarray(zero, np.float32)) for zero in zeros)


def _longer(editor: Editor, tensor: str, more: int) -> str:
    """Return a scale or a zero point with as many channels more."""
    value: Array | None = editor.value(tensor)
    if value is None or value.size == 1 or not more:
        return tensor
    filled = np.concatenate([value, np.repeat(value[-1:], more)])
    return editor.constant(f"{tensor}/padded", filled)


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
    """Return the tensor that a chain up to this Div normalises, and its epsilon; None where it is no such chain."""
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

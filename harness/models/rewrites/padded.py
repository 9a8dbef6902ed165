"""Quantised convolutions whose channels are no multiple of four, padded with zeros to one."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.case import effective_name
from harness.models.rewrites.editor import Editor

if TYPE_CHECKING:
    import onnx

    from harness.run.numbers import Array

#: Channels that INT8 kernels take are multiples of this.
_BY = 4


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
    """Pad what a convolution reads and its weights, and cut what it gives; nothing where its Q/DQ is not plain."""
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
        tensor = editor.add(node.op_type, [tensor, *scales], f"{name}/{node.op_type}/padded", **_axis(node))
    editor.read(conv, 1, tensor)
    if more_out:
        if bias is not None:
            editor.read(conv, 2, editor.constant(f"{name}/padded_bias", np.pad(bias, (0, more_out))))
        _cut_result(editor, conv, stored.shape[0])


def _missing(conv: onnx.NodeProto, given: int, taken: int) -> tuple[int, int, int]:
    """Return how many channels are missing of what a convolution gives, of its weights, and of what it is fed."""
    groups = _attribute(conv, "group", 1)
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
    each = scale.size == channels and _attribute(node, "axis", 1) == 0
    return (scale.size == 1 or each) and not any(np.any(np.asarray(zero, np.float32)) for zero in zeros)


def _longer(editor: Editor, tensor: str, more: int) -> str:
    """Return a scale or a zero point with as many channels more."""
    value: Array | None = editor.value(tensor)
    if value is None or value.size == 1 or not more:
        return tensor
    filled = np.concatenate([value, np.repeat(value[-1:], more)])
    return editor.constant(f"{tensor}/padded", filled)


def _axis(node: onnx.NodeProto) -> dict[str, Any]:
    axis = _attribute(node, "axis", None)
    return {} if axis is None else {"axis": axis}


def _attribute(node: onnx.NodeProto, name: str, other: int | None) -> int | None:
    return next((int(item.i) for item in node.attribute if item.name == name), other)

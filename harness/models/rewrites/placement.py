"""Rewrites of where Q/DQ stands, and of what stands between a node and the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from harness.case import effective_name
from harness.layers.operators import MULTIPLYING, quantises
from harness.models.rewrites.editor import Editor
from harness.models.rewrites.unquantised import in_float
from harness.models.tensors import inferred, values_of

if TYPE_CHECKING:
    import onnx

    from harness.run.numbers import Array

#: Activations of one input, which an engine fuses into the node before.
_ACTIVATIONS = frozenset(
    {
        "Relu",
        "LeakyRelu",
        "Clip",
        "Sigmoid",
        "Tanh",
        "Elu",
        "HardSwish",
        "HardSigmoid",
        "Softplus",
        "PRelu",
        "Gelu",
    }
)
#: Outputs that are marked at a time: each is memory, and a copy.
_MOST_MARKED = 8


def concat_after(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model with Q/DQ behind each Concat of unlike scales, by the largest of them, and none on its inputs."""
    editor = Editor(model)
    for concat, readers, scale in _unlike(editor):
        for reader in readers:
            source = in_float(editor, reader)
            if source is not None:
                editor.instead(reader.output[0], source, [concat])
        behind = editor.readers(concat.output[0])
        if not behind or not all(quantises(each.op_type) for each in behind):
            pair = _pair(editor, concat.output[0], scale, _zero(editor, readers[0]))
            editor.instead(concat.output[0], pair, behind)
    return editor.done()


def concat_one_scale(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model that quantises all inputs of each Concat of unlike scales by the largest of them."""
    editor = Editor(model)
    for concat, readers, scale in _unlike(editor):
        for reader in readers:
            source = in_float(editor, reader)
            if source is not None and editor.value(reader.input[1]) != scale:
                pair = _pair(editor, source, scale, _zero(editor, reader))
                editor.instead(reader.output[0], pair, [concat])
    return editor.done()


def behind_activation(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose Q/DQ between a node that multiplies and its activation stands behind the activation."""
    editor = Editor(model)
    for reader in list(editor.nodes):
        quantiser = editor.quantiser(reader) if editor.dequantiser(reader.output[0]) is reader else None
        before = editor.maker(quantiser.input[0]) if quantiser is not None else None
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
    return editor.done()


def identity(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
    """Return a model with an Identity between each convolution that is blamed and its activation."""
    editor = Editor(model)
    for conv in editor.of("Conv"):
        if effective_name(conv) in blamed and _activated(editor, conv.output[0]):
            behind = editor.readers(conv.output[0])
            between = editor.add("Identity", [conv.output[0]], f"{conv.output[0]}/identity")
            editor.instead(conv.output[0], between, behind)
    return editor.done()


def mark_output(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
    """Return a model in which what the blamed convolutions give is an output of the network too."""
    editor, values = Editor(model), values_of(inferred(model).graph)
    convolutions = [node for node in editor.of("Conv", "ConvTranspose") if effective_name(node) in blamed]
    for conv in convolutions[:_MOST_MARKED]:
        value = values.get(conv.output[0])
        if value is not None and conv.output[0] not in editor.outputs:
            editor.output(value)
    return editor.done()


def _unlike(editor: Editor) -> Iterator[tuple[onnx.NodeProto, list[onnx.NodeProto], Array]]:
    """Yield each Concat of data quantised by unlike scales for whole tensors, what dequantises it, the largest one."""
    for concat in editor.of("Concat"):
        readers = [reader for name in concat.input if (reader := editor.dequantiser(name)) is not None]
        scales = [editor.value(reader.input[1]) for reader in readers]
        known = [each for each in scales if each is not None and each.size == 1]
        plain = len(known) == len(scales) == len(concat.input) > 1
        if (
            plain
            and len({each.item() for each in known}) > 1
            and all(_symmetric(editor, each) for each in readers)
        ):
            yield concat, readers, max(known, key=lambda each: float(each.item())).reshape(())


def _symmetric(editor: Editor, reader: onnx.NodeProto) -> bool:
    zero = _zero(editor, reader)
    return zero is not None and not zero.astype(np.float32).any()


def _zero(editor: Editor, reader: onnx.NodeProto) -> Array | None:
    """Return the zero point of a DequantizeLinear as a scalar; None where it has none that is constant."""
    held = editor.value(reader.input[2]) if len(reader.input) > 2 else None  # noqa: PLR2004
    return held.reshape(()) if held is not None and held.size == 1 else None


def _pair(editor: Editor, tensor: str, scale: Array, zero: Array | None) -> str:
    """Add a Q/DQ pair on a tensor; returns what it gives."""
    constants = [editor.constant(f"{tensor}/scale", scale)]
    if zero is not None:
        constants.append(editor.constant(f"{tensor}/zero_point", zero))
    narrow = editor.add("QuantizeLinear", [tensor, *constants], f"{tensor}/QuantizeLinear")
    return editor.add("DequantizeLinear", [narrow, *constants], f"{tensor}/DequantizeLinear")


def _activated(editor: Editor, tensor: str) -> str | None:
    """Return what the activation of a tensor gives: of one node, or of Sigmoid and Mul (SiLU); None without one."""
    readers = editor.readers(tensor)
    if len(readers) == 1 and readers[0].op_type in _ACTIVATIONS and tensor not in editor.outputs:
        return str(readers[0].output[0])
    gates = [each for each in readers if each.op_type == "Sigmoid"]
    products = [each for each in readers if each.op_type == "Mul"]
    if len(readers) == 2 and gates and products and gates[0].output[0] in products[0].input:  # noqa: PLR2004
        return str(products[0].output[0])
    return None

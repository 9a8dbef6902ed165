"""Rewrites to floating point, of a model or of the nodes that a version has no kernel for: without Q/DQ, or in FP16.

FP16 is our own, for the converters that exist (onnxconverter-common, ONNX Runtime's copy of it) are no dependency, and
go by lists of operators; here ONNX's own schemas say which input takes FP16.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto

from harness.case import effective_name
from harness.case.explicit import float_slots
from harness.case.graph_reader import attribute, name_at, opsets, subgraphs
from harness.layers.operators import MULTIPLYING
from harness.models.graphs import is_quantiser, values_of
from harness.models.rewrites.editor import Editor, edits, rewrite
from harness.run.numbers.wire import Array

#: Operators that hand values on between a DequantizeLinear and the node that multiplies.
_BETWEEN = frozenset({"Identity", "Cast", "Reshape", "Transpose", "Concat"})

_FLOAT, _HALF = TensorProto.FLOAT, TensorProto.FLOAT16
_LARGEST = float(np.finfo(np.float16).max)
#: The first opset whose Q/DQ takes scales in FP16.
_HALF_SCALES = 19
#: Left as they are: an attribute names the type of their output.
_TYPED = frozenset(
    {"Cast", "CastLike", "Constant", "ConstantOfShape", "EyeLike", "RandomNormal", "RandomUniform"}
)


def unquantised(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto | None:
    """Return a model with the nodes of these names in floating point, if that is a change.

    A weight that is stored in a narrow type becomes the float that DequantizeLinear makes of it. Others that read the
    same Q/DQ keep it, unless nodes that only move data stand between.
    """
    editor = Editor(model)
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
    """Let all that read a DequantizeLinear read the float, if there is one."""
    source = in_float(editor, reader)
    if source is not None:
        editor.instead(reader.output[0], source)


def in_float(editor: Editor, reader: onnx.NodeProto) -> str | None:
    """Return the float behind a DequantizeLinear: the tensor that was quantised, or a constant of the stored one."""
    # Brevitas cuts values to fewer bits by a Clip of the integers.
    maker = editor.producer(reader.input[0])
    quantiser = editor.quantiser(maker if maker is not None and maker.op_type == "Clip" else reader)
    if quantiser is not None:
        return str(quantiser.input[0])
    stored = editor.value(reader.input[0])
    values = None if stored is None else dequantised(editor, reader, stored)
    return None if values is None else editor.constant(f"{reader.output[0]}/float", values)


def dequantised(editor: Editor, reader: onnx.NodeProto, stored: Array) -> Array | None:
    """Return stored values as a DequantizeLinear gives them, if its scale is a constant."""
    scale = editor.value(reader.input[1])
    if scale is None:
        return None
    zero = editor.value(name_at(reader.input, 2))
    spread = [_spread(each, stored.shape, reader) for each in (scale, zero) if each is not None]
    shift = spread[1].astype(np.float32) if zero is not None else np.float32(0)
    result: Array = ((stored.astype(np.float32) - shift) * spread[0].astype(np.float32)).astype(scale.dtype)
    return result


def _spread(values: Array, shape: tuple[int, ...], reader: onnx.NodeProto) -> Array:
    """Return scales so that each element of a shape has its own."""
    axis, block = attribute(reader, "axis", 1), attribute(reader, "block_size", 0)
    if values.size == 1:
        return values.reshape([1] * len(shape))
    if block:
        return np.repeat(values, block, axis=axis).take(range(shape[axis]), axis=axis)
    extents = [1] * len(shape)
    extents[axis] = values.size
    return values.reshape(extents)


def _readers_before(editor: Editor, tensor: str) -> Iterator[onnx.NodeProto]:
    """Yield the DequantizeLinears before nodes that only move or join their outputs."""
    maker = editor.producer(tensor)
    if maker is None or maker.op_type not in _BETWEEN:
        return
    for name in maker.input if maker.op_type == "Concat" else maker.input[:1]:
        reader = editor.dequantiser(name)
        if reader is not None:
            yield reader
        else:
            yield from _readers_before(editor, name)


@rewrite
def half(model: onnx.ModelProto, _: Collection[str] = ()) -> onnx.ModelProto | None:
    """Return a model that computes in FP16."""
    return in_half(model)


def in_half(model: onnx.ModelProto, names: Collection[str] | None = None) -> onnx.ModelProto | None:
    """Return a model that computes in FP16, or only the nodes of these names, if that is a change.

    Network inputs and outputs keep their types. Q/DQ gets FP16 scales, for which the model is brought to opset 19. A
    tensor that ONNX does not let be in FP16 stays, and so do subgraphs.
    """
    raised = _raised(model) if names is None else model
    if raised is None:
        return None
    editor, floats, versions = Editor(raised), _floats(raised), opsets(raised)
    halves: dict[str, str] = {}
    for node in list(editor.nodes) if names is None else editor.named(names):
        inputs, outputs = _slots(node, floats, versions)
        for index in inputs:
            name = node.input[index]
            halves[name] = halves.get(name) or _halved(editor, name)
            editor.read(node, index, halves[name])
        for index in outputs:
            name = node.output[index]
            # Whoever still wants FP32 gets it by a Cast; a Cast without a reader is dropped.
            halves[name] = editor.moved(name, f"{name}/half")
            editor.alias(halves[name], name, "Cast", to=_FLOAT)
    return editor.done()


def _floats(model: onnx.ModelProto) -> set[str]:
    """Return the tensors of a model in FP32."""
    types = {name: value.type.tensor_type.elem_type for name, value in values_of(model).items()}
    types |= {each.name: each.data_type for each in model.graph.initializer}
    return {name for name, kind in types.items() if kind == _FLOAT}


def _raised(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a model whose Q/DQ takes FP16, if it can be brought to that opset."""
    quantised = any(is_quantiser(node.op_type) for node in model.graph.node)
    if not quantised or opsets(model).get("", 0) >= _HALF_SCALES:
        return model
    try:
        return onnx.version_converter.convert_version(model, _HALF_SCALES)
    except Exception:  # noqa: BLE001  (the converter raises anything for unknown operators)
        return None


def _slots(
    node: onnx.NodeProto, floats: Collection[str], versions: Mapping[str, int]
) -> tuple[list[int], list[int]]:
    """Return which inputs and outputs of a node are to be FP16."""
    if node.op_type in _TYPED or any(subgraphs(node)):
        return [], []
    return float_slots(node, floats, "tensor(float16)", versions) or ([], [])


def _halved(editor: Editor, name: str) -> str:
    """Return the name of a tensor in FP16: a constant, or the output of a Cast."""
    stored = editor.value(name)
    if stored is None:
        return editor.add("Cast", [name], f"{name}/half", to=_HALF)
    return editor.constant(f"{name}/half", np.clip(stored, -_LARGEST, _LARGEST).astype(np.float16))


@edits
def float_weights(editor: Editor, blamed: Collection[str]) -> None:
    """Take Q/DQ off the weights of the convolutions that are blamed."""
    for conv in editor.of("Conv"):
        if effective_name(conv) in blamed and len(conv.input) > 1:
            float_operand(editor, conv, 1)


@rewrite
def half_deconvolution(model: onnx.ModelProto, _: Collection[str]) -> onnx.ModelProto | None:
    """Return a model whose quantised deconvolutions have no Q/DQ and compute in FP16 between Casts."""
    editor = Editor(model)
    ups = (node for node in editor.of("ConvTranspose") if editor.dequantiser(node.input[0]) is not None)
    names = [effective_name(node) for node in ups]
    plain = unquantised(model, names)
    return None if plain is None else in_half(plain, names)


@rewrite
def half_products(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
    """Return a model that computes all nodes of the operators that are blamed in FP16, between Casts."""
    operators = {node.op_type for node in model.graph.node if effective_name(node) in blamed} & MULTIPLYING
    return in_half(model, [effective_name(node) for node in model.graph.node if node.op_type in operators])

"""Rewrites of nodes that a version has no kernel for: products, convolutions and deconvolutions."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
from onnx import helper

from harness.case import effective_name
from harness.layers.operators import MULTIPLYING
from harness.models.rewrites.editor import Editor, drop_attributes
from harness.models.rewrites.floats import float_operand, half, unquantised


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

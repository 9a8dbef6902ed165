"""Sizes of dynamic axes that nobody gives: plausible ones, and such as the model can have."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.models.own.shapes import Shapes, is_batch_alone, made_up_shapes

pytestmark = pytest.mark.unit

Axes = list["str | int | None"]


def model(inputs: dict[str, Axes], *nodes: onnx.NodeProto, **weights: np.ndarray) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, axes) for name, axes in inputs.items()]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    made = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    last = nodes or (helper.make_node("Relu", [next(iter(inputs))], ["y"]),)
    graph = helper.make_graph(last, "g", values, [out], made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        (["batch", 3, "height", "width"], (1, 3, 64, 64)),
        ([None, 3, None, None], (1, 3, 64, 64)),
        (["?", 3, "?", "?"], (64, 3, 64, 64)),
        ([None, None, None, 3], (1, 64, 64, 3)),
        ([None, None, None, None, None], (1, 3, 64, 64, 64)),
        (["batch", "sequence"], (1, 16)),
        ([None, None, 64], (1, 16, 64)),
        ([1, None, 80], (1, 16, 80)),
        ([2, None, 128], (2, 1, 128)),
        (["batch", 8, "past_sequence", 64], (1, 8, 16, 64)),
        ([None], (16,)),
        (["batch_size", "N"], (1, 16)),
        (["N", "C", "H", "W"], (1, 3, 64, 64)),
        (["T", "N", 80], (16, 1, 80)),
    ],
)
def test_an_axis_has_a_size_by_its_name_or_else_by_its_place(axes: Axes, shape: tuple[int, ...]) -> None:
    assert made_up_shapes(model({"x": axes}), {}) == {"x": shape}


MATRIX, KERNEL, GATES = (np.zeros(shape, np.float32) for shape in ((138, 8), (4, 3, 1, 1), (1, 4, 138)))


@pytest.mark.parametrize(
    ("axes", "node", "weight", "shape"),
    [
        (["a", "b"], helper.make_node("MatMul", ["x", "w"], ["y"]), MATRIX, (1, 138)),
        ([None, None], helper.make_node("MatMul", ["x", "w"], ["y"]), MATRIX, (1, 138)),
        ([None, None], helper.make_node("Gemm", ["x", "w"], ["y"], transB=1), MATRIX, (1, 8)),
        (["n", "c", "h", "w"], helper.make_node("Conv", ["x", "w"], ["y"], group=2), KERNEL, (1, 6, 64, 64)),
        (["t", None, "f"], helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=1), GATES, (16, 16, 138)),
        # One name for all that is not known says nothing of each.
        (["?", "?"], helper.make_node("MatMul", ["x", "w"], ["y"]), MATRIX, (16, 16)),
    ],
)  # fmt: skip
def test_a_size_that_weights_fix_is_taken(
    axes: Axes, node: onnx.NodeProto, weight: np.ndarray, shape: tuple[int, ...]
) -> None:
    given = model({"x": axes}, node, w=weight, r=np.zeros((1, 4, 1), np.float32))
    assert made_up_shapes(given, {}) == {"x": shape}


def test_axes_of_one_name_have_one_size_that_another_input_may_give() -> None:
    inputs: dict[str, Axes] = {"ids": ["batch", "n_tokens"], "mask": ["batch", "n_tokens"], "k": [2]}
    assert made_up_shapes(model(inputs), {"ids": (2, 7)}) == {"mask": (2, 7)}


@pytest.mark.parametrize(
    ("axes", "given", "alone"),
    [
        (["batch", 3, 32, 32], {}, True),
        ([None, 3, "height", 32], {}, False),
        ([None], {}, False),
        ([None, 3, "height", 32], {"x": (1, 3, 32, 32)}, True),
    ],
)
def test_a_batch_alone_is_a_size_that_any_model_has(
    axes: Axes, given: dict[str, tuple[int, ...]], alone: bool
) -> None:
    assert is_batch_alone(model({"x": axes}), Shapes(given)) is alone


def neck() -> onnx.ModelProto:
    """Return a network whose 1x1 image has parts of two sizes: halved, doubled, and laid beside itself."""
    return model(
        {"x": [None, 3, None, None]},
        helper.make_node("Conv", ["x", "w"], ["half"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Resize", ["half", "", "scales"], ["twice"]),
        helper.make_node("Concat", ["x", "twice"], ["y"], axis=1),
        w=np.zeros((3, 3, 3, 3), np.float32),
        scales=np.array([1, 1, 2, 2], np.float32),
    )


def head(features: int) -> onnx.ModelProto:
    return model(
        {"x": [None, 3, None, None]},
        helper.make_node("MaxPool", ["x"], ["less"], kernel_shape=[32, 32], strides=[32, 32]),
        helper.make_node("Flatten", ["less"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
        w=np.zeros((features, 2048), np.float32),
    )


def test_a_size_is_one_that_the_model_can_have() -> None:
    assert made_up_shapes(neck(), {}) == {"x": (1, 3, 64, 64)}
    assert made_up_shapes(head(3 * 7 * 7), {}) == {"x": (1, 3, 224, 224)}
    assert made_up_shapes(head(3), {}) == {"x": (1, 3, 32, 32)}


def test_where_no_size_fits_it_is_the_first() -> None:
    assert made_up_shapes(head(5), {}) == {"x": (1, 3, 64, 64)}


def test_a_part_of_a_model_has_the_shapes_that_it_can_have() -> None:
    part = model({"x": [None, None, 1], "z": [None]})
    shapes = Shapes(optimum={"x": (1, 10, 64), "z": (1, 2), "gone": (3,)})
    assert shapes.fitted(part) == Shapes(optimum={"x": (1, 10, 1)})

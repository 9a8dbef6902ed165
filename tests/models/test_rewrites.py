"""Rewrites: what each changes, that the model stays valid, and that those that cost nothing give the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Graph, Quantiser
from harness.layers.asked import asked
from harness.models.rewrites import REWRITES, unquantised
from harness.models.rewrites.editor import FUNCTIONS
from harness.models.rewrites.exact import finite_clip, name_axes, opset_17, scatter_product
from harness.models.rewrites.floats import float_weights, half, half_deconvolution, half_products, in_half
from harness.models.rewrites.folded import fold
from harness.models.rewrites.quantised import (
    concat_after,
    dequantise_weights,
    float_bias,
    float_scalars,
    scalar_scale,
    undo_dynamic,
    zero_points,
    zeros_in_kernel,
)
from harness.run.numbers.inputs import make_inputs
from harness.run.numbers.reference import compare, reference
from harness.run.numbers.wire import Array
from tests.models.embedded import classifier, network
from tests.models.test_reduce import model as onnx_model
from tests.models.test_reduce import value

pytestmark = pytest.mark.unit


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def outputs(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    found = reference(model, inputs)
    assert found.outputs is not None, found.reason
    return found.outputs


def off(model: onnx.ModelProto, other: onnx.ModelProto | None) -> float:
    """Return how far a rewritten model is off, by the largest value, once it is seen to be valid."""
    assert other is not None
    onnx.checker.check_model(other, full_check=True)
    inputs = make_inputs(model)
    return max(each.max_rel for each in compare(outputs(model, inputs), outputs(other, inputs)))


def precisions(model: onnx.ModelProto | None, op: str = "Conv") -> list[str]:
    assert model is not None
    return [node.precision for node in asked(model) if node.op == op]


def convolution(*, vector: bool = False, int32_bias: bool = False) -> onnx.ModelProto:
    """Return an INT8 convolution and its bias."""
    g = Graph("convolution")
    x = g.qdq(g.input("x", [1, 4, 6, 6]), name="/x", scale=[0.02] if vector else 0.02)
    weight = g.weight_qdq(g.weight("w", (4, 4, 3, 3)), name="/w")
    bias = g.weight("b", (4,), spread=0.1)
    if int32_bias:
        stored = g.constant("b_quantised", [5, -3, 2, 7], [4], TensorProto.INT32)
        scales = g.constant("b_scale", [0.01, 0.02, 0.01, 0.03], [4])
        bias = g.node("DequantizeLinear", [stored, scales], name="/b", axis=0)
    g.output(g.conv(x, weight, name="/conv", bias=bias), [1, 4, 6, 6])
    return g.model()


def test_a_model_without_its_q_dq_has_float_weights_and_nearly_the_same_numbers() -> None:
    model = network("concat")
    names = [node.name for node in model.graph.node]
    plain = unquantised(model, names)
    assert 0 < off(model, plain) < 0.05
    assert plain is not None
    assert not {"QuantizeLinear", "DequantizeLinear"} & set(operators(plain))
    assert unquantised(plain, names) is None


def test_stored_weights_become_what_dequantise_linear_makes_of_them() -> None:
    for axis, block in ((0, 0), (1, 0), (0, 4)):
        g = Graph("stored", opset=21)
        weight = g.stored_weight("w", (8, 4), name="/w", axis=axis, block=block)
        g.output(g.node("MatMul", [g.input("x", [2, 8]), weight], name="/mm"), [2, 4])
        plain = unquantised(g.model(), ["/mm"])
        assert plain is not None
        assert operators(plain) == ["MatMul"]
        assert off(g.model(), plain) < 1e-6


def test_one_node_is_left_in_floating_point_and_what_shares_its_q_dq_is_not() -> None:
    g = Graph("shared")
    x = g.qdq(g.input("x", [1, 4, 6, 6]), name="/x", scale=0.02)
    for name in ("/one", "/two"):
        g.output(
            g.conv(x, g.weight_qdq(g.weight(f"{name}w", (4, 4, 3, 3)), name=f"{name}/w"), name=name),
            [1, 4, 6, 6],
        )
    left = unquantised(g.model(), ["/one"])
    assert precisions(left) == ["", "int8"]
    assert off(g.model(), left) < 0.05


def test_q_dq_whose_integers_a_clip_cuts_to_fewer_bits_go_with_it() -> None:
    """So Brevitas writes weights of four bits."""
    model = network("plain", depth=4)
    (first,) = (node for node in model.graph.node if node.name == "/front0a/Conv")
    (reader,) = (node for node in model.graph.node if first.input[1] in node.output)
    (quantised,) = reader.input[:1]
    bounds = [numpy_helper.from_array(np.array(each, np.int8), f"c{each}") for each in (-7, 7)]
    model.graph.initializer.extend(bounds)
    at = list(model.graph.node).index(reader)
    model.graph.node.insert(at, helper.make_node("Clip", [quantised, "c-7", "c7"], ["cut"], name="/cut"))
    reader.input[0] = "cut"
    floated = float_weights(model, ["/front0a/Conv"])
    assert floated is not None
    assert "Clip" not in operators(floated)
    assert precisions(floated) == ["", "int8", "int8", "int8"]


def test_fp16_everywhere_keeps_inputs_and_outputs_and_what_onnx_does_not_let_be_fp16() -> None:
    g = Graph("mixed", opset=17)
    x = g.input("x", [1, 2, 4, 4])
    y = g.node("Resize", [x, "", g.constant("scales", [1, 1, 2, 2], [4])], name="/resize", mode="nearest")
    y = g.node("Mul", [y, g.constant("big", [1e6], [])], name="/mul")
    g.output(
        g.node("Clip", [y, g.constant("low", [0], []), g.constant("high", [1], [])], name="/clip"),
        [1, 2, 8, 8],
    )
    halved = half(g.model())
    assert off(g.model(), halved) < 1e-2
    assert halved is not None
    types = {value.type.tensor_type.elem_type for value in (*halved.graph.input, *halved.graph.output)}
    assert types == {TensorProto.FLOAT}
    kinds = {each.name: each.data_type for each in halved.graph.initializer}
    assert kinds == {
        "scales": TensorProto.FLOAT,
        **dict.fromkeys(("big/half", "low/half", "high/half"), TensorProto.FLOAT16),
    }
    assert in_half(halved, []) is None


def test_fp16_of_a_quantised_model_gives_its_q_dq_fp16_scales() -> None:
    model = network("plain", depth=4)
    halved = half(model)
    assert off(model, halved) < 0.05
    assert halved is not None
    assert operators(halved).count("Cast") == 2
    assert precisions(halved) == ["int8"] * 4


def test_fp16_of_some_nodes_casts_round_them_alone() -> None:
    model = classifier()
    halved = half_products(model, ["/fc1/MatMul"])
    assert off(model, halved) < 1e-2
    assert precisions(halved, "MatMul") == ["fp16", "fp16"]
    assert precisions(halved) == [""] * 4
    assert operators(half(model) or model).count("Cast") == 2


def test_exact_rewrites_give_the_same_numbers_to_the_bit() -> None:
    vector = convolution(vector=True)
    scalar = scalar_scale(vector, ())
    assert off(vector, scalar) == 0
    assert "" in [node.fed for node in asked(scalar or vector) if node.op == "Conv"]
    bias = convolution(int32_bias=True)
    floated = float_bias(bias, ())
    assert off(bias, floated) == 0
    assert precisions(floated) == ["int8"]


UINT8, LOW = Quantiser(TensorProto.UINT8, zero_point=100), Quantiser(zero_point=-128)


def scales_of(model: onnx.ModelProto) -> dict[str, Any]:
    """Return the scale of each Q and DQ, the type of its zero point, and the zero points that it has."""
    held = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    return {
        node.name: (held[node.input[1]].reshape(-1).tolist(), str(zero.dtype), set(zero.reshape(-1).tolist()))
        for node in model.graph.node
        if "quantize" in node.op_type.lower()
        for zero in [held[node.input[2]]]
    }


@pytest.mark.parametrize(("to", "wide"), [(UINT8, 0.02 * 155 / 127), (LOW, 0.02 * 255 / 127)])
def test_zero_points_move_to_zero_and_the_scale_takes_in_the_larger_side(to: Quantiser, wide: float) -> None:
    g = Graph("asymmetric")
    x = g.qdq(g.input("x", [4, 8]), name="/x", scale=0.02, to=to)
    g.output(
        g.node("MatMul", [x, g.weight_qdq(g.weight("w", (8, 4)), name="/w", axis=1)], name="/mm"), [4, 4]
    )
    moved = zero_points(g.model(), ())
    assert moved is not None
    before, after = scales_of(g.model()), scales_of(moved)
    for name in ("/x/QuantizeLinear", "/x/DequantizeLinear"):
        assert after[name] == ([pytest.approx(wide)], "int8", {0})
    assert {key: each for key, each in after.items() if "/w" in key} == {
        key: each for key, each in before.items() if "/w" in key
    }
    assert 0 < off(g.model(), moved) < 0.05
    assert zero_points(moved, ()) is None
    assert zero_points(convolution(), ()) is None


def test_a_zero_point_that_stands_for_a_relu_becomes_one() -> None:
    """Quantisers leave out the Relu in front of what cuts off below zero by itself."""
    for operator, relus in (("Neg", 1), ("Relu", 1), ("Sigmoid", 0)):
        g = Graph("cut")
        x = g.node(operator, [g.input("x", [4])], name="/before")
        to = Quantiser(TensorProto.UINT8, zero_point=0)
        g.output(g.node("Add", [g.qdq(x, name="/q", scale=0.01, to=to), x], name="/add"), [4])
        moved = zero_points(g.model(), ())
        assert off(g.model(), moved) < 0.02
        assert operators(moved or g.model()).count("Relu") == relus


def test_stored_weights_are_rounded_anew_around_zero() -> None:
    """By channel, each to its own largest value; a channel of nothing but its zero point keeps a scale."""
    stored = np.array([[10, 250], [130, 7], [200, 7], [90, 7]], np.uint8)
    zeros, scales = np.array([100, 7], np.uint8), np.array([0.01, 0.02], np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], name="/w", axis=1),
        helper.make_node("DequantizeLinear", ["one", "s1", "z1"], ["v"], name="/v"),
        helper.make_node("MatMul", ["x", "w"], ["y"], name="/mm"),
        helper.make_node("MatMul", ["x", "v"], ["u"], name="/mv"),
    ]
    one: dict[str, Any] = {"one": stored[:, :1], "s1": scales[:1].reshape(()), "z1": zeros[:1].reshape(())}
    ends = [value("y", [2, 2]), value("u", [2, 1])]
    model = onnx_model(nodes, [value("x", [2, 4])], ends, 13, q=stored, s=scales, z=zeros, **one)
    moved = zero_points(model, ())
    assert moved is not None
    assert scales_of(moved) == {
        "/w": ([pytest.approx(0.01 * 100 / 127), pytest.approx(0.02 * 243 / 127)], "int8", {0}),
        "/v": ([pytest.approx(0.01 * 100 / 127)], "int8", {0}),
    }
    assert off(model, moved) < 0.02
    flat = onnx.ModelProto()
    flat.CopyFrom(model)
    flat.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full((4, 2), [100, 7], np.uint8), "q"))
    assert scales_of(zero_points(flat, ()) or flat)["/w"] == ([1, 1], "int8", {0})


def test_what_more_than_its_dequantisers_reads_keeps_its_zero_point() -> None:
    def graph(*, shown: bool, other: int = 100) -> onnx.ModelProto:
        g = Graph("shared")
        q = g.quantize(g.input("x", [4]), name="/q", scale=0.02, to=UINT8)
        y = g.dequantize(q, name="/dq", scale=0.02, to=Quantiser(TensorProto.UINT8, zero_point=other))
        g.output(g.node("Relu", [y], name="/r"), [4])
        if shown:
            g.output(q, [4], TensorProto.UINT8)
        return g.model()

    assert zero_points(graph(shown=False), ()) is not None
    assert zero_points(graph(shown=True), ()) is None
    assert zero_points(graph(shown=False, other=101), ()) is None


def test_a_constant_of_one_element_needs_no_q_dq() -> None:
    g = Graph("scalar")
    one = g.qdq(g.constant("one", [0.5], []), name="/one", scale=0.01)
    g.output(g.node("Mul", [g.input("x", [2, 2]), one], name="/mul"), [2, 2])
    plain = float_scalars(g.model(), ())
    assert off(g.model(), plain) < 1e-6
    assert operators(plain or g.model()) == ["Mul"]
    assert float_scalars(convolution(), ()) is None


def test_a_concat_of_unlike_scales_gets_one() -> None:
    model = network("concat", depth=4)
    rewritten = concat_after(model, ()) or model
    assert not any("unlike" in node.fed for node in asked(rewritten))
    assert precisions(rewritten) == ["int8"] * 7
    assert operators(rewritten).count("QuantizeLinear") == operators(model).count("QuantizeLinear") - 1


def test_q_dq_of_a_zero_point_is_not_moved_behind_a_concat() -> None:
    g = Graph("asymmetric")
    unsigned = Quantiser(TensorProto.UINT8, zero_point=128)
    parts = [
        g.qdq(g.input(name, [1, 2]), name=f"/{name}", scale=scale, to=unsigned)
        for name, scale in (("a", 0.1), ("b", 0.2))
    ]
    g.output(g.node("Concat", parts, name="/concat", axis=1), [1, 4])
    assert concat_after(g.model(), ()) is None


def test_only_what_is_blamed_gets_float_weights() -> None:
    model = network("plain", depth=4)
    assert precisions(float_weights(model, ["/front0a/Conv"])) == ["", "int8", "int8", "int8"]
    for rewrite in (float_weights, half_products):
        assert rewrite(model, ()) is None


def test_a_deconvolution_leaves_its_q_dq() -> None:
    model = network("deconvolution", depth=4)
    rewritten = half_deconvolution(model, ())
    assert off(model, rewritten) > 0
    assert precisions(rewritten, "ConvTranspose") == ["fp16"]
    assert precisions(rewritten) == ["int8"] * 4


def dilated() -> onnx.ModelProto:
    """Return a deconvolution of stride and dilation."""
    g = Graph("dilated")
    x = g.input("x", [1, 2, 5, 5])
    y = g.conv_transpose(x, g.weight("w", (2, 3, 3, 3)), name="/up", kernel=3, dilation=2)
    g.output(y, [1, 3, "h", "w"])
    return g.model()


def test_zeros_in_a_kernel_take_the_place_of_its_dilation() -> None:
    wide = zeros_in_kernel(dilated(), ())
    assert off(dilated(), wide) < 1e-6
    assert wide is not None
    assert zeros_in_kernel(wide, ()) is None


def integers(op: str, *, per_channel: bool = False, twice: bool = False) -> onnx.ModelProto:
    """Return a product of data that is quantised as it runs; `twice` lets something else read that data quantised."""
    shapes = {"MatMulInteger": ([3, 6], [6, 4]), "ConvInteger": ([1, 6, 5, 5], [4, 6, 3, 3])}[op]
    made = {"MatMulInteger": [3, 4], "ConvInteger": [1, 4, 3, 3]}[op]
    weight = np.random.default_rng(3).integers(0, 255, shapes[1]).astype(np.uint8)
    zero = np.array([7, 9, 120, 128] if per_channel else 117, np.uint8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["x8", "scale", "zero"]),
        helper.make_node(op, ["x8", "w", "zero", "w_zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["scale", "w_scale"], ["scales"]),
        helper.make_node("Mul", ["wide", "scales"], ["y"]),
    ]
    nodes += [helper.make_node("Cast", ["x8"], ["z"], to=TensorProto.FLOAT)] if twice else []
    ends = [value("y", made), value("z", shapes[0])][: 1 + twice]
    scale = np.array(0.004, np.float32)
    return onnx_model(nodes, [value("x", shapes[0])], ends, w=weight, w_zero=zero, w_scale=scale)


@pytest.mark.parametrize(
    ("op", "plain", "per_channel"),
    # ONNX's evaluator takes one zero point for the weights of a ConvInteger.
    [("MatMulInteger", "MatMul", False), ("MatMulInteger", "MatMul", True), ("ConvInteger", "Conv", False)],
)
def test_what_is_quantised_as_it_runs_is_computed_in_floats(
    op: str, plain: str, *, per_channel: bool
) -> None:
    """Off by the rounding of the data alone."""
    model = integers(op, per_channel=per_channel)
    found = undo_dynamic(model, ())
    assert 0 < off(model, found) < 0.02
    assert found is not None
    assert plain in operators(found)
    assert not {op, "DynamicQuantizeLinear"} & set(operators(found))


def test_data_that_something_else_reads_quantised_stays_so() -> None:
    assert undo_dynamic(integers("MatMulInteger", twice=True), ()) is None
    shown = integers("MatMulInteger")
    shown.graph.output.append(helper.make_tensor_value_info("scale", TensorProto.FLOAT, []))
    assert undo_dynamic(shown, ()) is None


def test_the_weights_of_a_quantised_lstm_are_turned_and_dequantised() -> None:
    """ONNX Runtime keeps them as (directions, inputs, gates)."""
    weights = {
        name: np.random.default_rng(1).integers(-99, 99, (1, 3, 16)).astype(np.int8) for name in ("w", "r")
    }
    weights["r"] = np.random.default_rng(2).integers(-99, 99, (1, 4, 16)).astype(np.int8)
    scales = {f"{name}_scale": np.array([0.01], np.float32) for name in weights}
    zeros = {f"{name}_zero": np.array([3], np.int8) for name in weights}
    stored: dict[str, Array] = {**weights, **scales, **zeros}
    names = ["x", "w", "r", "", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    graph = helper.make_graph(
        [helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=4)],
        "lstm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 1, 1, 4])],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    found = undo_dynamic(helper.make_model(graph, opset_imports=opsets, ir_version=8), ())
    assert found is not None
    onnx.checker.check_model(found, full_check=True)
    (node,) = found.graph.node
    assert (node.op_type, node.domain, len(node.input)) == ("LSTM", "", 8)
    values = {each.name: numpy_helper.to_array(each) for each in found.graph.initializer}
    wanted = ((weights["w"].astype(np.float32) - 3) * np.float32(0.01)).transpose(0, 2, 1)
    assert np.allclose(values[node.input[1]], wanted)


def table() -> onnx.ModelProto:
    """Return rows of an 8-bit table, turned, and then dequantised."""
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["turned"], perm=[1, 0]),
        helper.make_node("DequantizeLinear", ["turned", "scale", "zero"], ["y"]),
    ]
    return onnx_model(
        nodes,
        [value("x", [3], TensorProto.INT64)],
        [value("y", [4, 3])],
        table=np.arange(32, dtype=np.uint8).reshape(8, 4),
        scale=np.array(0.5, np.float32),
        zero=np.array(10, np.uint8),
    )


def test_an_8_bit_table_becomes_one_of_floats() -> None:
    found = undo_dynamic(table(), ())
    assert off(table(), found) == 0
    assert found is not None
    assert operators(found)[:2] == ["Gather", "Transpose"]


def widened(scale: Array, *, opset: int = 17) -> onnx.ModelProto:
    """Return a product with INT8 weights that a Cast and a Mul widen."""
    stored = np.random.default_rng(5).integers(-127, 127, (6, 4)).astype(np.int8)
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["weights"]),
        helper.make_node("MatMul", ["x", "weights"], ["y"]),
    ]
    return onnx_model(nodes, [value("x", [3, 6])], [value("y", [3, 4])], opset, w=stored, scale=scale)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4), (6, 1)])
def test_widened_weights_are_dequantised_along_their_scale(shape: tuple[int, ...]) -> None:
    scale = np.random.default_rng(6).random(shape).astype(np.float32)
    model = widened(scale)
    found = dequantise_weights(model, ())
    assert off(model, found) < 1e-6
    assert found is not None
    assert operators(found) == ["DequantizeLinear", "MatMul"]
    assert precisions(found, "MatMul") == ["int8_weights"]


def test_weights_with_a_scale_an_element_or_an_axis_too_new_stay() -> None:
    assert dequantise_weights(widened(np.ones((6, 4), np.float32) / 7), ()) is None
    assert dequantise_weights(widened(np.ones(4, np.float32), opset=12), ()) is None
    assert dequantise_weights(widened(np.ones((), np.float32), opset=9), ()) is None


BRANCHES = {"then_branch": "Relu", "else_branch": "Neg"}


def branch(nodes: list[onnx.NodeProto], stored: Sequence[onnx.TensorProto] = ()) -> Any:
    end = onnx.ValueInfoProto(name=nodes[-1].output[0])
    return helper.make_graph(nodes, "branch", [], [end], stored)


def branching(length: int | str) -> onnx.ModelProto:
    """Return a graph whose If asks for the length of its input, and whose branches have a subgraph of their own."""
    two = numpy_helper.from_array(np.array(2, np.float32), "two")
    inner = {name: branch([helper.make_node(op, ["half"], ["end"])]) for name, op in BRANCHES.items()}
    first = [
        helper.make_node("Mul", ["x", "two"], ["half"]),
        helper.make_node("If", ["yes"], ["last"], **inner),
    ]
    graphs: dict[str, Any] = {
        "then_branch": branch(first, [two]),
        "else_branch": branch([helper.make_node("Abs", ["x"], ["last"])]),
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Equal", ["shape", "eight"], ["asked"]),
        helper.make_node("If", ["asked"], ["y"], **graphs),
    ]
    ends = [value("x", [length])], [value("y", [length])]
    return onnx_model(nodes, *ends, eight=np.array([8]), yes=np.array(True))


@pytest.mark.parametrize(
    ("length", "left"), [(8, ["Mul", "Identity", "Relu", "Identity"]), (9, ["Abs", "Identity"])]
)
def test_an_if_that_shapes_decide_is_its_branch(length: int, left: list[str]) -> None:
    """And so is the If within, under names that nothing else has."""
    found = fold(branching(length))
    assert off(branching(length), found) == 0
    assert found is not None
    assert sorted(operators(found)) == sorted(left)


def test_an_if_that_nothing_decides_stays() -> None:
    assert fold(branching("n")) is None


def test_constants_are_computed_up_to_where_they_are_quantised() -> None:
    """A weight is stored as it is read; its Q/DQ stays."""
    g = Graph("folded", opset=13)
    stored = g.constant("w8", list(range(24)), [4, 6], TensorProto.INT8)
    turned = g.node("Transpose", [stored], name="/turn", perm=[1, 0])
    weight = g.node("DequantizeLinear", [turned, g.constant("scale", [0.1], [])], name="/w")
    y = g.node("MatMul", [g.qdq(g.input("x", [3, 6]), name="/x", scale=0.02), weight], name="/mul")
    g.output(y, [3, 4])
    model = g.model()
    found = fold(model)
    assert off(model, found) == 0
    assert found is not None
    assert operators(found) == [op for op in operators(model) if op != "Transpose"]


def test_no_rewrite_changes_the_model_that_it_is_given() -> None:
    model = network("concat", depth=4)
    before = model.SerializeToString()
    for rewrite in REWRITES:
        rewrite.apply(model, ["/front0a/Conv"])
    assert model.SerializeToString() == before


def test_each_rewrite_has_one_row_of_the_table() -> None:
    assert sorted(each.name for each in REWRITES) == sorted(FUNCTIONS)


def test_each_rewrite_is_proved_by_a_case_or_tried_here() -> None:
    tried = Path(__file__).read_text(encoding="utf-8")
    by_name = {
        each.name: (f'"{each.name}"', getattr(FUNCTIONS[each.name], "__name__", "-")) for each in REWRITES
    }
    assert [
        each.name
        for each in REWRITES
        if not each.proof and not any(word in tried for word in by_name[each.name])
    ] == []


@pytest.mark.parametrize("opset", [11, 13])
def test_the_axes_of_a_squeeze_are_named_where_a_size_is_not_known(opset: int) -> None:
    """An axis of unknown size stays; fixed sizes need no names, and named axes stay as they are."""

    def squeezed(size: int | str, **attributes: Any) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("Squeeze", ["r"], ["y"], **attributes),
        ]
        graph = helper.make_graph(nodes, "g", [value("x", [size, 8, 1])], [value("y", [size, 8])])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    made = name_axes(squeezed("n"))
    assert made is not None
    onnx.checker.check_model(made, full_check=True)
    given = {"x": np.ones((3, 8, 1), np.float32)}
    assert outputs(made, given)["y"].shape == (3, 8)
    assert outputs(made, {"x": np.ones((1, 8, 1), np.float32)})["y"].shape == (1, 8)
    assert np.array_equal(outputs(made, given)["y"], outputs(squeezed("n"), given)["y"])
    assert name_axes(squeezed(3)) is None
    if opset < 13:
        assert name_axes(squeezed("n", axes=[2])) is None
    else:
        named = squeezed("n")
        named.graph.initializer.append(numpy_helper.from_array(np.array([2]), "axes"))
        named.graph.node[1].input.append("axes")
        assert name_axes(named) is None


@pytest.mark.parametrize("opset", [6, 13])
def test_an_infinite_bound_is_left_out_and_a_finite_one_stays(opset: int) -> None:
    bounds: dict[str, Any] = {"min": 0.5, "max": np.inf}
    if opset < 11:
        nodes, held = [helper.make_node("Clip", ["x"], ["y"], **bounds)], []
    else:
        nodes = [helper.make_node("Clip", ["x", "min", "max"], ["y"])]
        held = [numpy_helper.from_array(np.array(each, np.float32), name) for name, each in bounds.items()]
    graph = helper.make_graph(nodes, "g", [value("x", [2, 4])], [value("y", [2, 4])], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    made = finite_clip(model, ())
    assert made is not None
    assert off(model, made) == 0
    assert "inf" not in onnx.printer.to_text(made)
    assert finite_clip(made, ()) is None


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_a_scatter_that_adds_is_a_product(axis: int, kind: type) -> None:
    """Where indices meet, and where they count from the end; one that overwrites, or leaves places out, stays."""

    def scattering(reduction: str, width: int = 3) -> onnx.ModelProto:
        indices = np.random.default_rng(0).integers(-2, 2, (5, width) if axis == 0 else (4, 2))
        shape = indices.shape
        held = [
            numpy_helper.from_array(np.arange(12).reshape(4, 3).astype(kind), "d"),
            numpy_helper.from_array(indices, "i"),
        ]
        node = helper.make_node("ScatterElements", ["d", "i", "u"], ["y"], axis=axis, reduction=reduction)
        number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        given = helper.make_tensor_value_info("u", number, shape)
        shown = helper.make_tensor_value_info("y", number, [4, 3])
        graph = helper.make_graph([node], "g", [given], [shown], held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    model = scattering("add")
    made = scatter_product(model)
    assert off(model, made) < 1e-3
    assert "ScatterElements" not in operators(made or model)
    assert scatter_product(scattering("none")) is None
    if axis == 0:
        assert scatter_product(scattering("add", width=2)) is None
    whole = scattering("add")
    whole.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((4, 3), np.int32), "d"))
    assert scatter_product(whole) is None, "no OneHot of floats stands for integers"
    del whole.graph.initializer[0]
    whole.graph.input.append(value("d", ["n", 3] if axis == 0 else [4, "n"]))
    assert scatter_product(whole) is None, "a depth that is not fixed"


def test_an_older_opset_says_the_same_where_its_operators_can() -> None:
    """Axes that are an input, a part of a shape, and parts of a length that they do not divide."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 5, 3])
    held = {"axes": [-1], "two": [2, 2]}
    stored = [numpy_helper.from_array(np.array(each), name) for name, each in held.items()]
    nodes = [
        helper.make_node("ReduceMax", ["x", "axes"], ["r"], name="r", keepdims=0, noop_with_empty_axes=0),
        helper.make_node("Split", ["r"], ["a", "b"], name="s", axis=1, num_outputs=2),
        helper.make_node("Shape", ["x"], ["n"], name="n", start=1, end=2),
        helper.make_node("Expand", ["b", "two"], ["y"], name="y"),
    ]
    shapes: dict[str, tuple[int, list[int]]] = {"a": (1, [2, 3]), "y": (1, [2, 2]), "n": (7, [1])}
    outputs = [helper.make_tensor_value_info(name, *each) for name, each in shapes.items()]
    graph = helper.make_graph(nodes, "g", [x], outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    made = opset_17(model)
    assert off(model, made) == 0
    assert made is not None
    assert made.opset_import[0].version == 17
    assert all(len(node.input) == 1 for node in made.graph.node if node.op_type == "ReduceMax")
    assert opset_17(made) is None


def loop(count: int | None, *, goes_on: bool = True) -> onnx.ModelProto:
    """Return a Loop that adds a row to a sum and gathers the sums."""
    value, node = helper.make_tensor_value_info, helper.make_node
    body = helper.make_graph(
        [
            node("Gather", ["rows", "i"], ["row"], axis=0),
            node("Add", ["sum", "row"], ["next"]),
            node("Identity", ["go"] if goes_on else ["stop"], ["went"]),
            node("Identity", ["next"], ["kept"]),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("sum", 1, [4])],
        [value("went", TensorProto.BOOL, []), value("next", 1, [4]), value("kept", 1, [4])],
    )
    stored = [numpy_helper.from_array(np.zeros(4, np.float32), "zero")]
    stored += [numpy_helper.from_array(np.array(count), "count")] if count is not None else []
    stored += [] if goes_on else [numpy_helper.from_array(np.array(False), "stop")]
    inputs = [value("rows", 1, [3, 4])] + [value("count", TensorProto.INT64, [])] * (count is None)
    outputs = [value("last", 1, [4]), value("all", 1, [count or "n", 4])]
    nodes = [node("Loop", ["count", "", "zero"], ["last", "all"], name="loop", body=body)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_loop_of_a_constant_count_is_unrolled() -> None:
    model = loop(3)
    made = fold(model)
    assert made is not None
    assert "Loop" not in operators(made)
    assert off(model, made) == 0


@pytest.mark.parametrize("model", [loop(None), loop(3, goes_on=False), loop(1000)])
def test_a_loop_whose_end_is_not_known_or_far_stays(model: onnx.ModelProto) -> None:
    made = fold(model)
    assert made is None or "Loop" in operators(made)

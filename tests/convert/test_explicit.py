"""Types are written into a graph: Casts at borders alone, Q/DQ by scales, and nothing else is changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Graph, effective_name
from harness.case.explicit import Explicit, NodeTypes, explicit
from harness.layers.asked import asked
from harness.run.numbers.inputs import make_inputs
from harness.run.numbers.reference import compare, reference
from harness.words import Precision

pytestmark = pytest.mark.unit

FP16, BF16, INT8, FP32 = Precision.FP16, Precision.BF16, Precision.INT8, Precision.FP32
SCALES = {"x": 1 / 127, "first_output_0": 0.02, "act_output_0": 0.02, "second_output_0": 0.03}


def chain(opset: int = 19) -> onnx.ModelProto:
    """Build two convolutions that share one weight, with a Sigmoid between, and a sum of both ends."""
    g = Graph("chain", opset=opset)
    x = g.input("x", [1, 8, 6, 6])
    weight = g.weight("w", (8, 8, 3, 3))
    bias = g.weight("b", (8,))
    first = g.conv(x, weight, name="first", kernel=3, bias=bias)
    act = g.node("Sigmoid", [first], name="act")
    second = g.conv(act, weight, name="second", kernel=3, bias=bias)
    g.output(g.node("Add", [first, second], name="sum"), [1, 8, 6, 6])
    return g.model()


def typed(nodes: dict[str, Precision], scales: dict[str, float] | None = None, opset: int = 19) -> Explicit:
    model = chain(opset)
    before = model.SerializeToString()
    made = explicit(model, NodeTypes(nodes, scales or {}))
    assert model.SerializeToString() == before
    onnx.checker.check_model(made.model, full_check=True)
    # Whoever feeds and reads the model sees no change.
    assert [made.model.graph.input, made.model.graph.output] == [model.graph.input, model.graph.output]
    assert {each.name for each in asked(made.model)} >= {"first", "act", "second", "sum"}
    return made


def off(made: Explicit) -> float:
    model = chain()
    inputs = make_inputs(model)
    wanted, got = reference(model, inputs).outputs, reference(made.model, inputs).outputs
    return compare(dict(wanted or {}), dict(got or {}))[0].max_rel


def operators(made: Explicit) -> Counter[str]:
    return Counter(node.op_type for node in made.model.graph.node)


@pytest.mark.parametrize("kind", [FP16, BF16])
def test_a_whole_model_has_a_cast_at_each_end_and_stores_its_weights_once(kind: Precision) -> None:
    made = typed(dict.fromkeys(("first", "act", "second", "sum"), kind))
    assert operators(made)["Cast"] == 2
    assert [each.data_type for each in made.model.graph.initializer] == [
        {FP16: TensorProto.FLOAT16, BF16: TensorProto.BFLOAT16}[kind]
    ] * 2
    assert {node.precision for node in asked(made.model) if node.op != "Cast"} == {str(kind)}
    assert off(made) < (2e-3 if kind is FP16 else 2e-2)


def test_a_border_has_one_cast_for_each_tensor() -> None:
    made = typed({"first": FP32, "act": FP16, "second": FP16, "sum": FP32})
    # Into act, and out of second; first's output goes on to the sum as it is.
    assert operators(made)["Cast"] == 2
    assert made.typed == {"first": FP32, "act": FP16, "second": FP16, "sum": FP32}
    # The weight is read in both types, and stored in both.
    assert sorted(each.data_type for each in made.model.graph.initializer) == [1, 1, 10, 10]


def test_nothing_to_type_is_no_change() -> None:
    made = typed(dict.fromkeys(("first", "act", "second", "sum"), FP32))
    assert made.model.graph.node == chain().graph.node


def test_what_ran_in_int8_reads_int8_and_weights_are_stored_so() -> None:
    made = typed({"first": INT8, "act": FP32, "second": INT8, "sum": FP32}, SCALES)
    assert operators(made) == {"Conv": 2, "QuantizeLinear": 2, "DequantizeLinear": 3, "Sigmoid": 1, "Add": 1}
    assert {node.name: node.precision for node in asked(made.model) if node.op == "Conv"} == {
        "first": "int8",
        "second": "int8",
    }
    (weight,) = (each for each in made.model.graph.initializer if each.name == "w/int8")
    scale = next(each for each in made.model.graph.initializer if each.name.startswith("w/scale"))
    whole = numpy_helper.to_array(weight).astype(float)
    # Symmetric, and each output channel has its own scale.
    assert np.abs(whole).reshape(8, -1).max(axis=1).tolist() == [127] * 8
    assert scale.dims == [8]
    assert 1e-4 < off(made) < 5e-2


def test_a_tensor_inside_a_layer_of_int8_is_not_rounded_and_its_end_is() -> None:
    inside = {name: scale for name, scale in SCALES.items() if name != "first_output_0"}
    made = typed({"first": INT8, "act": INT8, "second": INT8, "sum": FP32}, inside)
    assert made.typed["act"] is INT8
    assert not made.why
    assert operators(made)["QuantizeLinear"] == 2
    # A Sigmoid by itself gives what it reads from Q/DQ on in INT8, for all who read it.
    alone = typed({"first": FP32, "act": INT8, "second": FP32, "sum": FP32}, SCALES)
    second = next(node for node in alone.model.graph.node if node.name == "second")
    assert second.input[0] == "act_output_0/dequantized"


def test_without_a_scale_a_node_is_not_in_int8_and_says_why() -> None:
    made = typed({"first": INT8, "act": FP32, "second": FP32, "sum": FP32}, {"act_output_0": 0.1})
    assert made.typed["first"] is FP32
    assert "x" in made.why["first"].split()


@pytest.mark.parametrize("opset", [17, 19])
def test_int8_among_fp16_has_scales_in_fp16(opset: int) -> None:
    made = typed({"first": INT8, "act": FP16, "second": INT8, "sum": FP16}, SCALES, opset)
    scales = {
        each.name: each.data_type for each in made.model.graph.initializer if "/scale_fp16" in each.name
    }
    assert set(scales.values()) == {TensorProto.FLOAT16}
    assert made.model.opset_import[0].version == 19
    assert operators(made)["Cast"] == 1
    assert off(made) < 5e-2


@pytest.mark.parametrize(
    ("operator", "shape", "attributes", "channels"),
    [("Gemm", (8, 4), {}, [4]), ("Gemm", (4, 8), {"transB": 1}, [4]), ("MatMul", (8, 4), {}, [4])],
)
def test_scales_of_weights_lie_along_the_output_channels(
    operator: str, shape: tuple[int, int], attributes: dict[str, Any], channels: list[int]
) -> None:
    g = Graph("dense", opset=17)
    y = g.node(operator, [g.input("x", [2, 8]), g.weight("w", shape)], name="dense", **attributes)
    g.output(y, [2, 4])
    made = explicit(g.model(), NodeTypes({"dense": INT8}, {"x": 1 / 127}))
    onnx.checker.check_model(made.model, full_check=True)
    assert next(e.dims for e in made.model.graph.initializer if e.name.startswith("w/scale")) == channels
    inputs = make_inputs(made.model)
    wanted, got = reference(g.model(), inputs).outputs, reference(made.model, inputs).outputs
    assert compare(dict(wanted or {}), dict(got or {}))[0].cosine > 0.999


def test_quantised_nodes_graphs_inside_and_foreign_operators_are_kept() -> None:
    g = Graph("kept", opset=17)
    x = g.input("x", [1, 8, 6, 6])
    y = g.conv(
        g.qdq(x, name="q", scale=0.01),
        g.weight_qdq(g.weight("w", (8, 8, 1, 1)), name="wq"),
        name="c",
        kernel=1,
    )
    g.output(g.node("Relu", [y], name="relu"), [1, 8, 6, 6])
    model = g.model()
    branch = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["n"])],
        "b",
        [],
        [helper.make_tensor_value_info("n", 1, [1, 8, 6, 6])],
    )
    model.graph.node.append(
        helper.make_node("If", ["cond"], ["i"], name="if", then_branch=branch, else_branch=branch)
    )
    model.graph.node.append(helper.make_node("Mine", ["i"], ["m"], name="plugin", domain="own"))
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.graph.input.append(helper.make_tensor_value_info("cond", TensorProto.BOOL, []))
    model.graph.output.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [1, 8, 6, 6]))
    made = explicit(model, NodeTypes({effective_name(node): FP16 for node in model.graph.node}))
    assert {*made.why} == {"c", "if", "plugin"}
    assert made.typed["relu"] is FP16
    kept = {node.name: node for node in model.graph.node}
    for node in made.model.graph.node:
        assert node.op_type == "Cast" or node.name == "relu" or node == kept[node.name]


def test_a_graph_in_fp16_that_ran_in_fp32_is_not_rounded_on_the_way() -> None:
    g = Graph("half", opset=17)
    half = g.node("Cast", [g.input("x", [1, 8])], name="in", to=TensorProto.FLOAT16)
    y = g.node("Relu", [half], name="relu")
    g.output(g.node("Cast", [y], name="out", to=TensorProto.FLOAT), [1, 8])
    made = explicit(g.model(), NodeTypes({"relu": FP32}))
    assert operators(made) == {"Relu": 1, "Identity": 1}


def test_a_scale_of_shapes_alone_leaves_its_reader_in_the_type_of_its_data() -> None:
    """An exporter of attention computes the root of the head's size: between two products that is no border."""
    g = Graph("scaled", opset=19)
    x = g.input("x", [1, 8])
    size = g.node("Cast", [g.node("Size", [x], name="size")], name="cast", to=TensorProto.FLOAT)
    first = g.node("MatMul", [x, g.weight("a", (8, 8))], name="first")
    scaled = g.node("Mul", [first, g.node("Sqrt", [size], name="root")], name="scaled")
    g.output(g.node("MatMul", [scaled, g.weight("b", (8, 8))], name="second"), [1, 8])
    made = explicit(g.model(), NodeTypes({"first": FP16, "second": FP16}))
    assert made.typed["scaled"] is FP16
    assert made.typed["root"] is FP32
    # At the input, the output, and of the scale; its own was there.
    assert operators(made)["Cast"] == 4

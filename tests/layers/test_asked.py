"""The precisions that a graph asks of its nodes, by its tensors' types and by Q/DQ, and those wished of an engine."""

from __future__ import annotations

import math
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Case, Graph, Precision, Variant
from harness.layers.asked import asked, wished
from harness.record.outcome import Node
from tests.cases.test_all_cases import CASES

pytestmark = pytest.mark.unit

FLOAT, HALF, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
INT8, UINT8, INT4 = TensorProto.INT8, TensorProto.UINT8, TensorProto.INT4
FP8, FP4 = TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT4E2M1


class Model:
    """A graph under construction on x, of any element types: those of later opsets too."""

    def __init__(self, dtype: int = FLOAT, shape: tuple[int, ...] = (8, 16)) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs = [helper.make_tensor_value_info("x", dtype, shape)]

    def constant(self, name: str, shape: tuple[int, ...], dtype: int) -> str:
        count = math.prod(shape)
        self.constants.append(helper.make_tensor(name, dtype, shape, [1.0] * count))
        return name

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_0"], name=name, domain=domain, **attributes))
        return f"{name}_0"

    def dq(self, tensor: str, dtype: int = FLOAT, **attributes: Any) -> str:
        scale = self.constant(f"{tensor}_scale", attributes.pop("scale", ()), dtype)
        return self.node("DequantizeLinear", tensor, scale, **attributes)

    def qdq(self, tensor: str, kind: int = INT8, dtype: int = FLOAT) -> str:
        scale = self.constant(f"{tensor}_qscale", (), dtype)
        zero = self.constant(f"{tensor}_zero", (), kind)
        quantised = self.node("QuantizeLinear", tensor, scale, zero)
        return self.node("DequantizeLinear", quantised, scale, zero)

    def weight(self, kind: int = INT8, dtype: int = FLOAT, **attributes: Any) -> str:
        return self.dq(self.constant("w", (16, 16), kind), dtype, **attributes)

    def model(self, opset: int = 23) -> onnx.ModelProto:
        outputs = [helper.make_empty_tensor_value_info(self.nodes[-1].output[0])]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.constants)
        domains = [("", opset), ("trt", 1), ("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in domains])

    def asks(self) -> dict[str, str]:
        """Return the requests, of the nodes that have one."""
        return {node.op: node.precision for node in asked(self.model()) if node.precision}

    def wishes(self) -> dict[str, str]:
        variant = Variant("v", "V", self.model)
        return {node: str(kind) for node, kind in wished(variant, asked(self.model()))}


@pytest.mark.parametrize(
    ("data", "weights", "asks"),
    [
        (INT8, INT8, "int8"),
        (UINT8, UINT8, "uint8"),
        (UINT8, INT8, "int8"),
        (FP8, FP8, "fp8"),
        (FP4, FP4, "fp4"),
        (INT4, INT4, "int4"),
    ],
)
@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_data_and_weights_from_dq_ask_for_what_it_reads(
    data: int, weights: int, asks: str, dtype: int
) -> None:
    """Whatever float it is dequantised to."""
    m = Model(dtype)
    m.node("MatMul", m.qdq("x", data, dtype), m.weight(weights, dtype))
    assert m.asks()["MatMul"] == asks
    assert m.wishes() == {"MatMul3": asks}


@pytest.mark.parametrize(
    ("parts", "asks"),
    [((INT8, INT8), "int8"), ((FP8,), "fp8"), ((INT8, None), "int8_weights"), ((INT8, FP8), "int8_weights")],
)
def test_a_concat_of_dequantised_data_is_dequantised_data(parts: tuple[int | None, ...], asks: str) -> None:
    """If all of it was of one type."""
    m = Model()
    made = [m.node("Relu", "x") for _ in parts]
    read = [m.qdq(tensor, kind) if kind else tensor for tensor, kind in zip(made, parts, strict=True)]
    m.node("MatMul", m.node("Concat", *read, axis=0), m.weight(FP8 if asks == "fp8" else INT8))
    assert m.asks()["MatMul"] == asks


@pytest.mark.parametrize(
    ("kind", "asks"),
    [(INT8, "int8_weights"), (INT4, "int4_weights"), (FP8, "fp8_weights"), (FP4, "fp4_weights")],
)
@pytest.mark.parametrize("dtype", [FLOAT, HALF, BF16])
def test_weights_alone_ask_to_be_stored_so(kind: int, asks: str, dtype: int) -> None:
    """In one scale or in blocks; the node that dequantises does not coarsen the numbers."""
    for blocked in ({}, {"scale": (4, 16), "axis": 0, "block_size": 4}):
        m = Model(dtype)
        m.node("MatMul", "x", m.weight(kind, dtype, **blocked))
        assert m.asks() == {"MatMul": asks, "DequantizeLinear": asks}
        assert m.wishes() == {"MatMul1": asks}


def test_a_float_weight_beside_quantised_data_asks_for_the_float() -> None:
    for dtype, asks in ((FLOAT, None), (HALF, "fp16")):
        m = Model(dtype)
        m.node("MatMul", m.qdq("x", dtype=dtype), m.constant("w", (16, 16), dtype))
        assert m.asks().get("MatMul") == asks


def test_two_dequantised_activations_are_multiplied_so() -> None:
    """And one alone is data, not weights: no weight is stored."""
    m = Model(shape=(16, 16))
    m.node("MatMul", m.qdq("x"), m.qdq("x"))
    assert m.asks()["MatMul"] == "int8"
    m = Model(shape=(16, 16))
    m.node("MatMul", "x", m.qdq("x"))
    assert "MatMul" not in m.asks()


def test_weights_may_be_the_first_operand() -> None:
    m = Model(shape=(16, 16))
    m.node("MatMul", m.weight(INT4), "x")
    assert m.asks()["MatMul"] == "int4_weights"


def test_what_exporters_put_between_is_looked_through() -> None:
    """A weight quantised in the graph, reshaped, cast and transposed; data cast."""
    m = Model(HALF)
    data = m.node("Cast", m.qdq("x"), to=HALF)
    shape = m.constant("shape", (2,), TensorProto.INT64)
    weight = m.node("Reshape", m.qdq(m.constant("w", (16, 16), FLOAT)), shape)
    weight = m.node("Transpose", m.node("Cast", weight, to=HALF), perm=[1, 0])
    m.node("MatMul", data, weight)
    assert m.asks()["MatMul"] == "int8"


def test_arithmetic_between_is_not_looked_through() -> None:
    """A computed tensor is quantised no more."""
    m = Model()
    m.node("MatMul", m.node("Relu", m.qdq("x")), m.weight())
    assert m.asks()["MatMul"] == "int8_weights"


@pytest.mark.parametrize(("prefix", "asks"), [("TRT_FP8", "fp8"), ("TRT_INT4", "int4"), ("TRT_MXFP8", "fp8")])
def test_operators_of_tensorrt_name_their_type(prefix: str, asks: str) -> None:
    """Their tensors' types are unknown."""
    m = Model(HALF)
    scale = m.constant("s", (), HALF)

    def pair(tensor: str) -> str:
        quantised = m.node(f"{prefix}QuantizeLinear", tensor, scale, domain="trt")
        return m.node(f"{prefix}DequantizeLinear", quantised, scale, domain="trt")

    m.node("MatMul", pair("x"), pair(m.constant("w", (16, 16), HALF)))
    assert m.asks()["MatMul"] == asks
    assert m.asks()[f"{prefix}QuantizeLinear"] in (asks, f"{asks}_weights")


def test_data_that_are_quantised_as_they_come_ask_for_their_type() -> None:
    """TRT_FP4DynamicQuantize gives FP4, which a DequantizeLinear reads."""
    m = Model(HALF)
    quantised = m.node("TRT_FP4DynamicQuantize", "x", m.constant("s", (), HALF), domain="trt")
    m.node("MatMul", m.dq(quantised, HALF), m.weight(FP4, HALF))
    assert m.asks()["MatMul"] == "fp4"


def test_half_tensors_ask_for_half_and_plain_ones_for_nothing() -> None:
    for dtype, asks in (
        (FLOAT, {}),
        (HALF, {"Relu": "fp16", "Softmax": "fp16"}),
        (BF16, {"Relu": "bf16", "Softmax": "bf16"}),
    ):
        m = Model(dtype)
        m.node("Softmax", m.node("Relu", "x"))
        assert m.asks() == asks
        assert sorted(m.wishes().values()) == sorted(asks.values())


def test_what_only_moves_data_is_wished_nothing() -> None:
    """A Cast brings its type into the graph all the same, for numbers go through it."""
    m = Model()
    m.node("Cast", m.node("Transpose", m.node("Cast", "x", to=HALF), perm=[1, 0]), to=FLOAT)
    assert [node.precision for node in asked(m.model())] == ["fp16", "fp16", ""]
    assert m.wishes() == {}


def test_between_q_and_dq_only_what_multiplies_is_wished_a_float() -> None:
    """An engine may fuse any other into a kernel that computes in INT8, which is no loss."""
    m = Model(HALF)
    y = m.node("MatMul", m.qdq("x", dtype=HALF), m.weight(dtype=HALF))
    m.node("MatMul", m.qdq(m.node("Relu", y), dtype=HALF), m.constant("v", (16, 16), HALF))
    assert m.asks()["Relu"] == "fp16"
    assert m.wishes() == {"MatMul3": "int8", "MatMul7": "fp16"}


def test_integer_operators_ask_for_what_they_are_given() -> None:
    m = Model(UINT8)
    m.node("MatMulInteger", "x", m.constant("w", (16, 16), INT8))
    assert m.asks() == {"MatMulInteger": "int8"}


def test_a_graph_that_cannot_be_inferred_is_read_as_far_as_it_says() -> None:
    """Shape inference refuses an invalid model, and stops at an unknown operator."""
    m = Model(HALF)
    m.node("MatMul", m.node("Odd", "x", domain="trt"), m.weight(INT4, HALF))
    assert m.asks()["MatMul"] == "int4_weights"
    m = Model(HALF, shape=(8, 3))
    m.node("MatMul", m.qdq("x", dtype=HALF), m.weight(dtype=HALF))
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.shape_inference.infer_shapes(m.model(), strict_mode=True)
    assert m.asks()["MatMul"] == "int8"


def test_a_node_that_lacks_its_tensors_asks_for_nothing() -> None:
    """An engine is to refuse such a model; the harness is not to fall over it."""
    for op in (
        *("MatMul", "Conv", "DequantizeLinear", "TRT_FP8DequantizeLinear", "Cast", "Relu", "QLinearConv"),
    ):
        node = helper.make_node(op, [], ["y"], name="/a")
        graph = helper.make_graph([node], "g", [], [])
        (found,) = asked(helper.make_model(graph))
        assert (found.name, found.op, found.precision) == ("/a", op, "fp8" if "FP8" in op else "")


def test_what_a_variant_says_is_what_is_wished() -> None:
    """Also if it names no node; a record from before nodes had precisions derives no wish."""
    m = Model()
    m.node("MatMul", m.qdq("x"), m.weight())
    nodes = asked(m.model())
    said = (("MatMul3", Precision.FP32),)
    assert wished(Variant("v", "V", m.model, precision=said), nodes) == said
    assert wished(Variant("v", "V", m.model, precision=()), nodes) == ()
    old = tuple(Node(node.name, node.op) for node in nodes)
    assert wished(Variant("v", "V", m.model), old) == ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_cases_name_by_hand_is_what_their_graphs_ask(case: Case) -> None:
    """Every convolution, in the Q/DQ and in the FP16 variants; FP32 alone is wished by hand only.

    A variant without names leaves the wish to its graph, or has none in spite of it.
    """
    for variant in case:
        if not variant.precision:
            continue
        derived = dict(wished(Variant("v", "V", variant.build), asked(variant.build())))
        ops = {node.name: node.op for node in asked(variant.build())}
        by_hand = {node: kind for node, kind in variant.precision or () if ops[node] == "Conv"}
        convolutions = {node: kind for node, kind in derived.items() if ops[node] == "Conv"}
        assert convolutions == {node: kind for node, kind in by_hand.items() if kind is not Precision.FP32}


VECTOR, UNLIKE = "a scale in a vector of one element", "inputs of unlike scales"


def fed(model: onnx.ModelProto) -> dict[str, str]:
    """Return how nodes are fed, of those of which something is said."""
    return {node.name: node.fed for node in asked(model) if node.fed}


def convolution(*, data: bool = False, weights: bool = False, channels: int = 4) -> Graph:
    """Return a quantised convolution, its scales vectors of one element if asked."""
    g = Graph("g")
    scale = g.qdq(g.input("x", [1, channels, 4, 4]), name="/q", scale=[0.1] if data else 0.1)
    weight = g.qdq(g.weight("w", (4, channels, 3, 3)), name="/w", scale=[0.1] if weights else 0.1)
    g.output(g.conv(scale, weight, name="/conv"), [1, 4, 4, 4])
    return g


def test_a_scale_in_a_vector_of_one_element_is_told_of_the_node_that_multiplies() -> None:
    assert fed(convolution(data=True).model()) == {"/conv": VECTOR}


def test_a_scale_for_each_channel_is_no_such_vector() -> None:
    """Nor one of weights, nor a scalar, nor that of the one channel that there is."""
    assert fed(convolution().model()) == {}
    assert fed(convolution(weights=True).model()) == {}
    assert fed(convolution(data=True, channels=1).model()) == {}


def joined(*scales: float, last: bool = True) -> onnx.ModelProto:
    """Return the Concat of a tensor quantised by these scales, 0 for not, and a convolution behind it."""
    g = Graph("g")
    x = g.input("x", [1, 4, 4, 4])
    parts = [g.qdq(x, name=f"/q{at}", scale=scale) if scale else x for at, scale in enumerate(scales)]
    tensor = g.node("Concat", parts, name="/Concat", axis=1)
    channels = 4 * len(scales)
    if last:
        tensor = g.conv(tensor, g.weight("w", (4, channels, 3, 3)), name="/conv")
    g.output(tensor, [1, 4 if last else channels, 4, 4])
    return g.model()


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ((0.1, 0.2), {"/Concat": UNLIKE, "/conv": UNLIKE}),
        ((0.1, 0.1), {}),
        ((0.1, 0), {}),
        ((0, 0), {}),
        ((0.1, 0, 0.2), {"/Concat": UNLIKE, "/conv": UNLIKE}),
    ],
)
def test_unlike_scales_at_a_concat_are_told_of_it_and_of_what_multiplies_behind_it(
    scales: tuple[float, ...], expected: dict[str, str]
) -> None:
    assert fed(joined(*scales)) == expected


def test_a_scale_may_be_a_constant_node() -> None:
    """As PyTorch exports it."""
    model = joined(0.1, 0.2, last=False)
    kept = [item for item in model.graph.initializer if not item.name.endswith("_scale")]
    moved = [item for item in model.graph.initializer if item.name.endswith("_scale")]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    for item in moved:
        model.graph.node.insert(0, helper.make_node("Constant", [], [item.name], value=item))
    assert fed(model) == {"/Concat": UNLIKE}


def test_a_scale_is_its_value_however_it_is_stored() -> None:
    """As bytes, one by one, with a remark; in a file beside the model it is not known."""
    model = joined(0.1, 0.1)
    scale = next(item for item in model.graph.initializer if item.name.endswith("_scale"))
    scale.float_data.extend(numpy_helper.to_array(scale).ravel().tolist())
    scale.ClearField("raw_data")
    scale.doc_string = "by hand"
    assert fed(model) == {}
    apart = joined(0.1, 0.2)
    scale = next(item for item in apart.graph.initializer if item.name.endswith("_scale"))
    scale.ClearField("raw_data")
    scale.data_location = TensorProto.EXTERNAL
    scale.external_data.add(key="location", value="weights.bin")
    assert fed(apart) == {}


def test_what_is_no_valid_graph_says_nothing() -> None:
    """A DequantizeLinear without a scale, and one whose scale comes in from outside."""
    x = helper.make_tensor_value_info("x", TensorProto.INT8, [1, 4])
    scale = helper.make_tensor_value_info("s", TensorProto.FLOAT, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])
    nodes = [
        helper.make_node("DequantizeLinear", ["x"], ["a"]),
        helper.make_node("DequantizeLinear", ["x", "s"], ["b"]),
        helper.make_node("Concat", ["a", "b", "gone"], ["y"], name="/Concat", axis=1),
    ]
    assert fed(helper.make_model(helper.make_graph(nodes, "g", [x, scale], [y]))) == {}

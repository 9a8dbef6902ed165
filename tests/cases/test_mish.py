"""The graphs of the mish case carry the names and shapes of the reports."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from harness.case import Typing, Variant, effective_name, load_cases

pytestmark = pytest.mark.unit

CASES = {case.name: case for case in load_cases(Path(__file__).resolve().parents[2] / "cases")}
VARIANTS = {variant.name: variant for variant in CASES["mish"]}


def shapes(model: onnx.ModelProto) -> dict[str, tuple[list[int], int]]:
    return {entry.name: (list(entry.dims), entry.data_type) for entry in model.graph.initializer}


def operators(variant: Variant) -> list[str]:
    return [node.op_type for node in variant.build().graph.node]


def test_the_reproducer_has_the_names_of_the_error() -> None:
    """The weight, its quantiser and the convolution are there, by which the report's fused node is called."""
    model = VARIANTS["qdq"].build()
    names = [node.name for node in model.graph.node]
    assert shapes(model)["SandGlass1.0.weight"] == ([32, 1, 3, 3], TensorProto.FLOAT)
    assert [name for name in names if "SandGlass1.3" not in name] == [
        "/SandGlass1/SandGlass1.0/_input_quantizer/QuantizeLinear",
        "/SandGlass1/SandGlass1.0/_input_quantizer/DequantizeLinear",
        "/SandGlass1/SandGlass1.0/_weight_quantizer/QuantizeLinear",
        "/SandGlass1/SandGlass1.0/_weight_quantizer/DequantizeLinear",
        "/SandGlass1/SandGlass1.0/Conv",
        "/SandGlass1/SandGlass1.1/BatchNormalization",
        "/SandGlass1/SandGlass1.2/Softplus",
        "/SandGlass1/SandGlass1.2/Tanh",
        "/SandGlass1/SandGlass1.2/Mul",
    ]
    assert names[-1] == "/SandGlass1/SandGlass1.3/Conv"


def test_the_reproducer_is_depthwise_with_a_scale_a_channel() -> None:
    """32 groups of one channel; 32 weight scales along axis 0; zero points are INT8."""
    model = VARIANTS["qdq"].build()
    nodes = {node.name: node for node in model.graph.node}
    conv = nodes["/SandGlass1/SandGlass1.0/Conv"]
    attributes = {entry.name: onnx.helper.get_attribute_value(entry) for entry in conv.attribute}
    assert attributes == {
        "group": 32,
        "kernel_shape": [3, 3],
        "pads": [1, 1, 1, 1],
        "strides": [1, 1],
    }
    quantise = nodes["/SandGlass1/SandGlass1.0/_weight_quantizer/QuantizeLinear"]
    assert [onnx.helper.get_attribute_value(entry) for entry in quantise.attribute] == [0]
    assert shapes(model)[quantise.input[1]] == ([32], TensorProto.FLOAT)
    assert shapes(model)[quantise.input[2]] == ([32], TensorProto.INT8)


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        ("qdq-strong", ([], [])),
        ("qdq-dense", ([], [])),
        ("qdq-after-norm", (["QuantizeLinear", "DequantizeLinear"], [])),
        ("qdq-relu", (["Relu"], ["Softplus", "Tanh", "Mul"])),
        ("mish-op", (["Mish"], ["Softplus", "Tanh", "Mul"])),
    ],
)
def test_controls_differ_by_one_thing(name: str, difference: tuple[list[str], list[str]]) -> None:
    """The operators of a control are those of the reproducer but for the one that its title names."""
    added, gone = difference
    kept = [operator for operator in operators(VARIANTS["qdq"]) if operator not in gone]
    assert sorted(operators(VARIANTS[name])) == sorted(kept + added)


def test_the_workaround_quantises_between_norm_and_activation() -> None:
    """Q and DQ stand right behind BatchNormalization and before Softplus."""
    wanted = ["BatchNormalization", "QuantizeLinear", "DequantizeLinear", "Softplus"]
    found = operators(VARIANTS["qdq-after-norm"])
    start = found.index("BatchNormalization")
    assert found[start : start + 4] == wanted


def test_the_dense_control_has_one_group() -> None:
    """The weight of the dense control sees all 32 input channels."""
    assert shapes(VARIANTS["qdq-dense"].build())["SandGlass1.0.weight"][0] == [32, 32, 3, 3]


def test_the_swish_report_has_unnamed_nodes_and_int8_weights() -> None:
    """Its fused node reads `w + node_of_dqconv.dwconv + PWN(node_of_swish.sigmoid, node_of_swish.mul)`."""
    model = VARIANTS["swish-tail"].build()
    assert not any(node.name for node in model.graph.node)
    assert {"node_of_dqconv.dwconv", "node_of_swish.sigmoid", "node_of_swish.mul"} <= {
        effective_name(node) for node in model.graph.node
    }
    assert shapes(model)["w"] == ([144, 1, 3, 3], TensorProto.INT8)
    assert operators(VARIANTS["swish-tail"])[-2:] == ["QuantizeLinear", "DequantizeLinear"]


def test_identity_is_all_that_the_swish_workaround_adds() -> None:
    """The workaround ends in an Identity and is otherwise the reported graph."""
    reported = operators(VARIANTS["swish-tail"])
    assert operators(VARIANTS["swish-tail-identity"]) == [*reported, "Identity"]


def test_the_residual_report_adds_an_unquantised_tensor() -> None:
    """`/Add` takes the convolution's result and a network input; in the workaround, that input after Q/DQ."""
    model = VARIANTS["residual-fp32"].build()
    add = next(node for node in model.graph.node if node.name == "/Add")
    assert list(add.input) == ["/SandGlass4/SandGlass4.8/Conv_output_0", "residual"]
    assert shapes(model)["SandGlass4.8.weight"] == ([192, 1, 3, 3], TensorProto.FLOAT)
    other = next(node for node in VARIANTS["residual-qdq"].build().graph.node if node.name == "/Add")
    assert other.input[1] == "/_residual_quantizer/DequantizeLinear_output_0"


def test_fp16_graph_computes_in_fp16_between_fp32_edges() -> None:
    """Weights are FP16, the network's own input and output stay FP32."""
    model = VARIANTS["fp16-graph"].build()
    assert {dtype for _, dtype in shapes(model).values()} == {TensorProto.FLOAT16}
    edges = [*model.graph.input, *model.graph.output]
    assert {value.type.tensor_type.elem_type for value in edges} == {TensorProto.FLOAT}


def test_the_reporters_script_sets_a_calibrator_as_well() -> None:
    """Same graph with Q/DQ, INT8 and the entropy calibrator: what the script of issue 3870 sets."""
    variant = VARIANTS["qdq-calibrator"]
    assert variant.model_bytes() == VARIANTS["qdq"].model_bytes()
    assert variant.recipe.flags == ("INT8",)
    assert variant.recipe.calibrator is not None
    assert (variant.recipe.calibrator.kind, variant.recipe.typing) == ("entropy", Typing.WEAK)

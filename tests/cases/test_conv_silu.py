"""The graphs of the conv_silu case carry the names and shapes of the reports."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from harness.case import Precision, Role, Typing, load_cases
from harness.layers import asked, wished

pytestmark = pytest.mark.unit

CASES = {case.name: case for case in load_cases(Path(__file__).resolve().parents[2] / "cases")}
VARIANTS = {variant.name: variant for variant in CASES["conv_silu"]}
OPS = ("conv/Conv", "act/Sigmoid", "act/Mul")
SILU = ["/model.0/conv/Conv", "/model.0/act/Sigmoid", "/model.0/act/Mul"]


def names(variant: str) -> list[str]:
    return [node.name for node in VARIANTS[variant].build().graph.node]


def shapes(graph: onnx.GraphProto) -> dict[str, list[int]]:
    return {entry.name: list(entry.dims) for entry in graph.initializer}


def test_the_reproducer_is_the_first_convolution_of_the_report() -> None:
    """Nodes, tensors, strides and opset are those of the exported YOLO: `Conv + PWN(PWN(Sigmoid), Mul)`."""
    model = VARIANTS["int8-entropy"].build()
    graph = model.graph
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 17)]
    assert shapes(graph)["model.0.conv.weight"] == [48, 3, 3, 3]
    conv, sigmoid, mul = graph.node
    assert [node.name for node in graph.node] == SILU
    assert list(conv.input) == ["images", "model.0.conv.weight", "model.0.conv.bias"]
    assert list(conv.output) == ["/model.0/conv/Conv_output_0"]
    assert list(sigmoid.input) == list(conv.output)
    assert sorted(mul.input) == sorted([*conv.output, *sigmoid.output])
    assert [value.name for value in graph.output] == list(mul.output)
    attributes = {entry.name: onnx.helper.get_attribute_value(entry) for entry in conv.attribute}
    assert attributes["strides"] == [2, 2]
    assert attributes["pads"] == [1, 1, 1, 1]
    assert attributes["group"] == 1


def test_the_reproducer_asks_for_implicit_int8_alone() -> None:
    """No Q/DQ in the graph, the entropy calibrator and no FP16 flag."""
    recipe = VARIANTS["int8-entropy"].recipe
    assert recipe.typing is Typing.WEAK
    assert recipe.flags == ("INT8",)
    assert recipe.calibrator is not None
    assert recipe.calibrator.kind == "entropy"


def test_min_max_differs_by_the_calibrator_alone() -> None:
    """Same graph, same flags: what the user changed was the calibrator."""
    reported, other = VARIANTS["int8-entropy"], VARIANTS["int8-minmax"]
    assert other.model_bytes() == reported.model_bytes()
    assert other.recipe.calibrator is not None
    assert other.recipe.calibrator.kind == "minmax"
    assert {**other.recipe.as_dict(), "calibrator": None} == {**reported.recipe.as_dict(), "calibrator": None}


def test_two_convolutions_in_a_row() -> None:
    """The second convolution is the one that the report on the RTX 3090 names."""
    second = [name.replace("model.0", "model.1") for name in SILU]
    assert names("int8-two") == SILU + second
    assert shapes(VARIANTS["int8-two"].build().graph)["model.1.conv.weight"] == [128, 64, 3, 3]


def test_the_tail_is_the_whole_prototype_head() -> None:
    """Convolution, upsampling, convolution, and a 1x1 one to 32 channels whose SiLU is the network's output."""
    model = VARIANTS["int8-tail"].build()
    graph = model.graph
    cv1, cv2, cv3 = ([f"/model.23/proto/{part}/{op}" for op in OPS] for part in ("cv1", "cv2", "cv3"))
    assert names("int8-tail") == [*cv1, "/model.23/proto/upsample/ConvTranspose", *cv2, *cv3]
    assert graph.output[0].name == graph.node[-1].output[0]
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 17)]
    found = shapes(graph)
    assert found["model.23.proto.upsample.weight"] == [64, 64, 2, 2]
    assert [found[f"model.23.proto.cv{number}.conv.weight"] for number in (1, 2, 3)] == [
        [64, 64, 3, 3],
        [64, 64, 3, 3],
        [32, 64, 1, 1],
    ]
    [before, after] = (value.type.tensor_type.shape.dim for value in (graph.input[0], graph.output[0]))
    assert after[2].dim_value == 2 * before[2].dim_value


def test_the_tail_is_calibrated_both_ways() -> None:
    """One graph: the entropy calibrator of the 8.6 report and the min-max one of those on 10.x."""
    entropy, minmax = VARIANTS["int8-tail"], VARIANTS["int8-tail-minmax"]
    assert entropy.model_bytes() == minmax.model_bytes() == VARIANTS["tail-fp32"].model_bytes()
    assert [
        variant.recipe.calibrator and variant.recipe.calibrator.kind for variant in (entropy, minmax)
    ] == [
        "entropy",
        "minmax",
    ]
    assert {entropy.role, minmax.role} == {Role.REPRODUCER}


@pytest.mark.parametrize("prefix", ["int8", "qdq"])
def test_the_concat_stands_between_convolution_and_silu(prefix: str) -> None:
    """Three Concats of one input each are all that the workaround adds to its graph."""
    graph = VARIANTS[f"{prefix}-tail-concat"].build().graph
    added = [node for node in graph.node if node.op_type == "Concat"]
    assert [node.name for node in graph.node if node.op_type != "Concat"] == names(f"{prefix}-tail")
    assert [list(node.input) for node in added] == [
        [f"/model.23/proto/cv{number}/conv/Conv_output_0"] for number in (1, 2, 3)
    ]
    readers = [node.op_type for node in graph.node for name in node.input if name == added[2].output[0]]
    assert sorted(readers) == ["Mul", "Sigmoid"]


@pytest.mark.parametrize("size", ["", "-two", "-tail"])
def test_explicit_twins_keep_the_float_graph(size: str) -> None:
    """But for the quantisers an explicit twin has the nodes of its implicit counterpart, in their order."""
    twin = VARIANTS[f"qdq{size}"]
    assert twin.role is Role.TWIN
    assert twin.counterpart is not None
    kept = [name for name in names(twin.name) if "_quantizer/" not in name]
    assert kept == names(twin.counterpart)


def test_explicit_twin_quantises_input_weight_and_output() -> None:
    """Both inputs of the convolution come out of a DequantizeLinear, and a Q/DQ pair ends the graph."""
    graph = VARIANTS["qdq"].build().graph
    makers = {tensor: node.op_type for node in graph.node for tensor in node.output}
    conv = next(node for node in graph.node if node.op_type == "Conv")
    assert [makers.get(tensor) for tensor in conv.input] == ["DequantizeLinear", "DequantizeLinear", None]
    assert makers[graph.output[0].name] == "DequantizeLinear"
    assert names("qdq-identity") == [*names("qdq"), "/Identity"]


@pytest.mark.parametrize("variant", ["int8-relu", "qdq-relu"])
def test_relu_controls_have_no_silu(variant: str) -> None:
    """ReLU stands where Sigmoid and Mul stood."""
    assert "/model.0/act/Relu" in names(variant)
    assert not {"/model.0/act/Sigmoid", "/model.0/act/Mul"} & set(names(variant))


def test_mixed_twin_computes_silu_in_fp16() -> None:
    """Between the two Casts the activation's tensors are FP16."""
    model = onnx.shape_inference.infer_shapes(VARIANTS["qdq-fp16"].build())
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    assert types["/model.0/act/Sigmoid_output_0"] == TensorProto.FLOAT16
    assert types["/model.0/act/Mul_output_0"] == TensorProto.FLOAT16
    assert types["/model.0/conv/Conv_output_0"] == TensorProto.FLOAT


def test_wanted_precision_is_that_of_the_graph() -> None:
    """Convolutions between Q/DQ want INT8, those of the FP16 graph FP16; weak typing promises none."""
    assert VARIANTS["qdq"].precision == (("/model.0/conv/Conv", Precision.INT8),)
    assert VARIANTS["fp16-graph"].precision == (("/model.0/conv/Conv", Precision.FP16),)
    for variant in VARIANTS.values():
        if variant.recipe.typing is Typing.WEAK:
            assert wished(variant, asked(variant.build())) == ()

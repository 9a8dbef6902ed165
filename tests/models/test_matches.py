"""Patterns in a model: every graph holds its own, and what only looks alike holds none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Case, load_cases
from harness.models.matches import Shape, places

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
CASES = load_cases(ROOT / "cases")
PATTERNS = {
    f"{case.name}.{variant.name}": Shape(onnx.load_model_from_string(variant.model_bytes()))
    for case in CASES
    for variant in case
}
#: An Identity alone hands its input on, and is no pattern.
NO_PATTERN = {"exporters.uint8-identity"}


def held(model: onnx.ModelProto) -> list[str]:
    shape = Shape(model)
    return [name for name, pattern in PATTERNS.items() if next(places(pattern, shape), None)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_variant_holds_its_own_pattern(case: Case) -> None:
    for variant in case:
        if f"{case.name}.{variant.name}" in NO_PATTERN:
            continue
        assert f"{case.name}.{variant.name}" in held(onnx.load_model_from_string(variant.model_bytes()))


def blocks(*, skip: str = "", times: int = 1, number: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Return `times` convolutions with SiLU in a row; `skip` breaks each in one way."""
    dtype = helper.tensor_dtype_to_np_dtype(number)
    nodes, weights, name = [], [], "x"
    for at in range(times):
        weights.append(numpy_helper.from_array(np.ones((4, 4, 1, 1), dtype), f"w{at}"))
        nodes.append(helper.make_node("Conv", [name, f"w{at}"], [f"c{at}"], name=f"/b{at}/conv"))
        gate = name if skip == "gate" else f"c{at}"
        nodes.append(
            helper.make_node("Relu" if skip == "act" else "Sigmoid", [gate], [f"s{at}"], name=f"/b{at}/act")
        )
        nodes.append(helper.make_node("Mul", [f"c{at}", f"s{at}"], [f"m{at}"], name=f"/b{at}/mul"))
        name = f"m{at}"
    edges = [helper.make_tensor_value_info(each, number, [1, 4, 8, 8]) for each in ("x", name)]
    return helper.make_model(helper.make_graph(nodes, "g", edges[:1], edges[1:], weights))


def test_a_pattern_is_found_as_often_as_it_stands_there_with_its_nodes() -> None:
    model = Shape(blocks(times=3))
    found = [
        [model.nodes[at].name for at in place] for place in places(PATTERNS["conv_silu.int8-entropy"], model)
    ]
    assert found == [[f"/b{at}/conv", f"/b{at}/act", f"/b{at}/mul"] for at in range(3)]
    assert "conv_silu.int8-two" in held(blocks(times=2))
    assert "conv_silu.int8-two" not in held(blocks(times=1))


@pytest.mark.parametrize("skip", ["act", "gate"])
def test_another_operator_or_another_joint_is_another_pattern(skip: str) -> None:
    """A Sigmoid of something else than the convolution gates nothing that is known."""
    assert "conv_silu.int8-entropy" not in held(blocks(skip=skip))


def test_another_type_is_another_pattern() -> None:
    assert "conv_silu.int8-entropy" not in held(blocks(number=TensorProto.FLOAT16))


def test_a_value_that_decides_is_part_of_the_pattern() -> None:
    """TopK is known to fail at 4,000 of them, which says nothing of 100."""

    def top(k: int) -> onnx.ModelProto:
        edges = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None]) for name in ("x", "v")]
        node = helper.make_node("TopK", ["x", "k"], ["v", "i"], name="/top", axis=1)
        many = numpy_helper.from_array(np.array([k], np.int64), "k")
        return helper.make_model(helper.make_graph([node], "g", edges[:1], edges[1:], [many]))

    assert "exporters.topk-4000" not in held(top(100))
    assert "exporters.topk-4000" in held(top(4000))


def test_a_default_is_that_of_the_models_own_opset() -> None:
    """GridSample without a mode is bilinear up to opset 19, and linear, which is measured to fail, from 20 on."""

    def sampled(opset: int) -> onnx.ModelProto:
        shapes = {"x": [2, 3, 1, 8], "g": [2, 1, 8, 2], "y": [2, 3, 1, 8]}
        edges = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()
        ]
        graph = helper.make_graph(
            [helper.make_node("GridSample", ["x", "g"], ["y"])], "g", edges[:2], edges[2:]
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])

    assert "gpu_numbers.grid-sample-20" in held(sampled(20))
    assert "gpu_numbers.grid-sample-20" not in held(sampled(17))


def test_a_long_chain_is_searched_in_bounded_time() -> None:
    """Two hundred blocks alike: each pattern of two stands there a hundred times."""
    assert len(list(places(PATTERNS["conv_silu.int8-two"], Shape(blocks(times=200))))) == 100


@pytest.mark.parametrize(
    ("variant", "op", "attribute", "value"),
    [("swish-tail", "BatchNormalization", "momentum", 0.9), ("residual-fp32", "Conv", "auto_pad", "NOTSET")],
)
def test_an_attribute_without_effect_is_no_part_of_the_pattern(
    variant: str, op: str, attribute: str, value: object
) -> None:
    """Exporters write out what training used, and defaults."""
    case = next(case for case in CASES if case.name == "mish")
    model = onnx.load_model_from_string(next(v for v in case if v.name == variant).model_bytes())
    for node in model.graph.node:
        if node.op_type == op:
            kept = [item for item in node.attribute if item.name != attribute]
            del node.attribute[:]
            node.attribute.extend([*kept, helper.make_attribute(attribute, value)])
    assert f"mish.{variant}" in held(model)

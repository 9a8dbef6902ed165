"""Known patterns in a model: every reproducer holds its own, and what only looks alike holds none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Case, Role, load_cases
from harness.matrix import load_matrix
from harness.models.matches import Patterns

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
CASES = load_cases(ROOT / "cases")
#: These are about a network input and an opset, and have no pattern.
NO_PATTERN = {"exporters.uint8-identity", "exporters.opset-27"}


@pytest.fixture(scope="module")
def patterns() -> Patterns:
    return Patterns(CASES, list(load_matrix(ROOT / "matrix.yaml")))


def held(patterns: Patterns, model: onnx.ModelProto) -> list[str]:
    return [f"{each.case.name}.{each.variant.name}" for each in patterns.matches(model)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_reproducer_holds_its_own_pattern(patterns: Patterns, case: Case) -> None:
    for variant in case:
        name = f"{case.name}.{variant.name}"
        if variant.role is Role.REPRODUCER and name not in NO_PATTERN:
            assert name in held(patterns, onnx.load_model_from_string(variant.model_bytes()))


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


def test_a_pattern_is_found_as_often_as_it_stands_there_with_its_nodes(patterns: Patterns) -> None:
    (found,) = (each for each in patterns.matches(blocks(times=3)) if each.variant.name == "int8-entropy")
    assert list(found.places) == [(f"/b{at}/conv", f"/b{at}/act", f"/b{at}/mul") for at in range(3)]
    assert "conv_silu.int8-two" in held(patterns, blocks(times=2))
    assert "conv_silu.int8-two" not in held(patterns, blocks(times=1))


@pytest.mark.parametrize("skip", ["act", "gate"])
def test_another_operator_or_another_joint_is_another_pattern(patterns: Patterns, skip: str) -> None:
    """A Sigmoid of something else than the convolution gates nothing that is known."""
    assert not [name for name in held(patterns, blocks(skip=skip)) if name.startswith("conv_silu")]


def test_another_type_is_another_pattern(patterns: Patterns) -> None:
    assert "conv_silu.int8-entropy" not in held(patterns, blocks(number=TensorProto.FLOAT16))


def test_a_value_that_decides_is_part_of_the_pattern(patterns: Patterns) -> None:
    """TopK is known to fail at 4,000 of them, which says nothing of 100."""

    def top(k: int) -> onnx.ModelProto:
        edges = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None]) for name in ("x", "v")]
        node = helper.make_node("TopK", ["x", "k"], ["v", "i"], name="/top", axis=1)
        many = numpy_helper.from_array(np.array([k], np.int64), "k")
        return helper.make_model(helper.make_graph([node], "g", edges[:1], edges[1:], [many]))

    assert held(patterns, top(100)) == []
    assert held(patterns, top(4000)) == ["exporters.topk-4000"]


def test_a_long_chain_is_searched_in_bounded_time(patterns: Patterns) -> None:
    """Two hundred blocks alike: each pattern of two stands there a hundred times."""
    (found,) = (each for each in patterns.matches(blocks(times=200)) if each.variant.name == "int8-two")
    assert len(found.places) == 100


def test_a_size_counts_where_the_case_knows_another_that_fares_unlike(patterns: Patterns) -> None:
    """Four channels into a dense convolution with Q/DQ are reported to fail, and others to build."""
    case = next(each for each in CASES if each.name == "depthwise_qdq")
    names = {each.name: each for each in case}
    for name, found in (("qdq-dense-c4", True), ("qdq-dense", False)):
        model = onnx.load_model_from_string(names[name].model_bytes())
        assert ("depthwise_qdq.qdq-dense-c4" in held(patterns, model)) is found


@pytest.mark.parametrize(
    ("variant", "op", "attribute", "value"),
    [("swish-tail", "BatchNormalization", "momentum", 0.9), ("residual-fp32", "Conv", "auto_pad", "NOTSET")],
)
def test_an_attribute_without_effect_is_no_part_of_the_pattern(
    patterns: Patterns, variant: str, op: str, attribute: str, value: object
) -> None:
    """Exporters write out what training used, and defaults."""
    case = next(case for case in load_cases(Path("cases")) if case.name == "mish")
    model = onnx.load_model_from_string(next(v for v in case if v.name == variant).model_bytes())
    for node in model.graph.node:
        if node.op_type == op:
            kept = [item for item in node.attribute if item.name != attribute]
            del node.attribute[:]
            node.attribute.extend([*kept, helper.make_attribute(attribute, value)])
    assert any(each.case.name == "mish" and each.variant.name == variant for each in patterns.matches(model))

"""A failure is told of a graph by what parts the failing variant from all that works on that target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Case, Expectation, Recipe, Variant
from harness.case.model import Built, Unbuildable, serialise
from harness.matrix import load_matrix
from harness.models.deciding import Patterns, TooWide
from harness.models.matches import Shape
from harness.words import Basis, Class, Role, Typing

pytestmark = pytest.mark.unit

TARGET = load_matrix(Path(__file__).parents[2] / "matrix.yaml").target("trt86")
PLAIN = Recipe()


def convolution(channels: int = 3, *, size: int = 8, bias: bool = False) -> onnx.ModelProto:
    """Return a depthwise convolution and a Relu."""
    weights = [numpy_helper.from_array(np.ones((channels, 1, 3, 3), np.float32), "w")]
    weights += [numpy_helper.from_array(np.ones(channels, np.float32), "b")] if bias else []
    nodes = [
        helper.make_node(
            "Conv", ["x", *(each.name for each in weights)], ["c"], name="/conv", group=channels
        ),
        helper.make_node("Relu", ["c"], ["y"], name="/relu"),
    ]
    edges = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, at, at])
        for name, at in (("x", size), ("y", size - 2))
    ]
    graph = helper.make_graph(nodes, "g", edges[:1], edges[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def measured(outcome: Class, product: str = "NVIDIA H100 80GB HBM3") -> Expectation:
    claim = Expectation(outcome, "==8.6.1", None, Basis.MEASURED, "Measured.", targets=("trt86",))
    return replace(claim, nodes=("/conv",), compute_capability="9.0", product=product)


def variant(name: str, model: onnx.ModelProto, *ends: Expectation, recipe: Recipe = PLAIN) -> Variant:
    role = Role.REPRODUCER if name == "fails" else Role.CONTROL
    return Variant(name, name, Built(serialise(model)), recipe, role, expectations=ends)


def told(patterns: Patterns, model: onnx.ModelProto, recipe: Recipe = PLAIN) -> list[tuple[str, ...]]:
    return [each.nodes for each in patterns.matches(Shape(model), recipe, TARGET)]


def case(*variants: Variant) -> Patterns:
    return Patterns([Case("toy", "Toy", "Toy.", (), variants)])


FAILS = variant("fails", convolution(3), measured(Class.BUILD_FAILED))


def test_without_a_control_operators_and_joints_decide() -> None:
    assert told(case(FAILS), convolution(64, size=32)) == [("/conv",)]


def test_the_first_trait_in_which_a_control_differs_decides() -> None:
    """Channels decide here, and by no more than what kernels tell apart: 3 and 35 are odd, 64 is not."""
    patterns = case(FAILS, variant("works", convolution(8, size=16), measured(Class.OK)))
    assert told(patterns, convolution(35, size=32)) == [("/conv",)]
    assert told(patterns, convolution(64)) == []
    deciding = patterns.deciding(patterns.every[0], TARGET)
    assert not isinstance(deciding, TooWide)
    assert {trait for _, trait, _ in deciding.nodes} == {"channels"}


def test_a_control_of_the_case_counts_before_it_is_measured() -> None:
    patterns = case(FAILS, variant("untried", convolution(3, bias=True)))
    assert told(patterns, convolution(3, bias=True)) == []
    assert told(patterns, convolution(3)) == [("/conv",)]


def test_a_flag_decides_where_the_graphs_are_alike() -> None:
    flagged = replace(FAILS, recipe=Recipe(flags=("FP16",)))
    patterns = case(
        flagged, variant("works", convolution(3), measured(Class.OK), recipe=Recipe(flags=("FP16", "INT8")))
    )
    assert told(patterns, convolution(3), Recipe(flags=("FP16",))) == [("/conv",)]
    assert told(patterns, convolution(3), Recipe(flags=("FP16", "INT8"))) == []
    assert told(patterns, convolution(3)) == []


def test_a_pattern_like_a_graph_that_works_is_told_of_none() -> None:
    patterns = case(FAILS, variant("works", convolution(3), measured(Class.OK)))
    assert isinstance(patterns.deciding(patterns.every[0], TARGET), TooWide)
    assert told(patterns, convolution(3)) == []


def test_a_failure_that_another_gpu_does_not_show_is_told_of_none() -> None:
    varies = variant(
        "fails", convolution(3), measured(Class.OK, product="NVIDIA H200"), measured(Class.PRECISION_LOST)
    )
    assert told(case(varies), convolution(3)) == []


def test_a_variant_that_cannot_be_made_is_no_pattern() -> None:
    broken = replace(FAILS, name="broken", build=Unbuildable("its weights are gone"))
    assert told(case(broken, FAILS), convolution(3)) == [("/conv",)]


def test_a_call_that_a_version_lacks_is_told_once_whatever_the_graph() -> None:
    lacking = measured(Class.API_REMOVED)
    strong = Recipe(typing=Typing.STRONG)
    patterns = case(
        variant("fails", convolution(3), lacking, recipe=strong),
        variant("twin", convolution(8), lacking, recipe=strong),
    )
    other = helper.make_model(helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", [], []))
    assert told(patterns, other, strong) == [("",)]
    assert told(patterns, other) == []

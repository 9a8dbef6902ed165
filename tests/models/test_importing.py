"""A model as the importer of a TensorRT reads it: it contradicts itself, its numbers are off, or nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Profile
from harness.known.listed import Dropped, Objection, State, StaticModel
from harness.matrix import load_matrix
from harness.matrix.operators import node_tests, operator_tables
from harness.models import static
from harness.models.static import readings
from harness.models.walking import settled, walk
from harness.suites.items import find_suite

pytestmark = pytest.mark.unit

TRT86 = load_matrix(Path(__file__).parents[2] / "matrix.yaml").target("trt86")
value = helper.make_tensor_value_info


def graph(
    nodes: list[onnx.NodeProto], x: list[int | str], outputs: int = 1, opset: int = 18, **held: Any
) -> onnx.ModelProto:
    """Return a model of nodes on x and constants, whose last nodes make its outputs, y0 and so on."""
    stored = [numpy_helper.from_array(np.asarray(each), name) for name, each in held.items()]
    ends = [value(f"y{at}", TensorProto.UNDEFINED, None) for at in range(outputs)]
    made = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, x)], ends, stored)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def read(model: onnx.ModelProto, *profiles: Profile, **inputs: np.ndarray) -> Objection:
    """Return the gravest finding of the importer of 8.6."""
    (reading,) = readings(model.SerializeToString(), profiles, ("8.6.1",), inputs).values()
    return next(reading.findings())


def reduced(axes: list[int], keepdims: int, x: list[int | str], *more: onnx.NodeProto) -> onnx.ModelProto:
    end = "r" if more else "y0"
    node = helper.make_node("ReduceMax", ["x", "axes"], [end], name="reduce", keepdims=keepdims)
    return graph([node, *more], x, axes=axes, k=[2], two=[2])


TOPK = helper.make_node("TopK", ["r", "k"], ["y0", "places"], name="topk", axis=1)


def test_a_model_that_contradicts_itself_without_what_is_dropped_is_blocked_at_that_node() -> None:
    found = read(reduced([-1], 0, [1, 100, 3], TOPK))
    assert (found.state, found.node, found.operator) == (State.BLOCKED, "topk", "TopK")
    assert "'reduce'" in str(found.restriction)
    assert "onnx-tensorrt/blob" in str(found.restriction)


def test_other_numbers_are_ignored_with_how_far_they_are_off() -> None:
    """The largest of each column against the largest of all."""
    after = helper.make_node("Sub", ["x", "r"], ["y0"], name="less")
    x = np.array([[1, 2], [3, 8]], np.float32)
    found = read(reduced([0], 1, [2, 2], after), x=x)
    assert (found.state, found.node) == (State.IGNORED, "reduce")
    # [[-2, -6], [0, 0]] is expected, [[-7, -6], [-5, 0]] comes out: 5 of 6.
    assert "0.833" in str(found.restriction)


@pytest.mark.parametrize("x", [[1, 100], [1, "n"]])
def test_without_an_effect_it_is_clear_with_a_note(x: list[int | str]) -> None:
    after = helper.make_node("Sub", ["x", "r"], ["y0"])
    profile = [Profile("x", (1, 9), (1, 9), (1, 9))] if "n" in x else []
    found = read(reduced([1], 1, x, after), *profile)
    assert (found.state, found.node) == (State.CLEAR, "reduce")


def test_an_output_of_another_shape_is_ignored() -> None:
    found = read(reduced([1], 0, [2, 3]))
    assert found.state is State.IGNORED
    assert "a scalar, not 2" in str(found.restriction)


def test_sizes_that_a_model_computes_are_followed_to_the_node_that_they_break() -> None:
    """The size of the last axis is [4]; read whole it is [2, 4], and a Range takes no vector."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], name="shape", start=1),
        helper.make_node("Squeeze", ["s"], ["n"], name="squeeze"),
        helper.make_node("Range", ["zero", "n", "one"], ["y0"], name="range"),
    ]
    found = read(graph(nodes, [2, 4], zero=np.int64(0), one=np.int64(1)))
    assert (found.state, found.node) == (State.BLOCKED, "range")


def test_what_cannot_be_computed_is_no_proof() -> None:
    """The evaluator has no NonMaxSuppression of another domain; what is dropped stays told as ignored."""
    after = helper.make_node("Own", ["r"], ["y0"], name="own", domain="of.somebody")
    model = reduced([0], 1, [2, 2], after)
    model.opset_import.append(helper.make_opsetid("of.somebody", 1))
    found = read(model)
    assert found.state is State.IGNORED
    assert "not computed" in str(found.restriction)


@pytest.mark.parametrize(("rank", "stops"), [(2, "MatMul"), (3, "")])
def test_a_branch_is_taken_whose_condition_sizes_decide(rank: int, stops: str) -> None:
    """A walk goes into it, and not into the other, which contradicts itself."""
    branches = [
        helper.make_graph([helper.make_node(op, read, ["b"], name=op)], op, [], [value("b", 1, None)])
        for op, read in (("MatMul", ["x", "x"]), ("Neg", ["x"]))
    ]
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Size", ["s"], ["rank"]),
        helper.make_node("Equal", ["rank", "asked"], ["is"]),
        helper.make_node("If", ["is"], ["y0"], then_branch=branches[0], else_branch=branches[1]),
    ]
    stop = walk(settled(graph(nodes, ["n", 4], asked=np.int64(rank)), {"x": (2, 4)}))
    assert (stop.node if stop else "") == stops


def test_a_walk_alone_finds_the_node_that_contradicts_itself_without_a_run() -> None:
    made, dropped = static.without_dropped(settled(reduced([-1], 0, [1, 100, 3], TOPK), {}), "8.6.1")
    stop = walk(made)
    assert [each.node for each in dropped] == ["reduce"]
    assert stop is not None
    assert stop.node == "topk"


def test_every_fact_that_is_ignored_has_a_way_to_be_read() -> None:
    facts = (
        fact
        for table in operator_tables()
        for each in table.importers.values()
        for fact in each.facts
        if fact.state == "ignored"
    )
    assert {fact.condition for fact in facts} == set(static._DROP)


#: Node tests that 8.6.1 ended otherwise than as they are read: a Resize that it refuses, and data that hide the order.
OTHERWISE = {
    "resize_downsample_scales_linear_antialias",
    "resize_downsample_sizes_linear_antialias",
    "scatter_elements_with_reduction_min",
}
ENDS = {State.IGNORED: {"wrong"}, State.CLEAR: {"ok"}, State.BLOCKED: {"parse_failed", "build_failed"}}


def test_node_tests_ended_on_a_real_8_6_as_they_are_read() -> None:
    items = {item.id: item for item in find_suite("onnx-node").items()}
    held, otherwise = 0, set()
    for test in node_tests():
        item = items.get(test.name)
        if item is None or test.ends[0] == "-":
            continue
        if any(
            isinstance(each, Dropped)
            for each in StaticModel(onnx.load_model_from_string(item.model)).on(TRT86)
        ):
            found = read(onnx.load_model_from_string(item.model), **item.inputs)
            held += 1
            otherwise |= set() if test.ends[0] in ENDS[found.state] else {test.name}
    assert otherwise == OTHERWISE
    assert held > 20

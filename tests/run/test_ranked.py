"""Outputs that a rank orders are matched row by row: a near tie is no wrong number, and a wrong row is one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from harness.run.numbers.reference import compare, ranked_outputs
from harness.run.numbers.wire import Array

pytestmark = pytest.mark.unit

RANKED = frozenset({"boxes", "scores"})
RANDOM = np.random.default_rng(7)


def detections(many: int = 50) -> dict[str, Array]:
    scores = np.sort(RANDOM.random((1, many)).astype(np.float32))[:, ::-1]
    return {"boxes": (RANDOM.random((1, many, 4)) * 640).astype(np.float32), "scores": scores.copy()}


def swapped(given: dict[str, Array], *names: str) -> dict[str, Array | None]:
    """Return outputs with two rows in the other's place in some of them."""
    found = {name: each.copy() for name, each in given.items()}
    for name in names:
        found[name][:, [3, 4]] = found[name][:, [4, 3]]
    return dict(found)


def worst(expected: dict[str, Array], actual: dict[str, Array | None]) -> float:
    return max(each.max_rel for each in compare(expected, actual, RANKED))


def test_rows_that_tie_may_come_in_another_order() -> None:
    expected = detections()
    expected["scores"][0, 4] = expected["scores"][0, 3]
    assert worst(expected, swapped(expected, "boxes", "scores")) == 0
    # By place alone they are wrong.
    assert compare(expected, swapped(expected, "boxes", "scores"))[0].max_rel > 0.01


def test_a_list_of_nothing_is_left_as_it_is() -> None:
    empty: dict[str, Array] = {"boxes": np.zeros((1, 3, 0), np.float32)}
    assert worst(empty, dict(empty)) == 0


def test_a_row_beside_another_s_score_is_wrong() -> None:
    """The boxes alone are swapped: each then has the score of the other."""
    expected = detections()
    expected["scores"][0, 3], expected["scores"][0, 4] = 0.95, 0.5
    assert worst(expected, swapped(expected, "boxes")) > 0.1


def test_a_row_that_is_another_one_is_wrong_unless_it_ties_with_the_last() -> None:
    expected = detections()
    for at, wrong in ((2, True), (49, False)):
        other = swapped(expected)
        boxes = other["boxes"]
        assert boxes is not None
        boxes[0, at] += 320
        assert (worst(expected, other) > 0.1) == wrong


def test_outputs_behind_a_rank_are_found_unless_something_joins_their_rows() -> None:
    value, node = helper.make_tensor_value_info, helper.make_node
    nodes = [
        node("TopK", ["x", "k"], ["v", "i"]),
        node("Sigmoid", ["v"], ["scores"]),
        node("ReduceSum", ["v"], ["sum"]),
        node("Relu", ["x"], ["plain"]),
    ]
    outputs = [value(name, 1, None) for name in ("scores", "sum", "plain")]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, 9]), value("k", 7, [1])], outputs)
    assert ranked_outputs(helper.make_model(graph)) == {"scores"}
    assert isinstance(graph, onnx.GraphProto)

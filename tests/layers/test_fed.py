"""The ways of quantised data to a node that engines stumble over."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Graph
from harness.layers.asked import asked

pytestmark = pytest.mark.unit

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

"""A variant is made ready once: its model, nodes, inputs and reference, as the agent takes them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.agent.tensors import read_shape
from harness.case import Graph, Recipe, Variant, model_sha256
from harness.case.model import Profile
from harness.errors import HandledError
from harness.record.outcome import Node
from harness.run.numbers.inputs import NotFeedable
from tests.run.prepared import prepare_variant

pytestmark = pytest.mark.unit


def model() -> onnx.ModelProto:
    g = Graph("g")
    hidden = g.node("Neg", [g.input("x", ["n", 2])], name="", output="hidden")
    g.node("Relu", [hidden], name="/act", output="y")
    g.output("y", ["n", 2])
    return g.model()


RECIPE = Recipe(mark_outputs=("hidden",), profiles=(Profile("x", (1, 2), (3, 2), (4, 2)),))


def test_a_subject_holds_what_every_target_is_held_to() -> None:
    """Nameless nodes have the parser's name, inputs the profile's optimum, marked tensors their reference."""
    ready = prepare_variant(Variant("v", "V", model, recipe=RECIPE))
    assert ready.sha256 == model_sha256(ready.model)
    assert ready.nodes == (Node("node_of_hidden", "Neg"), Node("/act", "Relu"))
    assert ready.inputs["x"].shape == (3, 2)
    outputs = ready.reference.outputs
    assert outputs is not None
    assert np.array_equal(outputs["hidden"], -ready.inputs["x"])
    assert np.array_equal(outputs["y"], np.maximum(-ready.inputs["x"], 0))


def test_inputs_cross_the_wire_with_their_shape() -> None:
    ready = prepare_variant(Variant("v", "V", model, recipe=RECIPE))
    parts = dict(ready.wire_inputs())
    assert parts["shape:x"] == b"3,2"
    assert np.array_equal(np.frombuffer(parts["x"], "<f4").reshape(3, 2), ready.inputs["x"])


def identity(value: onnx.ValueInfoProto) -> onnx.ModelProto:
    node = helper.make_node("Identity", ["x"], ["y"], name="/id")
    output = onnx.ValueInfoProto(name="y", type=value.type)
    return helper.make_model(helper.make_graph([node], "g", [value], [output]))


def test_a_scalar_crosses_the_wire_with_an_empty_shape() -> None:
    ready = prepare_variant(
        Variant("v", "V", lambda: identity(helper.make_tensor_value_info("x", TensorProto.DOUBLE, [])))
    )
    parts = dict(ready.wire_inputs())
    assert parts["shape:x"] == b""
    assert read_shape(parts["shape:x"]) == ()
    assert np.frombuffer(parts["x"], "<f8").tolist() == [ready.inputs["x"]]


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
            HandledError,
            "variant 'v': input x: dimension 'n' is dynamic; give it a profile",
        ),
        (
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1 << 40]),
            HandledError,
            "variant 'v': input 'x' has 1099511627776 elements, 4 TiB",
        ),
        # Engines may take it all the same: that nothing is fed is left to the record.
        (
            helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2]),
            NotFeedable,
            "input 'x' is a sequence",
        ),
    ],
)
def test_an_input_that_cannot_be_made_says_whose_mistake_it_is(
    value: onnx.ValueInfoProto, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        prepare_variant(Variant("v", "V", lambda: identity(value)))

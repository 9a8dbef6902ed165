"""A variant is made ready once: its model, nodes, inputs and reference, as the agent takes them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from harness.case import Graph, Recipe, Variant, model_sha256
from harness.case.model import Profile
from harness.errors import HandledError
from harness.outcome import Node
from harness.subject import subject

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
    ready = subject(Variant("v", "V", model, recipe=RECIPE))
    assert ready.sha256 == model_sha256(ready.model)
    assert ready.nodes == (Node("node_of_hidden", "Neg"), Node("/act", "Relu"))
    assert ready.inputs["x"].shape == (3, 2)
    outputs = ready.reference.outputs
    assert outputs is not None
    assert np.array_equal(outputs["hidden"], -ready.inputs["x"])
    assert np.array_equal(outputs["y"], np.maximum(-ready.inputs["x"], 0))


def test_inputs_cross_the_wire_with_their_shape() -> None:
    ready = subject(Variant("v", "V", model, recipe=RECIPE))
    parts = dict(ready.wire_inputs())
    assert parts["shape:x"] == b"3,2"
    assert np.array_equal(np.frombuffer(parts["x"], "<f4").reshape(3, 2), ready.inputs["x"])


def test_a_dynamic_input_without_a_profile_is_the_cases_mistake() -> None:
    with pytest.raises(
        HandledError, match=r"variant 'v': input x: dimension 'n' is dynamic; give it a profile"
    ):
        subject(Variant("v", "V", model))

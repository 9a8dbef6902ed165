"""A variant is made ready once: model, nodes, inputs and reference, or data of its own from files beside its case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.agent.tensors import read_shape
from harness.case import Case, Graph, Recipe, Variant, load_cases, model_sha256
from harness.case.model import Profile
from harness.errors import HandledError
from harness.record.outcome import Node
from harness.run.numbers.inputs import NotFeedable
from harness.run.observation import Turn, _Jobs
from harness.run.prepared import PreparedVariants, Refused, with_models
from tests.run.bench import cell as bench_cell
from tests.run.bench import target
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


CASE = """
import onnx
from harness.case import Calibrator, Case, Data, Graph, Link, Recipe, Typing, Variant
def build():
    graph = Graph("relu")
    graph.node("Relu", [graph.input("x", [1, 2])], name="relu", output="y")
    graph.output("y", [1, 2])
    return graph.model()
CASE = Case("mine", "mine", "own data", (), (Variant("v", "v", build, Recipe(%s), data=Data(%s)),))
"""
CALIBRATED = 'Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy")'


def written(folder: Path, data: str, recipe: str = "") -> Case:
    (folder / "mine.py").write_text(CASE % (recipe, data))
    (case,) = load_cases(folder)
    return case


def variant(folder: Path, data: str, recipe: str = "") -> Variant:
    return written(folder, data, recipe).variants[0]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    np.savez(tmp_path / "in.npz", x=np.array([[3, -4]], np.float32))
    np.savez(tmp_path / "out.npz", y=np.array([[3, 1]], np.float32))
    np.savez(tmp_path / "cal.npz", x=np.ones((5, 1, 2), np.float32))
    return tmp_path


def test_what_is_given_is_fed_and_compared_with(files: Path) -> None:
    ready = prepare_variant(variant(files, 'inputs="in.npz", expected="out.npz"'))
    assert ready.inputs["x"].tolist() == [[3, -4]]
    assert ready.reference.outputs is not None
    assert ready.reference.outputs["y"].tolist() == [[3, 1]]
    computed = prepare_variant(variant(files, 'inputs="in.npz"'))
    assert computed.reference.outputs is not None
    assert computed.reference.outputs["y"].tolist() == [[3, 0]]


def test_own_batches_reach_the_calibrator(files: Path) -> None:
    found = variant(files, 'calibration="cal.npz"', CALIBRATED)
    ready = prepare_variant(found)
    cell = replace(bench_cell("echo", target()), variant=found)
    job = _Jobs(cell, ready, Turn(), "").build(None)
    assert job.recipe["calibrator"] == {"kind": "entropy", "batches": 5, "fault": None, "data": "own"}
    assert [name for name, _ in job.parts] == ["model", "calibration:x", "shape:calibration:x"]


def test_it_is_made_ready_in_a_child_and_a_mistake_costs_that_variant_alone(files: Path) -> None:
    np.savez(files / "in.npz", x=np.zeros((2, 2), np.float32))
    (case,) = with_models([written(files, 'inputs="in.npz"')], files)
    with pytest.raises(Refused, match="input 'x' is 1x2 and its data has 2x2"):
        PreparedVariants().of(case.variants[0])


@pytest.mark.parametrize(
    ("data", "recipe", "sentence"),
    [
        ('inputs="nowhere.npz"', "", "its inputs in .*nowhere.npz cannot be read"),
        ('calibration="cal.npz"', "", "has data for calibration and a recipe without a calibrator"),
        ("max_rel='much'", "", "max_rel is 'much'"),
    ],
)
def test_a_mistake_in_the_case_is_one_sentence(files: Path, data: str, recipe: str, sentence: str) -> None:
    with pytest.raises(HandledError, match=sentence):
        written(files, data, recipe)


def test_a_result_of_other_data_is_stale(files: Path) -> None:
    hashes = {
        variant(files, data).recipe_sha256
        for data in ('inputs="in.npz"', 'expected="out.npz"', "max_rel=0.5")
    }
    before = variant(files, 'inputs="in.npz"').recipe_sha256
    assert before in hashes
    np.savez(files / "in.npz", x=np.array([[5, 6]], np.float32))
    hashes.add(variant(files, 'inputs="in.npz"').recipe_sha256)
    assert len(hashes) == 4
    plain = replace(variant(files, 'inputs="in.npz"'), data=None)
    assert plain.recipe_sha256 == plain.recipe.sha256()

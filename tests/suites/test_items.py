"""Suites: what an item is made of, ONNX's own node tests, and folders of models with what can be wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.errors import HandledError
from harness.matrix import load_matrix
from harness.suites.items import Item, find_suite, item
from harness.suites.running import About
from harness.words import Typing
from tests.models import data

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
ONE = np.ones(2, np.float32)


@pytest.fixture(scope="module")
def node_tests() -> dict[str, Item]:
    return {each.id: each for each in find_suite("onnx-node").items()}


def test_onnx_s_own_node_tests_come_with_inputs_and_what_is_expected(node_tests: dict[str, Item]) -> None:
    """Nearly two thousand, whichever onnx is installed; each of one operator, expanded functions too."""
    assert len(node_tests) > 1500
    relu = node_tests["relu"]
    assert (relu.operator, relu.opset, relu.unfed, relu.uncompared) == ("Relu", "14", "", "")
    (given,), (wanted,) = relu.inputs.values(), relu.expected.values()
    assert np.array_equal(np.maximum(given, 0), wanted)
    expanded = node_tests["elu_expanded_ver18"]
    assert (expanded.operator, expanded.opset) == ("Elu", "18")
    assert node_tests["ai_onnx_ml_binarizer"].opset == "ai.onnx.ml 1"
    assert "graph" not in {each.operator for each in node_tests.values()}


def test_what_cannot_be_fed_or_compared_says_why(node_tests: dict[str, Item]) -> None:
    """Such a model is built all the same."""
    inserted = node_tests["sequence_insert_at_back"]
    assert "input 'sequence'" in inserted.unfed
    assert not inserted.inputs
    drawn = node_tests["bernoulli"]
    assert drawn.uncompared.startswith("Bernoulli draws")
    assert drawn.inputs
    assert not drawn.expected
    assert "Dropout" in node_tests["training_dropout_default"].uncompared
    assert not node_tests["dropout_default"].uncompared
    assert node_tests["split_to_sequence_1"].uncompared.startswith("output 'seq' is")


def test_a_graph_of_several_operators_is_called_so() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "g", [], [])
    made = item("g", helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx", 17)]), [], [])
    assert (made.operator, made.opset) == ("graph", "17")


def test_a_model_with_fewer_data_than_inputs_is_not_fed() -> None:
    found = item("one", data.model(), [], [ONE])
    assert "1 inputs" in found.unfed
    assert list(found.expected) == ["y"]


def test_a_folder_of_models_is_a_suite(tmp_path: Path) -> None:
    """In ONNX's own layout, with the first set of data; a name is made fit for an id."""
    folder = data.three(tmp_path / "My models")
    suite = find_suite(str(folder))
    assert (suite.name, suite.title) == ("my-models", "Models of My models")
    items = list(suite.items())
    assert [each.id for each in items] == ["works", "odd", "wrong"]
    works = items[0]
    assert (works.operator, works.opset) == ("Relu", "14")
    assert works.inputs["x"].tolist() == [-1, 2]
    assert works.expected["y"].tolist() == [0, 2]


def test_a_model_s_weights_beside_it_come_along(tmp_path: Path) -> None:
    """An agent is sent one file."""
    folder = tmp_path / "models" / "big"
    folder.mkdir(parents=True)
    graph = data.model("Add")
    graph.graph.node[0].input.append("w")
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(graph, folder / "model.onnx", save_as_external_data=True, size_threshold=0)
    (found,) = find_suite(str(tmp_path / "models")).items()
    assert (
        onnx.load_from_string(found.model).graph.initializer[0].raw_data == np.ones(2, np.float32).tobytes()
    )


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.onnx", b"\xff\xff", "one/model.onnx: is no ONNX model"),
        ("model.onnx", b"", "one/model.onnx: it is empty; mend or delete it"),
        ("test_data_set_0/input_2.pb", b"", "numbers them from 0: input_0.pb, input_2.pb"),
        (
            "test_data_set_0/input_a.pb",
            b"",
            "input_a.pb: data is called input_0.pb or output_0.pb; rename it",
        ),
        (
            "test_data_set_0/input_0.pb",
            TensorProto(data_type=TensorProto.FLOAT, dims=[2], raw_data=b"123").SerializeToString(),
            "input_0.pb: is no tensor that can be read",
        ),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    data.write(tmp_path / "one", data.model(), given=ONE, wanted=ONE)
    (tmp_path / "one" / name).write_bytes(content)
    with pytest.raises(HandledError) as error:
        list(find_suite(str(tmp_path)).items())
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_two_folders_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    for name in ("a b", "a-b"):
        data.write(tmp_path / name, data.model())
    with pytest.raises(HandledError, match=r"a-b: is called a-b here, and so is a b; rename one"):
        list(find_suite(str(tmp_path)).items())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("onnx-nodes", r"no suite 'onnx-nodes', and no folder; did you mean 'onnx-node'\?"),
        ("{folder}/none", "is no folder of models"),
        ("{folder}", r"holds no model; each is to be in a folder of its own"),
    ],
)
def test_a_suite_that_is_not_there_is_one_sentence(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(HandledError, match=says):
        find_suite(name.format(folder=tmp_path))


def test_every_item_is_a_cell_of_every_target(tmp_path: Path) -> None:
    """In the order of a report, built strongly typed wherever that is a choice: ONNX Runtime has the graph alone."""
    suite = find_suite(str(data.three(tmp_path / "mine")))
    matrix = load_matrix(ROOT / "matrix.yaml")
    items = tuple(suite.items())
    models = {each.id: each.model for each in items}
    targets = [matrix.target(name) for name in ("trt86", "trt100", "rtx14", "ort131")]
    cells = About.of(suite, items).cells(targets, models)
    rows = ("relu.works", "relu.wrong", "unheard.odd")
    assert [cell.id for cell in cells] == [f"{row}-{target.name}" for row in rows for target in targets]
    assert not any(cell.inapplicable for cell in cells)
    assert all(cell.variant.model_bytes() == models[cell.variant.name] for cell in cells)
    recipes = [cell.variant.recipe for cell in cells[:4]]
    assert [each.typing for each in recipes[1:]] == [Typing.STRONG, Typing.STRONG, Typing.GRAPH]
    assert [each.flags for each in recipes] == [("FP16",), (), (), ()]

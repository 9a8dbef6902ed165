"""A model that is written as a case builds the same graph again, readable where its words suffice."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Data, Profile, Recipe, Typing, load_cases
from harness.errors import HandledError
from harness.models.case_file import About, add_case, case_name, case_text, loaded
from tests.models.test_reduce import model, quantised, value

pytestmark = pytest.mark.unit

ABOUT = About("own_case", "Conv fails to build", "It fails.", "https://example.org/1")


def tensors(found: onnx.ModelProto) -> dict[str, list[float]]:
    return {each.name: numpy_helper.to_array(each).flatten().tolist() for each in found.graph.initializer}


def nodes(found: onnx.ModelProto) -> list[object]:
    return [(n.op_type, n.name, list(n.input), list(n.output), list(n.attribute)) for n in found.graph.node]


def test_a_quantised_graph_is_written_in_the_words_of_a_case() -> None:
    """Nodes, inputs, outputs and constants come back as they were; the recipe and the report's address too."""
    start = quantised(1)
    recipe = Recipe(Typing.STRONG, flags=("INT8",), profiles=(Profile("x", (1, 4), (1, 4), (2, 4)),))
    text = case_text(start, ABOUT, recipe)
    assert 'g.node("Relu", ["c"], name="/relu", output="y")' in text
    variant = loaded(text, "own_case")
    made = variant.build()
    assert nodes(made) == nodes(start)
    assert (made.graph.input, made.graph.output) == (start.graph.input, start.graph.output)
    assert tensors(made) == tensors(start)
    assert variant.recipe == recipe
    assert variant.data is None
    assert max(map(len, text.splitlines())) <= 110


def test_how_far_outputs_may_be_off_is_written_too() -> None:
    for data in (Data(max_rel=0.5), Data(cosine=0.25), Data(max_rel=0.0, cosine=1.0)):
        variant = loaded(case_text(quantised(1), replace(ABOUT, data=data), Recipe()), "own_case")
        assert variant.data is not None
        assert (variant.data.max_rel, variant.data.cosine) == (data.max_rel, data.cosine)


def test_many_weights_become_made_up_ones_unless_all_are_wanted() -> None:
    start = quantised(64)
    text = case_text(start, ABOUT, Recipe())
    assert re.search(r'g\.weight\("w", \[64, 1, 3, 3\], centre=0\.[45]\d*, spread=0\.[45]\d*\)', text)
    made, exact = (
        loaded(each, "own_case").build() for each in (text, case_text(start, ABOUT, Recipe(), exact=True))
    )
    assert tensors(made) != tensors(start) == tensors(exact)
    assert nodes(made) == nodes(exact) == nodes(start)


def test_what_no_word_says_is_written_as_onnx_s_text() -> None:
    """A subgraph is one such thing; the text is what ONNX's own parser reads."""
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["o"])], "b", [], [value("o", [2])])
    chosen = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    start = model(chosen, [value("x", [2]), value("c", [], TensorProto.BOOL)], [value("y", [2])])
    text = case_text(start, ABOUT, Recipe())
    assert "parser.parse_model(TEXT)" in text
    assert [node.op_type for node in loaded(text, "own_case").build().graph.node] == ["If"]


@pytest.mark.parametrize(
    "kind", ["FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT64", "BOOL", "FLOAT8E4M3FN", "INT4"]
)
def test_constants_of_every_type_come_back(kind: str) -> None:
    number = TensorProto.DataType.Value(kind)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"], name="/i")],
        "g", [], [value("y", [4], number)], [helper.make_tensor("w", number, [4], [0, 1, 1, 0])],
    )  # fmt: skip
    start = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    made = loaded(case_text(start, ABOUT, Recipe()), "own_case").build()
    (old,), (new,) = start.graph.initializer, made.graph.initializer
    assert numpy_helper.to_array(old).tobytes() == numpy_helper.to_array(new).tobytes()
    assert (old.data_type, list(old.dims)) == (new.data_type, list(new.dims))


def test_a_case_is_never_written_over_another_file(tmp_path: Path) -> None:
    path = tmp_path / "cases" / "own_case.py"
    add_case(path, case_text(quantised(4), ABOUT, Recipe()))
    (case,) = load_cases(path.parent)
    assert (case.name, case.title, [each.url for each in case.links]) == (
        ABOUT.name,
        ABOUT.title,
        [ABOUT.issue],
    )
    with pytest.raises(HandledError, match="cannot be written"):
        add_case(path, "")
    with pytest.raises(HandledError, match="is there already; give another place, or delete it"):
        case_name(path)
    with pytest.raises(HandledError, match="is no name of a case"):
        case_name(tmp_path / "Own-Case.py")


def test_quotes_and_backslashes_in_a_title_do_no_harm() -> None:
    odd = About("own_case", 'says "a\\b" and \'c\'"""', "It's \\ so.", "")
    assert re.search(r"says .a", case_text(quantised(4), odd, Recipe()))
    loaded(case_text(quantised(4), odd, Recipe()), "own_case")


def test_numbers_are_as_short_as_tells_them_apart() -> None:
    start = quantised(4)
    start.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(0.1, np.float32), "s"))
    assert 'g.constant("s", [0.1], [])' in case_text(start, ABOUT, Recipe())


@pytest.mark.parametrize("odd", ["-inf", "inf", "nan"])
def test_many_numbers_of_which_one_is_none_are_written_themselves(odd: str) -> None:
    """Made-up ones would lie about an infinite middle."""
    values = np.arange(64, dtype=np.float32) / 8
    values[5] = odd
    start = quantised(4)
    start.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(odd, np.float32), "s"))
    start.graph.initializer.append(numpy_helper.from_array(values, "mask"))
    made = tensors(loaded(case_text(start, ABOUT, Recipe()), "own_case").build())
    assert np.array_equal(made["mask"], values, equal_nan=True)
    assert np.array_equal(made["s"], [float(odd)], equal_nan=True)

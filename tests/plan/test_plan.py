"""Cells are all variants on all targets; a selection and a reason not to run need nothing but them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from _pytest.mark.expression import Expression

from harness.case import (
    Basis,
    Calibrator,
    Case,
    Class,
    Engine,
    Expectation,
    Graph,
    Link,
    Plugin,
    Recipe,
    Typing,
    Variant,
)
from harness.errors import HandledError
from harness.matrix import Matrix, load_matrix
from harness.plan import (
    Cell,
    all_cells,
    claims_about,
    emptied_by,
    failed_before,
    find,
    reproduced_on,
    select,
    taken_along,
)
from harness.words import PREDICATE

pytestmark = pytest.mark.unit

MATRIX = """
schema: 1
targets:
  trt86: {engine: tensorrt, version: "8.6.1", image: "a:b"}
  trt110: {engine: tensorrt, version: "11.0.0.114", image: "a:b"}
  l4t85: {engine: tensorrt, version: "8.5.2", platform: jetson, image: "a:b", needs: {compute_capability: "==8.7"}}
  rtx17: {engine: tensorrt_rtx, version: "1.7.1.116", packages: [tensorrt-rtx-cu12==1.7.1.116]}
  rtx17-sm75: {extends: rtx17, compute_capability: "7.5"}
  ort131: {engine: onnxruntime, version: "1.31.1", packages: [onnxruntime==1.31.1]}
"""
TARGETS = ["trt86", "trt110", "l4t85", "rtx17", "rtx17-sm75", "ort131"]

CALIBRATED = Recipe(typing=Typing.WEAK, flags=("INT8", "FP16"), calibrator=Calibrator("entropy"))
LINK = Link("https://github.com/NVIDIA/TensorRT/issues/3870")


def relu() -> onnx.ModelProto:
    graph = Graph("relu")
    graph.node("Relu", [graph.input("x", (1, 4))], name="act", output="y")
    graph.output("y", (1, 4))
    return graph.model()


def sigmoid() -> onnx.ModelProto:
    graph = Graph("sigmoid")
    graph.node("Sigmoid", [graph.input("x", (1, 4))], name="act", output="y")
    graph.output("y", (1, 4))
    return graph.model()


def case(name: str, *variants: Variant) -> Case:
    return Case(name, title=name, summary="", links=(), variants=variants)


def variant(name: str, recipe: Recipe | None = None, expectations: tuple[Expectation, ...] = ()) -> Variant:
    return Variant(name, title=name, build=relu, recipe=recipe or Recipe(), expectations=expectations)


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    path: Path = tmp_path_factory.mktemp("plan") / "matrix.yaml"
    path.write_text(MATRIX, encoding="utf-8")
    return load_matrix(path)


@pytest.fixture(scope="module")
def cells(matrix: Matrix) -> tuple[Cell, ...]:
    silu = case("conv_silu", variant("int8-entropy", CALIBRATED), variant("fp32"))
    return all_cells(matrix, [silu, case("mish", variant("qdq"))])


def cell_of(matrix: Matrix, target: str, *variants: Variant) -> Cell:
    """Return the cell of the first of these variants on a target."""
    return all_cells(Matrix((matrix.target(target),), matrix.path), [case("a_case", *variants)])[0]


def test_cells_come_by_case_then_variant_then_target(cells: tuple[Cell, ...]) -> None:
    variants = ["conv_silu.int8-entropy", "conv_silu.fp32", "mish.qdq"]
    assert [cell.id for cell in cells] == [f"{one}-{target}" for one in variants for target in TARGETS]


def test_a_cell_holds_what_its_id_says(cells: tuple[Cell, ...]) -> None:
    for cell in cells:
        assert cell.id == f"{cell.case.name}.{cell.variant.name}-{cell.target.name}"


def test_find_returns_the_cell_and_the_nearest_to_a_mistyped_id(cells: tuple[Cell, ...]) -> None:
    assert find(cells, "mish.qdq-rtx17").target.name == "rtx17"
    with pytest.raises(HandledError) as caught:
        find(cells, "mish.qdp-rtx17")
    assert "mean 'mish.qdq-rtx17'?" in str(caught.value)


def test_two_cells_of_one_id_are_refused(tmp_path: Path) -> None:
    """Variants and targets may hold hyphens, and a cell is looked up by its id."""
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX.replace("ort131:", "sm75:"), encoding="utf-8")
    with pytest.raises(
        HandledError, match=r"^two cells are called mish\.qdq-rtx17-sm75; rename a variant or a t"
    ):
        all_cells(load_matrix(path), [case("mish", variant("qdq"), variant("qdq-rtx17"))])


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("mish and rtx17", ["mish.qdq-rtx17", "mish.qdq-rtx17-sm75"]),
        ("MISH and (trt86 or ort)", ["mish.qdq-trt86", "mish.qdq-ort131"]),
        ("mish and not rtx and not trt1 and not l4t", ["mish.qdq-trt86", "mish.qdq-ort131"]),
        (".fp32-ort or qdq-l4t85", ["conv_silu.fp32-ort131", "mish.qdq-l4t85"]),
        ("conv_silu.int8-entropy-rtx17-sm75", ["conv_silu.int8-entropy-rtx17-sm75"]),
        ("not (conv_silu or rtx17 or l or trt)", ["mish.qdq-ort131"]),
        ("\tort131 and\tmish ", ["mish.qdq-ort131"]),
        ("mish and trt or mish and ort", ["mish.qdq-trt86", "mish.qdq-trt110", "mish.qdq-ort131"]),
        ("rtx17-sm75 and mish or nothing and mish", ["mish.qdq-rtx17-sm75"]),
        ("nothing", []),
    ],
)
def test_select_picks_by_expression(cells: tuple[Cell, ...], expression: str, ids: list[str]) -> None:
    assert [cell.id for cell in select(cells, expression)] == ids


@pytest.mark.parametrize(
    ("expression", "note"),
    [
        ("mish and RTX17", "-k RTX17 takes rtx17-sm75 along; --target rtx17 is that one alone"),
        ("rtx17 and not sm75", ""),
        ("rtx17-sm75", ""),
        ("rtx", ""),
        ("", ""),
    ],
)
def test_a_target_whose_name_takes_others_along_is_noted(
    cells: tuple[Cell, ...], expression: str, note: str
) -> None:
    assert taken_along(select(cells, expression), expression) == note


def test_an_empty_expression_picks_everything(cells: tuple[Cell, ...]) -> None:
    assert select(cells, " ") == cells


def pytest_meaning(cells: Sequence[Cell], text: str) -> list[Cell]:
    """Return the cells that pytest's own evaluator picks by id."""
    compiled = Expression.compile(text)

    def matcher(cell: Cell) -> Callable[..., bool]:
        return lambda name, /, **_: name in cell.id

    return [cell for cell in cells if compiled.evaluate(matcher(cell))]


def test_select_refuses_what_pytest_refuses(cells: tuple[Cell, ...]) -> None:
    """Every sequence of up to four of these words means the same here as under -k, or is refused by both."""
    refused = 0
    for length in range(1, 5):
        for words in itertools.product(["mish", "trt86", "and", "or", "not", "(", ")"], repeat=length):
            text = " ".join(words)
            try:
                picked = pytest_meaning(cells, text)
            except SyntaxError:
                refused += 1
                with pytest.raises(HandledError):
                    select(cells, text)
            else:
                assert list(select(cells, text)) == picked, text
    assert refused > 2000


@pytest.mark.parametrize(
    "expression",
    ["mish and", "(mish", "mish (trt86)", "()", "mish & trt86", "mish, trt86", "'mish'", "(" * 999],
)
def test_a_bad_expression_gets_one_sentence(cells: tuple[Cell, ...], expression: str) -> None:
    with pytest.raises(HandledError) as caught:
        select(cells, expression)
    assert f"{expression!r} cannot" in str(caught.value)


@pytest.mark.parametrize(
    ("recipe", "asks"),
    [
        (Recipe(typing=Typing.WEAK), "weak typing"),
        (Recipe(typing=Typing.WEAK, flags=("FP16",)), "weak typing (FP16)"),
        (CALIBRATED, "weak typing (INT8, FP16) and entropy calibration"),
        (Recipe(calibrator=Calibrator("minmax")), "minmax calibration"),
        (Recipe(parser_flags=(("NATIVE_INSTANCENORM", True),)), "parser flags (NATIVE_INSTANCENORM)"),
        (
            dataclasses.replace(CALIBRATED, mark_outputs=("y",)),
            "weak typing (INT8, FP16), entropy calibration and inner tensors marked as outputs",
        ),
        (Recipe(mark_outputs=("y",)), "inner tensors marked as outputs"),
        (Recipe(plugin=Plugin("LayerNormInt8", "int8_linear")), "the plugin LayerNormInt8"),
    ],
)
def test_onnx_runtime_runs_only_what_the_graph_says(matrix: Matrix, recipe: Recipe, asks: str) -> None:
    assert str(cell_of(matrix, "ort131", variant("v", recipe)).inapplicable).endswith(f" {asks}")


def test_flags_that_only_permit_what_the_graph_says_keep_a_recipe_applicable(matrix: Matrix) -> None:
    recipe = Recipe(typing=Typing.GRAPH, flags=("INT8",), workspace_mib=64)
    for each in (recipe, Recipe(typing=Typing.STRONG)):
        assert cell_of(matrix, "ort131", variant("v", each)).inapplicable is None


def test_the_reason_names_the_variant_with_the_same_graph(matrix: Matrix) -> None:
    other_graph = Variant("sigmoid", title="", build=sigmoid)
    also_weak = variant("fp16", Recipe(typing=Typing.WEAK, flags=("FP16",)))
    reason = cell_of(
        matrix, "ort131", variant("int8", CALIBRATED), other_graph, also_weak, variant("fp32")
    ).inapplicable
    assert reason is not None
    assert reason.endswith("graph without that")


def test_a_variant_of_another_graph_is_not_named(matrix: Matrix) -> None:
    other_graph = Variant("sigmoid", title="", build=sigmoid)
    reason = cell_of(matrix, "ort131", variant("int8", CALIBRATED), other_graph).inapplicable
    assert reason is not None
    assert "same graph" not in reason


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "ort131"])
@pytest.mark.parametrize(
    "recipe",
    [
        CALIBRATED,
        Recipe(typing=Typing.STRONG),
        Recipe(plugin=Plugin("LayerNormInt8", "int8_linear")),
        Recipe(mark_outputs=("y",)),
    ],
)
def test_tensorrt_is_asked_also_where_it_may_refuse(matrix: Matrix, target: str, recipe: Recipe) -> None:
    """Strong typing on 8.x, weak typing on 11 and plugins on RTX are run: the agent names the missing call."""
    assert cell_of(matrix, target, variant("v", recipe)).inapplicable is None


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"outcome": Class.CRASHED, "versions": "==8.6.0"}, True),
        ({"versions": "==8.5.3", "targets": ("trt85",)}, True),
        ({"versions": "==8.5.2", "targets": ("l4t85",)}, False),
        ({"versions": "==9.2.0", "targets": ("trt92",)}, False),
        ({"versions": "==9.2.0"}, False),
        ({"versions": "==1.4.0", "engine": Engine.TENSORRT_RTX}, False),
        ({"outcome": Class.OK}, False),
        ({"outcome": Class.API_REMOVED}, False),
        ({"outcome": Class.NOT_RUN}, False),
        ({"compute_capability": "8.9"}, True),
        ({"compute_capability": "7.5"}, False),
    ],
)
def test_a_variant_failed_before_where_it_was_measured_to_here_or_earlier(
    matrix: Matrix, changes: dict[str, Any], counts: bool
) -> None:
    """Not on another platform or engine, not later; and a lacking API has not shown the reported failure."""
    note = "measured in May"
    plain = Expectation(Class.BUILD_FAILED, "==8.6.1", None, Basis.MEASURED, note, targets=("trt86",))
    claim = dataclasses.replace(plain, **changes)
    cell = cell_of(matrix, "trt86", variant("v", expectations=(claim,)))
    cell = dataclasses.replace(cell, earlier=("trt85",))
    assert failed_before(cell, "8.9") == (f"{note}: {PREDICATE[claim.outcome]}" if counts else "")


def test_the_last_version_that_failed_is_named_and_no_report_counts(matrix: Matrix) -> None:
    def measured(version: str) -> Expectation:
        return Expectation(Class.CRASHED, f"=={version}", None, Basis.MEASURED, version, targets=("trt110",))

    reported = Expectation.reported(Class.BUILD_FAILED, "==10.10", LINK, targets=("trt110",))
    claims = (measured("9.2"), reported, measured("10.9"), measured("10.2"))
    assert failed_before(cell_of(matrix, "trt110", variant("v", expectations=claims))) == "10.9: crashes"
    assert failed_before(cell_of(matrix, "trt110", variant("v", expectations=(reported,)))) == ""


def test_a_claim_of_something_alike_or_of_no_version_stands_in_no_cell(matrix: Matrix) -> None:
    """Neither gives a cell its class: a standing claim names a version, and this graph or its whole model."""
    whole, alike = (
        Expectation.reported(Class.OK, ">=8.6,<8.7", LINK, scope=scope) for scope in ("model", "sibling")
    )
    unnamed = Expectation.reported(Class.BUILD_FAILED, None, LINK)
    cell = cell_of(matrix, "trt86", variant("v", expectations=(unnamed, alike, whole)))
    assert claims_about(cell) == (whole,)


def test_where_no_gpu_took_part_the_generation_counts_that_the_target_builds_for(matrix: Matrix) -> None:
    """`rtx17-sm75` builds for 7.5 on any machine; of a GPU that took part the GPU counts."""
    engine = Engine.TENSORRT_RTX
    turing, ada = (
        Expectation.reported(Class.OK, "", LINK, engine=engine, compute_capability=each)
        for each in ("7.5", "8.9")
    )
    v = variant("v", expectations=(turing, ada))
    declared, open_ = cell_of(matrix, "rtx17-sm75", v), cell_of(matrix, "rtx17", v)
    assert [claims_about(declared, each) for each in (None, "", "8.9")] == [(turing,), (turing,), (ada,)]
    assert [claims_about(open_, each) for each in (None, "", "8.9")] == [(turing, ada), (), (ada,)]


def test_a_claim_of_a_gpu_that_the_target_does_not_run_on_stands_in_none_of_its_cells(matrix: Matrix) -> None:
    geforce, orin = (
        Expectation.reported(Class.OK, "", LINK, compute_capability=each) for each in ("8.6", "8.7")
    )
    v = variant("v", expectations=(geforce, orin))
    assert claims_about(cell_of(matrix, "trt86", v)) == (geforce, orin)
    assert claims_about(cell_of(matrix, "l4t85", v)) == (orin,)


def test_earlier_targets_are_those_of_the_same_engine_platform_and_generation(matrix: Matrix) -> None:
    """A version of Jetson is no predecessor of one on x86, nor one that builds for a chosen GPU."""
    found = {cell.target.name: cell.earlier for cell in all_cells(matrix, [case("c", variant("v"))])}
    assert found == {**dict.fromkeys(TARGETS, ()), "trt110": ("trt86",)}


def test_a_variant_is_reproduced_where_it_was_measured_to_fail_as_claimed(matrix: Matrix) -> None:
    claim = Expectation.reported(Class.BUILD_FAILED, "<10.1", LINK)

    def reproduced(seen: dict[str, set[Class]], *claims: Expectation) -> tuple[str, ...] | None:
        return reproduced_on(all_cells(matrix, [case("c", variant("v", expectations=claims))]), seen)

    assert reproduced({}, claim) == ()
    assert reproduced({"c.v-trt86": {Class.BUILD_FAILED}}, claim) == ("trt86",)
    assert reproduced({"c.v-trt86": {Class.CRASHED}, "c.v-trt110": {Class.BUILD_FAILED}}, claim) == ()
    accepted = Expectation(
        Class.BUILD_FAILED, "==8.6.1", None, Basis.MEASURED, "measured", targets=("trt86",)
    )
    assert reproduced({}, claim, accepted) == ("trt86",)
    for cls in (Class.OK, Class.BUILT, Class.API_REMOVED, Class.NOT_RUN):
        assert reproduced({"c.v-trt86": {cls}}, Expectation.reported(cls, "", LINK)) is None


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("mish and fp32", "'fp32' takes away all "),
        ("ort131 and not mish and not conv_silu", "'not conv_silu' takes away all "),
        ("nowhere and not ort131", "'nowhere' takes away all "),
        ("nowhere", "'nowhere' takes away all "),
        ("nowhere and neither", ""),
    ],
)
def test_the_part_that_leaves_no_cell_is_named(cells: tuple[Cell, ...], expression: str, said: str) -> None:
    assert not select(cells, expression)
    assert emptied_by(cells, expression).startswith(said)
    assert bool(emptied_by(cells, expression)) is bool(said)

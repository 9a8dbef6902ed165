"""Sentences on version ranges, and the changes by version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.case import Recipe
from harness.matrix import Target
from harness.record.outcome import Layer, Node, Outcome
from harness.report.model import Results
from harness.words import Precision, Typing
from tests.report import factory

pytestmark = pytest.mark.unit


def spans(results: Results, variant: str) -> dict[str, str]:
    views = {view.name: view for view in results.cases[0].variants}
    return {span.series: span.text for span in views[variant].sentences}


def changes(results: Results, variant: str) -> list[tuple[str, str, str, bool | None]]:
    found = [change for change in results.changes if change.variant == variant]
    return [(change.before, change.after, change.kind, change.better) for change in found]


def of(*outcomes: Outcome, extra: tuple[Target, ...] = ()) -> Results:
    matrix = factory.matrix()
    matrix = replace(matrix, targets=(*matrix.targets, *extra))
    return factory.assemble(matrix, (factory.case(),), {outcome.cell: outcome for outcome in outcomes})


BETWEEN = "qdq-between"
LOST = factory.outcome(BETWEEN, "rtx15", layers=(factory.conv_layer("fp32"),))
RANGE = {
    "from the first on to the open end": (
        [factory.build_failure("qdq", "rtx14"), *(factory.outcome("qdq", f"rtx1{at}") for at in (5, 6, 7))],
        "fails to build on 1.4 (measured); fixed in 1.5 (measured): builds, INT8 1/1",
    ),
    "one state is one clause": (
        [factory.outcome("qdq", f"rtx1{at}") for at in (4, 5, 6, 7)],
        "builds on 1.4 to 1.7 (measured), INT8 1/1",
    ),
    "a state that comes back is not merged": (
        factory.outcomes().values(),
        (
            "fails to build on 1.4 (measured); fixed in 1.5 (measured): builds, INT8 1/1; "
            "broken in 1.7 (measured): fails to build"
        ),
    ),
    "beside an untested version it is by, not in": (
        [factory.build_failure(BETWEEN, "rtx14"), factory.outcome(BETWEEN, "rtx17")],
        "fails to build on 1.4 (measured); fixed by 1.7 (measured): builds, INT8 1/1; 1.5 to 1.6 not tested",
    ),
    "what is not known stands in no range": (
        [factory.build_failure(BETWEEN, on) for on in ("rtx14", "rtx17")],
        "fails to build on 1.4 and 1.7 (measured); 1.5 to 1.6 not tested",
    ),
    "accepted results were measured too, and show no nodes": (
        [factory.outcome("qdq", "rtx16")],
        (
            "fails to build on 1.4 (measured); fixed in 1.5 (measured): builds; builds on 1.6 (measured), INT8 1/1; "
            "builds on 1.7 (measured)"
        ),
    ),
    "from a refusal to a silent loss is no fix": (
        [factory.build_failure(BETWEEN, "rtx14"), LOST],
        "fails to build on 1.4 (measured); loses precision on 1.5 (measured), INT8 0/1; 1.6 to 1.7 not tested",
    ),
}


@pytest.mark.parametrize("name", RANGE)
def test_a_variant_is_told_along_the_versions_of_a_series(name: str) -> None:
    outcomes, said = RANGE[name]
    assert said in {spans(of(*outcomes), variant).get("RTX") for variant in ("qdq", BETWEEN)}


def test_claims_are_told_apart_from_measurements() -> None:
    assert "measured" not in spans(factory.results(), "qdq")["TensorRT"]


def test_what_came_later_was_not_removed_and_is_not_fixed() -> None:
    """8.6 has no strongly typed networks, 10.2 has."""
    strong = replace(factory.case().variants[3], recipe=Recipe(typing=Typing.STRONG), expectations=())
    case = replace(factory.case(), variants=(strong,))
    refused = replace(
        factory.outcome("fp32", "trt86"),
        missing_api="NetworkDefinitionCreationFlag.STRONGLY_TYPED",
        ran=False,
        layers=(),
    )
    both = (refused, factory.ran("fp32", "trt102"))
    made = {
        each.cell: replace(each, stamps=replace(each.stamps, recipe_sha256=strong.recipe_sha256))
        for each in both
    }
    found = factory.assemble(factory.matrix(), (case,), made)
    (sentence,) = (span.text for span in found.variants[0].sentences if span.series == "TensorRT")
    assert "not there yet" in sentence
    assert "fixed" not in sentence
    assert found.cell("conv_silu", "fp32", "trt86").text == "not there yet"
    assert [each.better for each in found.changes] == [None]


def test_a_side_series_names_the_versions_at_which_it_differs_alone() -> None:
    sides = [
        (factory.target(f"{name}-sm75", version, compute_capability="7.5"), factory.outcome("qdq", name))
        for name, version in (("rtx14", "1.4.0.76"), ("rtx15", "1.5.0.114"), ("rtx16", "1.6.1.120"))
    ]
    found = []
    for number, (target, same) in enumerate(sides):
        moved = replace(same, target=target.name, cell=f"conv_silu.qdq-{target.name}")
        lost = replace(moved, layers=(factory.conv_layer("fp32"),))
        found += [same, moved if number == 1 else lost]
    said = spans(of(*found, extra=tuple(target for target, _ in sides)), "qdq")["RTX, SM 7.5"]
    assert said == "loses precision on 1.4 and 1.6 (measured), INT8 0/1"


def test_a_side_series_is_told_only_where_it_differs() -> None:
    """The other GPU generations of one version are news only when they are."""
    side = factory.target("rtx17-sm75", "1.7.1.116", compute_capability="7.5")
    main = factory.outcome("qdq", "rtx17")
    same = replace(main, target="rtx17-sm75", cell="conv_silu.qdq-rtx17-sm75")
    assert "RTX, SM 7.5" not in spans(of(main, same, extra=(side,)), "qdq")
    other = replace(same, layers=(factory.conv_layer("fp32"),))
    found = spans(of(main, other, extra=(side,)), "qdq")
    assert found["RTX, SM 7.5"] == "loses precision on 1.7 (measured), INT8 0/1"


def test_class_change_names_the_two_versions_and_the_direction() -> None:
    """Which version changed it, and whether for the better."""
    assert changes(factory.results(), "qdq") == [
        ("rtx14", "rtx15", "result", True),
        ("rtx16", "rtx17", "result", False),
    ]


def test_change_over_a_gap_names_the_versions_that_were_not_run() -> None:
    """ "Changed by 1.7" is no claim about 1.5 and 1.6."""
    results = of(factory.build_failure("qdq", "rtx14"), factory.outcome("qdq", "rtx17"))
    (change,) = results.changes
    assert change.versions.endswith("(1.5, 1.6 not run)")


def test_no_change_between_equal_neighbours() -> None:
    """Other tactics and other layer names are no change."""
    first = factory.outcome("qdq", "rtx14")
    renamed = tuple(replace(layer, name="other", tactic="0x2") for layer in first.layers)
    assert not of(first, factory.outcome("qdq", "rtx15", layers=renamed)).changes


ATTENTION = (Node("/a/MatMul", "MatMul"), Node("/a/Softmax", "Softmax"), Node("/a/MatMul_1", "MatMul"))
WHOLE = (
    Layer("whole", "kgen", "fp16", tactic="_gemm_mha_v2_0x60d1", onnx_nodes=("/a/MatMul", "/a/Softmax")),
)
APART = (Layer("one", "gemm", "fp16", tactic="__myelin_CASK_STUB", onnx_nodes=("/a/MatMul",)),)


def test_attention_that_is_no_longer_one_kernel_is_a_change_for_the_worse() -> None:
    """Nothing else tells of it: the types stay, and so does the class."""
    whole = factory.outcome("fp32", "rtx14", nodes=ATTENTION, layers=WHOLE)
    results = of(whole, factory.outcome("fp32", "rtx15", nodes=ATTENTION, layers=APART))
    (change,) = results.changes
    assert (change.kind, change.better) == ("attention", False)
    by_target = {cell.target: cell for cell in results.cells if cell.variant == "fp32"}
    assert "_gemm_mha_v2" in by_target["rtx14"].notes[0]
    assert by_target["rtx15"].notes != by_target["rtx14"].notes
    assert by_target["rtx16"].attention_kernel is None


def test_versions_of_different_products_are_not_compared() -> None:
    """RTX 1.7 is no successor of TensorRT 10, nor a Jetson of a desktop."""
    results = of(
        factory.build_failure("qdq", "l4t86"),
        factory.outcome("qdq", "trt86"),
        factory.build_failure("qdq", "rtx14"),
        factory.outcome("qdq", "ort131"),
    )
    assert not results.changes


def test_versions_are_ordered_as_versions_whatever_the_order_in_the_matrix() -> None:
    """1.10 comes after 1.9."""
    newer, older = factory.target("rtx110", "1.10.0.1"), factory.target("rtx19", "1.9.0.1")
    at_110 = factory.moved(factory.outcome("qdq", "rtx17"), newer)
    at_19 = factory.moved(factory.build_failure("qdq", "rtx17"), older)
    results = of(at_110, at_19, extra=(newer, older))
    assert changes(results, "qdq") == [("rtx19", "rtx110", "result", True)]


def test_precision_change_of_a_wanted_node_is_told() -> None:
    """The same class, but a node that matters moved."""
    case = factory.case()
    loose = replace(case, variants=(replace(case.variants[3], precision=((factory.CONV, Precision.FP16),)),))
    in_fp32 = factory.outcome("fp32", "rtx15", layers=(factory.conv_layer("fp32"),))
    made = [factory.outcome("fp32", "rtx14"), in_fp32]
    results = factory.assemble(factory.matrix(), (loose,), {entry.cell: entry for entry in made})
    (change,) = results.changes
    assert (change.kind, change.better) == ("precision", None)
    assert f"{factory.CONV} int8 → fp32" in change.text


@pytest.mark.parametrize(
    ("told", "kind", "better"), [("fp16", "result", False), ("unknown", "precision", None)]
)
def test_a_precision_that_an_engine_does_not_tell_is_no_loss(
    told: str, kind: str, better: bool | None
) -> None:
    """A node wanted in INT8 that is next told to run in FP16 has lost it; of one that is not told nothing is known."""
    case = factory.case()
    loose = replace(case, variants=(replace(case.variants[3], precision=((factory.CONV, Precision.INT8),)),))
    after = factory.outcome("fp32", "rtx15", layers=(factory.conv_layer(told),))
    made = [factory.outcome("fp32", "rtx14"), after]
    results = factory.assemble(factory.matrix(), (loose,), {entry.cell: entry for entry in made})
    assert [(change.kind, change.better) for change in results.changes] == [(kind, better)]

"""Sentences on version ranges, and which version changed what."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.record.outcome import Layer, Node
from harness.report.compare.ranges import chip, short_versions, unasked
from harness.report.results import assemble
from harness.words import Engine, Precision
from tests.report import factory
from tests.report.handmade import FP16, FP32, INT8, cell, layer, variant

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.record.outcome import Outcome
    from harness.report import Results

pytestmark = pytest.mark.unit


def spans(results: Results, variant: str) -> dict[tuple[str, bool], str]:
    views = {view.name: view for view in results.cases[0].variants}
    return {(span.series, span.claimed): span.text for span in views[variant].spans}


def changes(results: Results, variant: str) -> list[tuple[str, str, str, bool | None]]:
    found = [change for change in results.changes if change.variant == variant]
    return [(change.before, change.after, change.what, change.better) for change in found]


def of(*outcomes: Outcome, extra: tuple[Target, ...] = ()) -> Results:
    matrix = factory.matrix()
    matrix = replace(matrix, targets=(*matrix.targets, *extra))
    return assemble(matrix, (factory.case(),), {outcome.cell: outcome for outcome in outcomes})


def test_a_range_is_told_from_first_to_last_and_the_last_is_open() -> None:
    """What fails on 1.4 and builds from 1.5 on is said so, with the precision reached."""
    results = of(
        factory.build_failure("qdq", "rtx14"),
        *(factory.outcome("qdq", on) for on in ("rtx15", "rtx16", "rtx17")),
    )
    assert (
        spans(results, "qdq")["RTX", False]
        == "fails to build on 1.4 (measured); fixed in 1.5 (measured): builds, INT8 1/1"
    )


def test_one_state_along_all_versions_is_one_clause() -> None:
    """Nothing changed, and the sentence does not suggest that something did."""
    results = of(*(factory.outcome("qdq", on) for on in ("rtx14", "rtx15", "rtx16", "rtx17")))
    assert spans(results, "qdq")["RTX", False] == "builds on 1.4 to 1.7 (measured), INT8 1/1"


def test_a_state_that_comes_back_is_not_merged() -> None:
    """Broken in between is the case that a reader must not miss."""
    results = factory.results()
    said = (
        "fails to build on 1.4 (measured); fixed in 1.5 (measured): builds, INT8 1/1; "
        "broken in 1.7 (measured): fails to build"
    )
    assert spans(results, "qdq")["RTX", False] == said


def test_claims_are_a_sentence_of_their_own() -> None:
    """What was not run is never mixed with what was."""
    found = spans(factory.results(), "qdq")
    assert found["TensorRT", True] == "fails to build on 8.6 (reported); 10.2 not tested"
    assert ("TensorRT", False) not in found


def test_a_bound_beside_an_untested_version_says_by_and_names_it() -> None:
    """ "Fixed in 1.7" would be a claim about 1.5 and 1.6."""
    results = of(factory.build_failure("qdq-between", "rtx14"), factory.outcome("qdq-between", "rtx17"))
    assert spans(results, "qdq-between")["RTX", False] == (
        "fails to build on 1.4 (measured); fixed by 1.7 (measured): builds, INT8 1/1; 1.5 to 1.6 not tested"
    )


def test_measured_and_accepted_versions_of_one_series_stand_in_one_sentence_each_marked() -> None:
    """What was accepted was measured too, before; only what was run here tells of its nodes."""
    results = of(factory.outcome("qdq", "rtx16"))
    assert spans(results, "qdq")["RTX", False] == (
        "fails to build on 1.4 (measured); fixed in 1.5 (measured): builds; builds on 1.6 (measured), INT8 1/1; "
        "builds on 1.7 (measured)"
    )


def test_a_lost_precision_is_no_fix_and_no_break() -> None:
    """From a refusal to a silent loss nothing is mended."""
    lost = factory.outcome("qdq-between", "rtx15", layers=(factory.conv_layer("fp32"),))
    results = of(factory.build_failure("qdq-between", "rtx14"), lost)
    said = spans(results, "qdq-between")["RTX", False]
    assert said.startswith("fails to build on 1.4 (measured); loses precision on 1.5 (measured), INT8 0/1")


def test_a_side_series_is_told_only_where_it_differs() -> None:
    """The other GPU generations of one version are news only when they are."""
    side = factory.target("rtx17-sm75", "1.7.1.116", compute_capability="7.5")
    main = factory.outcome("qdq", "rtx17")
    same = replace(main, target="rtx17-sm75", cell="conv_silu.qdq-rtx17-sm75")
    assert ("RTX, SM 7.5", False) not in spans(of(main, same, extra=(side,)), "qdq")
    other = replace(same, layers=(factory.conv_layer("fp32"),))
    found = spans(of(main, other, extra=(side,)), "qdq")
    assert found["RTX, SM 7.5", False] == "loses precision on 1.7 (measured), INT8 0/1"


def test_class_change_names_the_two_versions_and_the_direction() -> None:
    """Which version changed it, and whether for the better."""
    assert changes(factory.results(), "qdq") == [
        ("rtx14", "rtx15", "class", True),
        ("rtx15", "rtx16", "layers", None),
        ("rtx16", "rtx17", "class", False),
    ]


def test_change_over_a_gap_names_the_versions_that_were_not_run() -> None:
    """ "Changed by 1.7" is no claim about 1.5 and 1.6."""
    results = of(factory.build_failure("qdq", "rtx14"), factory.outcome("qdq", "rtx17"))
    (change,) = results.changes
    assert change.text == "1.4 to 1.7 (1.5, 1.6 not run): fails to build before, builds after, INT8 1/1"


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
    assert (change.what, change.better) == ("layers", False)
    assert change.text == "1.4 to 1.5: attention no longer runs as one fused kernel, _gemm_mha_v2"
    by_target = {cell.target: cell for cell in results.cells if cell.variant == "fp32"}
    assert by_target["rtx14"].notes == ("Attention runs as one fused kernel, _gemm_mha_v2.",)
    assert by_target["rtx15"].notes == ("Attention runs in several kernels.",)
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
    assert changes(results, "qdq") == [("rtx19", "rtx110", "class", True)]


def test_precision_change_of_a_wanted_node_is_told() -> None:
    """The same class, but a node that matters moved."""
    case = factory.case()
    loose = replace(case, variants=(replace(case.variants[3], precision=((factory.CONV, Precision.FP16),)),))
    in_fp32 = factory.outcome("fp32", "rtx15", layers=(factory.conv_layer("fp32"),))
    made = [factory.outcome("fp32", "rtx14"), in_fp32]
    results = assemble(factory.matrix(), (loose,), {entry.cell: entry for entry in made})
    (change,) = results.changes
    assert (change.what, change.better) == ("precision", None)
    assert f"{factory.CONV} int8 → fp32" in change.text


@pytest.mark.parametrize(
    ("told", "what", "better"), [("fp16", "class", False), ("unknown", "precision", None)]
)
def test_a_precision_that_an_engine_does_not_tell_is_no_loss(
    told: str, what: str, better: bool | None
) -> None:
    """A node wanted in INT8 that is next told to run in FP16 has lost it; of one that is not told nothing is known."""
    case = factory.case()
    loose = replace(case, variants=(replace(case.variants[3], precision=((factory.CONV, Precision.INT8),)),))
    after = factory.outcome("fp32", "rtx15", layers=(factory.conv_layer(told),))
    made = [factory.outcome("fp32", "rtx14"), after]
    results = assemble(factory.matrix(), (loose,), {entry.cell: entry for entry in made})
    assert [(change.what, change.better) for change in results.changes] == [(what, better)]


def test_versions_are_shortened_as_far_as_they_stay_apart() -> None:
    """8.6 says enough unless 8.6.1 and 8.6.2 are both there."""
    assert short_versions(["8.6.1", "10.2.0.19"]) == {"8.6.1": "8.6", "10.2.0.19": "10.2"}
    assert short_versions(["8.6.1", "8.6.2"]) == {"8.6.1": "8.6.1", "8.6.2": "8.6.2"}
    assert short_versions(["10.0.1", "10.1"]) == {"10.0.1": "10.0", "10.1": "10.1"}


def test_chip_counts_what_kept_its_precision() -> None:
    """A number in the cell is a number of nodes, and what is not known is not counted as kept."""
    layers = (factory.conv_layer(),)
    both = {"a": INT8, "b": INT8}
    assert chip(both, {"a": INT8, "b": Precision.FP32}, (), layers) == "INT8 1/2"
    assert chip(both, {"a": INT8}, ("b",), layers) == "INT8 1/2?"
    assert chip(both, {}, ("a", "b"), layers) == "INT8 ?"
    assert chip(both, both, (), ()) == ""


def test_chip_takes_tf32_for_fp32() -> None:
    """TF32 is how a GPU multiplies FP32 unless it is told not to."""
    assert chip({"a": Precision.FP32}, {"a": Precision.TF32}, (), (factory.conv_layer(),)) == "FP32 1/1"


def test_chip_without_wanted_nodes_names_the_precisions_of_the_layers() -> None:
    """A calibrated engine that stayed in FP32 shows it."""
    layers = (factory.conv_layer("int8"), factory.activation_layer())
    assert chip({}, {}, (), layers) == "FP32+INT8"


def test_engines_are_named_for_readers() -> None:
    """Every engine of the vocabulary has a series."""
    for engine in Engine:
        added = factory.target("added", "99.1.0", engine=engine)
        assert of(extra=(added,)).targets[-1].series in ("TensorRT", "RTX", "ONNX Runtime")


@pytest.mark.parametrize(
    ("wanted", "actual", "untold", "said"),
    [
        ({"a": INT8, "b": FP16}, {"a": INT8, "b": FP32}, (), "kept 1/2"),
        ({"a": INT8, "b": FP16}, {}, ("a", "b"), "kept ?"),
        # A node of which neither is known vanished rightly: it was folded into a constant.
        ({"a": INT8, "b": INT8}, {"a": INT8}, (), "INT8 1/1"),
        ({"a": INT8}, {}, (), "FP16+INT4 WEIGHTS"),
        ({}, {"a": INT8}, ("a",), "FP16+INT4 WEIGHTS"),
    ],
)
def test_the_chip_of_a_cell(
    wanted: dict[str, Precision], actual: dict[str, Precision], untold: tuple[str, ...], said: str
) -> None:
    """Mixed wishes are counted as one; without any the layers speak, but not those of indices and of nothing told."""
    kinds = ("int4_weights", "fp16", "fp16", "unknown", "int32", "int64", "bool")
    layers = [layer(kind) for kind in kinds]
    assert chip(wanted, actual, untold, layers) == said


def test_what_nobody_asked_for_is_told_in_narrow_types_and_floats() -> None:
    """A node that is fused with a wanted one follows it as long as it runs in the same; indices are of no interest."""
    found = cell(
        precision={
            "wanted": INT8,
            "follows": INT8,
            "differs": FP32,
            "alone": INT8,
            "half": FP16,
            "stored": Precision.INT4_WEIGHTS,
            "index": Precision.INT64,
            "hidden": Precision.UNKNOWN,
        },
        layers=(
            layer("int8", "wanted", "follows", "differs"),
            layer("int8", "alone"),
            layer("fp16", "half", "stored", "index", "hidden"),
        ),
    )
    assert unasked(found, variant(wanted=INT8)) == {
        "differs": FP32,
        "alone": INT8,
        "half": FP16,
        "stored": Precision.INT4_WEIGHTS,
    }

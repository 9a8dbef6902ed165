"""The account of a cell: measured, else reported, else unknown; and its precision in short."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from harness.case import Expectation
from harness.judge.cell import judge_cell
from harness.known.cell import badness, chip, known_of, nearest_first, not_yet, unwanted, worst_first
from harness.known.listed import Objection, State
from harness.known.model import GraphView, Known, NodeView
from harness.plan import all_cells, find
from harness.record.outcome import Latency, Layer, Outcome
from harness.report.views import short_versions
from harness.words import GOOD, UNJUDGED, Basis, Class, Precision, Verdict
from tests.compare.handmade import known, target, variant
from tests.report import factory

pytestmark = pytest.mark.unit

INT8, FP16, FP32 = Precision.INT8, Precision.FP16, Precision.FP32


def layer(precision: str, *nodes: str) -> Layer:
    """Return a layer made of ONNX nodes."""
    return Layer("l", "convolution", precision, onnx_nodes=nodes)


@pytest.mark.parametrize(
    ("wanted", "actual", "untold", "said"),
    [
        ({"a": INT8, "b": INT8}, {"a": INT8, "b": FP32}, (), "INT8 1/2"),
        # An unknown precision does not count as kept.
        ({"a": INT8, "b": INT8}, {"a": INT8}, ("b",), "INT8 1/2?"),
        ({"a": INT8, "b": INT8}, {}, ("a", "b"), "INT8 ?"),
        # TF32 is how a GPU multiplies FP32 unless it is told not to.
        ({"a": FP32}, {"a": Precision.TF32}, (), "FP32 1/1"),
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
    """Mixed wishes are counted as one; without any the layers count, except those of indices or without a type."""
    kinds = ("int4_weights", "fp16", "fp16", "unknown", "int32", "int64", "bool")
    layers = [layer(kind) for kind in kinds]
    assert chip(wanted, actual, untold, layers) == said
    assert chip(wanted, actual, untold, ()) == ""


def test_a_layer_of_fp32_or_tf32_is_named() -> None:
    """Its numbers were held to TF32, which nothing else shows."""
    made = factory.ran("fp32", "trt86")
    untold = Layer("/up", "CaskGemmDeconvolution", "fp32", onnx_nodes=("/up",))
    made = replace(made, layers=(untold,), stamps=replace(made.stamps, environment={"gpu": "NVIDIA H200"}))
    here = find(all_cells(factory.matrix(), (factory.case(),)), "conv_silu.fp32-trt86")
    assert any(
        note.startswith("FP32 or TF32, held to TF32: /up")
        for note in known_of([judge_cell(here, made)]).notes
    )


def test_nodes_wanted_in_none_are_told_in_narrow_types_and_floats() -> None:
    """A node that is fused with a wanted one follows it as long as it runs in the same; indices are of no interest."""
    precision = {
        "wanted": INT8,
        "follows": INT8,
        "differs": FP32,
        "alone": INT8,
        "half": FP16,
        "stored": Precision.INT4_WEIGHTS,
        "index": Precision.INT64,
        "hidden": Precision.UNKNOWN,
    }
    layers = (
        layer("int8", "wanted", "follows", "differs"),
        layer("int8", "alone"),
        layer("fp16", "half", "stored", "index", "hidden"),
    )
    assert unwanted(precision, {"wanted"}, layers) == {
        "differs": FP32,
        "alone": INT8,
        "half": FP16,
        "stored": Precision.INT4_WEIGHTS,
    }


def claim(outcome: Class, scope: Any = "graph", **fields: Any) -> Expectation:
    return Expectation.reported(outcome, "", factory.ISSUE, scope=scope, **fields)


def test_the_nearest_claim_gives_a_cell_its_class_and_of_two_of_one_scope_the_failure() -> None:
    """Measured before reported, of the graph before of a model."""
    works, fails = claim(Class.OK), claim(Class.BUILD_FAILED)
    model, measured = (
        claim(Class.CRASHED, "model"),
        replace(works, basis=Basis.MEASURED, kind=None, source=None),
    )
    assert nearest_first([model, works])[0] is works
    assert nearest_first([works, fails, model])[0] is fails
    assert nearest_first([fails, measured])[0] is measured


def cell_of(*outcomes: Outcome) -> Known:
    cells = all_cells(factory.matrix(), (factory.case(),))
    return known_of(worst_first([judge_cell(find(cells, each.cell), each) for each in outcomes]))


def test_a_finding_is_the_basis_of_a_cell_without_result_and_claim_and_only_a_blocked_graph_stands() -> None:
    cells = all_cells(factory.matrix(), (factory.case(),))
    every = [judge_cell(cell, Outcome.blank(cell, "not_run", "no GPU")) for cell in cells]
    free, claimed = (next(each for each in every if bool(each.claims) is known) for known in (False, True))
    for state in State:
        finding = Objection(state, "n", "Mish", "no importer")
        found = known_of([free], static=finding)
        basis = {State.UNKNOWN: None, State.CLEAR: None, State.REPORTED: Basis.REPORTED}.get(
            state, Basis.LISTED
        )
        stands = Class.PARSE_FAILED if state is State.BLOCKED else None
        assert (found.cls, found.basis, found.stands, found.measured) == (Class.NOT_RUN, basis, stands, False)
        assert known_of([claimed], static=finding).basis not in (None, Basis.LISTED)


def test_a_record_gives_class_basis_and_words() -> None:
    found = cell_of(factory.outcome("qdq", "rtx17"))
    assert (found.cls, found.stands, found.basis, found.evidence) == (
        Class.BUILT,
        Class.BUILT,
        Basis.MEASURED,
        True,
    )
    assert (found.text, found.chip) == ("builds (INT8 1/1)", "INT8 1/1")
    assert found.nodes(((factory.CONV, INT8),)) == ("int8",)
    assert found.layers
    failed = cell_of(factory.build_failure("qdq", "rtx17"))
    assert failed.cls is Class.BUILD_FAILED
    assert failed.diagnosis
    assert any("Could not find any implementation" in text for text in failed.errors)
    assert failed.nodes(((factory.CONV, INT8),)) == ()


def test_a_cell_whose_run_was_lost_stays_lost_beside_what_was_accepted() -> None:
    """A step compares the standing class; the reader sees the record's class."""
    lost = cell_of(factory.outcome("qdq", "rtx17", state="infra_error", reason="lost", layers=(), end=None))
    assert (lost.cls, lost.stands, lost.basis) == (Class.INFRA_ERROR, Class.BUILT, Basis.MEASURED)
    assert (lost.evidence, lost.measured) == (False, False)


def test_that_a_build_needs_a_gpu_says_nothing_of_one_that_had_it() -> None:
    asked = factory.build_failure(
        "qdq", "rtx17", error="In generateForCurrent at x", messages=(), native_output=""
    )
    built = factory.on_gpu(factory.outcome("qdq", "rtx17"), factory.L4)
    assert cell_of(asked).cls is Class.NEEDS_GPU_TO_BUILD
    assert cell_of(asked, built).cls is Class.BUILT


def test_a_median_has_bounds_where_its_samples_agree() -> None:
    noisy = Latency((0.5, 1.5) * 50, 10, "monotonic")
    plain, odd = (
        cell_of(factory.ran("fp32", "ort131", **fields)).latency for fields in ({}, {"latency": noisy})
    )
    assert plain
    assert odd
    assert (plain.noise, plain.low, plain.high) == ("", 0.042, 0.044)
    assert ("would not show" in odd.noise, odd.low, odd.high) == (True, None, None)


def test_versions_are_shortened_as_far_as_they_stay_apart() -> None:
    """8.6 says enough unless 8.6.1 and 8.6.2 are both there."""
    assert short_versions(["8.6.1", "10.2.0.19"]) == {"8.6.1": "8.6", "10.2.0.19": "10.2"}
    assert short_versions(["8.6.1", "8.6.2"]) == {"8.6.1": "8.6.1", "8.6.2": "8.6.2"}
    assert short_versions(["10.0.1", "10.1"]) == {"10.0.1": "10.0", "10.1": "10.1"}


def test_every_class_has_its_place() -> None:
    """No two share one; unjudged classes come before good ones, and these before every failure."""
    places = [badness(cls, Verdict.EXPECTED) for cls in Class]
    assert len(set(places)) == len(Class)
    failures = set(Class) - GOOD - UNJUDGED
    for lesser, greater in itertools.pairwise((UNJUDGED, GOOD, failures)):
        worst = max(badness(cls, Verdict.EXPECTED) for cls in lesser)
        assert all(badness(cls, Verdict.EXPECTED) > worst for cls in greater)


@pytest.mark.parametrize("known", sorted(set(Class) - GOOD))
def test_a_regression_is_worse_than_any_known_failure(known: Class) -> None:
    """On whatever GPU; and any failure that was not known before is, too."""
    ranks = [
        badness(known, Verdict.KNOWN_FAILURE),
        badness(Class.PRECISION_LOST, Verdict.NEW),
        badness(Class.PRECISION_LOST, Verdict.REGRESSED),
    ]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_what_newly_works_is_no_failure() -> None:
    assert badness(Class.OK, Verdict.NEW) < badness(Class.BUILD_FAILED, Verdict.KNOWN_FAILURE)


API, PARSE, BUILD = Class.API_REMOVED, Class.PARSE_FAILED, Class.BUILD_FAILED


@pytest.mark.parametrize(
    ("cls", "signature", "version", "told"),
    [
        (API, "strong-typing-missing", "8.6.1", "strongly typed networks, from 9.0 on"),
        (API, "strong-typing-missing", "10.0", None),
        (API, "parser-flag-missing", "8.5.2", "flags of the parser, from 8.6 on"),
        # It went, and did not come.
        (API, "implicit-int8-removed", "11.0", None),
        (PARSE, "no-bf16-yet", "8.6.1", "BF16, from 9.0 on"),
        # The graph has FP8 and INT4: the later of the two is what it waits for.
        (PARSE, "initializer-refused", "8.6.1", "INT4, from 10.0 on"),
        (PARSE, "initializer-of-later-type", "9.2.0", "INT4, from 10.0 on"),
        (PARSE, "initializer-refused", "10.6.0", None),
        (PARSE, "no-importer", "8.6.1", "Mish, from 10.0 on"),
        (PARSE, "no-importer", "10.1.0", None),
        (PARSE, None, "8.6.1", "Mish, from 10.0 on"),
        (PARSE, "negative-scale", "8.6.1", None),
        # It was read: another cause than a missing importer, whatever the table lacks.
        (BUILD, None, "8.6.1", None),
        (Class.OK, "no-bf16-yet", "8.6.1", None),
    ],
)
def test_what_came_later_is_named_with_the_first_release(
    cls: Class, signature: str | None, version: str, told: str | None
) -> None:
    graph = GraphView(
        (NodeView("a", "Conv", (), ()), NodeView("b", "Mish", (), ())),
        types={"x": "float32 1x3", "w": "float8e4m3fn 3x3", "v": "int4 3x3"},
    )
    row = replace(variant(), graph=graph)
    column = target(version=version, engine="tensorrt")
    found = not_yet(known(cls, signature=signature), row, column)
    assert (found and str(found)) == told
    # Nobody publishes what the parser of another engine takes.
    assert not_yet(known(cls, signature=signature), row, target(version=version)) is None


def test_a_graph_that_a_table_blocks_waits_for_the_operator_alone() -> None:
    column, row = target(version="8.6.1", engine="tensorrt"), variant()
    blocked = Objection(State.BLOCKED, "a", "Mish", "no importer", "10.0")
    for finding, told in (
        (blocked, "Mish, from 10.0 on"),
        (replace(blocked, restriction="antialias must be 0"), "None"),
    ):
        cell = known(PARSE, basis=Basis.LISTED, static=finding)
        assert str(not_yet(cell, row, column)) == told

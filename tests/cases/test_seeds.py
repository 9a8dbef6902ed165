"""The claims that the project started from: which cell shows it, in which class, how near and by whose word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.case import Basis, load_cases
from harness.case.claims import Expectation
from harness.case.registry import load_declared
from harness.judge.classify import Classification
from harness.judge.verdict import judge
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells, claims_about, failed_before
from harness.report.writer import results_json
from harness.words import Class, Verdict
from tests.report import factory

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
CASES = load_cases(TOP / "cases")
MATRIX = load_matrix(TOP / "matrix.yaml")
CELLS = all_cells(MATRIX, CASES)
#: Case, variant, target (- is the row alone), class, scope, the end of the source's address, in the claim's own words.
SEEDS = """
mish qdq trt100 build_failed model TensorRT/issues/3870 10.0.1
mish qdq trt102 ok model TensorRT/issues/3870
mish qdq-calibrator trt100 build_failed model TensorRT/issues/3870 10.0.1
mish qdq-calibrator trt102 ok model TensorRT/issues/3870
mish qdq-after-norm trt100 ok model TensorRT/issues/3870 10.0.1
mish residual-fp32 trt86 build_failed model Model-Optimizer/issues/50 8.6.1
mish swish-tail l4t85 build_failed graph TensorRT/issues/3385 8.5.2
conv_silu int8-entropy l4t85 build_failed model TensorRT/issues/3640 8.5.2
conv_silu int8-entropy l4t86 build_failed model TensorRT/issues/3640 8.6.2
conv_silu int8-entropy trt92 ok model TensorRT/issues/3640
conv_silu int8-entropy trt100 ok model TensorRT/issues/3640
conv_silu int8-tail trt86 build_failed model tensorrtx/issues/1546 8.6.1
conv_silu int8-tail trt86 build_failed model TensorRT/issues/4555 8.6.1
conv_silu int8-tail-concat - ok model tensorrtx/pull/1556
conv_silu int8-tail-minmax l4t103 build_failed model ultralytics/issues/21281 10.3.0
conv_silu int8-tail-minmax trt1011 build_failed model ultralytics/issues/21281
conv_silu tail-fp32 trt1011 ok model ultralytics/issues/21281
instance_norm int8-native trt86 ok model TensorRT/issues/3659 8.6.1
instance_norm int8-as-reported trt86 ok model TensorRT/issues/3659 8.6.1
instance_norm int64-shape trt86 ok model TensorRT/issues/3659 8.6.1
instance_norm calibrator-host-pointer - build_failed sibling TensorRT/issues/3659 8.6.1
instance_norm calibrator-non-contiguous - build_failed sibling TensorRT/issues/3659 8.6.1
depthwise_qdq qdq trt86 build_failed model TensorRT/issues/4060 8.6.11
depthwise_qdq qdq trt102 precision_lost model TensorRT/issues/4060
depthwise_qdq act-qdq trt86 ok model TensorRT/issues/4060 8.6.11
depthwise_qdq qdq-dense-c4 trt86 build_failed model TensorRT/issues/3638 8.6.1
depthwise_qdq qdq-relu-after l4t85 ok graph TensorRT/issues/3385 8.5.2
q_plugin_dq q-plugin-dq-int8 trt86 ok graph TensorRT/issues/3055 8.6.0.12
q_plugin_dq q-dq-plugin-q-dq-int8 trt86 build_failed graph TensorRT/issues/3055 8.6.0.12
q_plugin_dq q-dq-plugin-q-dq-fp32 - ok graph TensorRT/issues/3844
q_plugin_dq q-dq-plugin-q-dq-int8-fp32 - ok graph TensorRT/issues/3844
q_plugin_dq q-plugin-dq-int8-vectorised - build_failed graph TensorRT/issues/3844
q_plugin_dq q-plugin-dq-int8-fp32 - build_failed graph TensorRT/issues/3844
q_plugin_dq int8-constant-v3 trt100 build_failed model TensorRT/issues/3919 10.0.1
q_plugin_dq int8-constant-v3 trt101 ok model TensorRT/issues/3919
q_plugin_dq int8-constant-v2 trt100 ok model TensorRT/issues/3919 10.0.1
"""
ROWS = [(*row.split(), "")[:7] for row in SEEDS.strip().splitlines()]
SEEDED = ("mish", "conv_silu", "instance_norm", "depthwise_qdq", "q_plugin_dq")
#: Documents that decide an interface or an operator, not the reports that the project started from.
DOCUMENTS = ("migration/", "NvInfer.h", "NvOnnxParser.h", "operators.md", "importers.cpp", "Importers.cpp")

#: Versions of reports that no target has, so that the claim stands in no column.
NO_COLUMN = {("norms", "==10.15.*"), ("qdq_shapes", "==8.4.*"), ("quantised_attention", "==10.8.*")}


def reported(cell: Cell) -> list[Expectation]:
    return [claim for claim in claims_about(cell) if claim.basis is Basis.REPORTED]


def row_of(claim: Expectation) -> tuple[str, str, str]:
    assert claim.source is not None
    return str(claim.outcome), claim.scope, claim.source.url


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_a_seed_stands_where_it_was_reported(row: tuple[str, ...]) -> None:
    """In its column, or with the row where it is of something alike or names no version; with its patch number."""
    case, variant, target, cls, scope, source, of = row
    cells = [cell for cell in CELLS if (cell.case.name, cell.variant.name) == (case, variant)]
    if target == "-":
        claims = [claim for claim in cells[0].variant.expectations if not claim.stands]
    else:
        claims = reported(next(cell for cell in cells if cell.target.name == target))
    found = [claim for claim in claims if row_of(claim)[:2] == (cls, scope)]
    assert any(row_of(claim)[2].endswith(source) and of in claim.of for claim in found)


@pytest.mark.parametrize("name", SEEDED)
def test_no_other_column_has_a_report_of_a_seed(name: str) -> None:
    """The table above is all of it: a claim that is wider than its source would stand in a cell that it lacks."""
    listed = {(variant, target) for case, variant, target, *_ in ROWS if case == name}
    stands = {
        (cell.variant.name, cell.target.name)
        for cell in CELLS
        if cell.case.name == name
        for claim in reported(cell)
        if not any(document in row_of(claim)[2] for document in DOCUMENTS)
    }
    assert stands == listed - {(variant, "-") for variant, _ in listed}


def test_the_claims_that_stand_in_no_column_are_these() -> None:
    """Who adds a target takes its versions off the list; who adds a claim of another version puts that on it."""
    standing = {id(claim) for cell in CELLS for claim in claims_about(cell)}
    orphans = {
        (case.name, claim.versions)
        for case in CASES
        for variant in case
        for claim in variant.expectations
        if claim.basis is Basis.REPORTED and claim.stands and id(claim) not in standing
    }
    print("\n".join(f"{case}: {versions}" for case, versions in sorted(orphans, key=str)))
    assert orphans == NO_COLUMN


def test_the_seeds_stand_in_results_json_in_their_class() -> None:
    """As they are shown where nobody measured them: the failure where two of one scope disagree."""
    unmeasured = load_declared(TOP / "cases")
    found = json.loads(results_json(factory.assemble(MATRIX, unmeasured, {})))
    cells = {cell["id"]: cell for cell in found["cells"]}
    wanted: dict[str, set[str]] = {}
    for case, variant, target, cls, *_ in ROWS:
        if target != "-":
            wanted.setdefault(f"{case}.{variant}-{target}", set()).add(cls)
    assert len(wanted) > 20
    for name, classes in wanted.items():
        failing = classes - {"ok"}
        assert cells[name]["basis"] == "reported", name
        assert cells[name]["class"] in (failing or {"ok", "built"}), name


def verdict(cell: Cell, cls: Class) -> Verdict:
    return judge(Classification(cls, "seen"), claims_about(cell), failed_before=failed_before(cell)).verdict


@pytest.mark.parametrize(
    "name", ["conv_silu.int8-tail-minmax-trt1011", "mish.qdq-trt100", "conv_silu.int8-entropy-l4t86"]
)
def test_a_reduction_that_does_not_show_its_report_is_not_called_fixed(name: str) -> None:
    """Nobody ever saw these graphs fail there."""
    cell = next(each for each in CELLS if each.id == name)
    assert verdict(cell, Class.OK) is Verdict.NOT_REPRODUCED
    assert verdict(cell, Class.BUILD_FAILED) is Verdict.KNOWN_FAILURE


@pytest.mark.parametrize(
    "name", ["mish.qdq-trt102", "conv_silu.int8-entropy-trt92", "mish.qdq-after-norm-trt100"]
)
def test_what_a_thread_says_builds_is_not_held_to_its_precision(name: str) -> None:
    """The depthwise convolution may well run in FP32 there, as the project's own case on it says."""
    cell = next(each for each in CELLS if each.id == name)
    assert verdict(cell, Class.PRECISION_LOST) is Verdict.NEW
    assert verdict(cell, Class.OK) is Verdict.EXPECTED
    assert verdict(cell, Class.BUILD_FAILED) is Verdict.REGRESSED

"""`results_of`: the whole matrix is there, judged, in order, and no stale result passes for current."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto

from harness.case import Graph, load_cases
from harness.compare.kinds import Pair, claim_of, like_with_like
from harness.errors import HandledError
from harness.history import CellHistory, Entry, RunRecord, subject_of
from harness.known.model import GraphView, Known, VariantView
from harness.plan import all_cells
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.report.labels import BUCKETS, bucket
from harness.report.model import Results, content, load_results, results_file
from harness.report.views import MOST_NODES, graph_of
from harness.report.writer import build_report, results_json
from harness.words import Basis, Class, Precision, Verdict
from tests.history.seeded import STACK, day
from tests.report import factory

pytestmark = pytest.mark.unit

CASES = {case.name: case for case in load_cases(Path(__file__).resolve().parents[2] / "cases")}
CONV = "/model.0/conv/Conv"


def test_every_cell_of_the_matrix_is_there_in_the_order_of_the_plan() -> None:
    """No outcome is needed for a cell to be shown, and recorded order has no influence."""
    wanted = [cell.id for cell in all_cells(factory.matrix(), (factory.case(),))]
    reversed_outcomes = dict(reversed(factory.outcomes().items()))
    found = factory.assemble(factory.matrix(), (factory.case(),), reversed_outcomes)
    assert [cell.id for cell in found.cells] == wanted
    assert [cell.id for cell in factory.assemble(factory.matrix(), (factory.case(),), {}).cells] == wanted


def test_a_cell_without_an_outcome_is_not_run_and_keeps_what_is_claimed() -> None:
    """The reader gets the sources' claims, marked as not measured."""
    cell = factory.results().cell("conv_silu", "qdq", "trt86")
    assert (cell.cls, cell.basis, cell.verdict) == (Class.BUILD_FAILED, Basis.REPORTED, Verdict.NOT_RUN)
    assert (cell.claims, cell.measured, cell.text) == ((0,), False, "fails to build")
    assert bucket(cell) == "reported"
    assert cell.reason == "not run for this report"


def test_a_cell_that_means_nothing_says_why() -> None:
    """A calibrated recipe on ONNX Runtime is not applicable, and no outcome is needed to know."""
    cell = factory.results().cell("conv_silu", "int8-entropy", "ort131")
    assert cell.cls is Class.NOT_APPLICABLE
    assert "calibration" in cell.reason


def test_an_outcome_of_another_model_is_stale_and_not_shown() -> None:
    """Its class, layers and stamps must not appear as today's result."""
    cell = factory.results().cell("conv_silu", "fp32", "rtx14")
    assert cell.stale
    assert cell.cls is Class.NOT_RUN
    assert not cell.layers
    assert cell.stamps == ""
    assert bucket(cell) == "stale"


OLD_VERSION = "it ran on version 1.5.0.98, and matrix.yaml declares 1.5.0.114 today"


def of_version(version: str, when: str = "2026-11-20", **fields: Any) -> Outcome:
    """Return an outcome of a cell whose target is of version 1.5.0.114."""
    outcome = factory.outcome("qdq", "rtx15", **fields)
    return replace(
        outcome, stamps=replace(outcome.stamps, engine_version=version, when=when, run=f"r{when[-2:]}")
    )


def shown(folder: Path, *outcomes: Outcome) -> Known:
    """Return the cell of these outcomes as the report shows it."""
    with Store(folder) as store:
        for outcome in outcomes:
            store.append(outcome)
    made = build_report(factory.matrix(), (factory.case(),), Store(folder), folder)
    return made.cell("conv_silu", "qdq", "rtx15")


def test_an_outcome_of_another_version_is_stale_and_names_both(tmp_path: Path) -> None:
    """Its result is not about the version that matrix.yaml declares today: the accepted result stands."""
    cell = shown(tmp_path, of_version("1.5.0.98"))
    assert (cell.stale, cell.cls, cell.measured, cell.stamps) == (True, Class.BUILT, False, "")
    assert cell.reason == OLD_VERSION
    assert bucket(cell) == "stale"
    text = (tmp_path / "results.json").read_text()
    assert OLD_VERSION in text


def test_the_past_of_another_version_stays_with_its_own_stack(tmp_path: Path) -> None:
    """The history tells both; flaky results on the old version make no flaky cell of the new."""
    failed = {"failed_phase": "build", "error": "no", "layers": ()}
    old = [of_version("1.5.0.98", when=f"2026-11-1{day}", **(failed if day % 2 else {})) for day in range(4)]
    cell = shown(tmp_path / "old", *old)
    assert cell.stale
    assert cell.flaky == ()
    assert cell.past is not None
    assert cell.past.event == "flaky"
    cell = shown(tmp_path / "new", *old, of_version("1.5.0.114"))
    assert (cell.stale, cell.flaky) == (False, ())
    assert cell.past is not None
    assert cell.past.event != "flaky"


def test_verdict_expectation_and_diagnosis_reach_the_cell() -> None:
    """A conclusion and its source are on the page's side of the border."""
    cell = factory.results().cell("conv_silu", "qdq", "rtx17")
    assert (cell.cls, cell.verdict) == (Class.BUILD_FAILED, Verdict.REGRESSED)
    assert cell.claims[0] == 2
    assert cell.diagnosis is not None
    assert cell.signature == cell.diagnosis.id == "no-implementation-qdq"


def test_every_cell_is_in_exactly_one_bucket() -> None:
    """The counts on the page add up."""
    results = factory.results()
    assert all(bucket(cell) in BUCKETS for cell in results.cells)
    shown = {bucket(cell) for cell in results.cells}
    assert {"regressed", "new", "known_failure", "expected"} <= shown
    assert {"infra", "stale", "reported", "not_run", "not_applicable"} <= shown


def test_precision_by_node_is_what_the_layers_say() -> None:
    """A convolution that ran in FP32 is not reported in the precision that was wanted."""
    cell = factory.results().cell("conv_silu", "qdq-between", "rtx14")
    assert cell.precision[factory.CONV] == "fp32"
    assert (cell.cls, cell.chip) == (Class.PRECISION_LOST, "INT8 0/1")
    assert cell.lost == (f"{factory.CONV}: fp32 instead of int8",)


def test_what_is_wanted_is_what_the_variant_says_or_else_its_graph() -> None:
    """The page wants the model's precisions on both sides of a step, also if the variant does not list them."""
    quantised = next(variant for variant in CASES["conv_silu"] if variant.name == "qdq")
    wishes = {None: quantised.precision, (): (), ((CONV, Precision.FP32),): ((CONV, Precision.FP32),)}
    for said, wanted in wishes.items():
        variant = replace(quantised, precision=said, counterpart=None)
        case = replace(CASES["conv_silu"], variants=(variant,))
        (view,) = factory.assemble(factory.matrix(), (case,), {}).cases[0].variants
        assert view.wanted == wanted


def test_stored_weights_are_called_so() -> None:
    """In the chip and among the lost nodes; the file for programs has the word itself."""
    stored = factory.outcome("qdq-between", "rtx15", layers=(factory.conv_layer("int8_weights"),))
    results = factory.assemble(factory.matrix(), (factory.case(),), {stored.cell: stored})
    found = results.cell("conv_silu", "qdq-between", "rtx15")
    assert found.lost == (f"{factory.CONV}: int8 weights instead of int8",)
    assert found.precision[factory.CONV] == "int8_weights"
    plain = factory.outcome("int8-entropy", "rtx15", layers=(factory.conv_layer("int8_weights"),))
    results = factory.assemble(factory.matrix(), (factory.case(),), {plain.cell: plain})
    assert results.cell("conv_silu", "int8-entropy", "rtx15").chip == "INT8 WEIGHTS"


def test_results_json_keeps_its_contract() -> None:
    """Scripts rely on these names."""
    data = json.loads(results_json(factory.results()))
    assert data["schema"] == 2
    assert {"id", "version", "platform"} <= data["targets"][0].keys()
    promised = (
        "id case variant target class basis verdict signature precision accuracy latency_ms phases reason claims "
        "by_gpu stamps layers"
    )
    for cell in data["cells"]:
        assert set(promised.split()) <= cell.keys()
    cells: dict[str, dict[str, Any]] = {cell["id"]: cell for cell in data["cells"]}
    timed = cells["conv_silu.fp32-ort131"]["latency_ms"]
    assert {"median", "low", "high", "n"} <= timed.keys()
    assert cells["conv_silu.qdq-rtx15"]["latency_ms"] is None
    assert cells["conv_silu.qdq-rtx14"]["signature"] == "no-implementation-qdq"
    assert cells["conv_silu.qdq-rtx15"]["precision"][factory.CONV] == "int8"


def test_results_json_has_a_cell_a_line() -> None:
    """A diff of two runs shows one line for a cell that changed."""
    lines = results_json(factory.results()).splitlines()
    one = next(line for line in lines if '"id":"conv_silu.qdq-rtx15"' in line)
    assert json.loads(one.rstrip(","))["class"] == "built"


def test_figures_that_are_not_finite_become_null() -> None:
    """JSON has no NaN, and a reader's parser must not fail on one; read again it is NaN, and written again null."""
    outcome = factory.ran("fp32", "ort131")
    broken = replace(outcome, accuracy=(replace(outcome.accuracy[0], max_abs=float("nan"), not_finite=3),))
    text = results_json(factory.assemble(factory.matrix(), (factory.case(),), {broken.cell: broken}))
    assert results_json(Results.from_json(json.loads(text))) == text
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in results.json"))
    cell = next(entry for entry in data["cells"] if entry["id"] == broken.cell)
    assert cell["accuracy"][0]["max_abs"] is None


def test_results_come_back_from_their_json() -> None:
    """`diff` judges the page's own data."""
    results = factory.results()
    assert Results.from_json(json.loads(results_json(results))) == results


def test_results_of_real_engines_come_back_with_their_history() -> None:
    """Texts that no factory thought of; written as they were read. Older ones had more of a past and a latency."""
    published = results_file(Path(__file__).parents[2] / "reports" / "published")
    data = json.loads(content(published))
    results = Results.from_json(data)
    written = json.loads(results_json(results))["cells"]
    for cell in data["cells"]:
        (cell["latency_ms"] or {}).pop("upload", None)
    # What came later is told by today's tables.
    today: dict[str, None] = dict.fromkeys(("past", "not_yet"))
    assert [{**cell, **today} for cell in written] == [{**cell, **today} for cell in data["cells"]]
    assert any(cell.past for cell in results.cells)


def test_a_results_json_of_another_schema_gets_one_sentence(tmp_path: Path) -> None:
    """One of schema 1 holds other fields; no part of it is guessed."""
    (tmp_path / "results.json").write_text('{"schema": 1, "cells": []}')
    with pytest.raises(HandledError, match=r"schema 1, written by an older version; run again"):
        load_results(tmp_path)


def pair(variant: VariantView, old: Known, new: Known) -> Pair:
    claims = claim_of(variant, old), claim_of(variant, new)
    return like_with_like(Pair(variant.wanted, old, new, claims))


def test_each_step_is_what_is_known_of_both_ends() -> None:
    """Two columns of which the same is known have no step; the numbers point into the row's own knowns."""
    results = factory.results()
    for variant, steps, (_, cells) in zip(
        results.variants, results.steps.variants, results.rows(), strict=True
    ):
        assert len(steps.known) == len(cells)
        for old, new, kind, _ in steps.kinds:
            ends = cells[steps.known.index(old)], cells[steps.known.index(new)]
            assert kind in pair(variant, *ends).kinds()
        for old, new in itertools.product(range(len(cells)), repeat=2):
            numbers = steps.known[old], steps.known[new]
            assert (numbers in steps.open) is pair(variant, cells[old], cells[new]).open


def test_nodes_edges_and_types_are_those_of_the_model() -> None:
    """Names are those that engines report, types are inferred along the graph."""
    graph = graph_of(factory.model().SerializeToString())
    assert [(node.name, node.op) for node in graph.nodes] == [(node.name, node.op) for node in factory.NODES]
    assert graph.nodes[0].inputs == ("images", factory.WEIGHT)
    assert graph.nodes[2].inputs[0] == graph.nodes[0].outputs[0]
    assert graph.inputs == ("images",)
    types = dict(graph.types)
    assert types["images"] == types[graph.nodes[0].outputs[0]] == "float32 1x1x4x4"


def test_a_node_without_a_name_is_called_as_engines_call_it() -> None:
    """Otherwise no precision would be found for it."""
    g = Graph("unnamed")
    x = g.input("x", [1, "n"], TensorProto.FLOAT16)
    g.output(g.node("Relu", [x], name="", output="y"), [1, "n"], TensorProto.FLOAT16)
    graph = graph_of(g.model().SerializeToString())
    assert graph.nodes[0].name == "node_of_y"
    assert dict(graph.types)["x"] == "float16 1xn"


def test_unknown_operators_and_broken_models_break_nothing() -> None:
    """A plugin has no shape inference, and a damaged model still has a row in the report."""
    g = Graph("plugin")
    x = g.input("x", [1])
    g.output(g.node("Mystery", [x], name="m", domain="nobody"), [1])
    assert graph_of(g.model().SerializeToString()).nodes[0].op == "Mystery"
    assert graph_of(b"not a model") == GraphView()


def test_a_large_model_is_told_not_drawn() -> None:
    """Three hundred boxes are no picture."""
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node] * (MOST_NODES + 1), "large", [], [])
    assert graph_of(onnx.helper.make_model(graph).SerializeToString()) == GraphView()


BUILD, BUILT = Class.BUILD_FAILED, Class.BUILT


def seeded(
    nights: Mapping[str, Sequence[Class]], last: str = "r1", tonight: Outcome | None = None
) -> Results:
    """Return the results of `factory.outcomes()` with a past: one run a night, the last of them theirs."""
    prepared = factory.outcomes()
    count = len(next(iter(nights.values())))
    records = []
    for number in range(count):
        cells = {key: _entry(prepared[key], found[number]) for key, found in nights.items()}
        run = last if number == count - 1 else f"night{number}"
        records.append(RunRecord(run, day(number), (STACK,), cells))
    outcomes = factory.outcomes() | ({tonight.cell: tonight} if tonight else {})
    return factory.assemble(factory.matrix(), (factory.case(),), outcomes, records)


def _entry(outcome: Outcome, cls: Class) -> Entry:
    subject = subject_of(outcome.stamps.model_sha256, outcome.stamps.recipe_sha256)
    return Entry(outcome.case, outcome.variant, outcome.target, cls, subject, 0, None, None)


def of(results: Results, variant: str = "qdq", on: str = "rtx15") -> CellHistory:
    found = results.cell("conv_silu", variant, on).past
    assert found
    return found


CELL = "conv_silu.qdq-rtx15"


def test_a_cell_has_the_past_of_its_runs() -> None:
    """The date is the first question."""
    found = of(seeded({"conv_silu.qdq-rtx14": [BUILT, BUILT, BUILD, BUILD, BUILD]}), on="rtx14")
    assert (found.event, found.since, found.before) == ("new_failure", day(2), BUILT)


@pytest.mark.parametrize("state", ["not_run", "infra_error"])
def test_a_cell_that_was_not_judged_this_time_keeps_its_past(state: Any) -> None:
    """As with a runner that is offline: a night without a run is no finding of its runs."""
    tonight = factory.outcome("qdq", "rtx15", state=state, reason="no runner", layers=(), end=None)
    broke = seeded({CELL: [BUILT, BUILD, BUILD, BUILD]}, last="night3", tonight=tonight)
    assert not broke.cell("conv_silu", "qdq", "rtx15").measured
    assert (of(broke).event, of(broke).since) == ("new_failure", day(1))

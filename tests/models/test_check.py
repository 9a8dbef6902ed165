"""The conclusions of `check`: troubles of a target, and changes for the worse from one to the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.judge.cell import Judged, judge_cell
from harness.known.listed import Objection, State, Static
from harness.models.answers import Answer, ModelStep, Trouble, changes, coverage, lost_by_time, ran, troubles
from harness.models.own.model import Wanted, own_case, own_model
from harness.plan import Cell
from harness.record.outcome import Accuracy, End, Layer, Node, Outcome, Stamps
from harness.words import Precision
from tests.models import data
from tests.report.factory import target

pytestmark = pytest.mark.unit

NODES = (Node("/a", "Conv", "int8"), Node("/b", "Conv", "int8"), Node("/r", "Relu"))


def layer(node: str, precision: str) -> Layer:
    kind = "Relu" if node == "/r" else "Conv"
    return Layer(name=node, type=kind, precision=precision, onnx_nodes=(node,))


def judged(*precisions: str, name: str = "new", **fields: object) -> Judged:
    """Return a cell whose nodes ran in these precisions, in order; `fields` are the record's own."""
    case = own_case([own_model(data.model(), "m.onnx", Wanted(), name="m")])
    cell = Cell(f"model.m-{name}", case, case.variants[0], target(name, "1.7"))
    layers = tuple(layer(node.name, word) for node, word in zip(NODES, precisions, strict=False) if word)
    made = Outcome(
        cell=cell.id, case=case.name, variant="m", target=name, state="done", end=End("finished"),
        nodes=NODES, layers=layers, engine_bytes=1, stamps=Stamps(),
    )  # fmt: skip
    return judge_cell(cell, replace(made, **fields))  # type: ignore[arg-type]


def worse(before: Judged, after: Judged) -> frozenset[Trouble]:
    return ModelStep(Answer(before), Answer(after)).worse


def test_one_node_that_leaves_its_narrow_type_is_worse_whatever_was_lost_before() -> None:
    before, after = judged("int8", "fp32", name="old"), judged("fp32", "int8")
    assert troubles(before) == troubles(after) == {Trouble.INT8_LOSS}
    assert worse(before, after) == {Trouble.INT8_LOSS}
    assert [(each.node, each.before, each.after) for each in changes(before, after)] == [
        ("/a", Precision.INT8, Precision.FP32),
        ("/b", Precision.FP32, Precision.INT8),
    ]
    assert worse(before, before) == frozenset()
    assert coverage(before) == (Precision.INT8, 1, 2)


def test_nodes_that_lost_their_precision_come_by_what_they_take() -> None:
    timed = replace(judged("fp32", "fp32").outcome.layers[0], time_ms=0.25)
    slow = replace(judged("fp32", "fp32").outcome.layers[1], time_ms=1.5)
    found = judged(layers=(timed, slow))
    assert [(lost.node, taken) for lost, taken in lost_by_time(found)] == [("/b", 1.5), ("/a", 0.25)]
    untimed = lost_by_time(judged("fp32", "fp32"))
    assert [(lost.node, taken) for lost, taken in untimed] == [("/a", None), ("/b", None)]


def test_a_float_that_becomes_another_is_told_of_what_multiplies_and_is_no_loss() -> None:
    before, after = judged("fp16", "int8", "fp16", name="old"), judged("fp32", "int8", "fp32")
    assert [each.node for each in changes(before, after)] == ["/a"]
    assert worse(before, after) == frozenset()


def test_a_failed_build_is_worse_than_any_engine_and_says_nothing_of_nodes() -> None:
    before, after = judged("int8", "int8", name="old"), judged(failed_phase="build", layers=())
    assert worse(before, after) == {Trouble.BUILD}
    assert worse(after, before) == frozenset()
    # It was not built: it has nothing to lose, and cannot get worse by being built.
    assert worse(after, judged("int8", "fp32")) == frozenset()
    unrun = judged("int8", "int8", failed_phase="run")
    assert worse(after, unrun) == frozenset()
    assert worse(before, unrun) == {Trouble.NUMBERS}
    assert changes(before, after) == ()


def test_an_engine_that_was_built_and_did_not_run_is_trouble_with_numbers() -> None:
    assert troubles(judged("int8", "int8", failed_phase="run")) == {Trouble.NUMBERS}
    off = (Accuracy("y", 9.0, 9.0, 0.1),)
    assert troubles(judged("int8", "int8", ran=True, accuracy=off)) == {Trouble.NUMBERS}


def test_what_the_machinery_spoiled_or_this_machine_lacks_is_no_trouble_of_the_model_s() -> None:
    for state in ("infra_error", "not_run", "not_applicable"):
        spoiled = judged(state=state, reason="no GPU", layers=())
        assert not ran(spoiled)
        assert troubles(spoiled) == frozenset()


def test_nvidia_s_tables_stand_for_a_side_that_was_not_run() -> None:
    unrun = judged(state="not_run", reason="no GPU", layers=())
    blocked, reported = (
        Answer(unrun, Static((Objection(state, "/a", "Conv", "no importer"),)))
        for state in (State.BLOCKED, State.REPORTED)
    )
    works = Answer(judged("int8", "int8", name="old"))
    assert (
        blocked.troubles
        == ModelStep(works, blocked).worse
        == ModelStep(Answer(unrun), blocked).worse
        == {Trouble.BUILD}
    )
    assert ModelStep(blocked, works).worse == ModelStep(blocked, blocked).worse == frozenset()
    assert reported.troubles == ModelStep(works, reported).worse == frozenset()

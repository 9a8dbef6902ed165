"""A cell on several GPUs: its worst result is the cell's, and every one reaches results.json and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.case import Expectation
from harness.history import take_history
from harness.known.model import Known
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.report.model import Results
from harness.report.summary import disagreement
from harness.report.verify import verify_report
from harness.report.writer import build_report, results_json
from harness.words import Class, Verdict
from tests.report import factory

pytestmark = pytest.mark.unit

ID = "conv_silu.qdq-trt102"
T4, L4 = factory.two_gpus()


def joined(folder: Path, *machines: Outcome) -> Results:
    """Return the report on the folders of machines, each with one record, merged in this order."""
    with Store(folder / "all") as store:
        for number, outcome in enumerate(machines):
            part = folder / f"machine{number}"
            with Store(part, run=outcome.stamps.run) as own:
                own.append(outcome, f"the log of {outcome.stamps.run}")
            build_report(factory.matrix(), (factory.case(),), own, part)
            store.absorb(own)
            take_history(folder / "all", part)
    return build_report(factory.matrix(), (factory.case(),), Store(folder / "all"), folder / "all")


def shown(*outcomes: Outcome, claims: tuple[Expectation, ...] = ()) -> Known:
    """Return the cell that outcomes speak for."""
    case = factory.case()
    variant = replace(case.variants[0], expectations=claims or case.variants[0].expectations)
    found = factory.assemble(
        factory.matrix(),
        (replace(case, variants=(variant, *case.variants[1:])),),
        {outcomes[0].cell: outcomes},
    )
    (cell,) = (cell for cell in found.cells if cell.id == outcomes[0].cell)
    return cell


@pytest.mark.parametrize("order", [(T4, L4), (L4, T4)])
def test_a_merge_keeps_both_gpus(tmp_path: Path, order: tuple[Outcome, Outcome]) -> None:
    """In results.json and in the page's data, whichever machine came first; and verify agrees."""
    joined(tmp_path, *order)
    data = json.loads((tmp_path / "all" / "results.json").read_text())
    (cell,) = (cell for cell in data["cells"] if cell["id"] == ID)
    assert (cell["class"], cell["signature"]) == ("build_failed", "no-implementation-qdq")
    found = [
        (each["compute_capability"], each["gpu"], each["driver"], each["class"]) for each in cell["by_gpu"]
    ]
    assert found == [
        ("7.5", "Tesla T4", "535.183.01", "build_failed"),
        ("8.9", "NVIDIA L4", "580.95.05", "ok"),
    ]
    assert [each["verdict"] for each in cell["by_gpu"]] == ["new", "expected"]
    assert [each["median_ms"] for each in cell["by_gpu"]] == [None, pytest.approx(0.043)]
    assert [each["when"][:10] for each in cell["by_gpu"]] == ["2026-11-20", "2026-11-21"]
    store = Store(tmp_path / "all")
    logs = [store.log(each["log"]) for each in cell["by_gpu"]]
    assert logs == ["the log of turing", "the log of ada"]
    assert not any(other["by_gpu"] for other in data["cells"] if other["id"] != ID)
    assert not any(each["flaky"] for each in cell["by_gpu"])
    assert "GPUs disagree: build failed on Tesla T4; works on NVIDIA L4" in (
        (tmp_path / "all" / "summary.md").read_text()
    )
    where = factory.matrix(), (factory.case(),), store
    assert verify_report(*where, tmp_path / "all") == []
    assert [each.stamps.run for each in store.speaking()[ID]] == ["turing", "ada"]


def test_what_regressed_on_one_gpu_is_not_hidden_by_a_known_failure_on_another() -> None:
    """The counts go by the cell's row."""
    claims = (
        replace(factory.case().variants[0].expectations[0], versions="", compute_capability="7.5"),
        replace(
            factory.case().variants[0].expectations[0],
            versions="",
            compute_capability="8.9",
            outcome=Class.OK,
        ),
    )
    lost = replace(L4, layers=(factory.conv_layer("fp32"),))
    cell = shown(T4, lost, claims=claims)
    assert [(str(each.cls), str(each.verdict)) for each in cell.by_gpu] == [
        ("precision_lost", "regressed"),
        ("build_failed", "known_failure"),
    ]
    assert (cell.cls, cell.verdict) == (Class.PRECISION_LOST, Verdict.REGRESSED)
    assert cell.claims == (1,)


def test_one_gpu_alone_is_told_and_none_is_not() -> None:
    """A result without a GPU stands among the others only if it adds a failure."""
    assert [each.gpu for each in shown(L4).by_gpu] == ["NVIDIA L4"]
    bare = factory.build_failure("qdq", "trt102")
    assert shown(bare).by_gpu == ()
    beside = shown(bare, L4)
    first = beside.by_gpu[0]
    assert (first.gpu, first.compute_capability, first.key) == ("", "", None)
    assert "build failed on no GPU" in disagreement(beside.by_gpu)
    # An engine that needs a GPU to build, on a machine without one, was not judged.
    error = "CUDA initialization failure with error: 35"
    unjudged = factory.build_failure("qdq", "trt102", error=error, messages=(), native_output="")
    assert shown(unjudged).cls in (Class.NOT_RUN, Class.INFRA_ERROR)
    assert [each.gpu for each in shown(unjudged, L4).by_gpu] == ["NVIDIA L4"]


def test_a_gpu_that_could_not_be_judged_hides_no_result() -> None:
    """Its trouble is told beside another's result, without a disagreement."""
    lost = replace(T4, state="infra_error", reason="the agent was lost")
    cell = shown(lost, L4)
    assert [str(each.cls) for each in cell.by_gpu] == ["ok", "infra_error"]
    assert (cell.cls, disagreement(cell.by_gpu)) == (Class.OK, "")
    assert cell.beside == ()


def test_results_by_gpu_come_back_from_their_json() -> None:
    results = factory.assemble(factory.matrix(), (factory.case(),), {ID: (T4, L4)})
    data = json.loads(results_json(results))
    assert Results.from_json(data) == results
    data["cells"][0]["by_gpu"] = [3]
    with pytest.raises(TypeError, match="by_gpu"):
        Results.from_json(data)


@pytest.mark.parametrize(
    ("one", "other", "marked"),
    [
        (T4, L4, True),
        (T4, factory.on_gpu(factory.build_failure("qdq", "trt102"), factory.L4), False),
        (T4, factory.on_gpu(factory.build_failure("qdq", "trt102", messages=()), factory.L4), True),
        (factory.on_gpu(factory.outcome("qdq", "trt102"), factory.T4), L4, False),
    ],
)
def test_a_cell_that_gpus_disagree_on_is_marked(one: Outcome, other: Outcome, marked: bool) -> None:
    """By class, or by the cause of its failure; if one built and the other ran too, they agree."""
    cell = shown(one, other)
    assert bool(disagreement(cell.by_gpu)) is marked
    assert len(cell.by_gpu) == 2

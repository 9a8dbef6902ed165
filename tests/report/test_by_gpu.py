"""A cell on several GPUs: its worst result is the cell's, and none is lost on the way to results.json and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.case import Expectation
from harness.history import take_history
from harness.record.store import Store
from harness.report import build_report, verify_report
from harness.report.by_gpu import DISAGREE
from harness.report.compare.pairs import Column
from harness.report.compare.sides import side
from harness.report.compare.upgrade import upgrade
from harness.report.model import CellView, Results
from harness.report.page.columns import groups
from harness.report.page.conclusions import concluded
from harness.report.page.data import page_data, unpacked
from harness.report.page.html import render
from harness.report.page.looks import look, tooltip
from harness.report.page.panel import cell_evidence
from harness.report.results import assemble
from harness.report.writer import results_json
from harness.words import Class, Verdict
from tests.report import factory
from tests.report.browsing import Opened, open_cell

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from harness.record.outcome import Outcome

pytestmark = pytest.mark.unit

ID = "conv_silu.qdq-trt102"
T4, L4 = factory.two_gpus()
ROW = factory.results().cases[0].variants[0]


def joined(folder: Path, *machines: Outcome) -> Results:
    """Return what a report says when the folders of machines, each with one record, are merged in this order."""
    with Store(folder / "all") as store:
        for number, outcome in enumerate(machines):
            part = folder / f"machine{number}"
            with Store(part, run=outcome.stamps.run) as own:
                own.append(outcome, f"the log of {outcome.stamps.run}")
            build_report(factory.matrix(), (factory.case(),), own, part)
            store.absorb(own)
            take_history(folder / "all", part)
    return build_report(factory.matrix(), (factory.case(),), Store(folder / "all"), folder / "all")


def shown(*outcomes: Outcome, claims: tuple[Expectation, ...] = ()) -> CellView:
    """Return the cell that outcomes speak for."""
    case = factory.case()
    variant = replace(case.variants[0], expectations=claims or case.variants[0].expectations)
    found = assemble(
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
    assert [each["latency_ms"] for each in cell["by_gpu"]] == [None, pytest.approx(0.043)]
    assert [each["when"][:10] for each in cell["by_gpu"]] == ["2026-11-20", "2026-11-21"]
    store = Store(tmp_path / "all")
    logs = [store.log(each["log_sha256"]) for each in cell["by_gpu"]]
    assert logs == ["the log of turing", "the log of ada"]
    assert not any("by_gpu" in other for other in data["cells"] if other["id"] != ID)
    assert not any(each["flaky"] for each in cell["by_gpu"])
    assert "GPUs disagree: build failed on Tesla T4; works on NVIDIA L4" in (
        (tmp_path / "all" / "index.html").read_text()
    )
    where = factory.matrix(), (factory.case(),), store
    assert verify_report(*where, tmp_path / "all") == []
    assert [each.stamps.run for each in store.speaking()[ID]] == ["turing", "ada"]


def test_what_regressed_on_one_gpu_is_not_hidden_by_a_known_failure_on_another() -> None:
    """The row of the cell is what the counts go by."""
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
    """A result without a GPU stands among the others only where it says what they do not."""
    assert [each.gpu for each in shown(L4).by_gpu] == ["NVIDIA L4"]
    bare = factory.build_failure("qdq", "trt102")
    assert shown(bare).by_gpu == ()
    beside = shown(bare, L4)
    first = beside.by_gpu[0]
    assert (first.gpu, first.compute_capability, first.key) == ("", "", None)
    assert "build failed on no GPU; works on NVIDIA L4" in tooltip(beside, ROW)
    # An engine that needs a GPU to build, on a machine without one, was not judged.
    error = "CUDA initialization failure with error: 35"
    unjudged = factory.build_failure("qdq", "trt102", error=error, messages=(), native_output="")
    assert shown(unjudged).cls in (Class.NOT_RUN, Class.INFRA_ERROR)
    assert [each.gpu for each in shown(unjudged, L4).by_gpu] == ["NVIDIA L4"]


def test_a_gpu_that_could_not_be_judged_hides_no_result() -> None:
    """Its trouble is told beside what another found, and nobody disagrees."""
    lost = replace(T4, state="infra_error", reason="the agent was lost")
    cell = shown(lost, L4)
    assert [str(each.cls) for each in cell.by_gpu] == ["ok", "infra_error"]
    assert (cell.cls, look(cell, ROW)["corner"]) == (Class.OK, "")


def test_results_by_gpu_come_back_from_their_json_and_older_files_have_none() -> None:
    """Under the same schema number."""
    results = assemble(factory.matrix(), (factory.case(),), {ID: (T4, L4)})
    data = json.loads(results_json(results))
    assert data["schema"] == 2
    assert Results.from_json(data) == results
    for cell in data["cells"]:
        cell.pop("by_gpu", None)
    for case in data["cases"]:
        for variant in case["variants"]:
            for claim in variant["expectations"]:
                del claim["compute_capability"], claim["product"]
    old = Results.from_json(data)
    assert old.cell("conv_silu", "qdq", "trt102") == replace(
        results.cell("conv_silu", "qdq", "trt102"), by_gpu=()
    )
    data["cells"][0]["by_gpu"] = [3]
    with pytest.raises(TypeError, match="by_gpu"):
        Results.from_json(data)


@pytest.mark.parametrize(
    ("other", "marked"),
    [
        (L4, True),
        (factory.on_gpu(factory.build_failure("qdq", "trt102"), factory.L4), False),
        (factory.on_gpu(factory.build_failure("qdq", "trt102", messages=()), factory.L4), True),
    ],
)
def test_a_cell_that_gpus_disagree_on_is_marked(other: Outcome, marked: bool) -> None:
    """By class, or by what it failed of."""
    cell = shown(T4, other)
    assert (DISAGREE in look(cell, ROW)["corner"]) is marked
    assert ("GPUs disagree" in tooltip(cell, ROW)) is marked
    assert len(cell_evidence(cell, ROW)["byGpu"]["rows"]) == 2


def test_the_table_names_each_row_and_what_it_amounts_to() -> None:
    """As the cell itself is named; there is none where one GPU took part alone."""
    newer = replace(L4, failed_phase="build", layers=(), ran=False, messages=())
    cell = shown(newer, T4, factory.ran("qdq", "trt102", layers=(factory.conv_layer(),)))
    flaky = replace(
        cell, by_gpu=(replace(cell.by_gpu[0], flaky=(Class.OK, Class.BUILD_FAILED)), *cell.by_gpu[1:])
    )
    rows = [[row[0], *row[3:5]] for row in cell_evidence(flaky, ROW)["byGpu"]["rows"]]
    assert rows == [
        ["NVIDIA L4 (8.9)", "Build failed, flaky", "New failure"],
        ["Tesla T4 (7.5)", "Build failed", "New failure"],
        ["no GPU", "Works", "As expected"],
    ]
    fails = (Expectation.reported(Class.BUILD_FAILED, "", factory.ISSUE),)
    works = cell_evidence(shown(T4, L4, claims=fails), ROW)["byGpu"]["rows"]
    assert [row[4] for row in works] == ["Known failure", "Not reproduced"]
    assert "byGpu" not in cell_evidence(shown(L4), ROW)
    assert "disagree" not in tooltip(shown(L4), ROW)


def test_built_and_run_are_no_disagreement() -> None:
    """One of them could not run it."""
    built = factory.on_gpu(factory.outcome("qdq", "trt102"), factory.T4)
    assert look(shown(built, L4), ROW)["corner"] == ""


def test_one_product_under_two_drivers_is_told_apart() -> None:
    newer = {**factory.T4, "driver": "580.1"}
    fixed = factory.on_gpu(factory.ran("qdq", "trt102", layers=(factory.conv_layer(),)), newer)
    told = tooltip(shown(T4, fixed), ROW)
    assert "build failed on Tesla T4, driver 535.183.01; works on Tesla T4, driver 580.1" in told


def test_head_and_footer_name_every_gpu() -> None:
    """Not only that of the results that are shown."""
    results = assemble(factory.matrix(), (factory.case(),), {ID: (T4, L4)})
    (column,) = (one for group in groups(results) for one in group.columns if one.target.id == "trt102")
    assert column.gpu == "2 GPUs"
    assert "on NVIDIA L4, Tesla T4" in column.said
    assert "trt102 on NVIDIA L4; trt102 on Tesla T4" in render(results)
    assert '"byGpu"' not in unpacked("".join(page_data(factory.results())))


def test_a_claim_about_one_gpu_generation_names_it_wherever_it_is_drawn() -> None:
    """In the matrix, along the versions, in a step and in the panel: it says nothing of other GPUs."""
    wrong = Expectation.reported(Class.INACCURATE, ">=10.2,<10.3", factory.ISSUE, compute_capability="12.0")
    case = factory.case()
    variant = replace(case.variants[0], expectations=(wrong,))
    results = assemble(factory.matrix(), (replace(case, variants=(variant,)),), {})
    (row,) = results.cases[0].variants
    cell = results.cell("conv_silu", "qdq", "trt102")
    says = "gives wrong numbers on SM 12.0 (RTX 50, RTX PRO)"
    assert look(cell, row)["corner"] == "12.0"
    assert tooltip(cell, row) == f"Not run for this report. Reported by users: {says}"
    assert [span.text for span in row.spans] == [f"{says} on 10.2 (reported); 8.6 not tested"]
    assert side(cell, row).told() == f"reported: {says}"
    assert concluded(cell, row, "")["state"] == f"Reported by users: {says}"
    (alone,) = upgrade(Column(results, "trt86"), Column(results, "trt102")).alone
    assert alone.said == f"reported: {says}"
    # One about every GPU names none.
    every = replace(variant, expectations=(replace(wrong, compute_capability=None),))
    plain = assemble(factory.matrix(), (replace(case, variants=(every,)),), {})
    assert look(plain.cell("conv_silu", "qdq", "trt102"), plain.cases[0].variants[0])["corner"] == ""


@pytest.mark.browser
def test_the_panel_has_a_table_by_gpu(browser: Browser, tmp_path: Path) -> None:
    """GPU, driver, class, verdict and median, the worst first; the matrix marks the cell."""
    joined(tmp_path, T4, L4)
    opened = Opened(browser, tmp_path / "all" / "index.html")
    open_cell(opened.page, "qdq", "trt102")
    region = opened.page.locator("#panel [aria-label='By GPU']")
    lines = [
        [text.strip() for text in line.locator("td").all_inner_texts()]
        for line in region.locator("tbody tr").all()
    ]
    assert [line[:2] for line in lines] == [
        ["Tesla T4 (7.5)", "535.183.01"],
        ["NVIDIA L4 (8.9)", "580.95.05"],
    ]
    assert [line[3:] for line in lines] == [
        ["New failure", "", "2026-11-20"],
        ["As expected", "43 µs", "2026-11-21"],
    ]
    assert "Build failed" in lines[0][2]
    assert "Works" in lines[1][2]
    said = opened.page.locator("#panel").inner_text()
    assert "NVIDIA L4 (8.9). " in said
    anchor = opened.page.locator("#grid a.open")
    assert DISAGREE in anchor.inner_text()
    assert "GPUs disagree: build failed on Tesla T4; works on NVIDIA L4" in (
        anchor.get_attribute("aria-label") or ""
    )
    open_cell(opened.page, "qdq", "trt86")
    assert opened.page.locator("#panel [aria-label='By GPU']").count() == 0
    assert opened.complaints == []
    opened.context.close()

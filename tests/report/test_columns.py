"""The heads of the columns: on what and when each was measured, and what of it is out of date."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.report.page.columns import Column, groups
from harness.report.page.html import render
from harness.report.results import assemble
from tests.report import factory
from tests.report.browsing import Opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from harness.record.outcome import Outcome
    from harness.report import Results

H200 = {"gpu": "NVIDIA H200", "cuda": "13.0", "driver": "580.159.04"}
DIGEST = "sha256:" + "0123456789abcdef" * 4


def results(*made: Outcome) -> Results:
    return assemble(factory.matrix(), (factory.case(),), {one.cell: one for one in made})


def stamped(entry: Outcome, **fields: Any) -> Outcome:
    return replace(entry, stamps=replace(entry.stamps, **fields))


def heads(found: Results) -> dict[str, Column]:
    return {column.target.id: column for group in groups(found) for column in group.columns}


def outdated(on: str) -> Outcome:
    return stamped(factory.outcome("fp32", on), model_sha256="0" * 64)


def every_state() -> Results:
    """Return one column each that is fresh, long ago, out of date in part, out of date in whole, and not run."""
    return results(
        stamped(factory.ran("qdq", "rtx17"), environment=H200, image_digest=DIGEST),
        stamped(factory.outcome("qdq", "rtx16"), when="2025-10-01T00:00:00+00:00"),
        factory.outcome("qdq", "rtx15"),
        outdated("rtx15"),
        outdated("rtx14"),
    )


@pytest.mark.unit
def test_an_image_of_which_no_source_speaks_says_so_until_it_was_run() -> None:
    said = "No source says which TensorRT this image holds; a run will."
    notes = {target.id: target.notes for target in results(factory.outcome("qdq", "trt102")).targets}
    assert (notes["trt86"], notes["trt102"], notes["rtx17"]) == (said, "", "")


@pytest.mark.unit
def test_a_head_says_gpu_date_cuda_driver_and_image() -> None:
    """A result holds for the whole stack, so the stack is a hover away from it."""
    head = heads(every_state())["rtx17"]
    assert (head.state, head.gpu, head.date) == ("run", "H200", "20 Nov")
    assert head.said == (
        "TensorRT for RTX 1.7.1.116, tensorrt_rtx 1.7.1.116, linux/amd64; run 2026-11-20 10:15 UTC (venv); "
        "on NVIDIA H200; CUDA 13.0; driver 580.159.04; image 0123456789ab"
    )


@pytest.mark.unit
def test_what_is_out_of_date_is_said_and_is_neither_measured_nor_claimed() -> None:
    """Three things that must not be mistaken for one another, in one column or in all of it."""
    found = heads(every_state())
    assert [found[name].state for name in ("rtx17", "rtx16", "rtx15", "rtx14", "trt86")] == [
        "run",
        "old",
        "old",
        "old",
        "unrun",
    ]
    assert found["rtx16"].stale == "run 415 days before the newest column"
    assert found["rtx16"].date == "Oct 2025"
    assert found["rtx15"].stale == "1 of 4 results are out of date: model, recipe or engine version changed"
    assert (found["rtx14"].gpu, found["rtx14"].date) == ("not run", "old")
    assert (found["trt86"].gpu, found["trt86"].date, found["trt86"].stale) == ("not run", "", "")


@pytest.mark.unit
def test_columns_of_a_family_are_grouped_by_their_gpu() -> None:
    """Two GPUs in one column are two, and not the one that came last."""
    one, other = (
        stamped(factory.outcome(variant, "rtx16"), environment={"gpu": gpu})
        for variant, gpu in (("qdq", "NVIDIA H200"), ("fp32", "NVIDIA GeForce RTX 4090"))
    )
    alone = stamped(factory.outcome("qdq", "rtx17"), environment={"gpu": "NVIDIA GeForce RTX 4090"})
    found = groups(results(one, other, alone, factory.outcome("qdq", "rtx15")))
    parts = {group.family: [(gpu, len(part)) for gpu, part in group.parts] for group in found}
    assert parts["TensorRT for RTX"] == [("not run", 1), ("no GPU", 1), ("2 GPUs", 1), ("RTX 4090", 1)]
    assert parts["TensorRT"] == [("not run", 2)]


@pytest.mark.unit
def test_cells_that_saw_no_gpu_make_no_second_one() -> None:
    """As where a machine without one ran some cells of a target last."""
    on_gpu = stamped(factory.outcome("qdq", "rtx16"), environment=H200)
    found = heads(results(on_gpu, factory.outcome("fp32", "rtx16")))["rtx16"]
    assert found.gpu == "H200"
    assert "; on NVIDIA H200, no GPU;" in found.said


@pytest.mark.unit
@pytest.mark.parametrize("when", ["2025-10-01T00:00:00", "2025-10-01T00:00:00Z", "2025-10-01T00:00 UTC"])
def test_a_day_is_read_however_the_zone_is_written(when: str) -> None:
    """And by every Python: that of 3.10 does not read a "Z"."""
    old = stamped(factory.outcome("qdq", "rtx16"), when=when)
    found = heads(results(old, factory.outcome("qdq", "rtx17")))["rtx16"]
    assert (found.date, found.stale) == ("Oct 2025", "run 415 days before the newest column")


@pytest.mark.unit
def test_the_page_says_which_targets_had_which_gpu() -> None:
    """One column that ran on a GPU must not lend it to the engines that nothing could run."""
    on_gpu = stamped(factory.ran("qdq", "rtx17"), environment=H200)
    cpu = factory.ran("fp32", "ort131")

    def said(*made: Outcome) -> str:
        (found,) = re.findall(r'<p class="meta">(.*?)</p>', render(results(*made)), re.DOTALL)
        return " ".join(found.split()).partition(" cells: ")[2].partition("; harness")[0]

    assert said(on_gpu, factory.outcome("qdq", "rtx15"), factory.outcome("qdq", "rtx16"), cpu) == (
        "rtx17 on NVIDIA H200; rtx15, rtx16, ort131 without a GPU (TensorRT engines built, not run)"
    )
    assert said(on_gpu, cpu) == "rtx17 on NVIDIA H200; ort131 without a GPU"
    assert said(on_gpu, outdated("rtx14")) == "rtx17 on NVIDIA H200"


@pytest.mark.unit
def test_a_date_that_is_none_breaks_nothing() -> None:
    """Records are files, and files can be damaged."""
    found = heads(results(stamped(factory.outcome("qdq", "rtx16"), when="yesterday or so")))
    assert found["rtx16"].date == "yesterday o"[:10]


@pytest.mark.browser
def test_a_phone_shows_the_two_targets_that_are_compared(browser: Browser, folder: Path) -> None:
    """First column, A and B; all of them, or those that a filter names, on demand; on paper and on a desk all."""
    made = Opened(browser, folder / "index.html", "#a=rtx14&b=rtx15", viewport={"width": 390, "height": 800})
    page = made.page

    def shown() -> list[str]:
        return page.locator("#grid .targets th:visible a").all_inner_texts()

    assert shown() == ["rtx14", "rtx15"]
    assert page.evaluate("document.querySelector('.scroller').scrollWidth") <= 390
    page.locator("#pick-b").select_option("rtx17")
    assert shown() == ["rtx14", "rtx17"]
    page.locator("#f-text").fill("target:ort*")
    assert shown() == ["ort131"]
    page.locator("#f-text").fill("")
    page.locator("#f-all").check()
    assert len(shown()) == 8
    assert "only=a" in page.evaluate("location.hash")
    page.locator("#f-all").uncheck()
    page.set_viewport_size({"width": 1200, "height": 800})
    page.wait_for_function("document.querySelectorAll('#grid .targets th:not([hidden])').length === 8")
    assert page.locator("#f-all").is_hidden()
    assert made.complaints == []
    made.context.close()

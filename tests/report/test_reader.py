"""The published results, asked by a reader in a browser: questions in words, first screens, weight, paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.report.page import LARGEST_MODEL, render
from tests.report.browsing import Opened
from tests.report.published import data

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

MODEL = "mish-qdq.onnx"
BYTES = bytes(range(256))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write today's page of the published results, with two models."""
    page = tmp_path_factory.mktemp("whole") / "index.html"
    models = {MODEL: BYTES, "conv_silu-qdq.onnx": bytes(LARGEST_MODEL + 1)}
    page.write_text(render(data(), {}, models=models))
    return page


@pytest.fixture
def read(browser: Browser, whole: Path) -> Iterator[Page]:
    made = Opened(browser, whole, viewport={"width": 1440, "height": 900})
    yield made.page
    assert made.complaints == []
    assert made.requests == [whole.as_uri()]
    made.context.close()


def ask(page: Page, words: str) -> str:
    """Ask in the box; return the card under it."""
    page.locator("#q").fill(words)
    page.locator("#q").press("Enter")
    page.locator("#answer:not([aria-busy])").wait_for(state="attached")
    return page.locator("#card").inner_text()


def heads(page: Page) -> list[str]:
    return page.locator("#head .versions th a").all_inner_texts()


def titles(page: Page) -> list[str]:
    return page.locator("#grid tr.variant .title").all_text_contents()


def drawn(page: Page) -> None:
    """Wait for what a page does before its next frame."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.parametrize(
    ("words", "row"),
    [
        ("Why is my depthwise convolution in FP32?", "epthwise"),
        ("is calibration gone in 11?", "calibrat"),
        ("InstanceNorm in INT8?", "INT8"),
    ],
)
def test_a_question_finds_its_row_first(read: Page, words: str, row: str) -> None:
    ask(read, words)
    assert row in titles(read)[0]


def test_words_that_no_row_has_together_find_the_nearest(read: Page) -> None:
    assert "here: nonsense" in ask(read, "depthwise nonsense of nobody")
    assert titles(read)


@pytest.mark.parametrize(
    ("words", "ends"), [("8.6 to 10.3", ["trt86", "trt103"]), ("8.6 -> 10.3 Orin", ["l4t86", "l4t103"])]
)
def test_two_versions_make_a_step_of_the_hardware_named(read: Page, words: str, ends: list[str]) -> None:
    ask(read, words)
    assert [read.locator(f"#{end}").input_value() for end in "ab"] == ends


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("JetPack 6.2", "TensorRT on Jetson 10.3"),
        ("Which driver for NGC 24.07?", "driver ≥ 525 on x86-64"),
        ("My RTX 5090", "TensorRT from 10.8"),
        ("GTX 1080", "TensorRT 8.6"),
        ("operators not supported in 10.0", "BitShift"),
        ("Einsum", "TensorRT reads it from 8.5 or before it"),
        ("report a wrong cell", "Report this cell as wrong"),
        ("send my measurements", "trt-compat submit"),
        ("how do I run this in docker", "Run it"),
        ("What was measured, with which driver?", "NVIDIA H200"),
    ],
)
def test_the_box_says_its_answer_where_no_row_has_it(read: Page, words: str, said: str) -> None:
    assert said in ask(read, words)


@pytest.mark.parametrize("words", ["report a problem", "ONNX operators not supported in 10.0", "RTX 5090"])
def test_an_answer_under_the_box_stays_in_sight_when_enter_is_pressed(read: Page, words: str) -> None:
    ask(read, words)
    box: Any = read.locator("#card").bounding_box()
    assert 0 <= box["y"] < 400


def test_why_in_fp32_finds_the_row_that_loses_int8_and_its_cell_says_why(read: Page) -> None:
    ask(read, "Why is my depthwise convolution in FP32?")
    read.locator("#grid td.s-lost a:has(.b-measured)").first.click()
    read.locator("#panel h2").wait_for()
    assert "not INT8" in read.locator("#panel").inner_text()


def test_the_card_has_the_answer_and_the_step_stands_back(read: Page) -> None:
    assert "epthwise" in ask(read, "depthwise convolution")
    assert read.locator("#step").is_hidden()
    assert "3 break" not in ask(read, "upgrade from 8.6 to 10.6")
    assert "3 break" in read.locator("#step .headline").inner_text()


def test_the_step_of_a_question_goes_with_it(read: Page) -> None:
    chosen = [read.locator(f"#{end}").input_value() for end in "ab"]
    ask(read, "TensorRT 10 to 11")
    assert [read.locator(f"#{end}").input_value() for end in "ab"] == ["trt106", "trt115"]
    ask(read, "")
    assert [read.locator(f"#{end}").input_value() for end in "ab"] == chosen


def test_an_address_has_its_answer_and_back_brings_it(browser: Browser, whole: Path) -> None:
    made = Opened(browser, whole, viewport={"width": 1440, "height": 900})
    read = made.page
    read.goto(f"{whole.as_uri()}?q=RTX+5090")
    read.locator("#card", has_text="TensorRT from 10.8").wait_for()
    read.goto(f"{whole.as_uri()}?q=RTX+5090#operators")
    read.locator("#tabs").wait_for()
    read.wait_for_function("scrollY > 500")
    read.goto(f"{whole.as_uri()}?q=L4")
    read.locator("#grid td a").first.click()
    read.locator("#panel h2").wait_for()
    read.locator("#q").fill("V100")
    read.locator("#card", has_text="V100").wait_for()
    assert read.locator("#panel").is_hidden()
    read.go_back()
    read.locator("#panel h2").wait_for()
    assert read.locator("#q").input_value() == "L4"
    assert made.complaints == []
    made.context.close()


@pytest.mark.parametrize("address", ["#error=no-such", "#target-trt999", "#%E0%A4%A"])
def test_an_address_of_nothing_is_told_and_does_no_harm(browser: Browser, whole: Path, address: str) -> None:
    made = Opened(browser, whole, address)
    assert made.page.locator("#query-problem").is_visible() is not address.startswith("#%")
    assert made.complaints == []
    made.context.close()


def test_two_versions_that_are_compared_make_a_step_and_name_what_is_slower(read: Page) -> None:
    read.locator("#a").select_option("rtx16")
    said = ask(read, "What is slower in 10.6 than in 8.6?")
    assert [read.locator(f"#{end}").input_value() for end in "ab"] == ["trt86", "trt106"]
    assert "(NVIDIA H200" in said


def test_an_error_says_which_versions_had_it_and_since_when_a_row_works(read: Page) -> None:
    read.locator("#q").fill("Could not find any implementation for node /model.0/conv/Conv.")
    found = read.locator("#answer > .found").first.inner_text()
    assert "Seen on TensorRT 10.2" in found
    assert "fixed by 10.6 (measured)" in found


def test_the_reason_from_the_tactics_stands_first_where_no_signature_fits(read: Page) -> None:
    read.evaluate("location.hash = '#conv_silu.fp16-graph-trt86'")
    read.locator("#panel h2").wait_for()
    panel = read.locator("#panel").inner_text()
    assert "FP16 costs more" in panel.partition("Why\n")[2][:200]
    assert "Not known" not in panel.partition("Change")[0]


def test_a_wrong_cell_is_reported_by_a_filled_text(read: Page) -> None:
    read.evaluate("location.hash = '#conv_silu.fp16-graph-trt86'")
    read.get_by_text("Report this cell as wrong").click()
    text = read.locator("#panel details[open] pre").inner_text()
    for part in (
        *("conv_silu.fp16-graph-trt86", "TensorRT 8.6", "H200", "loses precision", "trtexec", "My GPU"),
    ):
        assert part in text
    assert read.get_by_role("button", name="Copy the report").is_visible()


def test_latency_is_shown_with_its_gpu_for_the_columns_that_have_any(read: Page) -> None:
    assert "(NVIDIA H200" in ask(read, "what is slower")
    assert [name.partition("\n")[0] for name in heads(read)][:2] == ["8.6", "10.6"]
    assert len(heads(read)) < 7
    timed = read.locator("#grid td a", has_text="H200").first
    assert any(unit in timed.inner_text() for unit in ("µs", "ms"))
    assert "on NVIDIA H200" in str(timed.get_attribute("aria-label"))


def test_columns_without_a_result_in_sight_are_one(read: Page) -> None:
    ask(read, "op:NonMaxSuppression")
    assert "no result" in "".join(heads(read))
    read.locator("#all").check()
    assert "no result" not in "".join(heads(read))


def test_the_columns_of_a_step_come_into_sight(read: Page) -> None:
    read.locator("#a").select_option("rtx16")
    read.locator("#b").select_option("rtx17")
    drawn(read)
    for end in read.locator("#grid tr.variant").first.locator("td.from, td.to").all():
        box: Any = end.bounding_box()
        assert 0 <= box["x"] < 1400
    heading: Any = read.locator("#grid .about h3").first.bounding_box()
    assert heading["x"] >= 0


def test_a_phone_shows_the_step_and_a_measured_row_first(browser: Browser, whole: Path) -> None:
    made = Opened(browser, whole, viewport={"width": 360, "height": 800})
    box: Any = made.page.locator("#grid tr.variant td").first.bounding_box()
    assert box["y"] < 760
    assert made.page.evaluate("document.documentElement.scrollWidth") == 360
    made.context.close()


def test_few_elements_stand_at_first_and_none_moves(browser: Browser, whole: Path) -> None:
    """The other rows are drawn when their case is opened, all of them."""
    made = Opened(browser, whole, viewport={"width": 1440, "height": 900})
    page = made.page
    assert page.evaluate("document.querySelectorAll('*').length") < 12_000
    page.evaluate(
        """window.moved = 0; new PerformanceObserver((list) => list.getEntries().forEach((one) => {
        window.moved += one.value; })).observe({ type: "layout-shift", buffered: true })"""
    )
    drawn(page)
    assert page.evaluate("window.moved") < 0.1
    case = page.locator("#grid section.case").first
    before = case.locator("tr.variant").count()
    case.locator(".about button").click()
    assert case.locator("tr.variant").count() > before
    made.context.close()


def test_paper_has_the_columns_of_the_step_and_the_screen_all_again(read: Page) -> None:
    every = len(heads(read))
    read.emulate_media(media="print")
    read.locator("#head .versions:not(:has(th:nth-child(3)))").wait_for(state="attached")
    assert len(heads(read)) == 2
    assert read.locator("#grid section:not(:has(tr.variant))").count() == 0
    assert read.locator(".badge").first.evaluate("(one) => getComputedStyle(one).printColorAdjust") == "exact"
    read.emulate_media(media="screen")
    read.locator(f"#head .versions th:nth-child({every})").wait_for(state="attached")
    assert len(heads(read)) == every


def test_escape_gives_the_focus_back_to_the_cell(read: Page) -> None:
    cell = read.locator("#grid td a").nth(1)
    place = cell.get_attribute("href")
    cell.click()
    read.locator("#panel h2").wait_for()
    read.keyboard.press("Escape")
    assert read.evaluate("document.activeElement.getAttribute('href')") == place


def test_a_small_model_is_saved_from_the_page_itself(read: Page) -> None:
    read.evaluate("location.hash = '#mish.qdq-trt106'")
    with read.expect_download() as saving:
        read.get_by_role("button", name=f"Download {MODEL}").click()
    assert saving.value.suggested_filename == MODEL
    assert saving.value.path().read_bytes() == BYTES
    read.evaluate("location.hash = '#conv_silu.qdq-trt106'")
    read.get_by_role("heading", name="Convolution and SiLU").first.wait_for()
    assert read.get_by_role("button", name="Download").count() == 0

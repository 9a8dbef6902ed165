"""The marks of the two targets that are compared, an opened cell far down, and a word where nothing fits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.page import results as many
from harness.report import write_report
from harness.report.labels import bucket
from tests.report import factory
from tests.report.browsing import Opened, rows

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def marks(page: Page) -> dict[str, str]:
    return {
        mark.locator("xpath=..").locator("a").inner_text(): mark.inner_text()
        for mark in page.locator("#grid .targets .end").all()
    }


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty columns, of which a window shows ten; more rows than are drawn at once."""
    made = tmp_path_factory.mktemp("wide")
    write_report(many(5000), made)
    return made / "index.html"


def test_a_deep_link_to_a_row_far_down_draws_and_shows_it(browser: Browser, wide: Path) -> None:
    """Rows are drawn as they are scrolled to; a link scrolls there."""
    made = Opened(browser, wide, "#case4.variant19-trt1049", viewport={"width": 1500, "height": 900})
    page = made.page
    page.locator("#panel .state").wait_for()
    box = page.locator("#grid a.open").bounding_box()
    cover = page.locator("#panel").bounding_box()
    assert box
    assert cover
    assert 0 <= box["y"] < 900 - box["height"]
    assert box["x"] + box["width"] <= cover["x"] + 1
    made.context.close()


def test_marks_are_there_without_scripts(browser: Browser, folder: Path) -> None:
    """They are text, and the pair is that of the upgrade above."""
    made = Opened(browser, folder / "index.html", java_script_enabled=False)
    assert made.page.locator("#pair-said b").count() == 2
    assert marks(made.page) == {"rtx16": "from", "rtx17": "to"}
    made.context.close()


def test_a_cell_opened_from_a_list_leaves_the_page_where_it_is(browser: Browser, folder: Path) -> None:
    """Who goes through a list goes on with it."""
    made = Opened(browser, folder / "index.html", "#a=rtx16&b=rtx17", viewport={"width": 1300, "height": 800})
    page = made.page
    page.locator("#step .cellref").first.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    page.locator("#step .cellref").first.click()
    page.locator("#panel").wait_for()
    assert page.evaluate("scrollY") == before
    made.context.close()


def test_only_the_two_above_is_a_switch(browser: Browser, folder: Path) -> None:
    """Pressed again it shows all; it keeps what else is asked for, and follows the pair."""
    made = Opened(browser, folder / "index.html", "#a=rtx14&b=rtx15")
    page = made.page
    switch = page.locator("#f-pair")

    def shown() -> list[str]:
        return page.locator("#grid .targets th:visible a").all_inner_texts()

    page.locator("#f-text").fill("case:conv_silu")
    assert switch.get_attribute("aria-pressed") == "false"
    switch.click()
    assert switch.get_attribute("aria-pressed") == "true"
    assert shown() == ["rtx14", "rtx15"]
    page.locator("#pick-b").select_option("rtx17")
    assert shown() == ["rtx14", "rtx17"]
    page.locator("#swap").click()
    assert switch.get_attribute("aria-pressed") == "true"
    assert shown() == ["rtx14", "rtx17"]
    switch.click()
    assert switch.get_attribute("aria-pressed") == "false"
    assert page.locator("#f-text").input_value() == "case:conv_silu"
    assert len(shown()) == 8
    made.context.close()


def test_an_empty_matrix_says_so_and_shows_all_again(opened: Opened) -> None:
    """With all families off, and where no row fits."""
    page = opened.page
    every = rows(page)
    assert page.locator("#empty").is_hidden()
    for chip in page.locator(".chips span").all():
        chip.click()
    assert page.locator("#empty-said").inner_text() == "No column fits these filters."
    assert rows(page) == []
    page.locator("#show-all").click()
    assert page.locator("#empty").is_hidden()
    assert rows(page) == every
    assert page.locator(".chips input:checked").count() == page.locator(".chips input").count()
    assert page.evaluate("document.activeElement.id") == "f-text"
    page.locator("#f-text").fill("case:conv_silu nothing-is-called-so")
    page.locator("#f-differs").check()
    assert page.locator("#empty-said").inner_text() == "No row fits these filters."
    page.locator("#show-all").click()
    assert rows(page) == every
    assert page.evaluate("location.hash") == ""


def test_the_link_to_what_needs_attention_is_there_where_something_does(tmp_path: Path, folder: Path) -> None:
    """A link that leads nowhere is worse than none."""
    results = factory.results()
    calm = tuple(cell for cell in results.cells if bucket(cell) not in ("regressed", "new", "fixed"))
    write_report(replace(results, cells=calm), tmp_path)
    for file, there in ((folder, True), (tmp_path, False)):
        text = (file / "index.html").read_text()
        assert ('href="#attention"' in text) is there
        assert ('id="attention"' in text) is there
        assert text.count('<p class="meta urgent">') == there
    assert "Regressed: 1. New failure: 4. " in (folder / "index.html").read_text()

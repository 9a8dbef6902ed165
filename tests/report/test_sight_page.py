"""What of the matrix is in sight: the two targets that are compared, an opened cell, and a word where nothing is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.report_scale import results as many
from harness.report import write_report
from harness.report.labels import bucket
from tests.report import factory
from tests.report.browsing import Opened, cell, open_cell, rows

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

DESK: Any = {"width": 1100, "height": 700}
SCROLLED = "document.querySelector('.scroller').scrollLeft"


def in_sight(page: Page, target: str) -> bool:
    """Tell whether a head lies between the sticky first column and the matrix's right edge."""
    view = page.locator(".scroller").bounding_box()
    corner = page.locator("#grid .corner").bounding_box()
    head = page.locator(".targets th", has=page.locator(f'a[href="#target-{target}"]')).bounding_box()
    assert view
    assert corner
    assert head
    left = view["x"] + corner["width"]
    return left - 1 <= head["x"] and head["x"] + head["width"] <= view["x"] + view["width"] + 1


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


def test_the_page_opens_with_both_targets_in_sight_and_marked(browser: Browser, wide: Path) -> None:
    """The matrix moves sideways in its own box; the page stays at its beginning."""
    made = Opened(browser, wide, "#a=trt1025&b=trt1026", viewport=DESK)
    page = made.page
    assert in_sight(page, "trt1025")
    assert in_sight(page, "trt1026")
    assert page.evaluate(SCROLLED) > 0
    assert page.evaluate("[scrollX, scrollY]") == [0, 0]
    assert marks(page) == {"trt1025": "from", "trt1026": "to"}
    made.context.close()


def go_to(page: Page, before: str, after: str) -> None:
    page.evaluate(f"location.hash = '#a={before}&b={after}'")
    page.wait_for_function("(name) => document.getElementById('pick-b').value === name", arg=after)


def test_the_matrix_follows_the_pair_and_stays_where_the_pair_is_in_sight(
    browser: Browser, wide: Path
) -> None:
    """Who has scrolled to what is compared is not moved; of two that are too far apart the later one is shown."""
    made = Opened(browser, wide, "#a=trt1025&b=trt1026", viewport=DESK)
    page = made.page
    page.evaluate("document.querySelector('.scroller').scrollLeft += 90")
    before = page.evaluate(SCROLLED)
    page.locator("#swap").click()
    assert page.evaluate(SCROLLED) == before
    assert marks(page) == {"trt1026": "from", "trt1025": "to"}
    # Too many steps for one page: these are in the address alone.
    go_to(page, "trt1026", "trt1001")
    assert in_sight(page, "trt1001")
    assert not in_sight(page, "trt1026")
    go_to(page, "trt1001", "trt1001")
    assert marks(page) == {"trt1001": "from, to"}
    go_to(page, "trt1001", "trt1004")
    assert in_sight(page, "trt1001")
    assert in_sight(page, "trt1004")
    made.context.close()


def test_a_deep_link_to_a_row_far_down_draws_and_shows_it(browser: Browser, wide: Path) -> None:
    """Rows are drawn as they are scrolled to; a link scrolls there."""
    made = Opened(browser, wide, "#case4%5Bvariant19%5D-trt1049", viewport={"width": 1500, "height": 900})
    page = made.page
    page.locator("#panel .state").wait_for()
    box = page.locator("#grid a.open").bounding_box()
    cover = page.locator("#panel").bounding_box()
    assert box
    assert cover
    assert 0 <= box["y"] < 900 - box["height"]
    assert box["x"] + box["width"] <= cover["x"] + 1
    made.context.close()


def test_nothing_moves_where_all_columns_are_in_sight(browser: Browser, folder: Path) -> None:
    """A wide window has no need to scroll."""
    made = Opened(browser, folder / "index.html", viewport={"width": 1800, "height": 900})
    assert made.page.evaluate(SCROLLED) == 0
    assert set(marks(made.page).values()) == {"from", "to"}
    made.context.close()


def test_marks_are_there_without_scripts(browser: Browser, folder: Path) -> None:
    """They are text, and the pair is that of the upgrade above."""
    made = Opened(browser, folder / "index.html", java_script_enabled=False)
    assert made.page.locator("#pair-said b").count() == 2
    assert marks(made.page) == {"rtx16": "from", "rtx17": "to"}
    made.context.close()


@pytest.mark.parametrize("width", [1000, 1300, 1900])
@pytest.mark.parametrize("vs", ["", "&vs=rtx16"])
def test_a_deep_link_shows_its_cell_beside_the_panel(
    browser: Browser, folder: Path, width: int, vs: str
) -> None:
    """Of the last column too, which could not be scrolled out from behind the panel otherwise."""
    made = Opened(
        browser,
        folder / "index.html",
        f"#cell=conv_silu%5Bfp32%5D-ort131{vs}",
        viewport={"width": width, "height": 800},
    )
    page = made.page
    page.locator("#panel figure").nth(1 if vs else 0).wait_for()
    box = cell(page, "fp32", "ort131").bounding_box()
    corner = page.locator("#grid .corner").bounding_box()
    cover = page.locator("#panel").bounding_box()
    assert box
    assert corner
    assert cover
    room = cover["x"] - corner["width"] > 100
    assert box["x"] >= corner["width"] - 1
    assert box["x"] + box["width"] <= (cover["x"] if room else width) + 1
    assert 0 <= box["y"] < 800
    assert page.evaluate("document.documentElement.scrollWidth") <= width
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


def test_fields_stand_in_line_and_badges_apart(browser: Browser, folder: Path) -> None:
    """A long note below one field does not push the other down; a pill does not reach over its neighbour."""
    made = Opened(browser, folder / "index.html", "#a=trt86&b=rtx17", viewport={"width": 1400, "height": 900})
    page = made.page
    tops = [page.locator(pick).bounding_box() for pick in ("#pick-a", "#pick-b")]
    assert len({round(box["y"]) for box in tops if box}) == 1
    open_cell(page, "int8-entropy", "rtx17")
    pill = page.locator("#panel .badge.pill").first
    wide = pill.evaluate("(one) => parseFloat(getComputedStyle(one, '::before').width)")
    box = pill.bounding_box()
    assert box
    assert wide <= box["width"] + 0.5
    made.context.close()


@pytest.mark.parametrize("width", [1200, 1500, 2560])
def test_filters_and_matrix_begin_at_one_line(browser: Browser, folder: Path, width: int) -> None:
    """On a screen of any width."""
    made = Opened(browser, folder / "index.html", viewport={"width": width, "height": 900})
    lefts = [
        made.page.locator(what).first.bounding_box()
        for what in ("#matrix h2", "#f-text", "#grid .case h3", "#grid .head code", "h1")
    ]
    assert len({round(box["x"]) for box in lefts if box}) == 1
    made.context.close()

"""The page in a real browser: no request, no error, mouse, keyboard, filters, scripts off, widths, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.report import write_report
from tests.report import factory
from tests.report.browsing import Opened, cell, open_cell, panel, rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

CELL = "conv_silu.qdq-rtx17"


def test_nothing_is_requested_and_nothing_complained_of(opened: Opened) -> None:
    """Opening the file is all; the fixture checks requests and console after each test."""
    assert opened.page.title() == "TensorRT compatibility matrix"
    assert opened.page.locator("#grid td").count() == 32


def test_mouse_opens_the_panel_with_the_evidence(opened: Opened) -> None:
    """Verdict, diagnosis, messages, phases, recipe and how to reproduce are a click away."""
    open_cell(opened.page)
    text = panel(opened.page)
    assert "Regressed: build failed" in text
    assert factory.COULD_NOT in text
    for part in (
        "What to do.",
        "Phases",
        "Messages",
        "Recipe",
        "Reproduce",
        "Measured with",
    ):
        assert part in text
    assert f"trt-compat show {CELL}" in text
    opened.page.get_by_role("button", name="Close").click()
    assert panel(opened.page) == ""


def test_panel_shows_layers_precision_accuracy_and_samples(opened: Opened) -> None:
    """What ran in which precision, how wrong and how fast."""
    open_cell(opened.page, "qdq", "ort131")
    text = panel(opened.page)
    assert "Layers (1)" in text
    assert factory.CONV in text
    assert "median 43 µs" in text
    assert "Accuracy against the ONNX reference" in text
    assert opened.page.locator("#panel svg.spark circle").count() == 100


def test_keyboard_walks_opens_and_closes(opened: Opened) -> None:
    """Arrows move, Enter opens, Escape closes and gives the focus back to the cell."""
    page = opened.page
    cell(page, "qdq", "rtx16").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("qdq on rtx17.")
    page.keyboard.press("Enter")
    page.locator("#panel").wait_for(state="visible")
    assert CELL in panel(page)
    page.keyboard.press("Escape")
    assert panel(page) == ""
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("qdq on rtx17.")


def test_arrows_stop_at_the_edges(opened: Opened) -> None:
    """No key leads out of the table or into nothing."""
    page = opened.page
    cell(page, "qdq", "trt86").focus()
    for key in ("ArrowLeft", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("qdq on trt86.")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("qdq on ort131.")


def test_the_skip_link_leads_to_a_cell(opened: Opened) -> None:
    """Not to the two dozen links of the heads before it."""
    page = opened.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("Boolean(document.activeElement.closest('#grid td'))")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator("#panel-title").wait_for()


def test_only_one_cell_is_a_tab_stop(opened: Opened) -> None:
    """Tab does not have to pass thousands of cells."""
    stops = "cells => cells.filter((a) => a.tabIndex === 0).length"
    assert opened.page.locator("#grid td a").evaluate_all(stops) == 1


def test_an_address_opens_its_cell(browser: Browser, folder: Path) -> None:
    """A link to a cell can be put into a bug report."""
    made = Opened(browser, folder / "index.html")
    made.page.goto((folder / "index.html").as_uri() + "#conv_silu.qdq-rtx17")
    made.page.reload()
    made.page.locator("#panel-title", has_text=CELL).wait_for()
    assert made.complaints == []
    made.context.close()


def test_links_in_the_lists_open_the_cell(opened: Opened) -> None:
    """The regression at the top leads to its evidence, again after it was closed."""
    for _ in range(2):
        opened.page.locator(".attention a", has_text=CELL).click()
        opened.page.locator("#panel").wait_for(state="visible")
        assert CELL in panel(opened.page)
        opened.page.keyboard.press("Escape")


def test_text_filter_keeps_the_rows_that_match(opened: Opened) -> None:
    """All words must occur; an empty result says so."""
    search = opened.page.get_by_role("searchbox")
    search.fill("int8 calibrated")
    assert rows(opened.page) == ["int8-entropy"]
    assert opened.page.locator("#f-count").inner_text() == "1 of 4 rows"
    search.fill("nothing has this")
    assert rows(opened.page) == []
    assert opened.page.locator("#empty").is_visible()
    search.fill("-calibrated")
    assert rows(opened.page) == ["qdq", "qdq-between", "fp32"]
    # A flag is pasted with its dashes, and turns nothing round.
    search.fill("--calibrated")
    assert rows(opened.page) == []
    search.fill("")
    assert len(rows(opened.page)) == 4


def test_family_filter_hides_columns_and_their_heading(opened: Opened) -> None:
    """Only the family that one may upgrade to is of interest."""
    page = opened.page
    for family in ("Jetson", "ONNX Runtime", "TensorRT"):
        page.locator(".chips label", has_text=family).first.click()
    assert page.locator("#grid .targets th:visible").all_inner_texts() == [
        "rtx14\n1.4",
        "rtx15\n1.5",
        "from\nrtx16",
        "to\nrtx17",
    ]
    groups = page.locator("#grid .families th:visible").all_inner_texts()
    assert groups == ["Case and variant", "TensorRT for RTX"]
    page.get_by_label("Details of all rows").check()
    assert page.locator("#grid .targets th:visible").all_inner_texts() == [
        "rtx14\n1.4\n20 Nov old",
        "rtx15\n1.5\n20 Nov",
        "from\nrtx16\n1.6\n20 Nov",
        "to\nrtx17\n1.7\n20 Nov",
    ]


def test_state_filter_and_tally_agree(opened: Opened) -> None:
    """A click on a count shows the rows that it counts."""
    page = opened.page
    page.locator('[data-bucket="regressed"]').click()
    assert rows(page) == ["qdq"]
    assert page.locator("#f-state").input_value() == "b-regressed"
    page.locator('[data-bucket="regressed"]').click()
    assert len(rows(page)) == 4
    page.locator("#f-state").select_option("k-api_removed")
    assert rows(page) == ["int8-entropy"]


def test_differs_filter_keeps_rows_that_changed_between_versions(opened: Opened) -> None:
    """A control that is the same everywhere is noise when one looks for changes."""
    opened.page.get_by_label("differs between versions").check()
    assert rows(opened.page) == ["qdq", "qdq-between", "fp32"]


def test_measured_filter_hides_targets_that_were_not_run(opened: Opened) -> None:
    """What is only claimed can be put aside."""
    opened.page.get_by_label("only targets run here").check()
    heads = opened.page.locator("#grid .targets th:visible a").all_inner_texts()
    assert heads == ["rtx14", "rtx15", "rtx16", "rtx17", "ort131"]


def test_matrix_legend_and_ranges_are_there_with_scripts_off(browser: Browser, folder: Path) -> None:
    """Mail clients and strict browsers run no script."""
    made = Opened(browser, folder / "index.html", java_script_enabled=False)
    text = made.page.locator("body").inner_text()
    assert "fixed in 1.5 (measured): builds, INT8 1/1" in text
    assert "Going to TensorRT for RTX 1.7.1.116 breaks 2 of 2 variants known on both." in text
    assert "the builder makes no engine" in text
    assert made.page.locator("#grid td .badge").count() == 32
    assert not made.page.locator("#filters").is_visible()
    assert made.page.locator("#panel").is_hidden()
    assert made.requests == [(folder / "index.html").as_uri()]
    made.context.close()


@pytest.mark.parametrize("width", [390, 900, 1440])
def test_page_itself_never_scrolls_sideways(browser: Browser, folder: Path, width: int) -> None:
    """The matrix scrolls in its own box, with its first column and header in view."""
    made = Opened(browser, folder / "index.html", "#only=a", viewport={"width": width, "height": 800})
    assert made.page.evaluate("document.documentElement.scrollWidth") <= width
    open_cell(made.page, "fp32", "ort131")
    box = made.page.locator("#panel").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["width"] <= width + 1
    assert made.page.evaluate("document.querySelector('#panel').scrollWidth") <= width
    made.context.close()


def test_forced_colours_keep_shape_and_letters(browser: Browser, folder: Path) -> None:
    """With the user's own colours a badge still has an outline and letters."""
    made = Opened(browser, folder / "index.html", forced_colors="active")
    badge = made.page.locator("#grid td.k-build_failed .badge").first
    style = badge.evaluate("(badge) => getComputedStyle(badge, '::before').borderTopStyle")
    assert style in ("solid", "dashed")
    assert cell(made.page).locator(".badge").inner_text() == "B"
    made.context.close()


def test_print_shows_the_whole_matrix_without_controls(browser: Browser, folder: Path) -> None:
    """On paper nothing scrolls and nothing can be clicked."""
    made = Opened(browser, folder / "index.html")
    made.page.emulate_media(media="print")
    assert not made.page.locator("#filters").is_visible()
    assert made.page.evaluate("getComputedStyle(document.querySelector('.scroller')).overflowY") == "visible"
    assert made.page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    made.context.close()


def test_reduced_motion_has_none(browser: Browser, folder: Path) -> None:
    """Who asked for no motion gets none."""
    made = Opened(browser, folder / "index.html", reduced_motion="reduce")
    open_cell(made.page)
    assert made.page.evaluate("getComputedStyle(document.querySelector('#panel')).animationName") == "none"
    made.context.close()


def test_hostile_text_runs_nothing_and_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    """Names and logs are shown letter by letter, in the table and in the panel."""
    hostile = (
        "<img src=x onerror=alert(1)></script><script>document.title='owned'</script></script x><!--<script>"
        "\u202eevil"
    )
    write_report(factory.results(hostile=hostile), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    made.page.on("dialog", lambda _: pytest.fail("a script ran"))
    open_cell(made.page)
    assert "<img src=x onerror=alert(1)></script>" in panel(made.page)
    assert "⟨U+202E⟩evil" in panel(made.page)
    assert made.page.locator("img").count() == 0
    assert "owned" not in made.page.title()
    assert made.complaints == []
    assert made.requests == [(tmp_path / "index.html").as_uri()]
    made.context.close()


def test_a_browser_that_cannot_unpack_the_data_is_told_so(browser: Browser, folder: Path) -> None:
    """What needs no scripts stands there all the same."""
    context = browser.new_context()
    context.add_init_script("delete globalThis.DecompressionStream")
    page = context.new_page()
    page.goto((folder / "index.html").as_uri())
    page.locator("#stranger", has_text="This browser cannot unpack the page's data").wait_for()
    assert page.locator("#grid tr.variant").count() == 4
    assert page.locator("#step .headline").is_visible()
    context.close()


def test_a_page_that_was_cut_off_works_and_says_what_it_lacks(
    browser: Browser, tmp_path: Path, folder: Path
) -> None:
    """A download that broke, or a load that was stopped: the matrix stands before the evidence."""
    whole = (folder / "index.html").read_text(encoding="utf-8")
    place = '<script type="application/json" id="behind">'
    for at, left in enumerate((0, 40)):
        cut = tmp_path / f"{at}.html"
        cut.write_text(whole[: whole.index(place) + left * (len(place) + 1)], encoding="utf-8")
        made = Opened(browser, cut)
        made.page.locator("#f-text").fill("variant:qdq")
        assert rows(made.page) == ["qdq"]
        open_cell(made.page)
        assert "The evidence is missing in this copy of the page, or damaged" in panel(made.page)
        assert made.complaints == []
        made.context.close()

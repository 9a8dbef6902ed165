"""The page on paper, in the user's own colours, without motion and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.report.browsing import Opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

OPEN = "#a=rtx14&b=rtx15&cell=conv_silu%5Bqdq%5D-rtx15&vs=rtx16"


def test_print_has_the_step_and_repeats_the_header(browser: Browser, folder: Path) -> None:
    """Landscape paper, no controls, what is compared said in words."""
    made = Opened(browser, folder / "index.html", "#a=rtx14&b=rtx15")
    page = made.page
    page.emulate_media(media="print")
    assert page.locator("#pair-said").inner_text() == "From rtx14 to rtx15"
    assert page.locator("#pair").is_hidden()
    assert (
        page.evaluate("getComputedStyle(document.querySelector('#grid thead')).display")
        == "table-header-group"
    )
    pdf = page.pdf(prefer_css_page_size=True)
    boxes = {box for box in pdf.split(b"/MediaBox")[1:] for box in [box[: box.index(b"]")]]}
    width, height = map(float, boxes.pop().split()[-2:])
    assert width > height
    made.context.close()


def test_what_is_folded_is_unfolded_on_paper_and_folded_again(browser: Browser, folder: Path) -> None:
    """A printed list of causes without the cells behind them would be cut."""
    made = Opened(browser, folder / "index.html")
    page = made.page
    count = "document.querySelectorAll('.cluster[open]').length"
    page.evaluate(f"addEventListener('beforeprint', () => {{ document.title = String({count}); }})")
    page.pdf(prefer_css_page_size=True)
    assert page.title() == str(page.locator(".cluster").count()) != "0"
    assert page.evaluate(count) == 0
    made.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forced_colours_keep_the_precision_of_a_node_to_see(
    browser: Browser, folder: Path, scheme: Any
) -> None:
    """The hatching of INT8 is drawn in the user's own colours, and no text in one of ours."""
    made = Opened(
        browser,
        folder / "index.html",
        OPEN,
        forced_colors="active",
        color_scheme=scheme,
        viewport={"width": 1500, "height": 900},
    )
    page = made.page
    page.locator("#panel figure").nth(1).wait_for()
    look = """([query, key]) =>
      [...new Set([...document.querySelectorAll(query)].map((one) => getComputedStyle(one)[key]))]"""
    own = page.evaluate("getComputedStyle(document.body).color")
    assert all("url(" in fill for fill in page.evaluate(look, [".graph .g-int8 .band", "fill"]))
    assert page.evaluate(look, [".graph .hatch", "stroke"]) == [own]
    assert page.evaluate(look, [".graph text", "fill"]) == [own]
    made.context.close()


def test_reduced_motion_moves_nothing(browser: Browser, folder: Path) -> None:
    """Neither the panel nor the page slides for who asked for that."""
    for choice, moves in (("reduce", False), ("no-preference", True)):
        motion: Any = choice
        made = Opened(browser, folder / "index.html", OPEN, reduced_motion=motion)
        made.page.locator("#panel figure").nth(1).wait_for()
        style = made.page.evaluate("""[getComputedStyle(document.documentElement).scrollBehavior,
          getComputedStyle(document.querySelector('#panel')).animationName]""")
        assert (style == ["smooth", "slide"]) is moves
        assert (style == ["auto", "none"]) is not moves
        made.context.close()


def test_help_starts_at_its_beginning_on_a_phone(browser: Browser, folder: Path) -> None:
    """A dialog focuses its first button, which is the last line, and scrolls to it."""
    made = Opened(browser, folder / "index.html", viewport={"width": 390, "height": 500})
    made.page.locator("#f-help").click()
    assert made.page.evaluate("document.querySelector('#help').scrollTop") == 0
    assert made.page.evaluate("document.activeElement.id") == "help-title"
    made.page.keyboard.press("Escape")
    assert made.page.evaluate("document.activeElement.id") == "f-help"
    made.context.close()

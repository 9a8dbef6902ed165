"""The page on paper, in the user's own colours, without motion and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.report.counts import clusters
from harness.report.page.html import _anchor
from tests.report import factory
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
    assert (
        page.locator("#pair-said").inner_text()
        == "From TensorRT for RTX 1.4.0.76 to TensorRT for RTX 1.5.0.114"
    )
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


PAPER: Any = {"width": 1500, "height": 900}


def test_the_filter_is_said_on_paper(browser: Browser, folder: Path) -> None:
    """Rows and columns that are missing would be taken for all there is."""
    made = Opened(browser, folder / "index.html", "#a=rtx14&b=rtx15&q=case:conv_silu&hide=Jetson&only=d")
    page = made.page
    said = page.locator("#filter-said")
    assert said.is_hidden()
    page.emulate_media(media="print")
    count = page.locator("#f-count").evaluate("(one) => one.value")
    assert said.inner_text() == (
        f"Filter: case:conv_silu; without Jetson; differs between versions ({count})"
    )
    page.emulate_media(media="screen")
    page.locator("#f-text").fill("")
    page.locator("#f-differs").uncheck()
    page.locator("#f-state").select_option(label="Build failed")
    page.locator(".chips span", has_text="Jetson").click()
    page.emulate_media(media="print")
    assert said.inner_text().startswith("Filter: Build failed (")
    page.emulate_media(media="screen")
    page.locator("#f-state").select_option("")
    page.emulate_media(media="print")
    assert said.is_hidden()
    made.context.close()


def test_an_open_cell_is_printed_alone_and_whole(browser: Browser, folder: Path) -> None:
    """Who prints with a cell open wants its evidence, not the page behind it."""
    made = Opened(browser, folder / "index.html", "#cell=conv_silu%5Bqdq%5D-rtx17&vs=rtx16", viewport=PAPER)
    page = made.page
    page.locator("#panel figure").nth(1).wait_for()
    folded = page.locator("#panel details:not([open])").count()
    assert folded
    page.evaluate("""addEventListener("beforeprint", () => {
      document.title = document.querySelectorAll("#panel details:not([open])").length;
    })""")
    page.evaluate(
        "document.querySelectorAll('#panel pre').forEach((one) => { one.textContent += 'a line\\n'.repeat(300); })"
    )
    page.emulate_media(media="print")
    for other in ("header", "main", "footer"):
        assert page.locator(f"body > {other}").is_hidden()
    assert page.locator("#panel button:visible").count() == 0
    style = page.locator("#panel").evaluate(
        "(one) => [getComputedStyle(one).position, getComputedStyle(one).overflowY, one.offsetWidth]"
    )
    assert style == ["static", "visible", 1500]
    cut = """[...document.querySelectorAll("#panel, #panel pre, #panel .graphs .wide")].filter((one) =>
      one.scrollHeight > one.clientHeight + 2 && getComputedStyle(one).overflowY !== "visible").length"""
    assert page.evaluate(cut) == 0
    page.pdf(prefer_css_page_size=True)
    assert page.title() == "0"
    assert page.locator("#panel details:not([open])").count() == folded
    page.emulate_media(media="screen")
    page.keyboard.press("Escape")
    page.emulate_media(media="print")
    assert page.locator("body > main").is_visible()
    made.context.close()


def test_paper_has_a_readable_size_and_nothing_lies_over_the_first_column(
    browser: Browser, folder: Path
) -> None:
    """Text of the matrix in 8 points or more; the sticky heads of the screen stay in their places."""
    made = Opened(
        browser, folder / "index.html", "#a=rtx17&b=ort131&only=as", viewport={"width": 645, "height": 700}
    )
    page = made.page
    assert page.evaluate("document.querySelector('.scroller').scrollLeft") > 0
    page.set_viewport_size({"width": 1512, "height": 1046})
    page.emulate_media(media="print")
    size = "parseFloat(getComputedStyle(document.querySelector('#grid .claim')).fontSize) * 0.75"
    assert page.evaluate(size) >= 8
    page.evaluate(
        "document.querySelector('#grid .role').textContent += ' of a-name-as-long-as-this'.repeat(9)"
    )
    over = """[...document.querySelectorAll('#grid .variant > th')].flatMap((head) =>
      [...head.querySelectorAll('.role, .claim, .span')].filter((one) =>
        one.getBoundingClientRect().right > head.getBoundingClientRect().right)).length"""
    assert page.evaluate(over) == 0
    sticky = """[...document.querySelectorAll("#grid *")].filter((one) =>
      getComputedStyle(one).position === "sticky").length"""
    assert page.evaluate(sticky) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1512
    made.context.close()


def test_every_failing_cell_is_named_below_its_cause(folder: Path) -> None:
    """Nobody can ask paper for the rest."""
    text = (folder / "index.html").read_text()
    section = text[text.index('id="failures"') : text.index('id="targets"')]
    results = factory.results()
    for found in clusters(results):
        for one in found.cells:
            assert f'<a class="cellref" href="{_anchor(one.id)}">' in section

"""The page on paper and in the reader's own colours: what is shown there is told as on a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.report.counts import clusters
from harness.report.page.html import _anchor
from tests.report import factory
from tests.report.browsing import Opened, cell, settled

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

#: How the badge of a cell is drawn: whether it is filled, and whether its letter is told from its ground.
DRAWN = """(anchor) => {
  const of = getComputedStyle(anchor.querySelector('.badge'), '::before');
  const page = getComputedStyle(document.body).backgroundColor;
  const filled = !['rgba(0, 0, 0, 0)', page].includes(of.backgroundColor);
  return [filled, getComputedStyle(anchor.querySelector('.badge')).color !== of.backgroundColor];
}"""


@pytest.mark.parametrize("scheme", [{}, {"color_scheme": "dark"}, {"forced_colors": "active"}])
def test_measured_and_reported_are_told_apart_by_form_not_by_colour(
    browser: Browser, folder: Path, scheme: dict[str, Any]
) -> None:
    """Filled and outlined: so in grey and in the reader's own colours too; and no letter is lost on its ground."""
    made = Opened(browser, folder / "index.html", **scheme)
    settled(made.page)
    drawn = {on: cell(made.page, "qdq", on).evaluate(DRAWN) for on in ("rtx17", "trt86")}
    assert drawn == {"rtx17": [True, True], "trt86": [False, True]}
    made.context.close()


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


def test_every_failing_cell_is_named_below_its_cause(folder: Path) -> None:
    """Nobody can ask paper for the rest."""
    text = (folder / "index.html").read_text()
    section = text[text.index('id="failures"') : text.index('id="targets"')]
    results = factory.results()
    for found in clusters(results):
        for one in found.cells:
            assert f'<a class="cellref" href="{_anchor(one.id)}">' in section

"""Guesses in a real browser: not drawn until they are asked for, and then never to be taken for anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.report.browsing import Opened, cell, panel, settled

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

STEP = "#a=trt86&b=trt102"
#: How the badge of a cell is drawn: whether it is filled, and its line.
DRAWN = """(anchor) => {
  const of = getComputedStyle(anchor.querySelector('.badge'), '::before');
  const page = getComputedStyle(document.body).backgroundColor;
  const filled = !['rgba(0, 0, 0, 0)', page].includes(of.backgroundColor);
  return [filled, of.borderTopStyle, getComputedStyle(anchor.querySelector('.badge')).color !== of.backgroundColor];
}"""


def shown(page: Page, on: str) -> str:
    return " ".join((cell(page, "qdq", on).text_content() or "").split())


def test_guesses_are_drawn_where_they_are_asked_for_and_the_address_keeps_that(
    browser: Browser, folder: Path
) -> None:
    made = Opened(browser, folder / "index.html", STEP)
    page = made.page
    settled(page)
    headline = page.locator("#step .headline")
    assert headline.inner_text() == (
        "Nobody has run TensorRT 8.6.1 or TensorRT 10.2.0.19; 1 reported claim speaks of them, so what this step "
        "does is not known. "
        "3 more troubles are reported of TensorRT 10.2.0.19 that no variant here shows."
    )
    assert (shown(page, "trt86"), shown(page, "trt102")) == ("B users", "·")
    assert page.locator('[data-bucket="guessed"]').is_hidden()
    unrun = int(page.locator('[data-bucket="not_run"] .n').inner_text())
    page.get_by_label("Show 1 guesses").check()
    settled(page)
    assert "By guesses on 1 more it breaks none, which nobody has tried." in headline.inner_text()
    assert page.locator("#step tr.guess").count() == 1
    assert (shown(page, "trt86"), shown(page, "trt102")) == ("B users", "OK? guess")
    assert int(page.locator('[data-bucket="not_run"] .n').inner_text()) == unrun - 1
    assert page.locator('[data-bucket="guessed"] .n').inner_text() == "1"
    assert "guesses=1" in page.url
    cell(page, "qdq", "trt102").click()
    page.locator("#panel-title", has_text="trt102").wait_for()
    assert "Guessed: works" in panel(page)
    page.get_by_label("Show 1 guesses").evaluate("(box) => box.click()")
    page.locator("#panel .state", has_text="Not run").wait_for()
    assert "uess" not in page.locator("#panel .state").inner_text()
    assert shown(page, "trt102") == "·"
    assert "guesses" not in page.url
    hidden = page.locator("#panel p", has_text="1 guess is hidden.")
    hidden.get_by_role("button", name="Show guesses").click()
    page.locator("#panel .state", has_text="Guessed: works").wait_for()
    assert hidden.count() == 0
    assert page.get_by_label("Show 1 guesses").is_checked()
    assert made.complaints == []
    made.context.close()


def test_a_shared_address_shows_guesses_from_the_start(browser: Browser, folder: Path) -> None:
    made = Opened(browser, folder / "index.html", f"{STEP}&guesses=1")
    settled(made.page)
    assert made.page.get_by_label("Show 1 guesses").is_checked()
    assert shown(made.page, "trt102") == "OK? guess"
    assert made.page.locator("#step tr.guess").count() == 1
    assert made.complaints == []
    made.context.close()


def test_without_scripts_no_guess_is_drawn_and_that_is_said(browser: Browser, folder: Path) -> None:
    made = Opened(browser, folder / "index.html", java_script_enabled=False)
    assert made.page.locator("#grid .b-guessed").count() == 0
    assert made.page.locator("#show-guesses").is_hidden()
    assert "Of 1 cells there is only our guess" in made.page.locator("#guesses-said").inner_text()
    made.context.close()


@pytest.mark.parametrize("scheme", [{}, {"color_scheme": "dark"}, {"forced_colors": "active"}])
def test_the_three_grades_are_told_apart_by_form_not_by_colour(
    browser: Browser, folder: Path, scheme: dict[str, Any]
) -> None:
    """Filled, outlined, dotted: so in grey and in the reader's own colours too; and no letter is lost on its ground."""
    made = Opened(browser, folder / "index.html", "#guesses=1", **scheme)
    settled(made.page)
    drawn = {on: cell(made.page, "qdq", on).evaluate(DRAWN) for on in ("rtx17", "trt86", "trt102")}
    assert drawn == {
        "rtx17": [True, "solid", True],
        "trt86": [False, "solid", True],
        "trt102": [False, "dotted", True],
    }
    made.context.close()

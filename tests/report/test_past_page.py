"""The past in a real browser: strip, medians, corner, filter and the list of changes between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.report import write_report
from tests.report.browsing import Opened, cell, open_cell, panel, rows
from tests.report.test_past import BUILD, BUILT, CELL, TIMED, classes, latencies, seeded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

FLAKY = "conv_silu.qdq-rtx16"
FIXED = "conv_silu.qdq-between-rtx16"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("past")
    nights = {
        TIMED: latencies(lambda number: 1.3 if number >= 10 else 1.0),
        CELL: classes(*[BUILT] * 20),
        FLAKY: classes(*[BUILT, BUILD] * 9, BUILT, BUILT),
        FIXED: classes(*[BUILD] * 15, *[BUILT] * 5),
    }
    write_report(seeded(nights), folder)
    return folder / "index.html"


@pytest.fixture
def past(browser: Browser, page_file: Path) -> Iterator[Opened]:
    made = Opened(browser, page_file, viewport={"width": 1440, "height": 1000})
    yield made
    assert made.complaints == []
    made.context.close()


def test_panel_shows_the_last_runs_in_order_with_their_dates(past: Opened) -> None:
    """One badge a run, named in full for those who cannot see it."""
    open_cell(past.page, "qdq-between", "rtx16")
    runs = past.page.locator("#panel .strip li")
    assert runs.count() == 20
    assert runs.first.get_attribute("title") == "2026-01-01 03:00 UTC: build failed"
    assert runs.last.inner_text().split("\n")[-1] == "2026-01-20 03:00 UTC: built"
    assert "Built since 2026-01-16 03:00 UTC; failed until then (build failed)." in panel(past.page)


def test_panel_draws_the_medians_and_marks_where_they_changed(past: Opened) -> None:
    """One point a run, and a line at the first of the new level."""
    open_cell(past.page, "qdq", "ort131")
    drawing = past.page.locator("#panel .medians svg")
    assert drawing.locator("circle").count() == 20
    (line,) = drawing.locator("line.changed").all()
    eleventh = drawing.locator("circle").nth(10)
    assert line.get_attribute("x1") == eleventh.get_attribute("cx")
    assert "Its latency went from" in panel(past.page)


def test_a_flaky_cell_is_marked_in_the_matrix_and_found_by_the_filter(past: Opened) -> None:
    """Mark, words and filter say the same."""
    page = past.page
    anchor = cell(page, "qdq", "rtx16")
    assert anchor.locator("sup").inner_text() == "~"
    assert "Flaky" in (anchor.get_attribute("aria-label") or "")
    page.locator("#f-text").fill("past:flaky")
    page.locator("#f-count", has_text="1 of 4").wait_for()
    assert rows(page) == ["qdq"]
    assert page.locator("#grid td.hit").count() == 1
    page.locator("#f-text").fill("past:fixd")
    assert "did you mean fixed?" in page.locator("#f-problem").inner_text()


def test_changes_between_runs_are_listed_the_latest_first_and_open_their_cell(past: Opened) -> None:
    """From the morning's list to the evidence in one step."""
    page = past.page
    lines = page.locator("#recent tbody tr")
    assert lines.locator("td.when").all_inner_texts() == [
        "2026-01-16 03:00",
        "2026-01-11 03:00",
        "2026-01-02 03:00",
    ]
    assert lines.locator(".what").all_inner_texts() == ["stopped failing", "slower", "flaky"]
    lines.nth(0).get_by_role("link").click()
    page.locator("#panel-title", has_text=FIXED).wait_for()


def test_without_scripts_the_changes_between_runs_are_there(browser: Browser, page_file: Path) -> None:
    """They are news, and news needs no script."""
    made = Opened(browser, page_file, java_script_enabled=False)
    assert "flaky" in made.page.locator("#recent").inner_text()
    made.context.close()

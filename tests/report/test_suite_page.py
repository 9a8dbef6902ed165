"""The page of a suite in a browser: readable without its script, filtered with it, asking nothing of any network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.suites.report import build_suites
from tests.report import factory
from tests.report.browsing import Opened
from tests.suites.records import FIRST, record

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reports = tmp_path_factory.mktemp("suite")
    record(reports, FIRST)
    build_suites(factory.matrix(), reports)
    record(reports, {"rtx17": {**FIRST["rtx17"], "add": "crash"}}, run="r2", day="2026-11-21")
    (report,) = build_suites(factory.matrix(), reports)
    return report.page


@pytest.fixture
def opened(browser: Browser, page_file: Path) -> Iterator[Opened]:
    made = Opened(browser, page_file, "#since-rtx17")
    yield made
    assert made.complaints == []
    assert [request.partition("#")[0] for request in made.requests] == [page_file.as_uri()]
    made.context.close()


def operators(opened: Opened) -> list[str]:
    return opened.page.locator("#grid-of-operators tbody:visible th").all_inner_texts()


def test_rows_are_filtered_by_operator_and_by_state(opened: Opened) -> None:
    page = opened.page
    assert operators(opened) == ["Abs", "Add", "BitShift", "Mod", "Binarizer"]
    page.locator("#f-op").fill("ADD")
    assert operators(opened) == ["Add"]
    assert page.locator("#f-rows").inner_text() == "1 of 5 rows"
    page.locator("#f-op").fill("SIGSEGV")
    assert operators(opened) == ["Add", "Mod"], "no operator is called so: signatures are searched"
    page.locator("#f-op").fill("")
    page.locator("#f-state").select_option("inaccurate")
    assert operators(opened) == ["Mod"]


def test_a_part_that_the_address_names_is_open(opened: Opened) -> None:
    since = opened.page.locator("#since-rtx17")
    assert since.locator("li").all_inner_texts() == ["add: built → crashed"]


def test_what_does_not_work_is_told_on_demand(opened: Opened) -> None:
    row = opened.page.locator("tbody[data-op=bitshift]")
    assert "BitShift node" not in row.inner_text()
    row.locator("summary").click()
    assert "rtx16 rtx17" in row.inner_text()
    assert "BitShift node 'node_of_bitshift'" in row.inner_text()
    row.locator("a", has_text="Bit arithmetic").click()
    assert opened.page.url.endswith("#c-bit-operator")


def test_without_scripts_all_of_it_is_there(browser: Browser, page_file: Path) -> None:
    made = Opened(browser, page_file, java_script_enabled=False)
    assert operators(made) == ["Abs", "Add", "BitShift", "Mod", "Binarizer"]
    assert not made.page.locator("#filters").is_visible()
    made.page.locator("tbody[data-op=mod] summary").click()
    assert "killed by SIGSEGV" in made.page.locator("tbody[data-op=mod]").inner_text()
    made.context.close()


@pytest.mark.parametrize("width", [400, 1300])
def test_nothing_is_wider_than_the_window_but_what_scrolls_by_itself(
    browser: Browser, page_file: Path, width: int
) -> None:
    made = Opened(browser, page_file, viewport={"width": width, "height": 900})
    assert made.page.evaluate("document.documentElement.scrollWidth") <= width
    lead = made.page.locator(".lead").bounding_box()
    assert lead
    assert lead["width"] > 0.6 * width
    made.context.close()

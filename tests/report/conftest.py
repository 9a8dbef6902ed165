"""One browser and one written report for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.report.writer import write_report
from tests import needs
from tests.report import factory
from tests.report.browsing import Opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    launch = needs.chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(**launch)
        yield running
        running.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("report")
    write_report(factory.results(), made)
    return made


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Opened]:
    made = Opened(browser, folder / "index.html")
    yield made
    assert made.complaints == []
    assert made.requests == [(folder / "index.html").as_uri()]
    made.context.close()

"""A report opened in a real browser, with all that it asked for and complained of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Opened:
    """A page with all that it asked for and complained of."""

    def __init__(self, browser: Browser, file: Path, address: str = "", **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(1000 * PATIENCE)
        self.page: Page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri() + address)
        if options.get("java_script_enabled", True) and self.page.locator("script#results").count():
            answering(self.page)


def answering(page: Page) -> None:
    """Wait until a report's page, opened or loaded anew, has unpacked its data and answers."""
    page.wait_for_selector("html[data-ready]", state="attached")

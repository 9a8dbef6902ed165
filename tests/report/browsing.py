"""A report opened in a real browser, with all that it asked for and complained of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

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
        if options.get("java_script_enabled", True) and self.page.locator("script#data").count():
            answering(self.page)


def answering(page: Page) -> None:
    """Wait until a report's page, opened or loaded anew, has unpacked its data and answers."""
    page.wait_for_selector("html[data-ready]", state="attached")


def cell(page: Page, name: str = "qdq", on: str = "rtx17") -> Any:
    return page.locator(f'#grid td a[aria-label^="{name} on {on}."]')


def settled(page: Page) -> None:
    """Wait until the step that was asked for is unpacked and drawn."""
    page.locator("#step:not([aria-busy])").wait_for()


def panel(page: Page) -> str:
    found = page.locator("#panel")
    return found.inner_text() if found.is_visible() else ""


def rows(page: Page) -> list[str]:
    return page.locator("#grid tr.variant:visible .head > code").all_inner_texts()


def open_cell(page: Page, name: str = "qdq", on: str = "rtx17") -> None:
    """Click a cell and wait for its evidence, which is unpacked meanwhile."""
    cell(page, name, on).click()
    page.locator("#panel-title", has_text=f".{name}-{on}").wait_for()

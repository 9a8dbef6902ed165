"""The site in a real browser, from a disk: a walk through it, an audit of each kind of page, narrow and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.report.site_writer import whole_site, write_site
from tests import needs
from tests.report import factory
from tests.report.browsing import Opened
from tests.report.test_wide_page import violations

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

#: One page of each kind.
KINDS = (
    "index.html",
    "errors/index.html",
    "errors/no-implementation-qdq/index.html",
    "upgrades/index.html",
    "upgrades/rtx14/rtx15/index.html",
    "cases/index.html",
    "cases/conv_silu/index.html",
    "cases/conv_silu/qdq/index.html",
    "targets/index.html",
    "targets/rtx14/index.html",
    "runs/index.html",
    "contributors/index.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    case = factory.case()
    models = {(case.name, variant.name): variant.model_bytes() for variant in case}
    write_site(made, whole_site(factory.results(), models))
    return made


def test_a_walk_from_an_error_to_a_variant_and_back(browser: Browser, site: Path) -> None:
    """From a disk, with no script: each step is one link, and nothing but files of the site is asked for."""
    made = Opened(browser, site / "index.html", java_script_enabled=False)
    page = made.page
    page.get_by_role("link", name="No implementation for a layer with quantised weights, <node>").click()
    assert (
        page.get_by_role("heading", level=1).inner_text()
        == "No implementation for a layer with quantised weights, <node>"
    )
    assert factory.COULD_NOT in page.locator("main").inner_text()
    page.get_by_role("link", name="conv_silu[qdq]", exact=True).first.click()
    assert page.get_by_role("heading", level=1).inner_text() == "conv_silu[qdq]"
    assert "fails to build" in page.locator("main table").inner_text()
    page.get_by_role("link", name="No implementation for").first.click()
    page.get_by_role("link", name="All about this error").first.click()
    page.go_back()
    page.get_by_role("link", name="TensorRT compatibility", exact=True).click()
    assert page.get_by_role("heading", level=1).inner_text() == "TensorRT compatibility"
    page.get_by_role("link", name="1.4", exact=True).first.click()
    page.locator("#from-rtx14 + table").get_by_role("link").first.click()
    assert page.url == (site / "upgrades" / "rtx14" / "rtx15" / "index.html").as_uri()
    page.get_by_role("link", name="Whole matrix").click()
    assert page.url == (site / "latest" / "index.html").as_uri()
    assert made.complaints == []
    assert all(request.startswith(site.as_uri()) for request in made.requests)
    made.context.close()


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 320),
        ("dark", 1200),
        pytest.param("dark", 320, marks=pytest.mark.long),
        pytest.param("light", 1200, marks=pytest.mark.long),
    ],
)
def test_audit_finds_no_violation_and_nothing_is_cut_off(
    browser: Browser, site: Path, scheme: Any, width: int
) -> None:
    """axe-core, every rule, on each kind of page with all of it unfolded; no page is wider than the window."""
    needs.axe()
    made = Opened(
        browser,
        site / KINDS[0],
        color_scheme=scheme,
        bypass_csp=True,
        viewport={"width": width, "height": 900},
    )
    for kind in KINDS:
        made.page.goto((site / kind).as_uri())
        made.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert made.page.evaluate("document.documentElement.scrollWidth") <= width, kind
        assert made.page.evaluate("getComputedStyle(document.body).marginTop") == "0px", (
            "the style sheet is not read"
        )
        assert violations(made) == [], kind
    made.context.close()


def test_grades_are_told_apart_without_colour(browser: Browser, site: Path) -> None:
    """Filled, outlined, dashed; and each has its word."""
    made = Opened(browser, site / "cases" / "conv_silu" / "qdq" / "index.html")
    made.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    told = made.page.evaluate(
        """Object.fromEntries(["measured", "reported", "guessed"].map((grade) => {
             const one = document.querySelector(`main .g-${grade}`);
             const style = getComputedStyle(one);
             return [grade, [one.textContent, style.borderTopStyle, style.backgroundColor]];
           }))"""
    )
    assert told["measured"][0] == "measured"
    assert told["reported"][0] == "reported by users"
    assert told["guessed"][:2] == ["guessed", "dashed"]
    assert told["measured"][2] not in (told["reported"][2], told["guessed"][2])
    made.context.close()

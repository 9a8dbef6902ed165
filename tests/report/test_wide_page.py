"""The page under strain: an accessibility audit, a matrix too large to draw at once, strangers' text everywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.page import results as many
from harness.report import write_report
from harness.report.compare.upgrade import upgrade
from harness.report.results import assemble
from tests import needs
from tests.report import factory
from tests.report.browsing import Opened, panel, settled
from tests.report.poison import everywhere
from tests.report.test_past import TIMED, latencies, seeded
from tests.report.test_step_page import labelled

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from harness.report import Results

pytestmark = pytest.mark.browser

OPEN = "#a=rtx14&b=rtx15&q=state:fail&cell=conv_silu.qdq-rtx15&vs=rtx16"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1500), ("dark", 390)])
def test_audit_finds_no_violation(browser: Browser, folder: Path, scheme: Any, width: int) -> None:
    """axe-core, every rule, on the first screen, with an open cell beside another target, and with the help open."""
    needs.axe()
    viewport: Any = {"width": width, "height": 900}
    for address in ("", OPEN):
        made = Opened(
            browser, folder / "index.html", address, color_scheme=scheme, bypass_csp=True, viewport=viewport
        )
        if address:
            made.page.locator("#panel figure").nth(1).wait_for()
        else:
            made.page.locator("#f-help").click()
        assert violations(made) == []
        made.context.close()


def violations(made: Opened) -> list[Any]:
    """Return what axe-core finds on a page, with examples."""
    made.page.add_script_tag(path=needs.axe())
    found = made.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found["violations"]]


@pytest.mark.parametrize("which", ["drawn", "past"])
def test_audit_of_a_drawn_matrix_and_of_a_page_with_a_past(
    browser: Browser, large: Any, tmp_path: Path, which: str
) -> None:
    """With all lists unfolded, and a cell with its strip open."""
    needs.axe()
    file = large[1]
    if which == "past":
        nights = {TIMED: latencies(lambda number: 1.3 if number >= 10 else 1.0)}
        write_report(seeded(nights), tmp_path)
        file = tmp_path / "index.html"
    made = Opened(browser, file, bypass_csp=True, viewport={"width": 1440, "height": 900})
    made.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert violations(made) == []
    if which == "past":
        made.page.evaluate(f"location.hash = {json.dumps('#' + TIMED)}")
        made.page.locator("#panel .strip").wait_for()
        assert violations(made) == []
    made.context.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    made = many(5000)
    folder = tmp_path_factory.mktemp("large")
    write_report(made, folder)
    return made, folder / "index.html"


def test_a_large_matrix_is_drawn_as_far_as_it_is_scrolled_to(browser: Browser, large: Any) -> None:
    """Rows come when they are needed, all of them, in order."""
    results, file = large
    made = Opened(browser, file, viewport={"width": 1440, "height": 900})
    page = made.page
    assert 0 < page.locator("#grid tr.variant").count() < 60
    names: list[str] = []
    for _ in range(40):
        page.evaluate("document.querySelector('.scroller').scrollTop = 1e9")
        page.wait_for_timeout(30)
        names = page.locator("#grid tr.variant .head > code").all_inner_texts()
        if len(names) == 100:
            break
    assert names == [variant.name for case in results.cases for variant in case.variants]
    assert made.complaints == []
    made.context.close()


def test_filter_address_and_keyboard_work_on_rows_not_drawn_yet(browser: Browser, large: Any) -> None:
    """What is far down is as near as what is on top."""
    _, file = large
    made = Opened(browser, file, "#case4.variant19-trt1001")
    page = made.page
    page.locator("#panel").wait_for(state="visible")
    assert "case4.variant19-trt1001" in panel(page)
    assert page.locator("#panel g.node").count() == 4
    page.keyboard.press("Escape")
    page.locator("#f-text").fill("case:case4 variant:variant19")
    assert page.locator("#grid tr.variant").count() == 1
    page.locator("#f-text").fill("case:case4")
    page.locator("#grid td a").first.focus()
    for _ in range(19):
        page.keyboard.press("ArrowDown")
    assert "variant19 on trt1000." in page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert made.complaints == []
    made.context.close()


@pytest.mark.long
def test_a_large_matrix_without_scripts_says_where_the_cells_are(browser: Browser, tmp_path: Path) -> None:
    """What changes and what fails is still there to read."""
    results = many(8400)
    write_report(results, tmp_path)
    made = Opened(browser, tmp_path / "index.html", java_script_enabled=False)
    text = made.page.locator("body").inner_text()
    assert "8400 cells are too many for a page without scripts" in text
    assert upgrade(*(labelled(results, each) for each in ("trt1045", "trt1046"))).headline in text
    made.context.close()


def test_a_large_page_keeps_within_its_budget() -> None:
    """Ten thousand cells, with the steps between neighbours and the errors, in one megabyte."""
    from harness.report.page.html import render

    assert len(render(many(10_000)).encode()) <= 1_100_000


# ---- strangers' text ------------------------------------------------------------------------------------------------

HOSTILE = {
    "markup": "<img src=x onerror=alert(1)></script><script>document.title='owned'</script><!--<script>",
    "attribute": "\" onfocus=\"document.title='owned'\" autofocus x='",
    "bidi": "abc\u202etxt.exe\u2066",
    "nul": "a\x00b\x1b[31mred",
    "surrogate": "x\udcffy\ud83d",
    "long": "n" * 10_000,
    "emoji": "\U0001f468\u200d\U0001f469 \u4f60\u597d",
    "data": '{"$":0},["]]\\u003c',
    "proto": "__proto__",
    "query": 'state:fail "x" -y target:*',
}


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_text_in_every_field_is_text(browser: Browser, tmp_path: Path, kind: str) -> None:
    """Every view is opened: nothing runs, nothing is complained of, nothing overflows the page."""
    write_report(everywhere(HOSTILE[kind]), tmp_path)
    made = Opened(browser, tmp_path / "index.html", viewport={"width": 900, "height": 800})
    page = made.page
    page.on("dialog", lambda _: pytest.fail("a script ran"))
    assert page.locator("#grid tr.variant").count() == 4
    page.locator("#pick-a").select_option("rtx14")
    page.locator("#pick-b").select_option("rtx15")
    settled(page)
    page.locator("#nodes summary").click()
    page.locator("#f-text").fill(HOSTILE["query"])
    page.locator("#f-text").fill("")
    for on, beside in (("rtx15", "rtx16"), ("rtx17", "")):
        page.evaluate(f"location.hash = '#cell=conv_silu.qdq-{on}&vs={beside}'")
        page.locator("#panel-title", has_text=on).wait_for()
        assert page.locator("#panel g.node").count() == (4 if beside else 2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 900
    assert page.title() == "conv_silu.qdq-rtx17 \N{EN DASH} TensorRT compatibility matrix"
    assert page.locator("img, iframe, object, [onfocus], [onerror]").count() == 0
    assert page.locator("script").count() == 3
    assert made.complaints == []
    assert len(made.requests) == 1
    json.loads((tmp_path / "results.json").read_text())
    made.context.close()


def test_results_of_one_target_alone_make_a_page(browser: Browser, tmp_path: Path) -> None:
    """The first run of a new project has nothing to compare with."""
    matrix = replace(factory.matrix(), targets=factory.matrix().targets[-1:])
    write_report(assemble(matrix, (factory.case(),), {}), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    assert made.complaints == []
    assert made.page.locator("#step .headline").is_visible()
    made.context.close()


@pytest.mark.long
def test_paper_gets_all_rows_of_a_matrix_that_is_drawn_by_and_by(browser: Browser, large: Any) -> None:
    """Nobody can scroll a sheet."""
    _, file = large
    made = Opened(browser, file, viewport={"width": 1440, "height": 900})
    assert made.page.locator("#grid tr.variant").count() < 60
    made.page.pdf(format="A3", landscape=True)
    assert made.page.locator("#grid tr.variant").count() == 100
    made.context.close()

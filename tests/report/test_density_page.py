"""Columns by product, a narrow phone, links that lead nowhere, and the page without scripts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.report import write_report
from harness.report.page.columns import facts_of, groups, product_name
from harness.report.page.html import _anchor
from harness.report.products import gpus_said
from harness.report.results import assemble
from tests.report import factory
from tests.report.browsing import Opened, answering, open_cell, rows

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from harness.report import Results

DESK: Any = {"width": 1500, "height": 900}
ORIN: dict[str, Any] = {"jetpack": "6.0", "cuda": "12.2"}


def orin() -> Results:
    """Return the usual results, with what is known of the Jetson column."""
    plain = factory.matrix()
    targets = tuple(
        replace(each, **ORIN, needs=replace(each.needs, compute_capability="==8.7", l4t=">=36.2,<37"))
        if each.name == "l4t86"
        else each
        for each in plain
    )
    return assemble(replace(plain, targets=targets), (factory.case(),), factory.outcomes())


@pytest.mark.unit
@pytest.mark.parametrize(
    ("specifier", "jetson", "said"),
    [
        ("==8.7", True, "Jetson Orin"),
        (">=7.2,<=8.7", True, "Jetson Xavier or Jetson Orin"),
        ("==7.5", False, "Turing (T4, RTX 20, GTX 16)"),
        (
            ">=8.0,!=8.7,!=9.*,!=10.*,!=11.*",
            False,
            "Ampere (A100, A30, RTX 30, A10, A40), Ada (RTX 40, L4, L40), Blackwell (RTX 50, RTX PRO, GB10)",
        ),
        ("==8.7", False, ""),
        ("", False, ""),
    ],
)
def test_a_compute_capability_is_told_as_what_one_buys(specifier: str, jetson: bool, said: str) -> None:
    """A reader knows the board, not the number."""
    assert gpus_said(specifier, jetson=jetson) == said


@pytest.mark.unit
def test_a_column_is_called_by_its_product_and_says_what_it_needs() -> None:
    """Board and JetPack first, the id last; what no source says is left out."""
    heads = {head.target.id: head for group in groups(orin()) for head in group.columns}
    jetson = heads["l4t86"]
    assert product_name(jetson.target) == "Jetson Orin, JetPack 6.0 \N{EN DASH} TensorRT 8.6.2 (l4t86)"
    assert product_name(heads["trt86"].target) == "TensorRT 8.6.1 (trt86)"
    assert jetson.target.needs == "Jetson Orin, Jetson Linux >=36.2,<37"
    facts = dict(facts_of(jetson))
    assert facts["Runs on"] == "Jetson Orin, compute capability ==8.7"
    assert (facts["CUDA"], facts["JetPack"], facts["Last run"]) == ("12.2", "6.0", "not run here")
    assert "Released" not in facts


@pytest.mark.browser
def test_a_head_tells_what_its_column_needs(browser: Browser, tmp_path: Path) -> None:
    """One tap away; Escape puts it away, and not the open cell."""
    write_report(orin(), tmp_path)
    made = Opened(browser, tmp_path / "index.html", viewport=DESK)
    page = made.page
    open_cell(page, "qdq", "rtx17")
    page.locator('#grid .targets a[href="#target-l4t86"]').click()
    text = page.locator("#about").inner_text()
    assert "Jetson Orin, JetPack 6.0" in text
    assert "compute capability ==8.7" in text
    page.keyboard.press("Escape")
    assert page.locator("#about").is_hidden()
    assert page.locator("#panel").is_visible()
    assert made.complaints == []
    made.context.close()


@pytest.mark.browser
def test_columns_are_chosen_by_product(browser: Browser, tmp_path: Path) -> None:
    """In the two pickers and one by one; the choice stands in the address."""
    write_report(orin(), tmp_path)
    made = Opened(browser, tmp_path / "index.html", viewport=DESK)
    page = made.page
    name = "Jetson Orin, JetPack 6.0 \N{EN DASH} TensorRT 8.6.2 (l4t86) (not run)"
    assert name in page.locator("#pick-a option").all_inner_texts()
    page.locator("#columns summary").click()
    page.get_by_role("checkbox", name=name).uncheck()
    heads = page.locator("#grid .targets th:visible a")
    assert "l4t86" not in heads.all_inner_texts()
    assert heads.count() == 7
    assert page.locator("#columns summary").inner_text() == "Columns: 7 of 8"
    assert "cols=trt86" in page.evaluate("location.hash")
    page.reload()
    answering(page)
    assert heads.count() == 7
    page.locator("#f-text").fill("nothing is called so")
    page.locator("#show-all").click()
    assert heads.count() == 8
    made.context.close()


@pytest.mark.browser
def test_a_narrow_phone_scrolls_no_page_sideways(browser: Browser, folder: Path) -> None:
    """The matrix scrolls in its own box."""
    viewport: Any = {"width": 320, "height": 700}
    made = Opened(browser, folder / "index.html", viewport=viewport, has_touch=True, is_mobile=True)
    page = made.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    made.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["gone.qdq-rtx17", "conv_silu.qdq-trt999"])
def test_a_short_link_to_a_cell_that_is_gone_says_so(browser: Browser, folder: Path, name: str) -> None:
    """As the long one does."""
    made = Opened(browser, folder / "index.html", f"#{name}")
    said = made.page.locator("#stranger")
    assert said.inner_text() == f"The address names what is not in this report: cell {name}."
    made.context.close()


@pytest.mark.browser
def test_what_is_wrong_with_a_shared_filter_is_said_where_the_reader_is(
    browser: Browser, folder: Path
) -> None:
    """At the top of the page, with the nearest word alone; the rows are all there. Not while somebody types."""
    made = Opened(browser, folder / "index.html", "#q=state:fails")
    page = made.page
    assert page.locator("#stranger").inner_text() == (
        "The filter of the address is none: state:fails \N{EN DASH} did you mean fail?"
    )
    assert len(rows(page)) == 4
    page.locator("#f-text").fill("state:oks")
    assert page.locator("#stranger").is_hidden()
    assert "did you mean ok?" in page.locator("#f-problem").inner_text()
    made.context.close()


@pytest.mark.browser
def test_a_drawn_matrix_is_a_table_without_scripts(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a bound: rows, sentences and letters, and links of the lists lead to its cells."""
    monkeypatch.setattr("harness.report.page.html._STATIC_CELLS", 0)
    write_report(factory.results(), tmp_path)
    made = Opened(browser, tmp_path / "index.html", java_script_enabled=False)
    page = made.page
    assert page.locator(".bare tbody td").count() == 32
    ids = {
        _anchor(str(each))
        for each in page.locator(".bare td[id]").evaluate_all("all => all.map((one) => one.id)")
    }
    links = page.locator("a.cellref[href]").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert ids == set(links)
    assert len(ids) < 32
    assert page.locator("#grid").is_hidden()
    assert "fixed in 1.5 (measured): builds, INT8 1/1" in page.locator(".bare").inner_text()
    href = page.locator("#failures .cellref").first.get_attribute("href")
    assert href
    page.locator("#failures summary").first.click()
    page.locator("#failures .cellref").first.click()
    assert page.locator(".bare td:target").count() == 1
    made.context.close()

"""The page: safe with strangers' text, the same for the same results, and a reader's use of it in a browser."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from dataclasses import fields, replace
from email.message import Message
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.known.model import Known, Yet
from harness.report import page as page_module
from harness.report.model import NAMES, Results
from harness.report.page import LATE, addresses, render, unpacked
from harness.report.writer import results_json, write_report
from tests import needs
from tests.report import factory
from tests.report.browsing import Opened
from tests.report.crawl import Read, data_of
from tests.report.pastes import NOTHING, PASTES
from tests.report.poison import HIDDEN, HOSTILE, everywhere

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


#: The project's address is written once, in pyproject.toml; without it no page has a dead link.
HOME, ISSUES = "https://a.example/p", "https://a.example/p/issues"


def page_of(results: Results) -> str:
    text = results_json(results)
    return render(json.loads(text), {})


@pytest.mark.unit
def test_the_page_asks_nothing_of_a_network_and_runs_nothing_but_its_own() -> None:
    page = Read(page_of(factory.results()))
    (policy,) = (attrs["content"] or "" for _, attrs in page.elements if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none';")
    for kind in ("script", "style"):
        (own,) = [text for text in page.texts[kind] if len(text.split()) > 1]
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    for tag, attrs in page.elements:
        assert tag not in ("iframe", "object", "embed", "img", "base")
        assert not [name for name in attrs if name.startswith("on") or name in ("src", "style")]


#: What a cell's place in the matrix shows, or a search reads; who adds a field puts it here or into `LATE`.
EARLY = (
    *("basis", "by_gpu", "chip", "claims", "class", "diagnosis", "evidence", "flaky", "gpu", "instead"),
    *("instead_tried", "latency_ms", "lost", "not_yet", "precision", "signature", "stale", "stands"),
    *("static", "text", "toss_ups", "verdict"),
)


@pytest.mark.unit
def test_each_field_of_a_cell_is_unpacked_first_or_late() -> None:
    assert {*EARLY, *LATE} == {NAMES.get(each.name, each.name) for each in fields(Known)}


@pytest.mark.unit
@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_text_adds_no_element_and_is_still_there_to_read(kind: str) -> None:
    """All of it is in the data."""
    shape = [(tag, sorted(attrs)) for tag, attrs in Read(page_of(everywhere("plain"))).elements]
    page = page_of(everywhere(HOSTILE[kind]))
    assert [(tag, sorted(attrs)) for tag, attrs in Read(page).elements] == shape
    assert not HIDDEN.search(page)
    page.encode()
    assert json.dumps(HOSTILE[kind])[1:-1] in unpacked(page)


@pytest.mark.unit
def test_the_same_results_give_the_same_page_and_it_holds_every_cell_whole() -> None:
    """The fields that a first drawing leaves out stand apart; of a claim it has what it shows."""
    results = factory.results()
    page = page_of(results)
    assert page == page_of(results)
    first = data_of(page)
    whole = json.loads(results_json(results))
    for cell in whole["cells"]:
        # Names of files, which a copy of the page lacks, and a remark that it makes itself.
        for name in ("log", "layers"):
            cell.pop(name, None)
        for each in cell["by_gpu"]:
            each.pop("log")
        if "by_hand" in cell:
            cell["by_hand"] = [line for line in cell["by_hand"] if "not tried here" not in line]
    assert {**first, "cases": []} == {**whole, "cases": []}
    for case, every in zip(first["cases"], whole["cases"], strict=True):
        for row, each in zip(case["variants"], every["variants"], strict=True):
            assert row.keys() == each.keys()
            assert all(
                claim.items() <= other.items()
                for claim, other in zip(row["claims"], each["claims"], strict=True)
            )


@pytest.mark.unit
def test_without_scripts_the_page_leads_to_the_summary() -> None:
    (bare,) = re.findall(r"<noscript>(.*?)</noscript>", page_of(factory.results()), re.DOTALL)
    assert 'href="summary.md"' in bare


def named(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    message = Message()
    for url in urls:
        message["Project-URL"] = url
    monkeypatch.setattr(page_module, "metadata", lambda _: message)


@pytest.mark.unit
def test_the_addresses_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only https addresses count, and a package not installed has no address."""
    named(monkeypatch, f"Repository, {HOME}", f"Issues, {ISSUES}")
    assert addresses() == {"home": HOME, "issues": ISSUES}
    named(monkeypatch, "Repository, git@a.example:p", "Chat, https://a.example/chat")
    assert addresses() == {"home": "", "issues": ""}

    def missing(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(page_module, "metadata", missing)
    assert set(addresses().values()) == {""}


@pytest.mark.unit
def test_the_page_says_where_to_send_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, f"Repository, {HOME}", f"Issues, {ISSUES}")
    page = unpacked(page_of(factory.results()))
    assert f'"issues": "{ISSUES}"' in page
    assert f'"home": "{HOME}"' in page


def answered(page: Page, text: str) -> list[str | None]:
    """Put a text into the box; return the ids of the findings in it."""
    page.locator("#q").fill(text)
    page.locator("#answer:not([aria-busy])").wait_for(state="attached")
    return [found.get_attribute("data-id") for found in page.locator("#answer > .found").all()]


def shown(page: Page) -> list[str]:
    return page.locator("#grid tr.variant .title").all_inner_texts()


@pytest.mark.browser
def test_first_the_answer_then_rows_with_their_sentences(opened: Opened) -> None:
    """On a screen of 1500 by 950 the matrix begins without scrolling; MEASURED and REPORTED stand apart."""
    page = opened.page
    page.set_viewport_size({"width": 1500, "height": 950})
    assert "TensorRT for RTX" in page.locator("#measured").inner_text()
    assert "TensorRT" in page.locator("#reported").inner_text()
    assert 0 < len(page.locator(".headline").inner_text().split()) <= 20
    first = page.locator("#grid tr.variant").first
    box = first.bounding_box()
    assert box
    assert box["y"] < 950
    first.locator("td a").first.click()
    page.locator("#panel h2").wait_for()
    assert "fails to build on 1.4" in page.locator("#panel").inner_text()


@pytest.mark.browser
def test_a_case_shows_its_row_of_most_news_and_opens_the_others(opened: Opened) -> None:
    page = opened.page
    case = page.locator("#grid section.short").first
    (lead,) = case.locator("tr.variant").all()
    assert lead.is_visible()
    button = case.locator(".about button")
    assert button.inner_text() == "3 more"
    title = case.get_attribute("aria-label")
    button.click()
    section = page.locator(f'#grid section[aria-label="{title}"]')
    assert [row.is_visible() for row in section.locator("tr.variant").all()] == [True] * 4
    assert section.locator(".about button").count() == 0


@pytest.mark.browser
def test_a_step_is_listed_worst_first_and_is_in_the_address(opened: Opened) -> None:
    page = opened.page
    page.locator("#a").select_option("rtx16")
    page.locator("#b").select_option("rtx17")
    assert page.locator(".headline").inner_text().startswith("2 break, of ")
    assert "Breaks" in page.locator(".line").first.inner_text()
    assert "a=rtx16&b=rtx17" in page.url
    assert page.locator("#head .from, #head .to").count() == 2


@pytest.mark.browser
def test_words_states_and_topics_filter_rows(opened: Opened) -> None:
    page = opened.page
    every = len(shown(page))
    page.locator("#q").fill("state:lost")
    page.locator("#count", has_text="1 of 4 rows").wait_for()
    page.locator("#q").fill("nonsense-of-nobody")
    page.get_by_text("Nothing here is called so.").wait_for()
    page.get_by_role("button", name="Clear filters").click()
    assert len(shown(page)) == every
    page.locator("#q").fill("moon:full")
    page.get_by_text("“moon:” is no filter").wait_for()


@pytest.mark.browser
def test_enter_searches_and_makes_no_log_of_words(opened: Opened) -> None:
    page = opened.page
    page.locator("#q").fill("state:lost")
    page.locator("#q").press("Enter")
    page.locator("#count", has_text="1 of 4 rows").wait_for()
    assert page.locator("#q").input_value() == "state:lost"
    assert page.locator("#answer").is_hidden()


@pytest.mark.browser
def test_an_error_is_found_by_its_words_in_any_order(opened: Opened) -> None:
    """A word of the cause does too. A version is a number, not letters."""
    page = opened.page
    errors = page.locator("#card a[href^='#error=']")
    for words, title in (
        ("10.3 calibration jetpack", "The builder of 10.3 loses a region in implicit INT8"),
        ("thor fp8", "FP8 or FP4 on Jetson Thor"),
    ):
        page.locator("#q").fill(words)
        page.locator("#card p", has_text=title).locator("a[href^='#error=']").first.wait_for()
    page.locator("#q").fill("nonsense-of-nobody")
    errors.first.wait_for(state="detached")


@pytest.mark.browser
def test_a_paste_is_answered_and_other_text_is_not(opened: Opened) -> None:
    """test_same_answer.py holds the script to Python's answer on every text."""
    name, _, text = PASTES[1]
    assert answered(opened.page, text)[0] == name
    assert answered(opened.page, NOTHING[1]) in ([None], [])


@pytest.mark.browser
def test_the_page_says_of_each_step_as_the_terminal_does(opened: Opened) -> None:
    """The first headline is that of `trt-compat diff`, for any two columns; names are shorter there."""
    results, page = factory.results(), opened.page
    short = {target.id: target.short for target in results.targets}
    for before, after in itertools.permutations(short, 2):
        page.locator("#a").select_option(before)
        page.locator("#b").select_option(after)
        headline = results.step(before, after).headline
        named = re.sub(r"[\w-]+", lambda found: short.get(found[0], found[0]), headline)
        assert page.locator(".headline").inner_text() == named, (before, after)


@pytest.mark.browser
@pytest.mark.parametrize("before", ["trt86", "l4t86", "rtx14"])
def test_a_step_names_the_calls_that_go_in_it_with_what_replaces_them(opened: Opened, before: str) -> None:
    """Those of TensorRT's Python; another engine's interface is not that one, and has none to lose."""
    page, step = opened.page, factory.results().step(before, "trt102")
    page.locator("#a").select_option(before)
    page.locator("#b").select_option("trt102")
    page.eval_on_selector_all("#step-answer details", "all => all.forEach(one => (one.open = true))")
    page.locator("#step-answer .folds li.line").first.wait_for()
    every = [str(line.text_content()) for line in page.locator("#step-answer li.line").all()]
    assert sum("Reported of this version" in text for text in every) == len(step.troubles) == 3
    shown = {one.signature for one in step.troubles}
    gone = [each for each in step.removed if each.signature in shown]
    assert bool(gone) is (before != "rtx14")
    for each in gone:
        assert [text for text in every if each.name in text and f": {each.now}" in text], each
    assert any("ICudaEngine.num_bindings" in text for text in every) is (before != "rtx14")


@pytest.mark.browser
def test_what_came_with_a_later_version_is_drawn_as_not_there_yet(browser: Browser, tmp_path: Path) -> None:
    results = factory.results()
    failed = next(cell for cell in results.cells if cell.id == "conv_silu.qdq-rtx17")
    cells = tuple(
        replace(cell, not_yet=Yet("Swish", "1.8")) if cell is failed else cell for cell in results.cells
    )
    write_report(replace(results, cells=cells), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    shown = made.page.locator('#grid a[href="#conv_silu.qdq-rtx17"]')
    assert str(shown.text_content()).startswith("Y")
    assert "Swish, from 1.8 on" in str(shown.get_attribute("title"))
    made.context.close()


@pytest.mark.browser
def test_a_cell_opens_with_its_verdict_cause_and_lines_to_run_and_closes_again(opened: Opened) -> None:
    page = opened.page
    cell = page.locator('#grid a[aria-label*="rtx17: Fails"]').first
    cell.click()
    panel = page.locator("#panel")
    panel.locator("h2").wait_for()
    text = panel.inner_text()
    assert text.index("Fails: ") < text.index("Why") < text.index("Run it")
    assert "No implementation for" in text
    assert "run --target rtx17" in text
    assert "#conv_silu" in page.url
    page.keyboard.press("Escape")
    assert panel.is_hidden()


@pytest.mark.browser
def test_a_claim_of_a_version_that_no_column_has_is_among_the_evidence_of_its_row(opened: Opened) -> None:
    page = opened.page
    page.goto(f"{page.url.partition('#')[0]}#conv_silu.qdq-between-rtx17")
    evidence = page.locator("#panel details").filter(has_text="Evidence").first.text_content()
    assert "works, reported of 8.4.1" in str(evidence)


@pytest.mark.browser
def test_arrows_move_in_the_matrix_and_a_slash_goes_to_the_box(opened: Opened) -> None:
    page = opened.page
    page.locator("#grid td a[tabindex='0']").focus()
    before = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('href')") != before
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"


@pytest.mark.browser
def test_an_error_link_opens_its_entry_and_a_tab_each_has_something(opened: Opened) -> None:
    page = opened.page
    page.evaluate("location.hash = '#error=no-implementation-qdq'")
    assert "What to do." in page.locator("[id='error=no-implementation-qdq'][open]").inner_text()
    for tab in page.get_by_role("tab").all():
        assert told(tab, page).strip()


def told(tab: Any, page: Page) -> str:
    """Open a tab and return what it shows."""
    tab.click()
    return page.locator(f"#tab[aria-labelledby={tab.get_attribute('id')}]").inner_text()


@pytest.mark.browser
def test_a_phone_has_two_columns_and_scrolls_one_way(browser: Browser, folder: Path) -> None:
    made = Opened(browser, folder / "index.html", viewport={"width": 390, "height": 844})
    assert made.page.evaluate("document.documentElement.scrollWidth") == 390
    assert made.page.locator("#head .versions th").count() == 2
    height = made.page.locator("#grid tr.variant").first.bounding_box()
    assert height
    assert height["height"] >= 44
    made.context.close()


def violations(made: Opened) -> list[Any]:
    """Return axe-core's findings on a page, with examples."""
    made.page.add_script_tag(path=needs.axe())
    found = made.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found["violations"]]


@pytest.mark.browser
@pytest.mark.parametrize("colours", ["none", "active"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1500), ("dark", 390)])
def test_an_audit_finds_no_violation(
    browser: Browser, folder: Path, scheme: Any, width: int, colours: Any
) -> None:
    """axe-core, every rule, with a cell closed and open, with an answer, and on each tab."""
    needs.axe()
    viewport: Any = {"width": width, "height": 900}
    options = {"color_scheme": scheme, "forced_colors": colours, "bypass_csp": True, "viewport": viewport}
    made = Opened(browser, folder / "index.html", "?a=rtx16&b=rtx17", **options)
    answered(made.page, factory.COULD_NOT)
    assert violations(made) == []
    for tab in made.page.get_by_role("tab").all():
        assert told(tab, made.page)
        assert violations(made) == []
    made.page.locator('#grid a[aria-label*="rtx17: Fails"]').first.click()
    made.page.locator("#panel h2").wait_for()
    made.page.get_by_text("Report this cell as wrong").click()
    assert violations(made) == []
    made.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["markup", "attribute", "long"])
def test_hostile_text_is_drawn_as_text(browser: Browser, tmp_path: Path, kind: str) -> None:
    """No script of a stranger runs, no request is made, and the page answers."""
    write_report(everywhere(HOSTILE[kind]), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    made.page.locator("#grid td a").first.click()
    assert made.page.locator("#panel").is_visible()
    assert made.complaints == []
    assert made.page.locator("img").count() == 0
    made.context.close()


@pytest.mark.unit
def test_operators_that_were_measured_to_be_wrong_are_told_with_how_many_of_their_tests() -> None:
    first, last = map(page_module.badly_ended, (0, 1))
    assert first["ScatterND"] == ["wrong numbers 6 of 7"]
    assert first["GridSample"] == ["ends the process 2 of 8"]
    assert "ScatterND" not in last

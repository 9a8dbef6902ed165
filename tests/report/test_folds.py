"""Which rows are one: sweeps, and variants of one kind that end alike; and the page that folds and unfolds them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from harness.case import Class, Engine, Expectation, Role, model_sha256
from harness.report import write_report
from harness.report.page.folds import Fold, folds
from harness.report.results import assemble
from tests.report import factory
from tests.report.browsing import Opened, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from harness.report import Results
    from harness.report.model import VariantView

VIEW = factory.results().cases[0].variants[0]


def view(name: str, *tags: str, role: Role = Role.TWIN, case: str = "c") -> VariantView:
    return replace(VIEW, case=case, name=name, tags=tags, role=role)


def found(variants: Sequence[VariantView], *ends: str) -> list[tuple[int, ...]]:
    given = ends or ["ok"] * len(variants)
    return [fold.rows for fold in folds(variants, [(end,) for end in given])]


@pytest.mark.unit
def test_a_sweep_is_one_whatever_its_rows_end_as() -> None:
    """Its rows are steps of one question; two questions are two folds."""
    channels = [view(f"qdq-c{n}", "sweep:channels", "qdq") for n in (1, 3, 4)]
    groups = [view(f"qdq-group{n}", "sweep:group") for n in (2, 3, 4)]
    made = folds([view("qdq"), *channels, *groups], [(str(n),) for n in range(7)])
    assert made == [
        Fold((1, 2, 3), "qdq-c…", "sweep of channels"),
        Fold((4, 5, 6), "qdq-group…", "sweep of group"),
    ]


@pytest.mark.unit
def test_variants_of_one_kind_that_end_alike_are_one() -> None:
    """Wherever they stand in their case; the name says which they are."""
    every = [view("qdq"), view("fp16"), view("qdq-relu"), view("qdq-two")]
    assert folds(every, [("ok", "built")] * 4) == [
        Fold((0, 2, 3), "qdq, qdq-relu, qdq-two", "alike on every target")
    ]


@pytest.mark.unit
def test_what_differs_in_end_role_case_or_kind_stays_apart() -> None:
    """A workaround that ends as its control does is still what somebody looks for."""
    three = [view("qdq"), view("qdq-relu"), view("qdq-two")]
    assert found(three) == [(0, 1, 2)]
    assert found(three, "ok", "ok", "build_failed") == []
    assert found([*three[:2], view("qdq-two", role=Role.WORKAROUND)]) == []
    assert found([*three[:2], view("qdq-two", case="other")]) == []
    assert found([*three[:2], view("qdqx")]) == []
    assert found(three[:2]) == []


def swept(many: int = 4) -> Results:
    """Return the usual matrix with a sweep after its first variant, of which one row ends in another way."""
    plain = factory.case()
    made = tuple(
        replace(
            plain.variants[0],
            name=f"qdq-c{number}",
            build=partial(factory.model, 10.0 + number),
            tags=("sweep:channels",),
            expectations=(),
        )
        for number in range(many)
    )
    case = replace(plain, variants=(plain.variants[0], *made, *plain.variants[1:]))
    outcomes = dict(factory.outcomes())
    for each in made:
        for on in ("rtx15", "rtx16"):
            bad = each.name == "qdq-c2" and on == "rtx16"
            like = (factory.build_failure if bad else factory.outcome)("qdq", on)
            outcome = replace(
                like,
                variant=each.name,
                cell=f"conv_silu.{each.name}-{on}",
                stamps=replace(like.stamps, model_sha256=model_sha256(each.model_bytes())),
            )
            outcomes[outcome.cell] = outcome
    return assemble(factory.matrix(), (case,), outcomes)


@pytest.fixture
def folded(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    write_report(swept(), tmp_path)
    made = Opened(browser, tmp_path / "index.html", viewport={"width": 1500, "height": 900})
    yield made
    assert made.complaints == []
    made.context.close()


PLAIN = ["qdq", "qdq-between", "int8-entropy", "fp32"]
SWEEP = [f"qdq-c{number}" for number in range(4)]


def shown(page: Page, on: str) -> str:
    at = [target.id for target in swept().targets].index(on)
    return str(page.locator("#grid tr.fold td").nth(at).get_attribute("title"))


@pytest.mark.browser
def test_a_sweep_is_one_row_that_says_what_its_rows_share(folded: Opened) -> None:
    """The worst of each column, and of how many; a click unfolds it, another folds it again."""
    page = folded.page
    assert rows(page) == PLAIN
    assert page.locator("#grid tr.fold .head").inner_text().split("\n")[0].startswith("qdq-c…")
    assert shown(page, "rtx15") == "As expected: built. INT8 1/1"
    assert shown(page, "rtx16").startswith("1 of 4: New failure: build failed")
    assert page.locator("#grid tr.fold .many").all_inner_texts() == ["1/4"]
    assert page.locator("#grid tr.fold .alike").inner_text() == "the worst shown"
    page.locator("#f-text").fill("target:rtx15")
    assert page.locator("#grid tr.fold .alike").inner_text() == "all alike here"
    page.locator("#f-text").fill("")
    page.locator("#grid .unfold").click()
    assert page.locator("#grid .unfold").get_attribute("aria-expanded") == "true"
    assert rows(page) == ["qdq", *SWEEP, *PLAIN[1:]]
    page.locator("#grid .unfold").click()
    assert rows(page) == PLAIN


@pytest.mark.browser
def test_what_asks_for_single_rows_unfolds_them(folded: Opened) -> None:
    """A filter that only some fit, a link to one, the switch, and paper."""
    page = folded.page
    page.locator("#f-text").fill("state:fail target:rtx16 tag:sweep:*")
    assert rows(page) == ["qdq-c2"]
    assert page.locator("#grid tr.fold").count() == 0
    page.locator("#f-text").fill("tag:sweep:*")
    assert rows(page) == []
    assert page.locator("#f-count").inner_text() == "4 of 8 rows"
    for named in ("qdq-c", "variant:qdq-c*"):
        page.locator("#f-text").fill(named)
        assert rows(page) == SWEEP, named
    page.locator("#f-text").fill("-entropy")
    assert page.locator("#grid tr.fold").count() == 1
    page.locator("#f-text").fill("")
    page.locator("#f-unfold").check()
    assert rows(page) == ["qdq", *SWEEP, *PLAIN[1:]]
    assert "only=u" in page.evaluate("location.hash")
    page.locator("#f-unfold").uncheck()
    page.evaluate(
        "addEventListener('beforeprint', () => { document.title = "
        "document.querySelectorAll('tr.variant:not([hidden])').length; })"
    )
    page.pdf()
    assert page.title() == "8"
    assert rows(page) == PLAIN
    page.evaluate("location.hash = '#conv_silu.qdq-c2-rtx16'")
    page.locator("#panel-title", has_text="qdq-c2").wait_for()
    assert rows(page) == ["qdq", *SWEEP, *PLAIN[1:]]
    assert page.locator("#grid a.open").is_visible()


@pytest.mark.browser
def test_a_row_is_one_line_that_tells_the_rest_on_demand(folded: Opened) -> None:
    """A click on its head or Space on a cell unfolds its sentences, "Details" those of all."""
    page = folded.page
    row = page.locator("#grid tr.variant:visible").first
    assert not row.locator(".claim").is_visible()
    row.locator("th").click()
    assert row.locator(".claim").is_visible()
    assert row.locator(".tell").get_attribute("aria-expanded") == "true"
    row.locator("td a").first.focus()
    page.keyboard.press("Space")
    assert not row.locator(".claim").is_visible()
    page.get_by_label("Details of all rows").check()
    assert page.locator("#grid .claim:visible").count() == 5
    assert "only=s" in page.evaluate("location.hash")


# ---- what differs in the columns that are shown ----------------------------------------------------------------------

DIFFERS = {
    "": ["qdq", "qdq-between", "int8-entropy", "fp32"],
    "target:rtx15,rtx16": ["qdq", "fp32"],
    "target:rtx15,rtx17": ["qdq", "qdq-between"],
    "target:rtx15": [],
    # Of one engine each: what builds on one and works on the other does not differ.
    "target:rtx15,ort131": [],
    "target:rtx17,ort131": ["qdq"],
    # What is reported counts.
    "target:trt86,trt102": ["int8-entropy"],
    "target:trt86,l4t86": [],
    "target:trt102,l4t86": ["int8-entropy"],
}


def reported() -> Results:
    """Return the usual results, with reports that a variant fails on TensorRT 8.6 and works since 10."""
    plain = factory.case()
    says = partial(Expectation.reported, link=factory.ISSUE)
    claims = (
        says(Class.BUILD_FAILED, "<10", engine=Engine.TENSORRT),
        says(Class.OK, ">=10", engine=Engine.TENSORRT, level="precision"),
    )
    variants = tuple(
        replace(each, expectations=claims) if each.name == "int8-entropy" else each for each in plain.variants
    )
    return assemble(factory.matrix(), (replace(plain, variants=variants),), factory.outcomes())


@pytest.mark.browser
def test_differs_asks_of_the_columns_that_are_shown(browser: Browser, tmp_path: Path) -> None:
    """A row that is the same in both columns in sight is noise, whatever it is elsewhere."""
    write_report(reported(), tmp_path)
    made = Opened(browser, tmp_path / "index.html", "#only=d")
    found = {}
    for query in DIFFERS:
        made.page.locator("#f-text").fill(query)
        found[query] = rows(made.page)
    assert found == DIFFERS
    made.context.close()


@pytest.mark.browser
def test_a_sequence_says_what_it_leaves_out(browser: Browser, tmp_path: Path) -> None:
    """It sees measured cells alone; none of TensorRT was, and an empty answer would be taken for "never"."""
    write_report(reported(), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    made.page.locator("#f-text").fill("seq:fail,ok target:trt*")
    assert rows(made.page) == []
    said = made.page.locator("#f-count").inner_text()
    assert said.startswith("0 of 4 rows; 1 more by what is reported")
    made.page.locator("#f-text").fill("-seq:fail,ok target:trt*")
    assert made.page.locator("#f-count").inner_text() == "4 rows"
    made.context.close()

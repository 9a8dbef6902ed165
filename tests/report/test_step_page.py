"""The first screen, the address and the query in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.record.outcome import Accuracy, Latency
from harness.report import write_report
from harness.report.compare.pairs import Column
from harness.report.compare.upgrade import upgrade
from harness.report.loading import load_results
from harness.report.model import Results
from harness.report.page.html import _STEP_ROWS, _shared, _together, render
from harness.report.results import assemble
from harness.text import clip
from harness.words import Class
from tests.report import factory
from tests.report.browsing import Opened, cell, panel, rows, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from harness.record.outcome import Outcome
    from harness.report.compare.rows import Row

pytestmark = pytest.mark.browser

STEP = """() => ({
  headline: document.querySelector('#step .headline').textContent,
  basis: document.querySelector('#step .basis')?.textContent ?? '',
  quiet: document.querySelector('#step > .quiet').textContent,
  counts: Object.fromEntries([...document.querySelectorAll('.tiles li')].map((tile) =>
    [tile.className.split(' ')[0].slice(2), tile.querySelector('.n').textContent])),
  rows: [...document.querySelectorAll('#step .kind tbody tr')].map((row) => ({
    kind: row.closest('.kind').id.slice(2), variant: row.querySelector('th > a').textContent,
    also: [...row.querySelectorAll('th p')].map((one) => one.textContent),
    ...Object.fromEntries([...row.querySelectorAll('td')].map((cell) => [cell.dataset.head, cell.textContent])) })),
})"""


def labelled(results: Results, name: str) -> Column:
    """Return a column as the page calls it: by its label, for an id is for commands."""
    return Column(results, name, next(each.label for each in results.targets if each.id == name))


def shown(
    results: Results, before: str, after: str, column: Callable[[Results, str], Column] = labelled
) -> dict[str, Any]:
    """Return what the page should say of a step, from the Python function alone."""
    step = upgrade(column(results, before), column(results, after))
    data = step.to_json()
    heads = {"What changes": "text", "Cause": "cause", "Meanwhile": "instead", "How sure": "sure"}

    def told(kind: str) -> Iterator[dict[str, Any]]:
        of_kind = [_plain(group) for group in _together([row for row in step.rows if row.kind == kind])]
        # What is shown and what is behind "more" are tables of their own, without the columns that say nothing there.
        for table in (of_kind[:_STEP_ROWS], of_kind[_STEP_ROWS:]):
            used = {head: name for head, name in heads.items() if any(row[name] for row in table)}
            for row in table:
                variant = {"kind": kind, "variant": row["names"][0], "also": row["names"][1:]}
                seen = f"Seen by: {clip(row['seen'], 600)}" if row["seen"] else ""
                texts = {head: clip(row[name], 600) for head, name in used.items()}
                yield variant | {**texts, "How sure": texts["How sure"] + seen}

    return {
        "headline": step.headline,
        "basis": step.basis,
        "quiet": step.quiet,
        "counts": {str(tile.kind): tile.number for tile in step.tiles()},
        "rows": [row for kind in dict.fromkeys(row["kind"] for row in data["rows"]) for row in told(kind)],
    }


def _plain(group: list[Row]) -> dict[str, Any]:
    fields = {field: _shared(group, field) for field in ("text", "cause", "instead", "sure", "seen")}
    return {**fields, "names": [clip(f"{row.case}.{row.variant}", 160) for row in group]}


def with_timings() -> Results:
    """Return results of two clocks and two machines, of quiet, wide and noisy samples, one of them of a flaky cell."""
    made = dict(factory.outcomes())
    quiet = [1 + 0.0017 * (index % 7) for index in range(40)]
    wide = [1 + 0.0107 * (index * 13 % 29 - 14) for index in range(100)]
    runs: dict[str, tuple[list[float], str, Any]] = {
        "rtx14": (quiet, "x", "monotonic"),
        "rtx15": ([1.5 * sample for sample in wide], "x", "monotonic"),
        "rtx16": (quiet, "y", "monotonic"),
        "rtx17": ([1.0, 1.2, 1.3, 1.6, 1.7], "x", "monotonic"),
        "trt86": ([10.25] * 40, "x", "cuda_events"),
        "trt102": ([9.74] * 40, "x", "cuda_events"),
        "ort131": ([2.0 * sample for sample in quiet], "x", "monotonic"),
    }
    for on, (samples, cpu, clock) in runs.items():
        entry = factory.ran("qdq-between", on, latency=Latency(tuple(samples), 5, clock))
        made[entry.cell] = replace(entry, stamps=replace(entry.stamps, environment={"cpu": cpu}))
    results = assemble(factory.matrix(), (factory.case(),), made)
    swaying = {"conv_silu.qdq-between-rtx15", "conv_silu.qdq-rtx17", "conv_silu.qdq-rtx16"}
    flaky = (Class.BUILT, Class.BUILD_FAILED)
    cells = [replace(cell, flaky=flaky) if cell.id in swaying else cell for cell in results.cells]
    return replace(results, cells=tuple(cells))


def with_claims() -> Results:
    """Return results of one run, with wrong numbers in a precision that is not told; of the rest there are claims."""
    wrong = factory.ran("qdq", "ort131", layers=(), accuracy=(Accuracy("y", 9.0, 9.0, 0.1),))
    return assemble(factory.matrix(), (factory.case(),), {wrong.cell: wrong})


def with_unasked() -> Results:
    """Return results in which nodes that nobody wished for leave or take a narrow type, also beside a wanted one."""

    def made(variant: str, on: str, convolution: str, activation: str) -> Outcome:
        act = replace(factory.activation_layer(), precision=activation)
        return factory.outcome(variant, on, layers=(factory.conv_layer(convolution, fused=False), act))

    outcomes = (
        made("int8-entropy", "rtx14", "int8", "int8"),
        made("int8-entropy", "rtx15", "fp32", "fp16"),
        made("int8-entropy", "rtx16", "int4_weights", "uint8"),
        made("int8-entropy", "rtx17", "fp8", "unknown"),
        made("qdq-between", "rtx14", "int8", "int8"),
        made("qdq-between", "rtx15", "int8_weights", "fp32"),
        made("qdq-between", "rtx16", "int8", "fp32"),
        factory.ran("qdq-between", "ort131"),
    )
    return assemble(factory.matrix(), (factory.case(),), {outcome.cell: outcome for outcome in outcomes})


def published() -> Results:
    """Return the results that this repository publishes."""
    return load_results(Path(__file__).parents[2] / "reports" / "published")


def oddly_named() -> Results:
    """Return results whose targets are called what means something in JavaScript's patterns."""
    found = factory.results()
    named = tuple(replace(each, label=f"{each.label} $& $$ $1 $`") for each in found.targets)
    return replace(found, targets=named)


SOURCES: dict[str, tuple[Callable[[], Results], set[str]]] = {
    "plain": (factory.results, {"broken", "fixed", "newly_unknown", "precision_gained", "builds_without"}),
    "oddly named": (oddly_named, {"broken", "fixed", "newly_unknown"}),
    "timed": (with_timings, {"broken", "fixed", "newly_unknown", "slower", "faster"}),
    "claimed": (with_claims, {"broken", "fixed", "newly_unknown"}),
    "unasked": (with_unasked, {"wider", "narrower", "precision_lost", "precision_gained"}),
    "published": (published, {"broken", "fixed", "otherwise"}),
}


@pytest.mark.parametrize(
    "which",
    [pytest.param(each, marks=[pytest.mark.long] if each == "published" else []) for each in SOURCES],
)
def test_the_page_shows_what_was_judged(browser: Browser, tmp_path: Path, which: str) -> None:
    """Headline, numbers, rows and the sentences between them, for a dozen steps of each report."""
    make, expected = SOURCES[which]
    results = make()
    (tmp_path / "index.html").write_text(render(results), encoding="utf-8")
    made = Opened(browser, tmp_path / "index.html")
    ids = [target.id for target in results.targets]
    every = [(before, after) for before in ids for after in ids]
    wanted = {pair: shown(results, *pair) for pair in every[:: max(1, len(every) // 64)]}
    # One step for each kind of row, and others.
    of_kind = {row["kind"]: pair for pair, step in wanted.items() for row in step["rows"]}
    seen: set[str] = set()
    for before, after in dict.fromkeys([*of_kind.values(), *list(wanted)[:: max(1, len(wanted) // 6)]]):
        made.page.evaluate(f"location.hash = '#a={before}&b={after}'")
        said = f"From {labelled(results, before).name} to {labelled(results, after).name}"
        made.page.locator("#pair-said", has_text=said).wait_for(state="attached")
        settled(made.page)
        assert made.page.evaluate(STEP) == wanted[before, after], f"{before} to {after}"
        seen |= {row["kind"] for row in wanted[before, after]["rows"]}
    assert expected <= seen
    assert made.complaints == []
    made.context.close()


def test_a_page_without_all_steps_offers_those_that_it_has(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of one that an address asks for it says how to have it, not that nothing changes."""
    monkeypatch.setattr("harness.report.page.steps._MOST_COMPARED", 15)
    found = with_timings()
    targets = (replace(one, stamps=None if one.engine == "tensorrt" else one.stamps) for one in found.targets)
    (tmp_path / "index.html").write_text(render(replace(found, targets=tuple(targets))), encoding="utf-8")
    made = Opened(browser, tmp_path / "index.html", "#a=rtx16&b=rtx17&metric=against")
    page = made.page
    settled(page)
    assert page.locator("#upgrade > .quiet").inner_text() == (
        "The page has the steps between rtx16 and rtx17; trt-compat diff A B answers the others."
    )
    offered = page.locator("#pick-b option").evaluate_all("found => found.map((one) => one.value)")
    assert offered == ["rtx16", "rtx17"]
    assert "n/c" in cell(page, "qdq-between", "rtx17").inner_text()
    assert cell(page, "qdq-between", "rtx14").inner_text().endswith("\N{EN DASH}")
    page.evaluate("location.hash = '#a=rtx14&b=rtx17'")
    page.locator("#step code", has_text="trt-compat diff rtx14 rtx17").wait_for()
    assert page.locator("#step .tiles").count() == 0
    assert page.locator("#pick-b").input_value() == "rtx17"
    page.locator("#pick-a").select_option("rtx16")
    settled(page)
    assert page.evaluate(STEP)["headline"] == shown(with_timings(), "rtx16", "rtx17")["headline"]
    page.locator("#pick-a").select_option("trt86")
    settled(page)
    assert page.locator("#pick-b").input_value() == "trt86"
    assert made.complaints == []
    made.context.close()


@pytest.mark.parametrize("drawn", [False, True])
def test_a_noisy_time_is_shown_as_about(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, drawn: bool
) -> None:
    """Whether the table is static or drawn by the script; a quiet one is shown as it is."""
    if drawn:
        monkeypatch.setattr("harness.report.page.html._STATIC_CELLS", 0)
    write_report(with_timings(), tmp_path)
    made = Opened(browser, tmp_path / "index.html", "#only=s")
    noisy, quiet = (cell(made.page, "qdq-between", on) for on in ("rtx17", "rtx14"))
    assert "≈1.3 ms" in noisy.inner_text()
    assert "median 1.3 ms, too noisy" in noisy.get_attribute("aria-label")
    assert "median 1.3 ms, too noisy" in noisy.locator("xpath=..").get_attribute("title")
    assert "≈" not in quiet.inner_text()
    assert "too noisy" not in quiet.get_attribute("aria-label")
    assert made.complaints == []
    made.context.close()


def test_a_step_of_tensorrt_is_one_click_away(browser: Browser, folder: Path) -> None:
    made = Opened(browser, folder / "index.html")
    made.page.locator("#starts a", has_text="8.6 → 10.2").click()
    settled(made.page)
    assert made.page.url.endswith("#a=trt86&b=trt102")
    said = made.page.locator("#step .headline").inner_text()
    assert said.startswith("Nobody has run TensorRT 8.6.1 or TensorRT 10.2.0.19")
    # What is noted of a version is one tap away from the picker.
    made.page.locator("#on-b a").click()
    made.page.wait_for_function(
        "() => Math.abs(document.getElementById('target-trt102').getBoundingClientRect().top) < innerHeight"
    )
    assert made.complaints == []
    made.context.close()


def test_the_later_versions_of_a_series_stand_side_by_side(opened: Opened) -> None:
    """Each with its counts, and as a link to its step; and a cause leads to what is known of it."""
    page = opened.page
    page.locator("#pick-a").select_option("rtx14")
    settled(page)
    page.locator("#choices > summary").click()
    assert page.locator("#choices th[scope=row]").all_inner_texts() == [
        f"TensorRT for RTX {version}" for version in ("1.5.0.114", "1.6.1.120", "1.7.1.116")
    ]
    page.locator("#choices a", has_text="1.5").click()
    settled(page)
    assert page.evaluate("location.hash") == "#a=rtx14&b=rtx15"
    page.locator("#u-fixed td a", has_text="No implementation").click()
    page.wait_for_url("**#error=no-implementation-qdq")
    assert page.locator('[id="error=no-implementation-qdq"]').evaluate("(one) => one.open")


def test_page_without_scripts_says_the_same_of_the_default_pair(browser: Browser, folder: Path) -> None:
    """The static page is made by the function, the live one by the script."""
    static = Opened(browser, folder / "index.html", java_script_enabled=False)
    text = static.page.locator("#step").inner_text()
    static.context.close()
    live = Opened(browser, folder / "index.html")
    settled(live.page)
    assert live.page.locator("#step").inner_text().partition("\nNode by node")[0].strip() == text.strip()
    live.context.close()


def test_swap_turns_the_question_round(opened: Opened) -> None:
    """Downgrades are upgrades too."""
    opened.page.get_by_role("button", name="Swap").click()
    settled(opened.page)
    assert opened.page.evaluate(STEP)["headline"] == shown(factory.results(), "rtx17", "rtx16")["headline"]
    assert opened.page.evaluate("location.hash") == "#a=rtx17&b=rtx16"


def test_unrun_targets_can_be_picked_and_are_marked(opened: Opened) -> None:
    """Nobody has a Jetson at hand, but what is claimed of it is known."""
    page = opened.page
    assert "(not run)" in page.locator('#pick-a option[value="l4t86"]').inner_text()
    page.locator("#pick-a").select_option("trt86")
    page.locator("#pick-b").select_option("trt102")
    settled(page)
    basis = page.locator("#step .basis").inner_text()
    assert basis == "Not run for this report: TensorRT 8.6.1 and TensorRT 10.2.0.19."
    assert "reported: fails to build → not run" in page.locator("#u-newly_unknown").inner_text()
    assert (
        "Seen by: reported by users in TensorRT issue 3640" in page.locator("#u-newly_unknown").inner_text()
    )


def test_node_by_node_table_shows_both_sides(opened: Opened) -> None:
    """Which convolution runs in INT8 on which."""
    page = opened.page
    page.locator("#pick-a").select_option("rtx14")
    page.locator("#pick-b").select_option("rtx15")
    settled(page)
    page.locator("#nodes summary").click()
    lines = page.locator("#nodes tbody tr").all_inner_texts()
    assert [line.split("\t") for line in lines] == [
        ["conv_silu.qdq", f"{factory.CONV} (Conv)", "int8", "fails to build", "int8"],
        ["conv_silu.qdq-between", f"{factory.CONV} (Conv)", "int8", "fp32", "int8"],
    ]


def test_a_row_of_the_step_opens_its_cell_beside_the_other_target(opened: Opened) -> None:
    """From the news to the evidence of both sides in one click."""
    opened.page.locator("#u-broken a").first.click()
    opened.page.locator("#panel").wait_for(state="visible")
    assert "conv_silu.qdq-rtx17" in panel(opened.page)
    assert opened.page.locator("#p-vs").input_value() == "rtx16"
    assert opened.page.evaluate("location.hash").endswith("&vs=rtx16")


# ---- the address ----------------------------------------------------------------------------------------------------

ADDRESS = "#a=rtx14&b=rtx15&q=state%3Afail%20qdq&cell=conv_silu.qdq-rtx14&vs=rtx15"


def test_address_restores_pickers_filter_and_cell(browser: Browser, folder: Path) -> None:
    """What one saw is what one sends."""
    made = Opened(browser, folder / "index.html", ADDRESS)
    made.page.locator("#panel").wait_for(state="visible")
    assert made.page.locator("#pick-a").input_value() == "rtx14"
    assert made.page.locator("#f-text").input_value() == "state:fail qdq"
    assert "conv_silu.qdq-rtx14" in panel(made.page)
    assert made.page.locator("#panel figure").count() == 2
    assert rows(made.page) == ["qdq", "qdq-between"]
    assert made.page.evaluate("location.hash") == ADDRESS
    made.context.close()


def test_what_is_done_on_the_page_stands_in_the_address(opened: Opened) -> None:
    """Every filter and the open cell; closing takes the cell out again."""
    page = opened.page
    page.locator("#f-text").fill("tag:* -crash")
    page.get_by_label("differs between versions").check()
    page.locator(".chips label", has_text="Jetson").click()
    page.locator("#f-text").fill("")
    page.locator("#f-state").select_option("b-regressed")
    page.locator("#grid td.b-regressed a").click()
    page.locator("#panel").wait_for(state="visible")
    address = page.evaluate("location.hash")
    assert address == ("#a=rtx16&b=rtx17&state=b-regressed&hide=Jetson&only=d&cell=conv_silu.qdq-rtx17")
    page.reload()
    page.locator("#panel").wait_for(state="visible")
    assert rows(page) == ["qdq"]
    page.keyboard.press("Escape")
    assert "cell=" not in page.evaluate("location.hash")
    assert not page.locator(".chips").get_by_label("Jetson").is_checked()
    opened.requests[:] = opened.requests[:1]


def test_back_returns_to_the_cell_before(opened: Opened) -> None:
    """Cells are pages to the reader."""
    page = opened.page
    for on in ("rtx14", "rtx15"):
        page.evaluate(f"document.querySelector('#grid a[href*=\".qdq-{on}\"]').click()")
        page.locator("#panel-title", has_text=on).wait_for()
    page.go_back()
    page.locator("#panel-title", has_text="rtx14").wait_for()
    page.go_back()
    page.locator("#panel").wait_for(state="hidden")


@pytest.mark.parametrize(
    "address", ["#a=nobody&b=%zz&q=%", "#cell=x&vs=y", "#%E0%A4%A", "#a=&b=&=&q==", "#nothing"]
)
def test_an_address_that_makes_no_sense_breaks_nothing(browser: Browser, folder: Path, address: str) -> None:
    """Mail programs cut links short."""
    made = Opened(browser, folder / "index.html", address)
    assert made.page.locator("#step .headline").is_visible()
    assert made.complaints == []
    made.context.close()


# ---- the query ------------------------------------------------------------------------------------------------------

QUERIES = {
    "state:crashed": ["qdq-between"],
    "state:fail rtx:1.7": ["qdq", "qdq-between", "int8-entropy"],
    "state:fail state:measured target:rtx14": ["qdq", "qdq-between"],
    "state:fail trt:8.6": ["qdq", "int8-entropy"],
    "state:fail trt:8.6 state:measured": [],
    "state:claimed trt:8.6": ["qdq", "int8-entropy"],
    "target:rtx15 -state:unknown": ["qdq", "qdq-between", "fp32"],
    "seq:fail,ok": ["qdq", "qdq-between"],
    "seq:ok,fail,ok": [],
    "-seq:fail,ok": ["int8-entropy", "fp32"],
    "seq:ok,ok,fail": ["qdq", "qdq-between"],
    "precision:int8 target:rtx14": [],
    "precision:fp32 target:rtx14": ["qdq-between"],
    "role:workaround": ["qdq-between"],
    "role:workaround,control": ["qdq-between", "fp32"],
    "variant:qdq*": ["qdq", "qdq-between"],
    "-variant:qdq*": ["int8-entropy", "fp32"],
    "op:conv": ["qdq", "qdq-between"],
    "case:conv_silu calibrated": ["int8-entropy"],
    '"as in the report"': ["int8-entropy"],
    "-quantisation": ["qdq", "qdq-between", "int8-entropy"],
    'case:"conv_silu" -"around the convolution" -role:control': ["qdq-between", "int8-entropy"],
    "case:mish": [],
    "tag:calibrated": ["int8-entropy"],
    "state:unexpected": ["qdq", "qdq-between", "int8-entropy", "fp32"],
    "state:unexpected target:rtx17": ["qdq", "qdq-between", "int8-entropy"],
    'gpu:"no gpu" state:fail': ["qdq", "qdq-between", "int8-entropy", "fp32"],
    'gpu:"not run" state:fail': ["qdq", "int8-entropy"],
    "state:regressed,crashed": ["qdq", "qdq-between"],
    "variant:FP32,int8*": ["int8-entropy", "fp32"],
    "variant:qd.": [],
    "variant:qdq|fp32": [],
    "seq:fail,ok target:rtx15,rtx16,rtx17": [],
    "seq:fail,ok target:rtx14,rtx16": ["qdq", "qdq-between"],
}


def test_query_keeps_the_rows_it_describes(opened: Opened) -> None:
    """Each filter, alone and with others, negated and not."""
    found = {}
    for query in QUERIES:
        opened.page.locator("#f-text").fill(query)
        found[query] = rows(opened.page)
        assert opened.page.locator("#f-problem").is_hidden(), query
    assert found == QUERIES


def test_a_bad_query_is_told_what_is_wrong_and_changes_nothing(opened: Opened) -> None:
    """The last good answer stays while one types."""
    page = opened.page
    page.locator("#f-text").fill("role:workaround")
    for query, said in {
        "stat:fail": "stat:",
        "state:fale": "fail?",
        'case:"mish': "closed",
        "trt:9.9": "target",
    }.items():
        page.locator("#f-text").fill(query)
        assert said in page.locator("#f-problem").inner_text()
        assert page.locator("#f-text").get_attribute("aria-invalid") == "true"
        assert rows(page) == ["qdq-between"]
    page.locator("#f-text").fill("")
    assert page.locator("#f-problem").is_hidden()


def heads(page: Page) -> list[str]:
    return page.locator("#grid .targets th:visible a").all_inner_texts()


def test_columns_that_are_asked_for_are_those_shown_and_hits_are_marked(opened: Opened) -> None:
    """The reader sees which cells answered."""
    page = opened.page
    page.locator("#f-text").fill("target:rtx* state:fail")
    assert heads(page) == ["rtx14", "rtx15", "rtx16", "rtx17"]
    hit = page.locator("#grid tr:visible td.hit a").evaluate_all(
        "cells => cells.map((a) => decodeURIComponent(a.hash.slice(1)))"
    )
    assert hit[:2] == ["conv_silu.qdq-rtx14", "conv_silu.qdq-rtx17"]
    page.get_by_role("button", name="Only the two above").click()
    assert heads(page) == ["rtx16", "rtx17"]


def test_slash_and_question_mark_lead_to_filter_and_help(opened: Opened) -> None:
    """The help describes every filter there is."""
    page = opened.page
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "f-text"
    page.locator("#f-text").blur()
    page.keyboard.press("?")
    text = page.locator("#help").inner_text()
    for word in (
        "state:",
        "target:",
        "trt:",
        "rtx:",
        "ort:",
        "version:",
        "precision:",
        "seq:",
        "case:",
        "variant:",
        "tag:",
        "role:",
        "op:",
    ):
        assert word in text
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()


def test_a_cell_shows_the_figure_that_was_chosen(browser: Browser, tmp_path: Path) -> None:
    """Precision, latency, both, or the latency against the first target where the two may be compared."""
    write_report(with_timings(), tmp_path)
    made = Opened(browser, tmp_path / "index.html", "#a=rtx14&b=rtx15&metric=against")
    page = made.page

    def under(on: str) -> str:
        return str(cell(page, "qdq-between", on).inner_text()).replace("\n", " ").strip()

    last = [under(on).split(" ", 2)[2] for on in ("rtx14", "rtx15", "rtx16", "rtx17")]
    # The last two are of another machine, and noisy.
    assert last == ["1.01 ms", "+49 %", "n/c", "n/c"]
    assert (cell(page, "qdq-between", "rtx15").get_attribute("aria-label") or "").endswith("+49 %")
    page.locator("#pick-a").select_option("rtx15")
    settled(page)
    assert under("rtx14").endswith("\N{MINUS SIGN}33 %")
    page.locator("#f-metric").select_option("precision")
    assert "metric=precision" in page.evaluate("location.hash")
    assert under("rtx15").endswith("INT8 0/1")
    page.locator("#f-metric").select_option("latency")
    assert under("rtx15").endswith("1.5 ms")
    page.locator("#f-metric").select_option("")
    assert under("rtx15") == "↓ +"
    page.locator("#f-details").check()
    assert under("rtx15").endswith("INT8 0/1 1.5 ms")
    assert made.complaints == []
    made.context.close()

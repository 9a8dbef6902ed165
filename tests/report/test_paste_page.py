"""The paste box and the catalogue of errors, in a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.judge.diagnosis import diagnose, load_signatures
from harness.report import write_report
from tests import needs
from tests.judge.said import BUILD_FAILED
from tests.report import factory
from tests.report.browsing import Opened, rows, settled
from tests.report.errors_js import as_log, measured
from tests.report.pastes import NOTHING, PASTES
from tests.report.poison import everywhere
from tests.report.test_density_page import orin
from tests.report.test_wide_page import violations

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def paste(page: Page, text: str) -> Any:
    """Paste a text; returns what was found in it, once all of it was read."""
    put = "(one, text) => { one.value = text; one.dispatchEvent(new Event('input')); }"
    page.locator("#paste-text").evaluate(put, text)
    page.locator("#paste-said:not([aria-busy])").wait_for(state="attached")
    return page.locator("#paste-said > .found")


def ids(page: Page, text: str) -> list[str | None]:
    return [found.get_attribute("data-id") for found in paste(page, text).all()]


def kinds() -> dict[str, int]:
    return {each.id: 2 if each.innocent else int(each.note) for each in load_signatures()}


def test_what_people_paste_is_recognised(opened: Opened) -> None:
    """Each excerpt with what stands before its lines in the thread; causes come before warnings."""
    assert len(PASTES) >= 40
    order = kinds()
    for name, where, text in PASTES:
        found = ids(opened.page, text)
        assert found[0] == name, (where, found)
        told = [order[each] for each in found if each]
        assert told == sorted(told), where


def test_what_the_compared_columns_say_is_told_where_the_reader_chose_them(
    browser: Browser, folder: Path
) -> None:
    """Of the pair that the page opens with nobody asked; columns are called by their labels."""
    made = Opened(browser, folder / "index.html")
    paste(made.page, factory.COULD_NOT)
    assert made.page.locator("#paste-said .chosen").first.inner_text() == ""
    made.page.locator("#pick-a").select_option("rtx14")
    settled(made.page)
    chosen = made.page.locator("#paste-said .chosen").first.inner_text()
    assert chosen.startswith("On TensorRT for RTX 1.4.0.76, which you compare. conv_silu.qdq")
    made.context.close()


def test_a_text_of_which_all_is_known_and_harmless_is_no_unknown_error(opened: Opened) -> None:
    """Beside a line that nobody knows, the reader is offered a report of it."""
    flood = "\n".join(
        f"[W] [TRT] Missing scale and zero-point for tensor {name}, expect fall back to non-int8 "
        "implementation for any layer consuming or producing given tensor"
        for name in ("a", "b", "c", "d")
    )
    ids(opened.page, flood)
    said = opened.page.locator("#paste-said")
    assert "All of this text is known, and nothing in it is a failure." in said.inner_text()
    assert said.locator(".unknown").count() == 0
    assert "Line 1, and 3 more lines like it." in said.inner_text()
    ids(opened.page, f"{flood}\n[E] a text of nobody")
    assert "No known failure in this text" in said.inner_text()


def test_a_line_that_only_follows_sends_to_the_first_error(opened: Opened) -> None:
    text = "[E] Network must have at least one output\n[E] Engine could not be created from network"
    found = paste(opened.page, text)
    assert "It only repeats that something failed before" in found.first.locator("h3").inner_text()
    assert "first error above it" in found.first.inner_text()
    failed = "[E] Could not find any implementation for node n."
    assert ids(opened.page, f"{failed}\n{text}") == ["no-implementation", "follows-a-failure"]


def test_what_is_no_known_error_is_not_taken_for_one(opened: Opened) -> None:
    """It is said so, and a report to file offered that holds the lines."""
    assert len(NOTHING) >= 10
    for text in NOTHING:
        assert ids(opened.page, text) == [None], text
        report = opened.page.locator("#paste-said").inner_text()
        assert text.split("\n")[-1].rpartition("] ")[2][:30].strip() in report or "No line of it" in report
    assert opened.page.locator("#paste-state").inner_text() == "No known cause."


FORMS = {
    "own": "[{word}] {text}",
    "python": "[11/22/2026-10:00:00] [TRT] [{letter}] {text}",
    "trtexec": "[11/22/2026-10:00:00] [{letter}] [TRT] {text}",
    "polygraphy": "[{letter}] {text}",
    "deepstream": "{word}: [TRT]: {text}",
    "onnxruntime": "2026-11-22 10:00:00.123456789 [{letter}:onnxruntime:Default, tensorrt_execution_provider.h:82 log] "
    "[2026-11-22 10:00:00   {word}] {text}",
}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_what_was_measured_is_recognised_from_its_log(opened: Opened, form: str) -> None:
    """The log alone tells the cause that the record was judged by, whoever printed it."""
    tried = 0
    for outcome in measured():
        expected = diagnose(replace(outcome, nodes=()), BUILD_FAILED)
        if expected and outcome.messages and not outcome.missing_api:
            found = paste(opened.page, as_log(outcome, FORMS[form])).first
            assert found.get_attribute("data-id") == expected.id, outcome.cell
            if expected.operator:
                assert f"operator {expected.operator}".lower() in found.inner_text().lower(), outcome.cell
            tried += 1
    assert tried >= 12


def test_a_fused_layer_is_taken_apart(opened: Opened) -> None:
    name = "w + w_q/QuantizeLinear + /a/Conv + PWN(PWN(/b/Sigmoid), node_of_y)"
    text = f"[E] Could not find any implementation for node {name}."
    parts = paste(opened.page, text).first.locator(".parts li")
    assert parts.all_inner_texts() == [
        "w",
        "w_q/QuantizeLinear quantises, or is quantised",
        "/a/Conv",
        "/b/Sigmoid pointwise, merged",
        "node_of_y pointwise, merged; a node without a name, called by its first output",
    ]
    region = "Could not find any implementation for node {ForeignNode[onnx::MatMul_1.../Transpose_2]}."
    told = paste(opened.page, region).first.locator(".parts li").all_inner_texts()
    assert told == [
        "onnx::MatMul_1 the region begins here",
        "/Transpose_2 and ends here; all between is in it",
    ]


def test_the_name_of_a_layer_alone_is_taken_apart(opened: Opened) -> None:
    """As a profile has it; a sentence with a plus is none, nor is what a signature knows."""
    found = paste(opened.page, "/a/Conv + PWN(PWN(/b/Sigmoid), /b/Mul)")
    assert found.locator("h3").inner_text() == "The name of a layer"
    assert found.locator(".parts li").all_inner_texts() == [
        "/a/Conv",
        "/b/Sigmoid pointwise, merged",
        "/b/Mul pointwise, merged",
    ]
    unnamed = paste(opened.page, "(Unnamed Layer* 269) [Matrix Multiply] + /b/Mul")
    assert unnamed.locator(".parts li").count() == 2
    sentences = ("a size of 3 + 4 is too large", "ValueError: x + y", "nothing at all\na + b")
    for other in ("/a/Conv", *sentences):
        assert paste(opened.page, other).locator("h3").inner_text() == "Unknown here", other


def test_a_name_with_its_parts_left_out_is_read(opened: Opened) -> None:
    """Who quotes an error shortens it."""
    for name in (
        "{ForeignNode[...]}",
        "{ForeignNode[]}",
        "{ForeignNode[a...]}",
        "PWN()",
        "a + {ForeignNode[ ... ]}",
    ):
        found = paste(opened.page, f"[E] Could not find any implementation for node {name}.")
        assert str(found.get_attribute("data-id")).startswith("no-implementation"), name
        assert opened.page.locator("#paste-state").inner_text() == "1 known cause.", name


def test_what_the_text_names_is_filled_in(opened: Opened) -> None:
    """Title, cause and advice speak of this failure; what it does not name is a question mark."""
    told = paste(
        opened.page, "[E] ITopKLayer /TopK: /TopK: K exceeds the maximum value allowed (3840)."
    ).first.inner_text()
    assert "The cause: TopK of more than 3840 values" in told
    assert "Operator TopK, node /TopK." in told
    assert "No kernel for the types of ?" in paste(opened.page, "[E] no supported formats").first.inner_text()


def test_several_in_one_log_come_in_order(opened: Opened) -> None:
    """The specific cause, what follows from it, then warnings, whatever the order of the lines."""
    text = """[W] [TRT] Missing scale and zero-point for tensor a, expect fall back to non-int8 implementation
[E] Could not find any implementation for node n.
[E] Assertion scales.size() == 1 failed"""
    assert ids(opened.page, text) == ["plugin-scale-missing", "no-implementation", "missing-scale"]
    heads = opened.page.locator("#paste-said h3").all_inner_texts()
    assert [head.split(":")[0] for head in heads] == ["The cause", "Also in this text", "A warning"]


def test_error_lines_that_nobody_knows_are_not_passed_over(opened: Opened) -> None:
    """With the line that each stands on; what is known, or said twice, is not among them."""
    lines = [
        "[I] Starting",
        "[E] Error Code 4: Internal Error (never seen: a)",
        "[E] Could not find any implementation for node n.",
        "[E] Could not find any implementation for node m.",
        "[E] Error Code 4: Internal Error (never seen: a)",
        "[W] Missing scale and zero-point for tensor a, expect fall back to non-int8 implementation",
        "[E] Engine could not be created from network",
    ]
    found = paste(opened.page, "\n".join(lines))
    assert "Line 3, and 1 more line like it." in found.first.inner_text()
    assert found.last.locator("h3").inner_text() == "1 further error line is unknown here"
    report = found.last.locator("pre").inner_text()
    assert report.count("Error Code 4: Internal Error (never seen: a)") == 1
    paste(opened.page, lines[2])
    assert opened.page.locator("#paste-said > .unknown").count() == 0


def test_the_report_of_an_unknown_text_says_which_version(opened: Opened) -> None:
    paste(opened.page, "&&&& RUNNING TensorRT.trtexec [TensorRT v100300]\n[E] something nobody has seen")
    report = opened.page.locator("#paste-said .unknown pre").inner_text()
    assert "Version: 10.3.0" in report
    assert "    something nobody has seen" in report
    assert "RUNNING" not in report


def test_a_link_opens_an_entry(browser: Browser, folder: Path) -> None:
    """From outside, and from the panel's diagnosis, and back."""
    made = Opened(browser, folder / "index.html", "#error=missing-scale")
    page = made.page
    entry = page.locator('[id="error=missing-scale"]')
    assert entry.evaluate("(one) => one.open")
    assert "Harmless where" in entry.inner_text()
    page.evaluate("location.hash = '#conv_silu.qdq-rtx17'")
    page.locator("#panel a[href='#error=no-implementation-qdq']").first.click()
    assert page.locator('[id="error=no-implementation-qdq"]').evaluate("(one) => one.open")
    assert page.url.endswith("#error=no-implementation-qdq")
    made.context.close()


def test_without_scripts_every_text_is_there(browser: Browser, folder: Path) -> None:
    made = Opened(browser, folder / "index.html", java_script_enabled=False)
    assert made.page.locator("#paste").is_hidden()
    assert made.page.locator("#catalogue .error").count() == len(load_signatures())
    made.page.locator("#catalogue > summary").click()
    summary = made.page.locator('[id="error=no-implementation"] > summary')
    summary.click()
    assert (
        "Could not find any implementation for node"
        in made.page.locator('[id="error=no-implementation"]').inner_text()
    )
    made.context.close()


@pytest.mark.parametrize("width", [pytest.param(320, marks=pytest.mark.long), 1500])
def test_audit_of_errors_finds_no_violation_and_nothing_is_wider_than_a_phone(
    browser: Browser, folder: Path, width: int
) -> None:
    needs.axe()
    viewport: Any = {"width": width, "height": 900}
    made = Opened(browser, folder / "index.html", bypass_csp=True, viewport=viewport)
    page = made.page
    for text in (PASTES[0][2] + "\n" + PASTES[42][2], "unknown"):
        paste(page, text)
        page.evaluate("document.querySelectorAll('#errors details').forEach((one) => { one.open = true; })")
        section = page.locator("#errors")
        assert section.evaluate("(one) => one.scrollWidth <= innerWidth")
        wide = """[...document.querySelectorAll("#errors *")].filter((one) =>
          one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))"""
        assert page.evaluate(wide) == []
        assert violations(made) == []
    made.context.close()


def test_a_megabyte_is_read_and_the_page_stays_responsive(opened: Opened) -> None:
    """While it is read, what else the page has to do is done between."""
    line = "[08/07/2024-09:00:00] [V] [TRT] Tactic: 0x{} Time: 0.0123\n"
    text = "".join(line.format(number) for number in range(20_000))
    text += (
        "[W] [TRT] Missing scale and zero-point for tensor a, expect fall back to non-int8 implementation\n"
        * 5000
    )
    text += "[E] Could not find any implementation for node n."
    assert len(text) > 1_000_000
    opened.page.evaluate("""() => { window.ticks = []; let last = performance.now();
      const tick = () => {
        window.ticks.push(performance.now() - last);
        last = performance.now();
        setTimeout(tick, 0);
      };
      tick(); }""")
    assert ids(opened.page, text) == ["no-implementation", "missing-scale"]
    assert opened.page.evaluate("window.ticks.length") > 20


def test_nothing_pasted_is_taken_for_markup(browser: Browser, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    write_report(everywhere(hostile), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    for text in (hostile, f"[E] Could not find any implementation for node {hostile}."):
        found = paste(made.page, text)
        assert hostile in found.first.inner_text()
        assert found.locator("img, script").count() == 0
    assert made.complaints == []
    made.context.close()


def ask(page: Page, text: str) -> str:
    page.locator("#f-text").fill(text)
    hint = page.locator("#f-hint")
    return hint.inner_text() if hint.is_visible() else ""


def columns(page: Page) -> list[str]:
    return page.locator("#grid .targets th:visible > a").all_inner_texts()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orin", ["l4t86"]),
        ("Jetson AGX Orin", ["l4t86"]),
        ("JetPack 6", ["l4t86"]),
        ("JetPack 6.0", ["l4t86"]),
        ("JetPack 6.0.1", ["l4t86"]),
        ("JetPack 6.0 qdq", ["l4t86"]),
    ],
)
def test_a_product_stands_for_its_columns(
    browser: Browser, tmp_path: Path, text: str, shown: list[str]
) -> None:
    """By what matrix.yaml says of the board and its release; both are told there alone."""
    write_report(orin(), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    said = ask(made.page, text)
    assert columns(made.page) == shown
    assert ", ".join(shown) in said
    assert rows(made.page)
    assert ask(made.page, "Xavier") == "No column here is of compute capability 7.2."
    made.context.close()


def test_a_product_without_a_column_is_said_to_have_none(opened: Opened) -> None:
    """Nothing is hidden for it."""
    before = columns(opened.page)
    assert ask(opened.page, "RTX 2060") == "No column here is of compute capability 7.5."
    assert columns(opened.page) == before


def test_an_error_text_is_found_in_the_filter_box(opened: Opened) -> None:
    """The cells that end with it, and the way to what is known of it."""
    page = opened.page
    said = ask(page, "Could not find any implementation for node")
    assert " errors match; see No implementation for " in said
    assert rows(page) == ["qdq"]
    first = page.locator("#f-hint a").first
    entry = str(first.get_attribute("href")).removeprefix("#")
    assert entry.startswith("error=no-implementation")
    first.click()
    assert page.locator(f'[id="{entry}"]').evaluate("(one) => one.open")
    for text in ("PWN", "zero-point", "Error Code 10", "Missing scale and zero-point"):
        assert "match" in ask(page, text), text


def test_a_word_of_the_matrix_is_no_error_for_being_in_the_text_of_one(opened: Opened) -> None:
    """Sigmoid is the name of an operator in the texts of many, and there are rows of it; no row has "tactic"."""
    page = opened.page
    assert rows(page) != []
    assert ask(page, "Sigmoid") == ""
    assert "match" in ask(page, "tactic")
    assert "match" in ask(page, "implementation")


def test_a_version_is_looked_for_as_a_number(opened: Opened) -> None:
    """The rows tell of ONNX Runtime 1.31 and of 1.7: that is no version 1.3, and no 0.7."""
    page = opened.page
    for text, found in (("1.7", True), ("1.31", True), ("1.3", False), (".31", True)):
        ask(page, text)
        assert bool(rows(page)) is found, text


def test_a_line_of_a_log_in_the_filter_box_is_led_to_the_paste_box(opened: Opened) -> None:
    page = opened.page
    line = PASTES[1][2].split("\n")[0]
    assert "looks like a line of a log" in ask(page, line)
    assert page.locator("#f-problem").is_hidden()
    page.locator("#f-hint button").click()
    page.locator("#paste-said > .found").first.wait_for()
    assert page.locator("#paste-said > .found").first.get_attribute("data-id") == PASTES[1][0]
    assert page.locator("#f-text").input_value() == ""

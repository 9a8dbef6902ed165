"""The opened cell in a real browser: the graph by precision and the layers, alone and beside another target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.plan import all_cells
from harness.report import write_report
from harness.report.results import assemble
from tests.report import factory
from tests.report.browsing import Opened, open_cell, panel

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

CELL = "conv_silu.qdq-rtx17"


def nodes(opened: Opened, figure: int = 0) -> list[str]:
    found = opened.page.locator("#panel figure").nth(figure).locator("g.node")
    labels: list[str] = found.evaluate_all("nodes => nodes.map((node) => node.getAttribute('aria-label'))")
    return labels


def test_graph_tells_each_node_and_its_precision(opened: Opened) -> None:
    """Colour, pattern and letters say the same."""
    open_cell(opened.page, "qdq", "rtx15")
    assert nodes(opened) == [
        f"Conv {factory.CONV}: INT8, wanted int8",
        "Sigmoid /model.0/act/Sigmoid: INT8",
        "Mul /model.0/act/Mul: INT8",
    ]
    body = opened.page.locator("#panel g.node").first
    assert "INT8" in (body.text_content() or "")
    band = body.locator(".band").evaluate("band => getComputedStyle(band).fill")
    assert "url(" in band
    assert "INT8" in opened.page.locator(".graph-legend").inner_text()


def test_a_node_that_lost_its_precision_is_marked(opened: Opened) -> None:
    """Not by colour alone."""
    open_cell(opened.page, "qdq-between", "rtx14")
    lost = opened.page.locator("#panel g.node.lost")
    assert lost.count() == 1
    assert "FP32 ≠ INT8" in (lost.text_content() or "")


def test_graph_of_a_failed_cell_says_not_told(opened: Opened) -> None:
    """A model that was not built has no precision, and none is made up."""
    open_cell(opened.page, "qdq", "rtx17")
    assert all(label.endswith(("not told", "not told, wanted int8")) for label in nodes(opened))


def test_two_targets_stand_side_by_side(opened: Opened) -> None:
    """The same model, in the precision that each version chose."""
    page = opened.page
    open_cell(page, "qdq-between", "rtx14")
    page.locator("#p-vs").select_option("rtx15")
    page.locator("#panel figure").nth(1).wait_for()
    assert nodes(opened, 0)[0] == f"Conv {factory.CONV}: FP32, wanted int8"
    assert nodes(opened, 1)[0] == f"Conv {factory.CONV}: INT8, wanted int8"
    captions = page.locator("#panel figcaption").all_inner_texts()
    assert [caption.split()[0] for caption in captions] == ["rtx14", "rtx15"]
    assert "vs=rtx15" in page.evaluate("location.hash")
    page.locator("#p-vs").select_option("")
    page.locator("#panel figure").nth(1).wait_for(state="detached")


def test_an_arrow_tells_its_tensor_on_focus(opened: Opened) -> None:
    """Type and shape of the model, and what the engine made of it."""
    open_cell(opened.page, "qdq", "rtx15")
    edge = opened.page.locator("#panel g.edge").first
    label = edge.get_attribute("aria-label") or ""
    assert label == "images: float32 1x1x4x4; in the engine int8, 1 1 4 4, NC/32HW32"
    text = edge.locator(".edge-text")
    assert text.evaluate("text => getComputedStyle(text).opacity") == "0"
    edge.focus()
    assert text.evaluate("text => getComputedStyle(text).opacity") == "1"
    assert text.text_content() == "float32 1x1x4x4"


def test_layers_are_aligned_by_their_nodes_and_the_unmatched_shown(opened: Opened) -> None:
    """The fused layer meets the convolution it came from; the activation has no partner and says so."""
    page = opened.page
    open_cell(page, "qdq", "rtx15")
    page.locator("#p-vs").select_option("rtx16")
    page.get_by_text("Matched by the ONNX nodes").wait_for()
    table = page.get_by_role("region", name="Layers side by side")
    lines = [line.split("\t") for line in table.locator("tbody tr").all_inner_texts()]
    assert [line[1] for line in lines] == ["int8", ""]
    assert lines[0][0].startswith(f"{factory.CONV} + act")
    assert lines[0][2].startswith(factory.CONV)
    assert lines[0][3] == "int8"
    assert lines[1][0] == "no such layer on rtx15"
    assert lines[1][2].startswith("PWN(act)")
    assert table.locator("tr.lostrow").count() == 1
    assert "Layers (1 and 2)" in panel(page)


def test_panel_links_to_the_whole_log_beside_the_page(browser: Browser, tmp_path: Path) -> None:
    """The page carries what fits; the file has everything."""
    from harness.record.store import Store
    from harness.report import build_report

    with Store(tmp_path) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome, "the log")
    build_report(factory.matrix(), (factory.case(),), store, tmp_path)
    made = Opened(browser, tmp_path / "index.html", "#conv_silu.qdq-rtx17")
    made.page.locator("#panel").wait_for(state="visible")
    address = made.page.get_by_role("link", name=".txt.gz").get_attribute("href")
    assert address is not None
    assert (tmp_path / address).is_file()
    made.context.close()


def _dead_links(made: Opened, folder: Path) -> list[str]:
    """Return where links of the page, and of its panel, lead in its folder where there is nothing."""
    links = made.page.locator("a[href]").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    inside = [link for link in links if not link.startswith(("#", "https://", "data:"))]
    assert len(inside) > 3
    return [link for link in inside if not (folder / link).is_file()]


def test_panel_gives_the_model_and_the_lines_to_paste(browser: Browser, tmp_path: Path) -> None:
    """A bug report needs the model, NVIDIA's image and trtexec; whoever has the project needs the cell's id."""
    from harness.record.store import Store
    from harness.report import build_report

    with Store(tmp_path) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome)
    commands = dict.fromkeys(("trt86", "rtx17"), ("docker build -t engine docker", "docker run engine"))
    build_report(factory.matrix(), (factory.case(),), store, tmp_path, commands)
    made = Opened(browser, tmp_path / "index.html", "#conv_silu.qdq-trt86")
    made.page.locator("#panel").wait_for(state="visible")
    lines = made.page.locator("#panel .cmd pre").all_text_contents()
    (run,) = [line for line in lines if line.startswith("docker run --rm --gpus all ")]
    assert " registry.example/engine:1 trtexec --onnx=conv_silu-qdq.onnx " in run
    assert lines[1:3] == [
        "pytest matrix.yaml::conv_silu.qdq-trt86",
        "trt-compat show conv_silu.qdq-trt86",
    ]
    # One block to paste, which runs the cell in the image that it makes.
    save, build, start = lines[3].splitlines()
    assert save == "trt-compat show conv_silu.qdq-trt86 --save conv_silu-qdq.onnx"
    assert build == "docker build -t engine docker"
    assert start.startswith("docker run engine trtexec --onnx=conv_silu-qdq.onnx ")
    assert "not tried here" in panel(made.page)
    assert made.page.get_by_role("link", name="conv_silu-qdq.py").count() == 0
    made.context.close()


def test_the_page_alone_holds_the_model_and_the_file(browser: Browser, tmp_path: Path) -> None:
    """Sent to somebody without its folder, it still gives both, byte for byte."""
    from harness.plan.by_hand import by_hand
    from harness.record.store import Store
    from harness.report import build_report

    with Store(tmp_path) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome)
    build_report(factory.matrix(), (factory.case(),), store, tmp_path)
    alone = tmp_path / "elsewhere" / "page.html"
    alone.parent.mkdir()
    (tmp_path / "index.html").rename(alone)
    made = Opened(browser, alone, "#conv_silu.qdq-rtx17")
    made.page.locator("#panel").wait_for(state="visible")
    cell = next(cell for cell in all_cells(factory.matrix(), (factory.case(),)) if cell.id == CELL)
    data = cell.variant.model_bytes()
    wanted = {"conv_silu-qdq.onnx": data, "conv_silu-qdq.py": by_hand(cell, data).file.encode()}
    for name, content in wanted.items():
        with made.page.expect_download() as downloading:
            made.page.get_by_role("link", name=name).click()
        assert downloading.value.suggested_filename == name
        assert downloading.value.path().read_bytes() == content
    assert made.complaints == []
    made.context.close()


def test_a_large_model_is_beside_the_page(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page stays small: of what does not fit the smallest models are in it."""
    from harness.report.page import models as held

    monkeypatch.setattr(held, "LONGEST_MODEL", 10)
    models = {"models/conv_silu-qdq.onnx": b"n" * 11, "models/conv_silu-fp32.onnx": b"n" * 10}
    write_report(factory.results(), tmp_path, models)
    made = Opened(browser, tmp_path / "index.html", "#conv_silu.qdq-rtx17")
    made.page.locator("#panel").wait_for(state="visible")
    assert (
        made.page.get_by_role("link", name="conv_silu-qdq.onnx").get_attribute("href")
        == "models/conv_silu-qdq.onnx"
    )
    made.page.keyboard.press("Escape")
    open_cell(made.page, "fp32", "rtx17")
    address = made.page.get_by_role("link", name="conv_silu-fp32.onnx").get_attribute("href") or ""
    assert address.startswith("data:application/octet-stream;base64,")
    made.context.close()


def test_a_cell_that_fails_says_what_to_use_meanwhile_and_leads_there(opened: Opened) -> None:
    """Who looks at a failure needs the way round it, not another search."""
    page = opened.page
    open_cell(page, "qdq", "rtx14")
    page.locator("#panel p", has_text="Meanwhile.").wait_for()
    page.keyboard.press("Escape")
    open_cell(page, "qdq", "rtx16")
    assert "Meanwhile." not in panel(page)
    page.keyboard.press("Escape")
    open_cell(page, "qdq-between", "rtx14")
    assert "Meanwhile." in panel(page)


def test_the_workaround_of_a_failing_cell_is_a_link_to_its_cell(browser: Browser, tmp_path: Path) -> None:
    """On the same target, where it was measured to work."""
    found = (factory.build_failure("qdq", "rtx16"), factory.outcome("qdq-between", "rtx16"))
    outcomes = {entry.cell: entry for entry in found}
    write_report(assemble(factory.matrix(), (factory.case(),), outcomes), tmp_path)
    made = Opened(browser, tmp_path / "index.html", "#conv_silu.qdq-rtx16")
    line = made.page.locator("#panel p", has_text="Meanwhile.")
    assert line.inner_text() == "Meanwhile. conv_silu.qdq-between builds (INT8 1/1), measured."
    line.get_by_role("link").click()
    made.page.locator("#panel-title", has_text="conv_silu.qdq-between-rtx16").wait_for()
    assert "Meanwhile." not in panel(made.page)
    made.context.close()


def test_layers_tell_their_time(opened: Opened) -> None:
    """Of a profiled run, in a column of its own."""
    open_cell(opened.page, "qdq", "ort131")
    table = opened.page.get_by_role("region", name="Layers", exact=True)
    assert table.locator("thead th").last.inner_text() == "Time"
    assert table.locator("tbody td.num").all_inner_texts() == ["20 µs"]


def test_copy_buttons_copy_what_stands_beside_them(browser: Browser, folder: Path) -> None:
    """The address of what is seen, and the line as it is."""
    made = Opened(
        browser,
        folder / "index.html",
        "#conv_silu.qdq-rtx17",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = made.page
    page.locator("#panel").wait_for(state="visible")
    page.locator("#panel .panel-head").get_by_role("button", name="Copy link").click()
    page.locator("#panel .panel-head").get_by_role("button", name="Copied").wait_for()
    # Of a local file what stands behind the address: the rest is nobody else's.
    assert page.evaluate("navigator.clipboard.readText()") == "#conv_silu.qdq-rtx17"
    line = page.locator("#panel .cmd", has_text="pytest")
    line.get_by_role("button").click()
    line.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f"pytest matrix.yaml::{CELL}"
    made.context.close()


def test_a_published_page_copies_its_whole_address(browser: Browser, folder: Path) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page, address = context.new_page(), "https://report.example/index.html"
    body = (folder / "index.html").read_text(encoding="utf-8")
    page.route(address, lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(address + "#a=rtx15&b=rtx16")
    page.locator("#copy").click()
    page.locator("#copy", has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f"{address}#a=rtx15&b=rtx16"
    context.close()


def test_the_other_side_tells_how_it_ended(opened: Opened) -> None:
    """A graph of boxes that say nothing does not explain a failure."""
    page = opened.page
    open_cell(page, "qdq", "rtx16")
    page.locator("#p-vs").select_option("rtx17")
    page.get_by_role("heading", name="Beside it: TensorRT for RTX 1.7.1.116").wait_for()
    assert factory.COULD_NOT in panel(page)


def test_no_precision_is_demanded_of_the_baseline(opened: Opened) -> None:
    """What ONNX Runtime ran in is shown, and is no loss."""
    page = opened.page
    open_cell(page, "qdq", "ort131")
    assert "no precision is demanded of it" in panel(page)
    assert page.locator("#panel .lostrow").count() == 0
    assert page.locator("#panel g.node.lost").count() == 0


def test_an_address_of_another_report_says_what_is_not_here(browser: Browser, folder: Path) -> None:
    """The rest of it is followed; nothing is passed over in silence."""
    made = Opened(browser, folder / "index.html", "#a=rtx99&b=rtx17&cell=conv_silu.gone-rtx17")
    said = made.page.locator("#stranger").inner_text()
    assert said == "The address names what is not in this report: target rtx99, cell conv_silu.gone-rtx17."
    made.page.locator("#pick-a").select_option("rtx14")
    assert "rtx99" not in made.page.locator("#stranger").inner_text()
    assert made.complaints == []
    made.context.close()


def test_the_failures_of_a_cause_are_shown_in_the_matrix(browser: Browser, tmp_path: Path) -> None:
    """The filter takes the id of a diagnosis, and the list of causes leads to it."""
    from benchmarks.page import results as many

    write_report(many(1000), tmp_path)
    made = Opened(browser, tmp_path / "index.html")
    page = made.page
    page.evaluate("document.querySelectorAll('.cluster').forEach((one) => { one.open = true; })")
    page.locator("#failures a.ask").first.click()
    query = page.locator("#f-text").input_value()
    assert query.startswith("state:measured cause:")
    assert page.locator("#grid td.hit").count() > 12
    page.locator("#f-text").fill("cause:nonsense")
    assert "did you mean" in page.locator("#f-problem").inner_text()
    made.context.close()


@pytest.mark.parametrize("cpu", ["x86-64", "another"])
def test_layer_times_of_two_stacks_stand_beside_each_other_only(
    browser: Browser, tmp_path: Path, cpu: str
) -> None:
    """An arrow says that one became the other; of two machines it did not."""
    other = factory.ran("fp32", "rtx16")
    other = replace(other, stamps=replace(other.stamps, environment={**other.stamps.environment, "cpu": cpu}))
    outcomes = {entry.cell: entry for entry in (factory.ran("fp32", "rtx15"), other)}
    write_report(assemble(factory.matrix(), (factory.case(),), outcomes), tmp_path)
    made = Opened(browser, tmp_path / "index.html", "#cell=conv_silu.fp32-rtx15&vs=rtx16")
    table = made.page.get_by_role("region", name="Layers side by side")
    table.wait_for()
    same = cpu == "x86-64"
    assert table.locator("td.num").inner_text() == ("20 µs → 20 µs" if same else "20 µs | 20 µs")
    assert ("timed on different stacks" in panel(made.page)) is not same
    made.context.close()

"""The entry on an error text; a page for each error and case: links lead somewhere, strangers' text stays text."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from markupsafe import escape

from harness.case import Class, Expectation, Link
from harness.judge.names import load_names
from harness.judge.signatures import load_signatures
from harness.record.store import Store
from harness.report.errors import ErrorEntry, Sighting, error_entries
from harness.report.page import LIST, REPORT, STYLE, UPGRADE, own_pages, page_of_case, page_of_error
from harness.report.writer import build_report, write_pages
from harness.words import Basis, Engine
from tests.report import factory
from tests.report.crawl import dead, read_pages
from tests.report.poison import HIDDEN, HOSTILE, everywhere
from tests.report.test_verify import faults, finished

pytestmark = pytest.mark.unit

ERROR = page_of_error("no-implementation-qdq")
CASE = page_of_case("conv_silu")


def test_each_error_and_each_case_has_a_page_that_is_found_from_the_list() -> None:
    """And from every page the report and the list are one link away; all links are relative."""
    pages = own_pages(factory.results())
    assert set(pages) == {LIST, STYLE, UPGRADE, CASE, *(page_of_error(each.id) for each in load_signatures())}
    assert [each for each in dead({**pages, REPORT: ""}) if "#" not in each] == []
    read = read_pages(pages)
    assert {*read} - {LIST} <= set(read[LIST].links)
    assert len({page.title for page in read.values()}) == len(read)
    for name, page in read.items():
        top = "../" if "/" in name else ""
        assert {top + STYLE, top + REPORT, *({top + UPGRADE} - {name})} <= {
            link.partition("#")[0] for link in page.links
        }, name
        assert all(link.startswith("https://") for link in page.outside), name
        assert len(page.ids) == len(set(page.ids)), name


def test_a_page_is_readable_without_scripts_because_there_are_none() -> None:
    for name, page in read_pages(own_pages(factory.results())).items():
        tags = [tag for tag, _ in page.elements]
        assert not {"script", "style", "iframe", "object", "base", "form"} & set(tags), name
        assert [tags.count(tag) for tag in ("h1", "main", "title")] == [1, 1, 1], name
        assert not [key for _, found in page.elements for key in found if key.startswith("on")], name
        headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
        assert all(after <= before + 1 for before, after in pairwise(headings)), name


def test_error_and_case_lead_to_each_other() -> None:
    """An error to the cases with models that fail by it, a case to the advice on each."""
    pages = own_pages(factory.results())
    assert factory.COULD_NOT in pages[ERROR]
    assert f'href="../{CASE}"' in pages[ERROR]
    assert f'href="../{ERROR}"' in pages[CASE]
    assert f'href="../{REPORT}#error=no-implementation-qdq"' in pages[ERROR]


def test_the_page_on_11_has_each_name_that_is_gone_and_what_to_write() -> None:
    """Under the first version without it, with NVIDIA's page if one names it; names to come are on no such page."""
    page = own_pages(factory.results())[UPGRADE]
    by_version = dict(part.split('"', 1) for part in page.split('<h3 id="gone-')[1:])
    gone = [row for row in load_names() if row.signature != "name-not-yet"]
    assert set(by_version) == {row.since for row in gone}
    for row in gone:
        part = by_version[row.since]
        assert all(f"<code>{name}</code>" in part for name in row.names), row
        assert str(escape(row.now)) in part, row
        assert not row.url or f'href="{row.url}"' in part, row
    assert "<code>add_attention</code>" not in page


def test_the_page_on_11_answers_with_claims_and_boards_and_their_links() -> None:
    """A claim of 11 is there, one of 8.6 is not; a target with a JetPack has a row with its source."""
    report = Expectation.reported(
        Class.BUILD_FAILED, ">=11.1", Link("https://example.org/11", "A build on 11")
    )
    older = Expectation.reported(
        Class.BUILD_FAILED, ">=8.6,<11", Link("https://example.org/8", "A build on 8")
    )
    results = factory.results()
    first, *others = results.cases
    variant, *rest = first.variants
    case = replace(first, variants=(replace(variant, claims=(report, older)), *rest))
    board = replace(
        results.targets[0], jetpack="9.9", sources=(Link("https://example.org/jetpack", "a board"),)
    )
    made = replace(results, cases=(case, *others), targets=(board, *results.targets[1:]))
    page = own_pages(made)[UPGRADE]
    assert {"https://example.org/11", "https://example.org/jetpack"} <= set(
        read_pages({UPGRADE: page})[UPGRADE].outside
    )
    assert "https://example.org/8" not in page
    assert "9.9" in page


def test_a_case_tells_what_is_measured_or_reported_and_by_whom() -> None:
    """`qdq` has no claim on trt102, and the page shows it so."""
    page = own_pages(factory.results())[CASE]
    assert ".qdq-trt102" not in page
    assert 'href="../index.html#conv_silu.qdq-trt86"' in page
    assert factory.ISSUE.url in page


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_strangers_text_adds_no_element_and_no_attribute(kind: str) -> None:
    """Whatever a name or a log says, each page has the same elements."""
    plain, files = own_pages(everywhere("plain")), own_pages(everywhere(HOSTILE[kind]))
    assert set(plain) == set(files)
    shapes = {
        name: [(tag, sorted(a)) for tag, a in page.elements] for name, page in read_pages(plain).items()
    }
    for name, page in read_pages(files).items():
        assert [(tag, sorted(a)) for tag, a in page.elements] == shapes[name], name
        assert not HIDDEN.search(files[name]), name


def test_pages_lie_beside_the_report_which_stays_as_it_is(tmp_path: Path) -> None:
    """In the folder of the run, or with a report of their own in another."""
    reports = finished(tmp_path / "reports")
    for folder in (reports, tmp_path / "other"):
        results = build_report(factory.matrix(), (factory.case(),), Store(reports), folder)
        assert {path.relative_to(folder).as_posix() for path in write_pages(results, folder)} == {
            *own_pages(results)
        }
        assert (folder / REPORT).is_file()
    assert faults(reports) == ""


def entry(name: str, *claims: Expectation) -> ErrorEntry:
    """Return an entry of the hand-made results, with claims added to their first variant."""
    case = factory.case()
    first = case.variants[0]
    added = replace(first, expectations=(*first.expectations, *claims))
    results = factory.assemble(
        factory.matrix(), (replace(case, variants=(added, *case.variants[1:])),), factory.outcomes()
    )
    (found,) = (each for each in error_entries(results) if each.id == name)
    return found


def test_every_signature_has_an_entry_with_a_text() -> None:
    """Failures before warnings before harmless ones, and among failures those with most public threads first."""
    entries = error_entries(factory.results())
    assert sorted(each.id for each in entries) == sorted(each.id for each in load_signatures())
    assert all(each.title and each.advice for each in entries)
    # Those that ask the model print no text of their own.
    silent = {
        each.id
        for each in load_signatures()
        if all(one.where == "graph" or one.model is not None for one in each.patterns)
    }
    assert {each.id for each in entries if not each.texts} == silent
    kinds = [each.kind for each in entries]
    assert kinds == sorted(kinds, key=["failure", "warning", "harmless"].index)
    assert entries[0].id == "bindings-removed"
    harmless = {each.id for each in entries if each.kind == "harmless"}
    assert harmless == {each.id for each in load_signatures() if each.innocent}


def test_what_was_measured_is_told_with_its_versions_and_its_text() -> None:
    found = entry("no-implementation-qdq")
    measured = Sighting(Basis.MEASURED, "TensorRT for RTX 1.4 and 1.7", "measured, 2 cells without a GPU,")
    assert found.seen == (measured,)
    assert found.texts[0].text == factory.COULD_NOT
    assert [(one.case, one.variant, one.target) for one in found.reproducers] == [
        ("conv_silu", "qdq", "rtx14")
    ]
    assert found.reading
    assert not entry("negative-scale").reading


def test_a_text_that_onnx_runtime_printed_is_not_tensorrts() -> None:
    assert {text.seen for text in entry("runtime-opset").texts} == {"measured on ONNX Runtime"}
    assert [text.seen for text in entry("rotary-order").texts] == ["measured on TensorRT for RTX"]


def test_what_one_other_product_alone_prints_says_so() -> None:
    """TensorRT, the matrix's subject, is not named, nor is the product of a quoted text if unknown."""
    report = Link("https://github.com/NVIDIA/TensorRT/issues/1")
    onnx_runtime = Expectation.reported(
        Class.BUILD_FAILED, "", report, engine=Engine.ONNXRUNTIME, signature="rotary-order"
    )
    assert entry("rotary-order").only == "TensorRT for RTX"
    assert entry("runtime-opset").only == "ONNX Runtime"
    assert (
        entry("rotary-order", onnx_runtime).only
        == entry("check-links").only
        == entry("no-implementation-qdq").only
        == ""
    )


def test_what_is_reported_is_told_with_its_source() -> None:
    source = Link("https://github.com/NVIDIA/TensorRT/issues/1")
    name = "negative-scale"
    reported = Expectation.reported(Class.BUILD_FAILED, ">=8.5,<9", source, platform="jetson", signature=name)
    found = entry(name, reported)
    assert found.seen == (
        Sighting(
            Basis.REPORTED, "TensorRT on Jetson from 8.5 before 9", "reported by users", source.url, ends=True
        ),
    )
    assert [(one.target, one.basis) for one in found.reproducers] == [("l4t86", Basis.REPORTED)]


def test_what_is_reported_of_versions_with_models_that_are_no_variant_is_told() -> None:
    found = entry("check-links")
    assert {(one.basis, "Jetson" in one.where) for one in found.seen} == {
        (Basis.REPORTED, False),
        (Basis.REPORTED, True),
    }
    assert found.reproducers == ()


def test_a_range_that_ends_says_so_and_one_that_does_not_does_not() -> None:
    """Else "before 9" is read as mended in 9."""
    assert {one.ends for one in entry("no-low-precision-convolution").seen} == {True}
    assert {one.ends for one in entry("bindings-removed").seen} == {False}


def test_the_signatures_that_a_text_names_are_related() -> None:
    related = [each for each, _ in entry("no-implementation").related]
    assert sorted(related) == ["no-implementation-head", "no-implementation-qdq", "no-implementation-silu"]
    assert all(not each.related for each in error_entries(factory.results()) if each.id.endswith("-qdq"))


def test_a_proof_is_told_with_what_came_of_it_and_one_that_is_not_here_is_left_out() -> None:
    """The cases of the factory have one of the catalogue's proofs."""
    assert [proof.id for proof in entry("no-implementation-silu").proofs] == ["conv_silu.qdq"]
    assert entry("no-implementation-silu").proofs[0].known


def test_a_quoted_text_has_the_address_where_it_stands() -> None:
    texts = {each.text: each for each in entry("no-plugin-format").texts}
    (one,) = (each for text, each in texts.items() if "LayerNorm_4" in text)
    assert (one.seen, one.url) == ("quoted", "https://github.com/NVIDIA/TensorRT/issues/3844")


def test_no_entry_has_a_blank() -> None:
    for entry in error_entries(factory.results()):
        for text in (entry.title, entry.cause, entry.advice, entry.harmless):
            assert not re.search(r"<[a-z]+>|\{\w+\}", text), entry.id

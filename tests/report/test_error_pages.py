"""A page for each error and each case: every link leads somewhere, strangers' text stays text."""

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
from harness.report.page import LIST, REPORT, STYLE, UPGRADE, own_pages, page_of_case, page_of_error
from harness.report.writer import build_report, write_pages
from tests.report import factory
from tests.report.crawl import dead, read_pages
from tests.report.poison import HIDDEN, HOSTILE, everywhere
from tests.report.test_verify import faults, finished

ERROR = page_of_error("no-implementation-qdq")
CASE = page_of_case("conv_silu")


@pytest.mark.unit
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


@pytest.mark.unit
def test_a_page_is_readable_without_scripts_because_there_are_none() -> None:
    for name, page in read_pages(own_pages(factory.results())).items():
        tags = [tag for tag, _ in page.elements]
        assert not {"script", "style", "iframe", "object", "base", "form"} & set(tags), name
        assert [tags.count(tag) for tag in ("h1", "main", "title")] == [1, 1, 1], name
        assert not [key for _, found in page.elements for key in found if key.startswith("on")], name
        headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
        assert all(after <= before + 1 for before, after in pairwise(headings)), name


@pytest.mark.unit
def test_error_and_case_lead_to_each_other() -> None:
    """An error to the cases with models that fail by it, a case to the advice on each."""
    pages = own_pages(factory.results())
    assert factory.COULD_NOT in pages[ERROR]
    assert f'href="../{CASE}"' in pages[ERROR]
    assert f'href="../{ERROR}"' in pages[CASE]
    assert f'href="../{REPORT}#error=no-implementation-qdq"' in pages[ERROR]


@pytest.mark.unit
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


@pytest.mark.unit
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


@pytest.mark.unit
def test_a_case_tells_what_is_measured_or_reported_and_by_whom() -> None:
    """`qdq` has no claim on trt102, and the page shows it so."""
    page = own_pages(factory.results())[CASE]
    assert ".qdq-trt102" not in page
    assert 'href="../index.html#conv_silu.qdq-trt86"' in page
    assert factory.ISSUE.url in page


@pytest.mark.unit
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


@pytest.mark.unit
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

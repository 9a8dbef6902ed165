"""The further tries of a check: in results.json and on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from harness.known.further import Further
from harness.plan import all_cells
from harness.record.from_json import decode
from harness.record.store import Store
from harness.report.further import further_rows
from harness.report.model import Results
from harness.report.page import unpacked
from harness.report.writer import build_report
from tests.report import factory
from tests.report.browsing import Opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.unit

BUILT = {"class": "built", "signature": None, "reason": "", "precision": "int8", "kept": 4, "wanted": 5}
FAILED = {**BUILT, "class": "build_failed", "signature": "no-luck", "precision": None, "wanted": 0}
BLOCKER = {
    "nodes": ["/a", "/b"], "operator": "TopK", "named": False, "after_cut": True, "class": "parse_failed",
    "reason": "K is <b>large</b>", "signature": None, "title": "", "cause": "", "advice": "",
}  # fmt: skip
TRIED = {
    "name": "half", "title": "all in FP16", "costs": "accuracy", "proof": ["a.b"], "gain": "builds", "became": BUILT,
    "outputs": [
        {"output": "y", "max_abs": 1.0, "max_rel": 0.5, "cosine": 0.9, "shape_matches": True, "not_finite": 0}
    ],
    "uncompared": "",
}  # fmt: skip


def plain_entry() -> dict[str, Any]:
    cell = all_cells(factory.matrix(), (factory.case(),))[0]
    return {
        "cell": cell.id,
        "variant": cell.variant.name,
        "model": "m.onnx",
        "target": cell.target.name,
        "blockers": {"found": [BLOCKER], "end": "the rest builds", "cut_as_well": ["/c"], "tries": 2, "seconds": 0.5},
        "leave_float": {
            "nodes": ["/a"], "of": ["/a", "/b"], "helps": True, "least": True, "became": BUILT,
            "tries": 1, "seconds": 0.1,
        },
        "workarounds": {
            "best": "half", "tried": [TRIED, {**TRIED, "name": "vain", "gain": "", "became": FAILED}],
            "nothing_to_change": ["identity"], "seconds": 1.0,
        },
    }  # fmt: skip


def entry(**fields: Any) -> Further:
    return decode(Further, {**plain_entry(), **fields})


def reported(folder: Path, *entries: Further) -> Results:
    with Store(folder) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome, "the log")
    return build_report(factory.matrix(), (factory.case(),), Store(folder), folder, further=entries)


def test_it_is_in_results_json_and_on_the_page(tmp_path: Path) -> None:
    assert reported(tmp_path, entry()).further == (entry(),)
    data = json.loads((tmp_path / "results.json").read_text())
    assert data["further"] == [plain_entry()]
    schema = json.loads((tmp_path / "results.schema.json").read_text())
    assert not list(jsonschema.Draft202012Validator(schema).iter_errors(data))
    assert Results.from_json(data).further == (entry(),)
    page = (tmp_path / "index.html").read_text()
    assert "<b>large" not in page
    assert "K is <b>large</b>" in unpacked(page)


@pytest.mark.browser
def test_the_page_has_it_before_the_matrix(browser: Browser, tmp_path: Path) -> None:
    reported(tmp_path, entry())
    made = Opened(browser, tmp_path / "index.html")
    shown = made.page.locator("#further")
    assert "the rest builds" in shown.inner_text()
    assert shown.locator("thead th").count() == shown.locator("tbody tr").first.locator("td").count()
    assert made.complaints == []
    made.context.close()


def test_a_report_without_it_says_nothing_of_it(tmp_path: Path) -> None:
    reported(tmp_path)
    assert "further" not in json.loads((tmp_path / "results.json").read_text())
    assert 'id="further"' not in (tmp_path / "index.html").read_text()


def test_rows_say_each_answer_once() -> None:
    rows = [(row.question, row.about, row.answer) for row in further_rows([entry()])]
    assert rows == [
        ("blockers", "TopK: /a, /b (one of these: the engine names none)", "after a cut: K is <b>large</b>"),
        ("blockers", "/c", "cut as well: their inputs have no known shape"),
        ("blockers", "in the end", "the rest builds"),
        (
            "left in floating point",
            "1 of 2 quantised nodes: /a",
            "helps: builds, INT8 4/5; none of them can be spared",
        ),
        (
            "workarounds",
            "half: all in FP16",
            "builds, INT8 4/5 (the best); costs accuracy; outputs off by 0.5 at most, cosine 0.900000; as in a.b",
        ),
        ("workarounds", "vain", "in vain: fails to build (no-luck)"),
        ("workarounds", "identity", "nothing to change"),
    ]
    left = {**plain_entry()["leave_float"], "became": None}
    bare = entry(blockers=None, workarounds=None, leave_float=left)
    assert [row.answer for row in further_rows([bare])] == ["does not help"]


def test_blockers_of_one_operator_and_cause_are_one_row() -> None:
    alike = [
        {**BLOCKER, "nodes": [f"/{at}"], "named": True, "signature": "odd", "title": "T"} for at in range(6)
    ]
    found = entry(blockers={**plain_entry()["blockers"], "found": [*alike, BLOCKER]})
    rows = [(row.about, row.answer) for row in further_rows([found], "blockers")]
    assert rows[0] == ("6 times TopK: /0, /1, /2, /3 and 2 more", "after a cut: odd: T")
    assert len(rows) == 4

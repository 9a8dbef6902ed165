"""What a check tried further, beside its report: in results.json and on the page, kept by whoever writes it again."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HandledError
from harness.plan import all_cells
from harness.record.store import Store
from harness.report.further import further_beside, further_rows
from harness.report.model import Results
from harness.report.page import unpacked
from harness.report.verify import verify_report
from harness.report.writer import build_report, write_further
from tests.report import factory
from tests.report.browsing import Opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.unit

BUILT = {"class": "built", "signature": None, "reason": "", "precision": "int8", "kept": 4, "wanted": 5}
FAILED = {
    **BUILT,
    "class": "build_failed",
    "signature": "no-luck",
    "reason": "none",
    "precision": None,
    "wanted": 0,
}
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


def entry() -> dict[str, Any]:
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


def reported(folder: Path, *entries: dict[str, Any]) -> Results:
    with Store(folder) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome, "the log")
    write_further(folder, entries)
    return build_report(factory.matrix(), (factory.case(),), Store(folder), folder)


def test_it_is_in_results_json_and_on_the_page_and_verified(tmp_path: Path) -> None:
    assert reported(tmp_path, entry()).further == (entry(),)
    data = json.loads((tmp_path / "results.json").read_text())
    assert data["further"] == [entry()]
    assert Results.from_json(data).further == (entry(),)
    page = (tmp_path / "index.html").read_text()
    assert "<b>large" not in page
    assert "K is <b>large</b>" in unpacked(page)
    assert verify_report(factory.matrix(), (factory.case(),), Store(tmp_path), tmp_path) == []


@pytest.mark.browser
def test_the_page_has_it_before_the_matrix(browser: Browser, tmp_path: Path) -> None:
    reported(tmp_path, entry())
    made = Opened(browser, tmp_path / "index.html")
    shown = made.page.locator("#further")
    assert "the rest builds" in shown.inner_text()
    assert shown.locator("thead th").count() == shown.locator("tbody tr").first.locator("td").count()
    assert made.complaints == []
    made.context.close()


def test_a_report_without_it_says_nothing_of_it_and_an_earlier_check_s_goes(tmp_path: Path) -> None:
    strange = {**entry(), "cell": "another.cell-there"}
    assert reported(tmp_path, strange).further == ()
    reported(tmp_path, entry())
    assert reported(tmp_path).further == ()
    assert "further" not in json.loads((tmp_path / "results.json").read_text())
    assert 'id="further"' not in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        *("{", '{"a": 1}', "[1]", '[{"cell": "x"}]'),
        json.dumps([entry()]).replace('"max_rel": 0.5', f'"max_rel": {10**400}'),
    ],
    ids=range(5),
)
def test_a_file_that_is_not_one_is_one_sentence(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "further.json").write_text(wrong)
    with pytest.raises(HandledError, match=r"further\.json: .*; run the check again"):
        further_beside(tmp_path)


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
            "builds, INT8 4/5 (the best); costs accuracy; outputs off by 0.5 at most, cosine 0.900000; proven by a.b",
        ),
        ("workarounds", "vain", "in vain: fails to build (no-luck)"),
        ("workarounds", "identity", "nothing to change"),
    ]
    bare = copy.deepcopy(entry())
    bare.update(blockers=None, workarounds=None)
    bare["leave_float"]["became"] = None
    assert [row.answer for row in further_rows([bare])] == ["does not help"]


def test_blockers_of_one_operator_and_cause_are_one_row() -> None:
    found = entry()
    alike = [
        {**BLOCKER, "nodes": [f"/{at}"], "named": True, "signature": "odd", "title": "T"} for at in range(6)
    ]
    found["blockers"]["found"] = [*alike, BLOCKER]
    rows = [(row.about, row.answer) for row in further_rows([found], "blockers")]
    assert rows[0] == ("6 times TopK: /0, /1, /2, /3 and 2 more", "after a cut: odd: T")
    assert len(rows) == 4

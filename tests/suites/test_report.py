"""A suite's folder: lean records, those of several machines as one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.judge.classify import classify
from harness.judge.diagnosis import diagnose
from harness.record.outcome import Layer, Message, Outcome
from harness.record.store import Store
from harness.report.model import load_results
from harness.report.page import unpacked
from harness.report.writer import report_texts, write_report
from harness.suites.report import SuiteReport, absorb_suites, build_suites
from harness.suites.running import LONGEST_LOG, SuiteStore
from tests.report import factory
from tests.suites.records import ABOUT, FIRST, outcome, record

pytestmark = pytest.mark.unit


def built(reports: Path) -> SuiteReport:
    (found,) = build_suites(factory.matrix(), reports)
    return found


@pytest.mark.parametrize("ended", ["built", "ok", "wrong", "parse", "build", "crash", "fault"])
def test_a_record_reads_back_as_what_it_is_judged_by(tmp_path: Path, ended: str) -> None:
    """Class and cause are those of the outcome as it was observed."""
    whole = replace(outcome("bitshift", "rtx17", ended), native_output="chatter")
    store = SuiteStore(tmp_path, ABOUT, run="r1")
    with store:
        store.append(whole, "its log")
    (found,) = Store(store.path).outcomes()
    before, after = classify(whole), classify(found)
    assert after == before
    assert diagnose(found, after) == diagnose(whole, before)
    assert (found.cell, found.phases, found.stamps, found.end) == (
        whole.cell, whole.phases, whole.stamps, whole.end,
    )  # fmt: skip


def test_of_a_model_that_works_little_is_kept_and_of_a_log_its_end(tmp_path: Path) -> None:
    """But for the layers that the numbers of one that ran are judged by."""
    layer = Layer("l", "Conv", "int8")
    chatty = {"messages": (Message("INFO", "much"),), "layers": (layer,), "native_output": "more"}
    text = "x" * LONGEST_LOG + "last words\udcff"
    store = SuiteStore(tmp_path, ABOUT, run="r1")
    with store:
        for ended in ("built", "ok", "build"):
            store.append(replace(outcome("abs", "rtx17", ended), **chatty), text)  # type: ignore[arg-type]
    kept, ran, failed = Store(store.path).outcomes()
    assert (kept.messages, kept.nodes, kept.layers, kept.log_sha256) == ((), (), (), None)
    assert (ran.messages, ran.layers, ran.log_sha256) == ((), (layer,), None)
    assert failed.messages == (Message("INFO", "much"),)
    log = Store(store.path).log(failed.log_sha256 or "")
    assert log.endswith("last words\\udcff")
    assert len(log) < LONGEST_LOG + 10


def test_a_target_that_cannot_run_here_is_not_recorded(tmp_path: Path) -> None:
    refused = Outcome("abs.abs-rtx17", "abs", "abs", "rtx17", "not_run", "needs a GPU")
    store = SuiteStore(tmp_path, ABOUT, run="r1")
    with store:
        store.append(refused)
        store.append(outcome("abs", "ort131", "fault"))
    assert store.refused == {"rtx17": refused}
    assert store.unjudged == 1
    assert [each.target for each in Store(store.path).outcomes()] == ["ort131"]


def test_operators_are_cases_and_targets_that_ran_are_columns(tmp_path: Path) -> None:
    """In a results.json as any other, which `diff` reads."""
    folder = record(tmp_path, FIRST)
    built(tmp_path)
    found = load_results(folder)
    assert [target.id for target in found.targets] == ["rtx16", "rtx17", "ort131"]
    assert [(case.title, [each.name for each in case.variants]) for case in found.cases] == [
        ("Abs", ["abs"]), ("Add", ["add", "add_uint8"]), ("BitShift", ["bitshift"]), ("Mod", ["mod"]),
        ("Binarizer", ["binarizer"]),
    ]  # fmt: skip
    assert found.cell("mod", "mod", "ort131").cls == "inaccurate"
    assert found.cell("bitshift", "bitshift", "rtx17").signature == "bit-operator"
    assert {row.variant for row in found.step("rtx16", "rtx17").rows if row.kind == "fixed"} == {"add.add"}


def test_a_record_of_another_engine_version_speaks_for_nothing(tmp_path: Path) -> None:
    text = next((record(tmp_path, FIRST) / "records").iterdir())
    text.write_text(text.read_text().replace("1.7.1.116", "1.6.9"))
    assert [target.id for target in built(tmp_path).results.targets] == ["rtx16", "ort131"]


def test_the_page_is_that_of_any_report(tmp_path: Path) -> None:
    """An engine's markup is text."""
    record(tmp_path, FIRST)
    page = built(tmp_path).page.read_text()
    assert "<kernel>" not in page
    assert "<kernel> for test_add_A" in unpacked(page)


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    record(tmp_path / "a", FIRST)
    record(tmp_path / "b", dict(reversed(FIRST.items())))
    one, other = built(tmp_path / "a"), built(tmp_path / "b")
    assert report_texts(one.results) == report_texts(other.results)
    assert report_texts(built(tmp_path / "a").results) == report_texts(one.results)


def test_suites_of_several_machines_are_one(tmp_path: Path) -> None:
    """Taking the same in again changes nothing; each brings the operators of its own models."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    record(whole, FIRST)
    built(whole)
    folder = record(part, {"rtx17": {**FIRST["rtx17"], "abs": "crash"}}, run="r2", day="2026-11-21")
    about = json.loads((folder / "suite.json").read_text())
    about["models"]["relu"] = ["Relu", "14"]
    (folder / "suite.json").write_text(json.dumps(about))
    built(part)
    for taken, past in ((6, 1), (0, 0)):
        (sentence,) = absorb_suites(whole, part)
        said = f"{taken} records of the suite onnx-node and {past} of its runs of the past taken in"
        assert sentence == f"{part}: {said}"
    report = built(whole)
    (crashed,) = (cell for cell in report.results.cells if cell.id == "abs.abs-rtx17")
    assert crashed.past
    assert crashed.past.before == "built"
    assert "Relu" in unpacked(report.page.read_text())


def test_a_folder_without_a_description_is_one_sentence(tmp_path: Path) -> None:
    folder = record(tmp_path, FIRST)
    (folder / "suite.json").write_text("{}")
    with pytest.raises(HandledError, match=r"suite.json: cannot be read .*; run the suite again"):
        built(tmp_path)


def test_the_page_of_the_report_links_to_the_suites_that_were_written_before_it(tmp_path: Path) -> None:
    """A suite changes no page but its own."""
    link = 'suites/onnx-node/index.html\\">Every &lt;operator&gt;</a>'
    write_report(factory.results(), tmp_path)
    page = (tmp_path / "index.html").read_text()
    record(tmp_path, FIRST)
    built(tmp_path)
    assert (tmp_path / "index.html").read_text() == page
    assert link not in unpacked(page)
    write_report(factory.results(), tmp_path)
    assert link in unpacked((tmp_path / "index.html").read_text())

"""A suite's folder: lean records, a table by operator, the run before, whole or at fault, taken in from elsewhere."""

from __future__ import annotations

import json
import shutil
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
from harness.suites.report import SuiteReport, absorb_suites, build_suites, verify_suites
from harness.suites.running import LONGEST_LOG, SuiteStore
from tests.report import factory
from tests.suites.records import ABOUT, FIRST, outcome, record

pytestmark = pytest.mark.unit


def built(reports: Path) -> SuiteReport:
    (found,) = build_suites(factory.matrix(), reports)
    return found


def moved(reports: Path, kind: str) -> list[str]:
    """Return the cells that the summary names as broken, fixed or otherwise."""
    lines = (line.strip() for line in built(reports).lines())
    return [line.partition(": ")[2] for line in lines if line.startswith(f"{kind}: ")]


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


def test_a_run_is_compared_with_the_one_before_on_the_same_target(tmp_path: Path) -> None:
    """Also where its records are gone, as every night's are."""
    folder = record(tmp_path, FIRST)
    assert not any(moved(tmp_path, kind) for kind in ("broken", "fixed", "otherwise"))
    shutil.rmtree(folder / "records")
    now = {"abs": "crash", "bitshift": "built", "mod": "parse"}
    record(tmp_path, {**FIRST, "rtx17": {**FIRST["rtx17"], **now}}, run="r2", day="2026-11-21")
    assert moved(tmp_path, "broken") == ["abs (built before, crashed now)"]
    assert moved(tmp_path, "fixed") == ["bitshift (parse_failed before, built now)"]
    assert moved(tmp_path, "otherwise") == ["mod (crashed before, parse_failed now)"]
    assert [cell.id for cell in built(tmp_path).regressed] == ["abs.abs-rtx17"]
    record(tmp_path, {"rtx17": {"abs": "crash"}}, run="r3", day="2026-11-22")
    assert built(tmp_path).regressed == [], "the run before failed as well"


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


def test_a_fault_of_the_folder_is_found(tmp_path: Path) -> None:
    folder = record(tmp_path, FIRST)
    built(tmp_path)
    assert verify_suites(factory.matrix(), tmp_path) == []
    page = folder / "index.html"
    page.write_text(page.read_text().replace("</title>", "!</title>"))
    (folder / "summary.md").unlink()
    next(folder.glob("logs/*/*")).unlink()
    next(folder.glob("history/*")).unlink()
    faults = "\n".join(verify_suites(factory.matrix(), tmp_path))
    assert "index.html: does" in faults
    assert "summary.md: missing" in faults
    assert "the log cannot be read" in faults
    assert "missing or short" in faults


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
    assert [cell.id for cell in report.regressed] == ["abs.abs-rtx17"]
    assert "Relu" in report.page.read_text()


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

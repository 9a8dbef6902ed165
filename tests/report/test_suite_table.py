"""The table of a suite: grouped by operator, compared between versions and runs, written and verified."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.history.suites import suite_history
from harness.record.outcome import Message
from harness.record.suites import SUITES, SuiteStore
from harness.report.page import unpacked
from harness.report.suites import (
    SuiteResults,
    absorb_suites,
    build_suites,
    compare,
    judge_item,
    verify_suites,
)
from harness.report.suites.model import Pair
from harness.report.suites.page import groups, render_suite
from harness.report.writer import write_report
from tests.report import factory, suite_records
from tests.report.suite_records import FIRST, record

pytestmark = pytest.mark.unit


def built(reports: Path) -> SuiteResults:
    (found,) = build_suites(factory.matrix(), reports)
    return found


def models(turned: object) -> list[str]:
    return [each.model for each in turned]  # type: ignore[attr-defined]


def test_what_a_step_fixed_and_broke_is_told_apart() -> None:
    """Only what both sides judged is compared, and that one side had no GPU to run on is no change."""
    before = {
        "a": "ok",
        "b": "parse_failed x",
        "c": "build_failed",
        "d": "built",
        "e": "not_run",
        "f": "crashed",
    }
    after = {
        "a": "crashed",
        "b": "built",
        "c": "build_failed y",
        "d": "ok",
        "e": "ok",
        "f": "crashed",
        "g": "ok",
    }
    step = compare(before, after)
    assert (models(step.broken), models(step.fixed), models(step.otherwise)) == (["a"], ["b"], ["c"])
    assert (step.compared, step.apart) == (5, 2)
    assert (
        step.sentence == "1 broken, 1 fixed, 1 fail in another way, of 5 models, 2 judged on one side alone"
    )


def test_models_are_rows_by_operator_and_opset_and_targets_are_columns(tmp_path: Path) -> None:
    record(tmp_path, FIRST)
    found = built(tmp_path)
    assert [target.id for target in found.targets] == ["rtx16", "rtx17", "ort131"]
    assert [(operator, opset, len(every)) for operator, opset, every in found.rows()] == [
        ("Abs", "13", 1), ("Add", "14", 2), ("BitShift", "11", 1), ("Mod", "13", 1), ("Binarizer", "ai.onnx.ml 1", 1),
    ]  # fmt: skip
    rtx17 = found.targets[1]
    assert rtx17.counts == {"built": 2, "parse_failed": 2, "build_failed": 1, "crashed": 1}
    assert (rtx17.seconds, rtx17.peak_mib, rtx17.unparsed) == (5.0, 70, 0)
    assert found.ended_on("ort131")["mod"] == "inaccurate"
    assert found.ended_on("rtx17")["bitshift"] == "parse_failed bit-operator"
    assert "Bit arithmetic" in found.advice["bit-operator"].title


def test_each_version_is_compared_with_the_ones_before_it_and_no_other_engine(tmp_path: Path) -> None:
    record(tmp_path, FIRST)
    (pair,) = built(tmp_path).versions
    assert (pair.before, pair.after) == ("rtx16", "rtx17")
    assert models(pair.step.fixed) == ["add"]
    assert models(pair.step.otherwise) == ["add_uint8", "mod"]


def test_a_run_is_compared_with_the_one_before_on_the_same_target(tmp_path: Path) -> None:
    """Also where its records are gone, as every night's are; runs that agree add no file."""
    yesterday, today = tmp_path / "yesterday", tmp_path / "today"
    record(yesterday, FIRST)
    assert built(yesterday).runs == ()
    (yesterday / "history").rename(tmp_path / "kept")
    (today).mkdir()
    (tmp_path / "kept").rename(today / "history")
    record(
        today,
        {**FIRST, "rtx17": {**FIRST["rtx17"], "abs": "crash", "bitshift": "built"}},
        run="r2",
        day="2026-11-21",
    )
    found = built(today)
    by_target = {pair.target: pair for pair in found.runs}
    assert by_target["rtx16"].step.sentence.startswith("0 broken, 0 fixed, 0 fail in another way, of 6")
    assert models(by_target["rtx17"].step.broken) == ["abs"]
    assert models(by_target["rtx17"].step.fixed) == ["bitshift"]
    assert by_target["rtx17"].before == "2026-11-20 (1.7.1.116)"
    assert list(found.regressed()) == [("rtx17", "abs")]
    names = [(run.run, run.target) for run in suite_history(today, "onnx-node")]
    assert sorted(names) == [("r1", "ort131"), ("r1", "rtx16"), ("r1", "rtx17"), ("r2", "rtx17")]
    again = built(today)
    assert again == found, "a report made again says the same"


def test_a_record_of_another_engine_version_speaks_for_nothing(tmp_path: Path) -> None:
    store = record(tmp_path, FIRST)
    text = next((store.path / "records").iterdir())
    text.write_text(text.read_text().replace("1.7.1.116", "1.6.9"))
    assert [target.id for target in built(tmp_path).targets] == ["rtx16", "ort131"]


def test_the_page_is_read_without_its_script(tmp_path: Path) -> None:
    """Every way to fail, message and models, is in its text; what engines say is text."""
    record(tmp_path, FIRST)
    built(tmp_path)
    page = (tmp_path / SUITES / "onnx-node.html").read_text()
    assert "no &lt;kernel&gt; for mod" in page
    assert "<kernel>" not in page
    assert 'href="#c-bit-operator"' in page
    assert 'id="c-bit-operator"' in page
    assert "The ONNX parser of this version does not take Abs" not in page
    assert "The ONNX parser of this version does not take Add" in page
    before, after = (factory.matrix().target(name).label for name in ("rtx16", "rtx17"))
    assert f"<b>{before} → {after}</b>: 0 broken, 1 fixed, 2 fail in another way, of 6 models" in page
    assert '<a href="#op-Add-14"><b>Add 14</b></a>: build failed → built' in page
    row = page.partition('<tbody id="op-Add-14"')[2].partition("</tbody>")[0]
    assert "data-differs" in row
    assert "2 of 2" in row
    assert "src=" not in page
    assert "url(" not in page


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    record(tmp_path / "a", FIRST)
    record(tmp_path / "b", dict(reversed(FIRST.items())))
    one, other = built(tmp_path / "a"), built(tmp_path / "b")
    assert render_suite(one, "onnx-node") == render_suite(other, "onnx-node")
    texts = [(tmp_path / name / SUITES / "onnx-node.json").read_text() for name in "ab"]
    assert texts[0] == texts[1]
    data = json.loads(texts[0])
    assert data["schema"] == 1
    (mod,) = [model for model in data["models"] if model["id"] == "mod"]
    assert data["endings"][mod["ended"]["rtx17"]]["class"] == "crashed"


def test_a_fault_of_the_folder_is_found(tmp_path: Path) -> None:
    store = record(tmp_path, FIRST)
    built(tmp_path)
    assert verify_suites(factory.matrix(), tmp_path) == []
    page = tmp_path / SUITES / "onnx-node.html"
    page.write_text(page.read_text() + " ")
    (tmp_path / SUITES / "onnx-node.json").unlink()
    faults = verify_suites(factory.matrix(), tmp_path)
    assert [fault.rpartition("/")[2].partition(";")[0] for fault in faults] == [
        "onnx-node.json: missing",
        "onnx-node.html: does not follow from the records",
    ]
    logs = next((store.path / "logs").iterdir())
    logs.write_bytes(b"")
    assert any(
        "holds no log of onnx-node.mod-ort131" in fault for fault in verify_suites(factory.matrix(), tmp_path)
    )


def test_suites_of_several_machines_are_one(tmp_path: Path) -> None:
    """Taking the same in again changes nothing."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    record(whole, FIRST)
    built(whole)
    record(part, {"rtx17": {**FIRST["rtx17"], "abs": "crash"}}, run="r2", day="2026-11-21")
    built(part)
    (said,) = absorb_suites(whole, part)
    assert said == f"{part}: 6 records of the suite onnx-node and 1 of its runs of the past taken in"
    assert list(built(whole).regressed()) == [("rtx17", "abs")]
    (said,) = absorb_suites(whole, part)
    assert said == f"{part}: 0 records of the suite onnx-node and 0 of its runs of the past taken in"
    assert len(list(SuiteStore(whole / SUITES / "onnx-node").kept())) == 24


def test_a_history_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    record(tmp_path, FIRST)
    built(tmp_path)
    file = next((tmp_path / "history" / SUITES / "onnx-node").iterdir())
    file.write_text("{}")
    with pytest.raises(HandledError, match=r"not a suite's history .*; mend or delete it"):
        built(tmp_path)


def test_every_class_of_a_hand_made_outcome_is_judged() -> None:
    """The harness's own trouble is none of the engine's."""
    whats = ("built", "ok", "wrong", "parse", "build", "crash", "fault")
    classes = [str(judge_item(suite_records.outcome("abs", "rtx17", what))[0].cls) for what in whats]
    assert classes == ["built", "ok", "inaccurate", "parse_failed", "build_failed", "crashed", "infra_error"]


def test_the_page_of_the_report_links_to_the_suites_that_were_written_before_it(tmp_path: Path) -> None:
    """A suite changes no page but its own."""
    link = '"suites/onnx-node.html": "Every <operator>"'
    write_report(factory.results(), tmp_path)
    page = (tmp_path / "index.html").read_text()
    record(tmp_path, FIRST)
    built(tmp_path)
    assert (tmp_path / "index.html").read_text() == page
    assert link not in unpacked(page)
    write_report(factory.results(), tmp_path)
    assert link in unpacked((tmp_path / "index.html").read_text())


def test_steps_to_the_next_version_are_told_first_and_apart_from_other_hardware(tmp_path: Path) -> None:
    targets = {"rtx15": "1.5", "rtx16": "1.6", "rtx17": "1.7", "rtx17-sm75": "1.7"}
    record(tmp_path, FIRST)
    plain = built(tmp_path)
    step = plain.versions[0].step
    sides = [pair for pair in combinations(targets, 2) if pair[1] != "rtx17-sm75" or pair[0] == "rtx17"]
    several = replace(
        plain,
        targets=tuple(replace(plain.targets[0], id=name, version=targets[name]) for name in targets),
        versions=tuple(Pair(before, after, step) for before, after in sides),
    )
    assert [[(pair.before, pair.after) for pair in pairs] for _, pairs in groups(several)] == [
        [("rtx15", "rtx16"), ("rtx16", "rtx17")],
        [("rtx17", "rtx17-sm75")],
        [("rtx15", "rtx17")],
    ]


def test_messages_that_differ_by_the_model_in_a_name_alone_are_one_way_to_end(tmp_path: Path) -> None:
    store = SuiteStore(tmp_path / SUITES / "onnx-node", suite_records.ABOUT)
    with store:
        for model in ("add", "add_uint8"):
            said = Message("ERROR", f"no kernel for Add_test_{model.title()}_function_A")
            store.append(
                replace(suite_records.outcome(model, "rtx17", "build"), messages=(said,), nodes=()), "log"
            )
    (ending,) = built(tmp_path).endings
    assert "Add_…_function_A" in ending.reason

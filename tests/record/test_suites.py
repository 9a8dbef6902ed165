"""The store of a suite: lean records that read back, logs in one file, and what a killed writer leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.judge.classify import classify
from harness.judge.diagnosis import diagnose
from harness.record.outcome import Layer, Message, Outcome
from harness.record.suites import LONGEST_LOG, SUITES, SuiteStore
from tests.report.suite_records import ABOUT, FIRST, outcome, record

pytestmark = pytest.mark.unit


def read(path: Path) -> list[Outcome]:
    return [each.outcome for each in SuiteStore(path).kept()]


@pytest.mark.parametrize("what", ["built", "ok", "wrong", "parse", "build", "crash", "fault"])
def test_a_record_reads_back_as_what_it_is_judged_by(tmp_path: Path, what: str) -> None:
    """Class and cause are those of the outcome as it was observed; times and memory are rounded."""
    whole = outcome("bitshift", "rtx17", what)
    with SuiteStore(tmp_path, ABOUT) as store:
        store.append(whole)
    (found,) = read(tmp_path)
    before, after = classify(whole, got={}), classify(found, got={})
    assert after == before
    assert diagnose(found, after) == diagnose(whole, before)
    assert found.phases == {"parse": 0.0012, "build": 0.02}
    assert found.stamps == replace(whole.stamps, model_sha256="a" * 12)
    assert (found.cell, found.variant, found.target) == (whole.cell, whole.variant, whole.target)
    assert found.end == whole.end


def test_of_what_went_well_little_is_kept(tmp_path: Path) -> None:
    """But what the numbers of a model that ran are judged by."""
    layer = Layer("l", "Conv", "int8")
    chatty = {"messages": (Message("INFO", "much"),), "layers": (layer,), "native_output": "more"}
    with SuiteStore(tmp_path, ABOUT) as store:
        for what in ("built", "ok", "build"):
            store.append(replace(outcome("abs", "rtx17", what), **chatty))  # type: ignore[arg-type]
    built, ran, failed = read(tmp_path)
    assert (built.messages, built.nodes, built.layers) == ((), (), ())
    assert (ran.messages, ran.layers) == ((), (layer,))
    assert ran.nodes
    assert failed.messages == (Message("INFO", "much"),)
    assert failed.layers == ()
    lines = next((tmp_path / "records").iterdir()).read_text().splitlines()
    assert len(lines[2]) < 300, "a line a model, and thousands of models"


def test_what_records_have_in_common_stands_once(tmp_path: Path) -> None:
    record(tmp_path, FIRST)
    (file,) = (tmp_path / SUITES / "onnx-node" / "records").iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 1 + len(FIRST) + 18
    assert sum("stamps" in line for line in lines) == len(FIRST)
    (first, *_) = SuiteStore(tmp_path / SUITES / "onnx-node").kept()
    assert first.place == ("Abs", "13")


def test_the_logs_of_a_run_are_one_file_and_models_that_work_keep_none(tmp_path: Path) -> None:
    store = record(tmp_path, FIRST)
    (file,) = (store.path / "logs").iterdir()
    assert file.read_text().count("\n==== ") + 1 == 10
    assert "abs" not in file.read_text()
    logs = {each.cell: SuiteStore(store.path).log(each) for each in read(store.path) if each.log_sha256}
    assert logs["onnx-node.mod-rtx17"] == "[ERROR] what rtx17 said of mod"


def test_a_log_keeps_its_end(tmp_path: Path) -> None:
    """A line of an engine's that looks like another log's first is none."""
    text = "x" * LONGEST_LOG + "\n==== onnx-node.abs-rtx17 000000000000 5\nlast words\udcff"
    with SuiteStore(tmp_path, ABOUT) as store:
        one = store.append(outcome("abs", "rtx17", "crash"), text)
        other = store.append(outcome("add", "rtx17", "crash"), "short")
    found = SuiteStore(tmp_path).log(one)
    assert found.endswith("last words\\udcff")
    assert len(found) < LONGEST_LOG + 10
    assert SuiteStore(tmp_path).log(other) == "short"


def test_what_a_killed_writer_leaves_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    store = record(tmp_path, {"rtx17": FIRST["rtx17"]})
    for folder in ("records", "logs"):
        (file,) = (store.path / folder).iterdir()
        file.write_bytes(file.read_bytes()[:-4])
    found = read(store.path)
    assert [each.variant for each in found] == ["abs", "add", "add_uint8", "bitshift", "mod"]
    again = SuiteStore(store.path)
    assert again.log(found[-1]) == "[ERROR] what rtx17 said of mod"


@pytest.mark.parametrize(
    ("damage", "says", "left"),
    [
        (('"schema": 2', '"schema": 9'), "schema 9, this harness reads 2", 0),
        (('"state": "done"', '"state": done'), "not a record", 1),
        (('"state": "done"', '"state": 7'), "not a record this harness reads", 1),
        (('"of": 0', '"of": 5'), "not a record this harness reads", 1),
        (('"about"', '"abort"'), "not a record this harness reads", 0),
    ],
)
def test_a_damaged_line_is_one_sentence_with_its_place(
    tmp_path: Path, damage: tuple[str, str], says: str, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    store = record(tmp_path, {"rtx17": {"abs": "built", "add": "built"}})
    (file,) = (store.path / "records").iterdir()
    file.write_text(file.read_text().replace(*damage, 1))
    again = SuiteStore(store.path)
    kept = tuple(again.kept())
    # Without what it is about, nothing in the file is a record.
    assert len(kept) == left
    assert again.faults[0].startswith(f"{file}:")
    assert says in again.faults[0]
    assert capsys.readouterr().err.splitlines() == list(again.faults)


def test_records_of_an_older_schema_are_one_sentence(tmp_path: Path) -> None:
    store = record(tmp_path, {"rtx17": {"abs": "built", "add": "built"}})
    (file,) = (store.path / "records").iterdir()
    file.write_text(file.read_text().replace('"schema": 2', '"schema": 1'))
    again = SuiteStore(store.path)
    assert tuple(again.kept()) == ()
    said = "holds records of schema 1, written by an older version, which are passed over; run again"
    assert again.faults == (f"{file.parent}: {said}",)


def test_a_damaged_log_is_not_shown(tmp_path: Path) -> None:
    store = record(tmp_path, {"rtx17": {"mod": "crash"}})
    (file,) = (store.path / "logs").iterdir()
    file.write_text(file.read_text().replace("[ERROR]", "[error]"))
    (found,) = read(store.path)
    with pytest.raises(
        HandledError, match=r"the log of onnx-node\.mod-rtx17 is not the one that was recorded"
    ):
        SuiteStore(store.path).log(found)
    file.write_bytes(b"==== \xca 9b7c0e76159a 3\nno\n")
    with pytest.raises(HandledError):
        SuiteStore(store.path).log(found)


def test_two_writers_of_one_name_have_a_file_each(tmp_path: Path) -> None:
    with SuiteStore(tmp_path, ABOUT) as one, SuiteStore(tmp_path, ABOUT) as other:
        one.append(outcome("abs", "rtx17", "built"))
        other.append(outcome("add", "rtx17", "crash"), "its log")
    assert sorted(path.name for path in (tmp_path / "records").iterdir()) == [
        "run-main.2.jsonl",
        "run-main.jsonl",
    ]
    assert {each.variant for each in read(tmp_path)} == {"abs", "add"}

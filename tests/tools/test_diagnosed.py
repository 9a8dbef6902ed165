"""A suite's records as a measure of the diagnosis: what counts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from harness.judge.diagnosis import load_signatures
from harness.record.outcome import End, Message, Node, Outcome, ParserError
from harness.record.suites import SUITES, About, SuiteStore
from tools.diagnosed import Coverage, count, judge, main, table

REFUSED = ParserError("false", code="UNSUPPORTED_NODE", node="/n", operator="BitShift")
MINE = pytest.mark.unit


def outcome(name: str, *refusals: ParserError, target: str = "rtx17", text: str = "") -> Outcome:
    return Outcome(
        f"onnx_node[{name}]-{target}", "onnx_node", name, target, "done",
        end=End("finished"),
        failed_phase="parse" if refusals else "build" if text else None,
        parser_errors=refusals,
        messages=(Message("ERROR", text),) if text else (),
    )  # fmt: skip


def counted(*outcomes: Outcome) -> Coverage:
    signatures = load_signatures()
    return count("rtx17", [judge(each, signatures) for each in outcomes], signatures)


def many(number: int, *refusals: ParserError, text: str = "", name: str = "m") -> list[Outcome]:
    return [outcome(f"{name}{each}", *refusals, text=text) for each in range(number)]


@MINE
def test_failures_are_counted_by_signature_and_what_works_is_not() -> None:
    found = counted(*many(3), *many(2, REFUSED), outcome("odd", text="nobody knows this"))
    assert found.classes == {"built": 3, "parse_failed": 2, "build_failed": 1}
    (only,) = found.signatures
    assert (only.id, only.count, only.unplaced, only.model) == ("bit-operator", 2, 0, "m0")
    assert found.unsigned == (("odd", "build failed: nobody knows this"),)
    lines = list(table(found))
    assert lines[0] == "rtx17: 6 models: 3 built, 2 parse_failed, 1 build_failed"
    assert lines[1] == "3 failures, 1 (33.3%) without a signature"
    assert lines[2].strip() == "2 (66.7%)  bit-operator: Bit arithmetic (m0: BitShift node '/n')"
    assert lines[3] == "  none  odd: build failed: nobody knows this"


@MINE
@pytest.mark.parametrize(("unknown", "wanting"), [(15, False), (16, True)])
def test_more_than_fifteen_of_a_hundred_without_a_signature_are_too_many(
    *, unknown: int, wanting: bool
) -> None:
    operators = ["BitShift", "QLinearConv", "Unique", "StringSplit", "Adam", "DFT", "Optional"]
    known = [
        outcome(f"k{at}", dataclasses.replace(REFUSED, operator=operators[at % 7]))
        for at in range(100 - unknown)
    ]
    found = counted(*known, *many(unknown, text="nobody knows this")).complaints()
    assert found == (
        [f"rtx17: {unknown}.0% of the failures have no signature, more than 15%"] if wanting else []
    )


@MINE
def test_a_signature_that_covers_more_than_a_fifth_is_no_diagnosis() -> None:
    operators = ["QLinearConv", "Unique", "StringSplit", "Adam"]
    rest = [outcome(f"k{at}", dataclasses.replace(REFUSED, operator=operators[at % 4])) for at in range(79)]
    assert counted(*rest, *many(20, REFUSED), outcome("last", text="unknown")).complaints() == []
    assert counted(*rest, *many(21, REFUSED)).complaints() == [
        "rtx17: bit-operator covers 21.0% of the failures, more than 20%"
    ]


@MINE
def test_what_names_no_operator_and_node_and_what_is_generic_count_as_nothing() -> None:
    """A diagnosis that fits any model, or says nowhere where it is, tells a reader of a thousand nodes little."""
    dynamic = "Network has dynamic or shape inputs, but no optimization profile has been defined."
    usage = "Error Code 3: API Usage Error (Parameter check failed, condition: a == b)"
    found = counted(outcome("d", text=dynamic), outcome("u", text=usage))
    assert [name for name, _ in found.unsigned] == ["d", "u"]
    assert [(each.id, each.unplaced) for each in found.signatures] == [("dynamic-without-profile", 1)]
    assert (
        "rtx17: dynamic-without-profile names operator and node in none of its failures" in found.complaints()
    )
    placed = counted(dataclasses.replace(outcome("d", text=dynamic), nodes=(Node("/r", "Reshape"),)))
    assert placed.unsigned == ()


@MINE
def test_a_refusal_of_the_file_has_the_model_for_its_place() -> None:
    """No node has a part in it, whatever the number of nodes."""
    stamped = outcome("ir", text="Unsupported model IR version: 11, max supported IR version: 9")
    found = counted(dataclasses.replace(stamped, nodes=(Node("/a", "Relu"), Node("/b", "Relu"))))
    assert found.unsigned == ()
    assert [(each.id, each.unplaced, each.place) for each in found.signatures] == [
        ("runtime-ir-11", 0, "model")
    ]


def kept(reports: Path, *outcomes: Outcome) -> None:
    about = About(
        "onnx-node",
        "ONNX's own node tests",
        "made by hand",
        items={each.variant: ("Op", "1") for each in outcomes},
    )
    with SuiteStore(reports / SUITES / "onnx-node", about) as store:
        for each in outcomes:
            store.append(each)


@MINE
def test_the_records_of_a_suite_are_judged_without_an_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(tmp_path, *many(5), *many(2, REFUSED, name="bad"), outcome("other", target="rtx14"))
    where = tmp_path / "tables.json"
    assert main(["--reports", str(tmp_path), "--target", "rtx17", "--json", str(where)]) == 1
    said = capsys.readouterr().out
    assert "rtx17: 7 models: 5 built, 2 parse_failed" in said
    assert "rtx14" not in said
    assert "bit-operator covers 100.0% of the failures" in said
    (told,) = json.loads(where.read_text())
    assert (told["target"], told["failed"], told["signatures"][0]["id"]) == ("rtx17", 2, "bit-operator")
    assert main(["--reports", str(tmp_path), "--target", "rtx14"]) == 0


@MINE
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--reports", "nowhere"], "nowhere/suites/onnx-node: holds no records; make them"),
        (["--reports", "nowhere", "--target", "rtx18"], "holds no records of rtx18"),
        (["--reports", "nowhere", "--signatures", "none.yaml"], "none.yaml: no such file"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert says in said
    assert said.count("\n") == 1

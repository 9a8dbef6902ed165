# ruff: noqa: E501  (patterns and texts stand on one line)
"""The explanation of a whole log: severities, places, reasons, harmless messages, and unknown lines."""

from __future__ import annotations

import time

import pytest

from harness.judge import logs
from harness.judge.findings import explain, fits, version_in
from harness.judge.logs import prefixed, read_log
from harness.layers.names import taken_apart
from tests.report.pastes import LOGGERS, NOTHING, PASTES

pytestmark = pytest.mark.unit

NODE = "[E] 10: Could not find any implementation for node {}."


@pytest.mark.parametrize(("severity", "line"), LOGGERS)
def test_a_severity_is_read_wherever_a_logger_puts_it(severity: str, line: str) -> None:
    assert prefixed(line)[:2] == (severity, "Could not find any implementation for node n.")


@pytest.mark.parametrize(
    "line", ["[6] Assertion failed: x", "[optimizer.cpp::computeCosts::3869] Error", "[fp16] x", "Note: x"]
)
def test_brackets_of_another_kind_are_no_head(line: str) -> None:
    assert prefixed(line) == ("", line, True)


def test_every_paste_is_known_and_causes_come_first() -> None:
    for name, where, text in PASTES:
        found = explain(text).findings
        assert found[0].id == name, where
        assert [each.harmless for each in found] == sorted(each.harmless for each in found), where


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_known_error_is_none(text: str) -> None:
    assert explain(text).findings == ()


def test_the_reason_of_a_skipped_tactic_belongs_to_the_layer_that_fails_next() -> None:
    text = "\n".join(
        (
            '[W] Skipping tactic 0x0 due to Myelin error: tensor "801\'" has an unitialized dimension.',
            NODE.format("{ForeignNode[a...b]}"),
            "[E] 9: Skipping tactic 0x0 due to exception Unexpected type in resetWeightsTypeIfFP",
            NODE.format("{ForeignNode[c...d]}"),
        )
    )
    found = explain(text).findings
    assert [(each.id, each.node, each.where) for each in found] == [
        ("region-dimension-unknown", "{ForeignNode[a...b]}", 2),
        ("region-constant-type", "{ForeignNode[c...d]}", 4),
    ]
    assert (
        "The engine's last word: Skipping tactic 0x0 due to Myelin error: tensor \"801'\"" in found[0].cause
    )


def test_a_reason_far_away_or_of_another_layer_is_none() -> None:
    reason = "[E] 9: Skipping tactic 0x0 due to exception Unexpected type in resetWeightsTypeIfFP"
    between = [f"[W] {'abcdefghij'[n % 10] * (1 + n // 10)}" for n in range(60)]
    far = explain("\n".join([reason, *between, NODE.format("n")]))
    assert [each.id for each in far.causes] == ["region-constant-type", "no-implementation"]
    assert far.causes[0].node == ""


def test_a_name_is_printed_without_the_end_of_its_sentence() -> None:
    for end in (
        *(".", ".)", ".).", ".)\nSkipping this backend strategy."),
        " due to insufficient workspace. See verbose log for requested sizes.",
    ):
        found = explain("[E] Internal Error (Could not find any implementation for node /conv1/Conv" + end)
        assert [each.node for each in found.causes] == ["/conv1/Conv"], end


def test_what_stands_near_decides() -> None:
    region = NODE.format("{ForeignNode[/cnn/Conv]}")
    assert explain(region).causes[0].id == "no-implementation-region"
    assert (
        explain(f"[W] Layer 'x' (SHUFFLE): Unsupported on DLA.\n{region}").causes[0].id
        == "dla-no-implementation"
    )
    magic = "[E] Error Code 1: Serialization (Serialization assertion magicTagRead == kMAGIC_TAG failed.Magic tag does not match)"
    assert explain(magic).causes[0].id == "plan-magic"
    cache = explain(f"{magic}\n[E] 4: The timing cache will not be used!")
    assert (cache.causes, [each.id for each in cache.findings]) == ((), ["timing-cache-unused"])


def test_a_log_is_read_with_its_version_and_the_callers() -> None:
    assert explain("&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec").version == "10.3.0"
    assert explain("anything", "8.6").version == "8.6"
    assert version_in(["[TensorRT v8601]"]) == "8.6.1"
    assert version_in(["libnvinfer_builder_resource.so.10.7.0: no"]) == "10.7.0"
    assert fits(">=8,<10", "9.2")
    assert not fits(">=8,<10", "10.0.1")
    assert fits(">=8,<10", "")


def test_lines_that_nobody_knows_are_told_and_those_that_only_say_where_are_not() -> None:
    text = '[E] ModelImporter.cpp:726: While parsing node number 3 [X -> "y"]:\n[E] never seen\n[W] nor this\nnor that\nSomeError: a'
    assert explain(text).unknown == ("never seen\n[W] nor this"[:10], "SomeError: a")
    assert explain("nothing of note").unknown == ("nothing of note",)


def test_a_fused_layer_is_taken_apart() -> None:
    found = taken_apart("w + w_q/QuantizeLinear + PWN(PWN(/b/Sigmoid), node_of_y)")
    assert found == ("w", "w_q/QuantizeLinear", "/b/Sigmoid", "node_of_y")
    assert taken_apart("{ForeignNode[a.../b]}") == ("a", "/b")
    assert taken_apart("/a/Conv") == ()
    assert len(taken_apart("PWN(" * 500 + "a" + ")" * 500)) <= 1


@pytest.mark.parametrize(
    "unit", ["a", "(", "[E] ", "{ForeignNode[", "PWN(", "x: \n", "\n", "[W] Skipping tactic 0 due to\n"]
)
def test_a_flood_of_anything_is_read_in_seconds(unit: str) -> None:
    start = time.process_time()
    found = explain(unit * (300_000 // len(unit)))
    assert time.process_time() - start < 8
    assert len(found.unknown) <= 40


def test_of_a_flood_the_beginning_and_the_end_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_MESSAGES", 2_000)
    monkeypatch.setattr(logs, "DROPPED", 100)
    words = [f"[W] {'x' * (n % 97)} {'y' * (n % 89)} {'z' * (n % 31)}" for n in range(2_100)]
    said = read_log(["[TensorRT v8601]", *words, NODE.format("n")])
    assert len(said.order) <= 2_000
    assert said.order[0][1] == "[TensorRT v8601]"
    assert explain([*words, NODE.format("n")]).causes[0].id == "no-implementation"

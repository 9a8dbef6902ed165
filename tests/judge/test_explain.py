"""A judged cell in words: why it failed, what the engine said, and a line that runs it again."""

from __future__ import annotations

import pytest

from harness.case import Recipe, Typing
from harness.case.model import Calibrator, Plugin, Profile
from harness.judge.cell import complaints, describe_recipe, explain, headline, judge_cell, pytest_command
from harness.known.cell import known_of
from harness.record.outcome import End, Message, ParserError
from harness.words import Class
from tests.judge.test_cell import cell, record

pytestmark = pytest.mark.unit


def test_a_failure_is_told_from_verdict_to_next_command() -> None:
    here = cell(outcome=Class.OK)
    text = explain(
        judge_cell(
            here,
            record(
                here,
                missing_api="IBuilderConfig.int8_calibrator",
                failed_phase="build",
                messages=(Message("INFO", "all is well"), Message("ERROR", "it is\nnot")),
                parser_errors=(
                    ParserError("no such operator", node="/conv"),
                    ParserError("", operator="Mish"),
                ),
            ),
        )
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "api_removed (regressed): Implicit INT8 quantisation is gone"
    assert "claim    needs a call that it lacks; reported in an issue to work" in lines
    assert "place    the record does not tell" in lines
    assert "cell     toy.v-trt86: V" in lines
    assert any(line.startswith("known as implicit-int8-removed: ") for line in lines)
    assert any(line.startswith("advice   ") for line in lines)
    assert any(line.startswith("see      https://") for line in lines)
    assert "[ERROR] it is not" in lines
    assert "[parser] /conv: no such operator" in lines
    assert "[parser] Mish:" in lines
    assert "all is well" not in text
    assert "again    pytest matrix.yaml::toy.v-trt86" in lines
    assert "more     trt-compat show toy.v-trt86" in lines


NO_TACTIC = (
    Message("WARNING", "Skipping tactic 0x01 due to exception the first"),
    Message("WARNING", "Skipping tactic 0x02 due to exception no kernel image"),
    Message("ERROR", "10: Could not find any implementation for node /conv + PWN(/act)."),
)


def test_the_last_skipped_tactic_is_told_as_the_reason() -> None:
    """The error "Could not find any implementation" has no reason in it; the tactic skipped last has."""
    here = cell()
    judged = judge_cell(here, record(here, failed_phase="build", messages=NO_TACTIC))
    assert "last     Skipping tactic 0x02 due to exception no kernel image" in complaints(judged)
    advice = known_of([judged]).diagnosis
    assert advice is not None
    assert advice.cause.endswith("last word: Skipping tactic 0x02 due to exception no kernel image")


def test_where_the_engine_says_nothing_its_library_is_quoted() -> None:
    """The last lines of native output, such as an assertion's, stand in for messages."""
    here = cell()
    output = "\n".join(f"line {number}" for number in range(20))
    judged = judge_cell(here, record(here, end=End("signalled", signal="SIGABRT"), native_output=output))
    said = complaints(judged)
    assert said[said.index("messages") + 1 :] == [f"  line {number}" for number in range(12, 20)]


def test_of_what_works_nothing_is_quoted() -> None:
    """A warning-like ERROR of an engine that then did everything right is no evidence."""
    here = cell("ort131")
    judged = judge_cell(here, record(here, messages=(Message("ERROR", "no GPU here"),)))
    assert judged.classification.cls is Class.OK
    assert complaints(judged) == []


def test_a_flood_is_cut_off() -> None:
    here = cell()
    messages = tuple(Message("ERROR", f"{number} " + "x" * 1000) for number in range(50))
    text = explain(judge_cell(here, record(here, failed_phase="build", messages=messages)))
    said = [line for line in text.splitlines() if line.startswith("    ")]
    assert len(said) == 8
    assert max(map(len, said)) == len("    ") + 300


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (Recipe(), "graph typing"),
        (
            Recipe(Typing.WEAK, flags=("INT8", "FP16"), calibrator=Calibrator("entropy"), workspace_mib=5),
            "weak typing; flags INT8+FP16; entropy calibrator; workspace 5 MiB",
        ),
        (
            Recipe(calibrator=Calibrator("minmax", fault="float64")),
            "graph typing; minmax calibrator, wrong on purpose: float64",
        ),
        (
            Recipe(
                Typing.STRONG,
                parser_flags=(("NATIVE_INSTANCENORM", False), ("ENABLE_PLUGIN_OVERRIDE", True)),
                mark_outputs=("a", "b"),
                plugin=Plugin("P", "fp32"),
                profiles=(Profile("x", (1, 3), (2, 3), (4, 3)),),
            ),
            (
                "strong typing; NATIVE_INSTANCENORM off; ENABLE_PLUGIN_OVERRIDE on; outputs marked: a, b; "
                "plugin P accepting fp32; profile x (1, 3)..(4, 3)"
            ),
        ),
    ],
)
def test_a_recipe_in_one_line(recipe: Recipe, said: str) -> None:
    assert describe_recipe(recipe) == said


REFUSED = {
    "failed_phase": "parse",
    "parser_errors": (ParserError("false", "UNSUPPORTED_NODE", "/shift", "BitShift"),),
}


def test_the_first_line_is_the_known_cause_and_its_place() -> None:
    """What the engine said comes after it; of a failure that nobody knows it is all there is."""
    here = cell()
    judged = judge_cell(here, record(here, **REFUSED))
    assert headline(judged) == "Bit arithmetic, at BitShift node '/shift'"
    assert explain(judged).splitlines()[0] == f"parse_failed (new): {headline(judged)}"
    assert "place    BitShift node '/shift'" in complaints(judged)
    unknown = ParserError("what is this", "INVALID_NODE", "/odd", "Odd")
    judged = judge_cell(here, record(here, failed_phase="parse", parser_errors=(unknown,)))
    assert headline(judged) == (
        "no known signature: parse failed: Odd node '/odd': INVALID_NODE: what is this"
    )


def test_a_cell_that_finished_needs_no_signature() -> None:
    here = cell()
    judged = judge_cell(here, record(here))
    assert judged.diagnosis is None
    assert headline(judged) == judged.judgement.sentence


def test_the_lines_to_paste_name_only_what_is_not_usual() -> None:
    assert pytest_command("a.b-c") == ["pytest", "matrix.yaml::a.b-c"]
    elsewhere = ["pytest", "ci/m.yaml::a.b-c", "--cases=mine"]
    assert pytest_command("a.b-c", "ci/m.yaml", "mine") == elsewhere
    here = cell()
    told = explain(judge_cell(here, record(here, failed_phase="build")), cases="my cases").splitlines()
    assert [line.split(None, 1)[1] for line in told[-2:]] == [
        f"pytest matrix.yaml::{here.id} '--cases=my cases'",
        f"trt-compat show {here.id} '--cases=my cases'",
    ]

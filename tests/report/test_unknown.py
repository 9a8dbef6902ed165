"""What the report says of what nobody measured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.report.model import Results
from harness.report.page.html import render
from harness.report.page.unknown import questions, told_spans
from harness.report.results import assemble
from harness.report.writer import results_json
from harness.words import Class
from tests.report import factory

pytestmark = pytest.mark.unit


def with_failure() -> Results:
    """Return the results of a factory whose reported failure was measured as well."""
    measured = factory.build_failure("qdq", "trt86")
    made = {**factory.outcomes(), measured.cell: measured}
    return assemble(factory.matrix(), (factory.case(),), made)


def test_a_question_names_the_cell_what_is_claimed_of_it_and_the_line_to_run() -> None:
    asked = questions(factory.results())
    assert [(each.cell.id, each.claims) for each in asked] == [
        ("conv_silu[qdq]-trt86", ("fails to build, reported by users in TensorRT issue 3640",)),
        ("conv_silu[int8-entropy]-l4t86", ("fails to build, reported by users in TensorRT issue 3640",)),
        ("conv_silu[qdq]-trt102", ("works, guessed from TensorRT issue 3640",)),
    ]
    text = render(factory.results())
    assert "trt-compat run --pull -k &#39;conv_silu[qdq]-trt86&#39;" in text
    assert text.count('<section id="questions"') == text.count('<a href="#questions">') == 1


def test_what_is_measured_is_no_question_any_more_and_says_where_it_was_reproduced() -> None:
    before, after = factory.results(), with_failure()
    said = [
        next(v.reproduced for v in found.cases[0].variants if v.name == "qdq") for found in (before, after)
    ]
    assert said == ["nowhere yet", "on trt86"]
    assert [each.cell.id for each in questions(after)] == [
        "conv_silu[int8-entropy]-l4t86",
        "conv_silu[qdq]-trt102",
    ]
    assert "<b>Reproduced</b> nowhere yet" in render(before)
    assert "<b>Reproduced</b> on trt86" in render(after)


def test_of_what_nobody_claims_to_fail_nothing_is_said() -> None:
    controls = [v for v in factory.results().cases[0].variants if v.name in ("fp32", "qdq-between")]
    assert [v.reproduced for v in controls] == ["", ""]
    assert not any(span.series == "Reproduced" for v in controls for span in told_spans(v))


def test_a_result_that_is_out_of_date_answers_nothing() -> None:
    """The failure was of another model."""
    measured = factory.build_failure("qdq", "trt86")
    measured = replace(measured, stamps=replace(measured.stamps, model_sha256="0" * 64))
    made = {**factory.outcomes(), measured.cell: measured}
    results = assemble(factory.matrix(), (factory.case(),), made)
    assert questions(results)[0].cell.id == "conv_silu[qdq]-trt86"
    assert results.cases[0].variants[0].reproduced == "nowhere yet"


def test_results_of_an_earlier_harness_have_no_questions_and_can_be_read() -> None:
    data = json.loads(results_json(factory.results()))
    assert Results.from_json(data).questions == factory.results().questions
    del data["questions"]
    for case in data["cases"]:
        for variant in case["variants"]:
            del variant["reproduced"]
    assert Results.from_json(data).questions == ()


@pytest.mark.parametrize(
    ("field", "value"), [("target", "trt13"), ("variant", "none"), ("claims", [7]), ("claims", [-1])]
)
def test_a_question_of_no_cell_or_claim_is_refused(field: str, value: object) -> None:
    """A file of another hand may hold anything."""
    data = json.loads(results_json(factory.results()))
    data["questions"][0][field] = value
    with pytest.raises(ValueError, match="not there"):
        Results.from_json(data)


def test_who_says_that_it_builds_is_not_said_to_say_that_it_works() -> None:
    results = factory.results()
    (case,) = results.cases
    variants = tuple(
        replace(
            each,
            expectations=tuple(
                replace(c, level="builds") if c.outcome is Class.OK else c for c in each.expectations
            ),
        )
        for each in case.variants
    )
    asked = questions(replace(results, cases=(replace(case, variants=variants),)))
    assert asked[2].claims == ("builds, guessed from TensorRT issue 3640",)

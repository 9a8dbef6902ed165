"""What the report says of where a claimed failure was reproduced."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.report.model import Results
from harness.report.page.cells import told_spans
from harness.report.page.html import render
from harness.report.results import assemble
from harness.report.writer import results_json
from tests.report import factory

pytestmark = pytest.mark.unit


def with_failure() -> Results:
    """Return the results of a factory whose reported failure was measured as well."""
    measured = factory.build_failure("qdq", "trt86")
    made = {**factory.outcomes(), measured.cell: measured}
    return assemble(factory.matrix(), (factory.case(),), made)


def test_a_variant_says_where_it_was_reproduced() -> None:
    before, after = factory.results(), with_failure()
    said = [
        next(v.reproduced for v in found.cases[0].variants if v.name == "qdq") for found in (before, after)
    ]
    assert said == ["nowhere yet", "on trt86"]
    assert "<b>Reproduced</b> nowhere yet" in render(before)
    assert "<b>Reproduced</b> on trt86" in render(after)


def test_of_what_nobody_claims_to_fail_nothing_is_said() -> None:
    controls = [v for v in factory.results().cases[0].variants if v.name in ("fp32", "qdq-between")]
    assert [v.reproduced for v in controls] == ["", ""]
    assert not any(span.series == "Reproduced" for v in controls for span in told_spans(v))


def test_a_result_that_is_out_of_date_reproduces_nothing() -> None:
    """The failure was of another model."""
    measured = factory.build_failure("qdq", "trt86")
    measured = replace(measured, stamps=replace(measured.stamps, model_sha256="0" * 64))
    made = {**factory.outcomes(), measured.cell: measured}
    results = assemble(factory.matrix(), (factory.case(),), made)
    assert results.cases[0].variants[0].reproduced == "nowhere yet"


def test_results_of_an_earlier_harness_can_be_read() -> None:
    data = json.loads(results_json(factory.results()))
    data["questions"] = [{"case": "conv_silu"}]
    for case in data["cases"]:
        for variant in case["variants"]:
            del variant["reproduced"]
    assert {each.reproduced for each in Results.from_json(data).cases[0].variants} == {""}

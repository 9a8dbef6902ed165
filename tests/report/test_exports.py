"""The files beside the page: the schema describes results.json, and the table says the same."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.case import Expectation, load_cases
from harness.judge.cell import judge_cell
from harness.known.cell import known_of
from harness.matrix import load_matrix
from harness.plan import all_cells, find
from harness.record.from_json import fields_of
from harness.record.outcome import Outcome
from harness.report.model import Results
from harness.report.summary import summary
from harness.report.writer import COLUMNS, results_json, schema_text, table
from harness.words import Class
from tests.report import factory
from tests.report.poison import everywhere
from tests.report.test_further import entry

pytestmark = pytest.mark.unit

REAL = Path(__file__).parent / "data" / "real.jsonl"
HOSTILE = "=cmd|'/c calc'!A0 <b>&amp;\x00\x1b[31m\u202e\ufffe\ud800 ]]> \" \N{PILE OF POO}"


def schema() -> Any:
    """Return the published schema."""
    return json.loads(schema_text())


def faults(data: Any) -> list[str]:
    """Return the faults that the schema finds."""
    validator = jsonschema.Draft202012Validator(schema())
    return [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(data)]


def two_gpus() -> Results:
    """Return a matrix with a cell that a T4 and an L4 disagree on."""
    found = factory.two_gpus()
    return factory.assemble(factory.matrix(), (factory.case(),), {found[0].cell: found})


@pytest.mark.parametrize(
    "make",
    [
        *(factory.results, two_gpus, lambda: factory.results(hostile=HOSTILE)),
        lambda: dataclasses.replace(factory.results(), further=(entry(),)),
    ],
)
def test_results_keep_to_the_published_schema(make: Any) -> None:
    """Hand-made cells of every state, and unexpected strings."""
    assert faults(json.loads(results_json(make()))) == []


def test_cells_of_real_engines_keep_to_the_schema() -> None:
    root = Path(__file__).parents[2]
    cells = all_cells(load_matrix(root / "matrix.yaml"), load_cases(root / "cases"))
    outcomes = (Outcome.from_json(json.loads(line)) for line in REAL.read_text(encoding="utf-8").splitlines())
    made = tuple(known_of([judge_cell(find(cells, each.cell), each)]) for each in outcomes)
    found = dataclasses.replace(factory.results(), cells=made).to_json()["cells"]
    data = json.loads(results_json(factory.results()))
    assert faults({**data, "cells": json.loads(json.dumps(list(found), default=fields_of))}) == []


def test_the_schema_knows_every_field() -> None:
    """A field that is added to the results is described, or this fails."""
    data = json.loads(results_json(factory.results()))
    data["cells"][0]["unheard_of"] = data["targets"][0]["unheard_of"] = 1
    assert len([fault for fault in faults(data) if "unheard_of" in fault]) == 2


def rows(results: Results) -> list[dict[str, str]]:
    """Return the table as a reader gets it."""
    return list(csv.DictReader(io.StringIO(table(results), newline="")))


def test_the_table_has_every_cell_in_order_with_its_class_and_figures() -> None:
    """A spreadsheet agrees with the page."""
    results = factory.results()
    found = rows(results)
    assert [row["cell"] for row in found] == [cell.id for cell in results.cells]
    assert [row["class"] for row in found] == [str(cell.cls) for cell in results.cells]
    ran = next(row for row in found if row["cell"] == "conv_silu.qdq-ort131")
    assert ran["samples"] == "100"
    assert float(ran["median_ms"]) == pytest.approx(0.043)
    assert tuple(found[0]) == COLUMNS


def test_a_claim_on_some_gpus_says_so_in_both_exports() -> None:
    """A report on Turing must not read as one on every GPU."""
    case = factory.case()
    on_turing = Expectation.reported(Class.BUILD_FAILED, "==8.6.*", factory.ISSUE, compute_capability="7.5")
    one, *others = case.variants
    variants = (dataclasses.replace(one, expectations=(on_turing,)), *others)
    made = factory.assemble(factory.matrix(), (dataclasses.replace(case, variants=variants),), {})
    name = f"{case.name}.{one.name}-trt86"
    row = next(row for row in rows(made) if row["cell"] == name)
    told = json.loads(results_json(made))["cases"][0]["variants"][0]["claims"][0]
    assert told["compute_capability"] == "7.5"
    assert row["claim"] == told["says"] == "fails to build on SM 7.5 (T4, RTX 20, GTX 16)"


@pytest.mark.parametrize("text", [HOSTILE, "\udfff\x0b\u2066", "@SUM(1)", "n" * 10_000, "'\"\r\n,;\t|"])
def test_strangers_text_in_any_field_leaves_the_table_whole(text: str) -> None:
    """Same lines, no formula for a spreadsheet, and UTF-8."""
    results = everywhere(text)
    found = rows(results)
    assert [row["cell"] for row in found] == [cell.id for cell in results.cells]
    assert not any(
        value.startswith(("=", "+", "-", "@", "\t", "\r")) for row in found for value in row.values()
    )
    made = table(results)
    made.encode()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]", made)


def test_every_format_tells_that_gpus_disagree() -> None:
    """The T4's failure is the cell's; that an L4 works stands beside it."""
    results = two_gpus()
    (row,) = (row for row in rows(results) if row["compute_capability"])
    assert (row["class"], row["gpu"], row["compute_capability"]) == ("build_failed", "Tesla T4", "7.5")
    told = "GPUs disagree: build failed on Tesla T4; works on NVIDIA L4"
    assert told in summary(results)
    assert "disagree" not in summary(factory.results())

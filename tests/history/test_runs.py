"""One compact record a run: complete, readable again, never written twice."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import jsonschema
import pytest

from harness.errors import HandledError
from harness.history import (
    RunRecord,
    from_text,
    read_history,
    records,
    stack_of,
    take_history,
    to_text,
    update_history,
)
from harness.judge.cell import judge_cell
from harness.plan import all_cells, find
from harness.record.outcome import Latency, Outcome
from harness.record.store import Store
from harness.report.verify import verify_report
from harness.report.writer import build_report, results_json, schema_text
from harness.words import Class
from tests.history.seeded import CELL, OTHER, STACK, runs
from tests.report import factory

pytestmark = pytest.mark.unit


def made(*outcomes: Outcome) -> tuple[RunRecord, ...]:
    """Return the records of outcomes."""
    cells = all_cells(factory.matrix(), (factory.case(),))
    return records(judge_cell(find(cells, outcome.cell), outcome) for outcome in outcomes)


def in_run(outcome: Outcome, run: str, when: str, **environment: str) -> Outcome:
    """Return an outcome as of another run and machine."""
    seen = {**outcome.stamps.environment, **environment}
    return dataclasses.replace(
        outcome, stamps=dataclasses.replace(outcome.stamps, run=run, when=when, environment=seen)
    )


def test_a_record_reads_back_as_it_was_written() -> None:
    l4 = {"gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "580.95.05"}
    on_gpu = in_run(factory.outcome("qdq", "rtx15"), "r2", "2026-11-21T01:00:00.000+00:00", **l4)
    record, other = made(*factory.outcomes().values(), on_gpu)
    assert (from_text(to_text(record)), from_text(to_text(other))) == (record, other)
    assert record.file_name == "2026-11-20-r1.json"
    (stack,) = other.stacks
    assert (stack.device, stack.compute_capability, stack.driver) == tuple(l4.values())


def test_cells_that_say_nothing_of_an_engine_are_left_out() -> None:
    """Neither cells that were not run, nor those that the machinery broke."""
    record = made(*factory.outcomes().values())[0]
    assert "conv_silu.fp32-trt86" not in record.cells
    assert "conv_silu.fp32-rtx17" not in record.cells
    assert record.cells["conv_silu.qdq-rtx17"].cls is Class.BUILD_FAILED
    assert record.cells["conv_silu.qdq-rtx17"].signature == "no-implementation-qdq"


@pytest.mark.parametrize(
    ("samples", "median"),
    [((3.0, 1.0, 2.000004), 2.0), ((), None), ((0.0, 1.0), None), ((1.0, math.inf), None)],
)
def test_a_median_is_one_of_times(samples: tuple[float, ...], median: float | None) -> None:
    latency = Latency(samples, 0, "monotonic")
    entry = made(factory.ran("fp32", "ort131", latency=latency))[0].cells["conv_silu.fp32-ort131"]
    assert entry.median_ms == median


def test_an_image_built_here_is_known_by_what_it_is_made_of() -> None:
    """Its digest differs each time it is built, and would start the history anew every night."""
    stamps = factory.outcome("qdq", "rtx17").stamps
    tag = "trt-compat/packages:amd64-0123456789abcdef"
    one, other = (
        stack_of(dataclasses.replace(stamps, image=tag, image_digest=f"sha256:{digit}")) for digit in "12"
    )
    assert one == other
    pulled = dataclasses.replace(stamps, image="nvcr.io/nvidia/tensorrt:24.05-py3", image_digest="sha256:1")
    assert stack_of(pulled).image == "sha256:1"
    assert "engine==1.7.1.116" in stack_of(stamps).image


def test_what_is_kept_is_not_written_again_and_a_short_record_is(tmp_path: Path) -> None:
    """`report` may run while a run is under way, and any number of times after."""
    whole = made(*factory.outcomes().values())
    part = made(factory.outcome("qdq", "rtx15"))
    assert len(update_history(tmp_path, part)) == 1
    assert len(update_history(tmp_path, whole)) == 1
    assert update_history(tmp_path, whole) == update_history(tmp_path, part) == ()
    assert read_history(tmp_path) == whole
    assert [take_history(tmp_path / "there", tmp_path) for _ in range(2)] == [1, 0]
    assert read_history(tmp_path / "there") == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": 3}',
        '{"schema": 2}',
        '{"schema": 1}',
        '{"schema": 2, "stacks": 3}',
        '{"schema": 2, "run": "r", "when": "2026-01-01 soon", "stacks": [], "cells": {}}',
        to_text(runs([Class.OK], medians=[0.5])[0]).replace("0.5", '"a"'),
    ],
)
def test_a_record_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    """It is one sentence with the file in it."""
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "2026-01-01-r.json").write_text(text)
    with pytest.raises(HandledError, match=r"2026-01-01-r\.json: not a history record"):
        read_history(tmp_path)


def test_a_time_is_read_however_its_zone_is_written(tmp_path: Path) -> None:
    """One machine's files can be read by another: the Python of 3.10 does not know a "Z"."""
    written = made(in_run(factory.outcome("qdq", "rtx15"), "r", "2026-01-01T00:00:00Z"))
    update_history(tmp_path, written)
    assert read_history(tmp_path) == written


def test_a_record_under_another_name_is_refused(tmp_path: Path) -> None:
    """A copy would count a run twice."""
    update_history(tmp_path, runs([Class.OK]))
    path = next((tmp_path / "history").iterdir())
    path.with_name("2026-01-02-copy.json").write_bytes(path.read_bytes())
    with pytest.raises(HandledError, match=r"2026-01-01-r0\.json"):
        read_history(tmp_path)


def test_the_report_carries_the_past_and_its_schema_describes_it(tmp_path: Path) -> None:
    """Every cell that ever ran has a history, and a run is in the results' list."""
    with Store(tmp_path, run="r1") as store:
        for outcome in factory.outcomes().values():
            store.append(outcome)
        for number in range(2, 16):
            again = factory.ran("fp32", "ort131")
            store.append(
                in_run(again, f"r{number}", f"2026-11-{20 + number // 2}T0{number % 2}:00:00.000+00:00")
            )
    results = build_report(factory.matrix(), (factory.case(),), Store(tmp_path), tmp_path)
    assert len(results.runs) == 15
    found = results.cell("conv_silu", "fp32", "ort131").past
    assert found is not None
    assert found.event == "steady"
    assert found.latency is not None
    assert found.latency.change is None
    assert results.cell("conv_silu", "fp32", "trt86").past is None
    data = json.loads(results_json(results))
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(data)
    assert data["cells"][-1]["past"]["event"] == "steady"
    assert verify_report(factory.matrix(), (factory.case(),), Store(tmp_path), tmp_path) == []


def test_a_gpu_that_disagrees_with_itself_is_flaky_and_the_other_is_not(tmp_path: Path) -> None:
    """Each row has the past of its GPU."""
    t4 = {"gpu": "Tesla T4", "compute_capability": "7.5", "driver": "535.1"}
    l4 = {"gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "580.1"}
    ok, bad = factory.outcome("qdq", "rtx15"), factory.build_failure("qdq", "rtx15")
    with Store(tmp_path, run="a") as store:
        for hour, (outcome, gpu) in enumerate([(ok, l4), (bad, t4), (ok, l4), (ok, t4), (ok, l4), (bad, t4)]):
            store.append(in_run(outcome, f"r{hour}", f"2026-11-20T0{hour}:00:00.000+00:00", **gpu))
    results = build_report(factory.matrix(), (factory.case(),), Store(tmp_path), tmp_path)
    cell = results.cell("conv_silu", "qdq", "rtx15")
    both = (Class.BUILD_FAILED, Class.BUILT)
    assert [(each.gpu, each.flaky) for each in cell.by_gpu] == [("Tesla T4", both), ("NVIDIA L4", ())]
    assert cell.flaky == both


def test_the_past_outlives_the_records() -> None:
    """A cell keeps its history without a record in today's store."""
    results = factory.assemble(factory.matrix(), (factory.case(),), {}, runs([Class.OK] * 2, [STACK, OTHER]))
    assert len(results.runs) == 2
    assert results.cell("conv_silu", "qdq", "rtx17").past is None  # another model
    assert CELL in {cell.id for cell in results.cells}

"""Events -> record: the timed run, calibration, and whose failure it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.case import load_cases
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.record.outcome import Latency, Outcome, Stamps
from harness.run.observation import Observation
from harness.run.prepared import prepare_variant
from harness.run.session import Event

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
END = {"kind": "finished", "exit_code": 0, "detail": "", "peak_rss_bytes": 1 << 20}
LATENCY = {"samples_ms": [0.5, 0.25], "warmup": 3, "clock": "cuda_events", "scope": "one run"}


@pytest.fixture(scope="module")
def cell() -> Cell:
    cells = all_cells(load_matrix(ROOT / "matrix.yaml"), load_cases(ROOT / "cases"))
    return next(each for each in cells if each.id == "conv_silu.int8-entropy-trt86")


def heard(cell: Cell, *said: tuple[str, dict[str, Any], bytes]) -> tuple[Outcome, list[str], Observation]:
    seen = Observation()
    seen.hear(Event({"type": kind, **message}, body) for kind, message, body in (*said, ("end", END, b"")))
    return seen.outcome(cell, prepare_variant(cell.variant), Stamps()), seen.log, seen


def test_a_timed_run_is_kept_whole(cell: Cell) -> None:
    """All samples in order, copies apart, sensors on both sides; and through JSON."""
    sensors = {"before": {"temperature_c": "40"}, "after": {"temperature_c": "43"}}
    outcome, _, _ = heard(cell, ("latency", {**LATENCY, "upload_ms": [0.02], **sensors}, b""))
    assert outcome.latency == Latency(
        (0.5, 0.25), 3, "cuda_events", "one run", (0.02,), {"temperature_c": "40"}, {"temperature_c": "43"}
    )
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_a_run_on_the_cpu_has_neither_copies_nor_sensors(cell: Cell) -> None:
    outcome, _, _ = heard(cell, ("latency", {**LATENCY, "clock": "monotonic"}, b""))
    assert outcome.latency is not None
    assert (outcome.latency.upload_ms, outcome.latency.before, outcome.latency.after) == ((), {}, {})

"""The verdicts of the cases' own claims on results that were once judged wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case import load_cases
from harness.judge.classify import Classification
from harness.judge.verdict import judge
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells, claims_about, failed_before
from harness.words import Class, Verdict

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cells() -> dict[str, Cell]:
    """Every cell of the project."""
    return {cell.id: cell for cell in all_cells(load_matrix(TOP / "matrix.yaml"), load_cases(TOP / "cases"))}


def verdict(cell: Cell, cls: Class) -> Verdict:
    return judge(Classification(cls, "seen"), claims_about(cell), failed_before=failed_before(cell)).verdict


@pytest.mark.parametrize(
    "name", ["conv_silu.int8-tail-minmax-trt1011", "mish.qdq-trt100", "conv_silu.int8-entropy-l4t86"]
)
def test_a_reduction_that_does_not_show_its_report_is_not_called_fixed(
    cells: dict[str, Cell], name: str
) -> None:
    """Nobody ever saw these graphs fail there."""
    cell = cells[name]
    assert verdict(cell, Class.OK) is Verdict.NOT_REPRODUCED
    assert verdict(cell, Class.BUILD_FAILED) is Verdict.KNOWN_FAILURE


@pytest.mark.parametrize(
    "name", ["mish.qdq-trt102", "conv_silu.int8-entropy-trt92", "mish.qdq-after-norm-trt100"]
)
def test_what_a_thread_says_builds_is_not_held_to_its_precision(cells: dict[str, Cell], name: str) -> None:
    """The depthwise convolution may well run in FP32 there, as the project's own case on it says."""
    cell = cells[name]
    assert verdict(cell, Class.PRECISION_LOST) is Verdict.NEW
    assert verdict(cell, Class.OK) is Verdict.EXPECTED
    assert verdict(cell, Class.BUILD_FAILED) is Verdict.REGRESSED

"""The published records of TensorRT and their logs: read as submissions are, judged as measured.yaml says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case import load_cases, measured
from harness.judge.cell import judge_cell
from harness.judge.verdict import accepted_ms
from harness.matrix import load_matrix
from harness.plan import all_cells
from harness.share.submission import read
from harness.words import Verdict

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
ARCHIVES = sorted((TOP / "reports" / "published" / "evidence").glob("*.jsonl.xz"))


def test_the_evidence_of_both_columns_is_there() -> None:
    assert sum(path.stat().st_size for path in ARCHIVES) < 5e6
    cells = {record.cell for path in ARCHIVES for record in read(path).records}
    assert {cell.rpartition("-")[2] for cell in cells} == {"trt86", "trt106"}


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_a_record_is_judged_as_it_was_accepted(path: Path) -> None:
    archive = read(path)
    assert archive.faults == ()
    cells = {cell.id: cell for cell in all_cells(load_matrix(TOP / "matrix.yaml"), load_cases(TOP / "cases"))}
    accepted = {each.place: each.cells for each in measured.read(TOP / "cases" / measured.FILE).measured}
    for record in archive.records:
        judged = judge_cell(cells[record.cell], record)
        place = record.target, "9.0", record.stamps.environment["gpu"]
        result = accepted[place][record.case, record.variant]
        assert (record.cell, judged.classification.cls, judged.signature) == (record.cell, *result[:2])
        assert (judged.classification.unverified, accepted_ms(result.cls, record)) == (
            result.untold,
            result.ms,
        )
        assert judged.judgement.verdict is not Verdict.REGRESSED
        assert archive.log(str(record.log_sha256))

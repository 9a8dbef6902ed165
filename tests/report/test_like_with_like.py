"""A step compares each GPU with itself: what a T4 does is no news of an L4."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.cli import main
from harness.report.compare.pairs import Column
from harness.report.compare.rows import Row
from harness.report.compare.upgrade import Upgrade, upgrade
from harness.report.model import Results
from harness.report.results import assemble
from harness.report.writer import results_json
from tests.report import factory
from tests.report.factory import L4, T4

if TYPE_CHECKING:
    from pathlib import Path

    from harness.record.outcome import Outcome

pytestmark = pytest.mark.unit

FAILS = factory.build_failure("qdq", "trt102")
WORKS = factory.ran("qdq", "trt102", layers=(factory.conv_layer(time_ms=0.02),))


def report(*outcomes: tuple[Outcome, dict[str, str]]) -> Results:
    found = tuple(factory.on_gpu(outcome, gpu) for outcome, gpu in outcomes)
    return assemble(factory.matrix(), (factory.case(),), {found[0].cell: found})


def step(before: Results, after: Results) -> Upgrade:
    return upgrade(Column(before, "trt102", "A"), Column(after, "trt102", "B"))


def only(found: Upgrade) -> Row:
    (row,) = found.rows
    return row


def test_what_only_one_side_has_a_gpu_for_is_no_change() -> None:
    """The T4 that fails was not asked again: the L4 is compared with the L4."""
    both, l4 = report((FAILS, T4), (WORKS, L4)), report((WORKS, L4))
    for before, after in ((both, l4), (l4, both)):
        found = step(before, after)
        assert found.rows == ()
        assert not found.breaks


def test_of_several_gpus_the_one_that_loses_most_makes_the_row() -> None:
    """Though as many fail before as after, and the worst class of the cell is the same."""
    found = step(report((FAILS, T4), (WORKS, L4)), report((WORKS, T4), (FAILS, L4)))
    row = only(found)
    assert (str(row.kind), row.sure, found.breaks) == ("broken", "measured", True)
    assert row.text.startswith("on NVIDIA L4: works")
    mended = only(step(report((FAILS, T4), (WORKS, L4)), report((WORKS, T4), (WORKS, L4))))
    assert str(mended.kind) == "fixed"
    assert mended.text.startswith("on Tesla T4: fails to build")


def test_a_step_between_two_gpus_breaks_nothing() -> None:
    """It is told, with both named, and is nobody's regression."""
    found = step(report((WORKS, T4)), report((FAILS, L4)))
    row = only(found)
    assert (str(row.kind), row.measured, found.breaks) == ("broken", False, False)
    assert row.sure == "A measured, B measured; on Tesla T4 before and NVIDIA L4 after"
    assert (
        "1 variant was measured on no GPU that both sides have: what differs may be the GPU's doing."
        in found.basis
    )
    assert "no GPU that both" not in step(report((WORKS, T4)), report((FAILS, T4))).basis


def test_another_driver_is_the_same_gpu() -> None:
    """Two nights between which a machine was brought up to date are to be compared."""
    found = step(report((WORKS, T4)), report((FAILS, {**T4, "driver": "580.1"})))
    assert found.breaks
    assert only(found).text.startswith("works")


def test_where_a_side_had_no_gpu_it_is_compared_as_it_is() -> None:
    """A build is the same question with and without one; and a report of an older harness names its one GPU."""
    bare = assemble(factory.matrix(), (factory.case(),), {FAILS.cell: FAILS})
    assert step(report((WORKS, T4)), bare).breaks
    old = report((WORKS, T4))
    cells = tuple(replace(each, by_gpu=()) for each in old.cells)
    assert step(replace(old, cells=cells), report((FAILS, T4), (WORKS, L4))).breaks
    assert not step(replace(old, cells=cells), report((WORKS, T4), (FAILS, L4))).breaks


def test_a_side_without_a_gpu_beside_others_is_not_taken_for_one() -> None:
    """Here it is the worst of its cell, and the L4 of both sides is what can be compared."""
    beside = assemble(factory.matrix(), (factory.case(),), {FAILS.cell: (FAILS, factory.on_gpu(WORKS, L4))})
    assert step(beside, report((WORKS, L4))).rows == ()


def test_diff_ends_by_the_gpu_that_both_reports_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, results in (
        ("l4", report((WORKS, L4))),
        ("both", report((FAILS, T4), (WORKS, L4))),
        ("worse", report((FAILS, T4), (FAILS, L4))),
    ):
        (tmp_path / f"{name}.json").write_text(results_json(results))
        assert Results.from_json(json.loads(results_json(results))) == results
    paths = {name: str(tmp_path / f"{name}.json") for name in ("l4", "both", "worse")}
    assert main(["diff", paths["l4"], paths["both"]]) == 0
    assert main(["diff", paths["both"], paths["l4"]]) == 0
    capsys.readouterr()
    assert main(["diff", paths["both"], paths["worse"]]) == 1
    assert "on NVIDIA L4: works" in " ".join(capsys.readouterr().out.split())

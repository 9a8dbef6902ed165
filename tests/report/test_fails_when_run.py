"""An engine that builds here and is known to fail when it is run: never drawn as good, wherever a reader looks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.case import Expectation
from harness.report.by_gpu import GpuResult, disagreement
from harness.report.compare.kinds import Kind
from harness.report.compare.ranges import changes, spans
from harness.report.compare.sides import side
from harness.report.exports.csv_table import table
from harness.report.exports.markdown import summary
from harness.report.labels import MARKS, bucket
from harness.report.page.conclusions import concluded
from harness.report.page.looks import look, tooltip
from harness.report.page.query import states
from harness.words import Class, Grade, Verdict
from tests.report.factory import ISSUE
from tests.report.handmade import cell, pair, results, target, variant
from tests.report.handmade import side as measured

pytestmark = pytest.mark.unit

ZEROS = Expectation.reported(Class.INACCURATE, "", ISSUE, note="the outputs are zero")
ROW = replace(variant(), expectations=(ZEROS,))
CELL = cell(
    Class.BUILT,
    verdict=Verdict.FAILS_WHEN_RUN,
    claims=(0,),
    expectation=0,
    grade=Grade.REPORTED,
    sentence="reported in TensorRT issue 3640 to give wrong numbers; it builds here",
    chip="FP32",
)
TARGET = target()
GOOD, FAILS, ASKS = (measured(cls) for cls in (Class.BUILT, Class.BUILD_FAILED, Class.NEEDS_GPU_TO_BUILD))


def test_the_matrix_has_a_mark_of_its_own() -> None:
    """No tick and no ring; the panel, the tooltip and the filter say the same."""
    mark = MARKS[Verdict.FAILS_WHEN_RUN]
    assert [each for each in MARKS.values() if each.letters == mark.letters] == [mark]
    shown = look(CELL, ROW)
    assert (shown["letters"], shown["under"]) == (mark.letters, "FP32")
    assert shown["classes"] == f"{mark.shape} k-fails_when_run b-fails_when_run"
    assert tooltip(CELL, ROW).startswith("Builds, fails when run: reported in TensorRT issue 3640 to give")
    assert concluded(CELL, ROW, "")["state"] == "Builds, fails when run"
    words = states(CELL, side(CELL, ROW), bucket(CELL))
    assert {"fail", "built", "inaccurate", "fails_when_run", "measured"} <= set(words)
    assert "ok" not in words


def test_a_step_takes_it_for_what_it_does_when_run() -> None:
    """To it from what builds is a break, as sure as the claim; from it to what does not build is another failure."""
    known = side(CELL, ROW)
    assert known.told() == "builds; reported: gives wrong numbers (FP32)"
    assert (known.cls, known.grade, known.nodes) == (Class.INACCURATE, Grade.REPORTED, ())
    assert pair(GOOD, known).kinds == [Kind.BROKEN]
    assert pair(GOOD, known).grade is Grade.REPORTED
    assert pair(known, FAILS).kinds == [Kind.OTHERWISE]
    assert pair(known, GOOD).kinds == [Kind.FIXED]
    assert pair(known, known).kinds == []


def test_a_range_says_both() -> None:
    """That it builds, as measured here, and how it fails, as sure as the claim is."""
    refused = cell(Class.BUILD_FAILED, target="later")
    run = [(target("new", "1.6"), CELL), (target("later", "1.7"), refused)]
    (told,) = spans(ROW, {"RTX": run})
    assert told.text.startswith("builds, but gives wrong numbers on 1.6 (reported)")
    (change,) = changes(ROW, run)
    assert (change.what, change.better) == ("class", None)
    assert change.shared == "builds and is known to fail when run before, fails to build after"


def test_exports_pass_it_nowhere() -> None:
    """It has a row of its own in the summary, and its verdict in the table."""
    made = results((TARGET,), (ROW,), CELL)
    assert "| Builds, fails when run | 1 |" in summary(made)
    assert "built,fails_when_run,fails_when_run" in table(made)


def test_what_needs_a_gpu_to_build_is_compared_with_what_had_none() -> None:
    """Other versions build it without; what had a GPU, or is said of a version, tells nothing of that."""
    assert pair(ASKS, GOOD).kinds == [Kind.FIXED]
    assert pair(GOOD, ASKS).kinds == [Kind.BROKEN]
    assert pair(ASKS, FAILS).kinds == [Kind.OTHERWISE]
    on_gpu = measured(Class.OK, gpu=("8.9", "NVIDIA L4"))
    said = measured(Class.OK, grade=Grade.REPORTED, claim=Expectation.reported(Class.OK, "", ISSUE))
    for other in (on_gpu, said):
        for both in (pair(ASKS, other), pair(other, ASKS)):
            assert both.open
            assert both.kinds == []
    told = replace(said, cls=Class.NEEDS_GPU_TO_BUILD)
    assert pair(told, GOOD).kinds == [Kind.FIXED]


def test_gpus_do_not_disagree_with_a_machine_that_had_none() -> None:
    """That a build needs a GPU says nothing of those on one."""
    bare = GpuResult("", "", "", Class.NEEDS_GPU_TO_BUILD, Verdict.NEW, "", "", None, "", None, "", None)
    on_gpu = replace(bare, compute_capability="8.9", gpu="NVIDIA L4", cls=Class.OK)
    assert disagreement((on_gpu, bare)) == ""

"""The sentence on how a variant fares along a series, word by word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.case import Expectation
from harness.report.compare.ranges import chip, short_versions, spans, unasked
from harness.report.compare.sides import Side
from harness.report.model import CellView, Span, TargetView
from harness.words import PREDICATE, Class, Grade, Precision
from tests.report.factory import ISSUE
from tests.report.handmade import FP16, FP32, INT8, cell, layer, target, variant

pytestmark = pytest.mark.unit

OK, BUILT, FAILED = Class.OK, Class.BUILT, Class.BUILD_FAILED
NOT_RUN, NOT_APPLICABLE = Class.NOT_RUN, Class.NOT_APPLICABLE
GUESS = Expectation.guessed(Class.CRASHED, "", "of nothing")
REPORT = Expectation.reported(Class.OK, "", ISSUE)
NO_WORD = Expectation.guessed(Class.NOT_APPLICABLE, "", "of nothing")

Entry = tuple[TargetView, CellView]


def series(*cells: CellView, name: str = "RTX") -> list[Entry]:
    """Return cells on the versions 1.0, 1.1 and so on."""
    return [
        (target(f"{name} 1.{minor}", f"1.{minor}", series=name), found) for minor, found in enumerate(cells)
    ]


def test_every_class_has_its_words() -> None:
    """They stand in the sentences of the page, of `diff` and of the exports."""
    assert {str(cls): Side(cls, Grade.MEASURED).told() for cls in Class} == {
        "ok": "works",
        "built": "builds",
        "precision_lost": "loses precision",
        "inaccurate": "gives wrong numbers",
        "parse_failed": "fails to parse",
        "build_failed": "fails to build",
        "needs_gpu_to_build": "needs a GPU to build",
        "load_failed": "fails to load",
        "run_failed": "fails to run",
        "crashed": "crashes",
        "timed_out": "times out",
        "out_of_memory": "runs out of memory",
        "api_removed": "needs a call that it lacks",
        "not_applicable": "does not apply",
        "not_run": "was not run",
        "infra_error": "was not judged (infrastructure)",
    }
    assert PREDICATE.keys() == set(Class)


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ([cell(OK)], "works on 1.0 (measured)"),
        ([cell(OK)] * 3, "works on 1.0 to 1.2 (measured)"),
        (
            [cell(OK), cell(OK), cell(FAILED), cell(FAILED)],
            "works on 1.0 to 1.1 (measured); broken in 1.2 (measured): fails to build",
        ),
        (
            [cell(BUILT, chip="INT8 1/1"), cell(NOT_RUN), cell(FAILED)],
            "builds on 1.0 (measured), INT8 1/1; broken by 1.2 (measured): fails to build; 1.1 not tested",
        ),
        (
            [cell(FAILED), cell(FAILED), cell(NOT_RUN), cell(OK), cell(OK)],
            "fails to build on 1.0 to 1.1 (measured); fixed by 1.3 (measured): works; 1.2 not tested",
        ),
        (
            [cell(BUILT, chip=f"INT8 {kept}/2") for kept in (2, 1, 1, 2, 2)],
            (
                "builds on 1.0 (measured), INT8 2/2; builds on 1.1 to 1.2 (measured), INT8 1/2; "
                "builds from 1.3 (measured), INT8 2/2"
            ),
        ),
        (
            [cell(BUILT, chip="INT8 2/2"), cell(BUILT, chip="INT8 1/2"), cell(BUILT, chip="INT8 1/2")],
            "builds on 1.0 (measured), INT8 2/2; builds from 1.1 (measured), INT8 1/2",
        ),
        (
            [cell(OK), cell(Class.PRECISION_LOST, chip="INT8 0/1"), cell(Class.CRASHED), cell(Class.CRASHED)],
            "works on 1.0 (measured); loses precision on 1.1 (measured), INT8 0/1; crashes from 1.2 (measured)",
        ),
        (
            [cell(each) for each in (NOT_RUN, OK, NOT_RUN, NOT_RUN, OK, NOT_RUN, NOT_RUN, NOT_RUN)],
            "works on 1.1 to 1.4 (measured); 1.0, 1.2 to 1.3, 1.5 to 1.7 not tested",
        ),
        ([cell(NOT_APPLICABLE), cell(OK)], "works on 1.1 (measured)"),
        (
            [cell(Class.INFRA_ERROR), cell(OK), cell(NOT_APPLICABLE)],
            "works on 1.1 (measured); 1.0 not tested",
        ),
        ([cell(NOT_RUN), cell(NOT_RUN)], None),
        ([cell(NOT_APPLICABLE)], None),
    ],
)
def test_a_series_is_one_sentence(cells: list[CellView], text: str | None) -> None:
    """Each state from its first version to its last, each turn at its version, and what nobody tested at the end."""
    assert spans(variant(), {"RTX": series(*cells)}) == ([Span("RTX", text)] if text else [])


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ((0, 1), "works on 1.0 (reported)"),
        ((1, 0), "?crashes on 1.0 (guessed)"),
        ((2,), None),
        ((2, 0), None),
        ((), None),
    ],
)
def test_what_was_not_run_is_told_by_the_claim_that_is_judged_first(
    claims: tuple[int, ...], text: str | None
) -> None:
    """That a variant does not apply says nothing of how it fares."""
    claimed = replace(variant(), expectations=(REPORT, GUESS, NO_WORD))
    found = spans(claimed, {"RTX": series(cell(NOT_RUN, claims=claims, chip="INT8 1/1"))})
    guess = (text or "").partition("?")[2]
    plain = "" if guess else text or ""
    assert found == ([Span("RTX", plain, claimed=True, guesses=guess)] if text else [])


MAIN = series(cell(BUILT, chip="INT8 1/1"), cell(NOT_RUN))


@pytest.mark.parametrize(
    ("main", "cells", "text"),
    [
        (MAIN, [cell(BUILT, chip="INT8 1/1")], None),
        (MAIN, [cell(BUILT, chip="INT8 0/1")], "builds on 1.0 (measured), INT8 0/1"),
        (MAIN, [cell(FAILED, chip="INT8 1/1")], "fails to build on 1.0 (measured), INT8 1/1"),
        (MAIN, [cell(NOT_RUN), cell(BUILT, chip="INT8 1/1")], "builds on 1.1 (measured), INT8 1/1"),
        (MAIN, [cell(NOT_RUN, claims=(0,)), cell(FAILED)], "fails to build on 1.1 (measured)"),
        (MAIN, [cell(NOT_RUN, claims=(0,))], None),
        # A second target of the version that was not run hides nothing.
        ([*MAIN[:1], (MAIN[0][0], cell(NOT_RUN))], [cell(BUILT, chip="INT8 1/1")], None),
    ],
)
def test_a_side_series_is_told_where_it_was_measured_to_differ(
    main: list[Entry], cells: list[CellView], text: str | None
) -> None:
    """Claims about it, and what the main series was measured to do as well, are no news."""
    claimed = replace(variant(), expectations=(REPORT,))
    other = series(*cells, name="RTX, SM 7.5")
    found = [span for span in spans(claimed, {"RTX": main, "RTX, SM 7.5": other}) if span.series != "RTX"]
    assert found == ([Span("RTX, SM 7.5", text)] if text else [])


@pytest.mark.parametrize(
    ("wanted", "actual", "untold", "said"),
    [
        ({"a": INT8, "b": FP16}, {"a": INT8, "b": FP32}, (), "kept 1/2"),
        ({"a": INT8, "b": FP16}, {}, ("a", "b"), "kept ?"),
        # A node of which neither is known vanished rightly: it was folded into a constant.
        ({"a": INT8, "b": INT8}, {"a": INT8}, (), "INT8 1/1"),
        ({"a": INT8}, {}, (), "FP16+INT4 WEIGHTS"),
        ({}, {"a": INT8}, ("a",), "FP16+INT4 WEIGHTS"),
    ],
)
def test_the_chip_of_a_cell(
    wanted: dict[str, Precision], actual: dict[str, Precision], untold: tuple[str, ...], said: str
) -> None:
    """Mixed wishes are counted as one; without any the layers speak, but not those of indices and of nothing told."""
    kinds = ("int4_weights", "fp16", "fp16", "unknown", "int32", "int64", "bool")
    layers = [layer(kind) for kind in kinds]
    assert chip(wanted, actual, untold, layers) == said


def test_what_nobody_asked_for_is_told_in_narrow_types_and_floats() -> None:
    """A node that is fused with a wanted one follows it as long as it runs in the same; indices are of no interest."""
    found = cell(
        precision={
            "wanted": INT8,
            "follows": INT8,
            "differs": FP32,
            "alone": INT8,
            "half": FP16,
            "stored": Precision.INT4_WEIGHTS,
            "index": Precision.INT64,
            "hidden": Precision.UNKNOWN,
        },
        layers=(
            layer("int8", "wanted", "follows", "differs"),
            layer("int8", "alone"),
            layer("fp16", "half", "stored", "index", "hidden"),
        ),
    )
    assert unasked(found, variant(wanted=INT8)) == {
        "differs": FP32,
        "alone": INT8,
        "half": FP16,
        "stored": Precision.INT4_WEIGHTS,
    }


def test_versions_are_shortened_in_any_order_and_however_often_they_occur() -> None:
    assert short_versions(iter(["10.2.1", "8.6.1", "10.2.0", "8.6.1", "9"])) == {
        "10.2.1": "10.2.1",
        "8.6.1": "8.6",
        "10.2.0": "10.2.0",
        "9": "9",
    }

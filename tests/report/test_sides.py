"""What is known of a variant on one target, field by field, and what is told of it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import pytest

from harness.case import Expectation
from harness.report.compare.sides import Side, SideTiming, side
from harness.report.model import Advice, CellView, Timing
from harness.words import Class, Grade, Precision
from tests.report.factory import ISSUE
from tests.report.handmade import FP32, INT8, STAMPS, cell, layer, variant

pytestmark = pytest.mark.unit

SAMPLES = tuple(1 + 0.01 * (index % 5) for index in range(50))
NOTE = "word " * 40 + "."
CLAIMS = (
    Expectation.reported(Class.BUILD_FAILED, "", ISSUE, note=NOTE, signature="implicit-int8-removed"),
    Expectation.reported(Class.OK, "", ISSUE, note="Somebody says so."),
    Expectation.reported(Class.NOT_APPLICABLE, "", ISSUE),
    Expectation(Class.CRASHED, "", None, Grade.MEASURED, "measured before"),
)
#: A side of which nothing is known.
NOTHING: dict[str, Any] = {
    "cls": None,
    "grade": None,
    "graded": "",
    "chip": "",
    "nodes": (),
    "why": "",
    "signature": None,
    "proofs": (),
    "timing": None,
    "flaky": (),
    "demanded": True,
    "rest": (),
    "gpu": None,
    "beside": (),
    "claim": None,
    "seen": "",
    "built": False,
}
MEASURED = {"cls": Class.BUILT, "grade": Grade.MEASURED, "graded": "measured"}


def made(found: CellView, **wanted: Precision) -> dict[str, Any]:
    """Return all that is known of a cell, of a variant with the claims above."""
    known = side(found, replace(variant(**wanted), expectations=CLAIMS))
    return {each.name: getattr(known, each.name) for each in dataclasses.fields(known)}


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (cell(Class.NOT_RUN), {"why": "not run"}),
        (cell(Class.NOT_RUN, stale=True), {"why": "result out of date"}),
        (cell(Class.INFRA_ERROR), {"why": "could not be judged"}),
        (cell(Class.NOT_APPLICABLE, claims=(1,)), {"why": "does not apply"}),
        (cell(Class.NOT_RUN, claims=(2, 1)), {"why": "not run"}),
        (
            cell(Class.NOT_RUN, claims=(0, 1)),
            {
                "cls": Class.BUILD_FAILED,
                "grade": Grade.REPORTED,
                "graded": "reported by users",
                "why": "Implicit INT8 quantisation is gone",
                "signature": "implicit-int8-removed",
                "proofs": ("mish.qdq", "instance_norm.qdq"),
                "claim": CLAIMS[0],
                "seen": f"reported by users in {ISSUE.title}: {NOTE[:199]}…",
            },
        ),
        (
            cell(Class.INFRA_ERROR, claims=(1, 0)),
            {
                "cls": Class.OK,
                "grade": Grade.REPORTED,
                "graded": "reported by users",
                "claim": CLAIMS[1],
                "seen": f"reported by users in {ISSUE.title}: Somebody says so.",
            },
        ),
        (
            cell(Class.NOT_RUN, claims=(3,)),
            {
                "cls": Class.CRASHED,
                "grade": Grade.MEASURED,
                "graded": "measured",
                "claim": CLAIMS[3],
                "seen": "measured before",
            },
        ),
    ],
)
def test_what_was_not_measured_is_claimed_or_says_why_not(found: CellView, known: dict[str, Any]) -> None:
    """The claim that is judged first counts; what works needs no reason."""
    assert made(found) == {**NOTHING, **known}


ADVICE = Advice("no_tactic", "No implementation", "", "", ("c.other",))


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (cell(), MEASURED),
        (
            cell(
                Class.BUILD_FAILED,
                diagnosis=ADVICE,
                signature="no_tactic",
                chip="INT8 0/1",
                demanded=False,
                flaky=(Class.BUILT,),
            ),
            {
                **MEASURED,
                "cls": Class.BUILD_FAILED,
                "chip": "INT8 0/1",
                "why": "No implementation",
                "signature": "no_tactic",
                "proofs": ("c.other",),
                "flaky": (Class.BUILT,),
                "demanded": False,
            },
        ),
        (
            cell(
                layers=(layer("int8", "a"), layer("fp32", "y", "x")),
                precision={"a": INT8, "b": Precision.UNKNOWN, "y": FP32, "x": INT8},
            ),
            {**MEASURED, "nodes": ("int8", "", ""), "rest": (("x", "int8"), ("y", "fp32"))},
        ),
    ],
)
def test_what_was_measured_is_told_with_its_cause_and_its_nodes(
    found: CellView, known: dict[str, Any]
) -> None:
    """Of a wanted node that the engine hides, or that it has folded away, no precision is told."""
    assert made(found, a=INT8, b=INT8, c=INT8) == {**NOTHING, **known}


def timing(**fields: Any) -> Timing:
    return replace(Timing(1.0234567, 1.04, SAMPLES, 5, "monotonic", 0.01), **fields)


ENVIRONMENT = {
    "cpu": "x",
    "cpus": "2",
    "kernel": "6.1",
    "machine": "m",
    "gpu": "g",
    "gpu_uuid": "u",
    "cuda_driver_api": "12.4",
    "driver": "550",
}


@pytest.mark.parametrize(
    ("latency", "interval"),
    [
        (timing(), (1.01, 1.03)),
        (timing(noise="too few"), None),
        (timing(samples=()), None),
        (timing(clock="sundial"), None),
        (timing(samples=(0.0,) * 50), None),
        (timing(samples=(-1.0,) * 50), None),
        (timing(samples=(math.inf,) * 50), None),
        (timing(samples=(*SAMPLES[:25], *(math.inf,) * 25)), None),
        (timing(samples=(2.0,) * 50), (2.0, 2.0)),
        (timing(samples=(1 / 3,) * 50), (0.333333, 0.333333)),
    ],
)
def test_a_timing_has_an_interval_where_its_samples_carry_a_comparison(
    latency: Timing, interval: tuple[float, float] | None
) -> None:
    """Not where they are noise or no times, nor of a clock of which nobody knows what it does from run to run."""
    stamps = replace(STAMPS, environment={"python": "3.11", **ENVIRONMENT})
    stack = (latency.clock, *ENVIRONMENT.values())
    assert made(cell(Class.OK, latency=latency, stamps=stamps))["timing"] == SideTiming(
        1.02346, stack, interval
    )


@pytest.mark.parametrize(
    ("stamps", "stack"),
    [
        (STAMPS, ("monotonic", "x", "", "", "", "", "", "", "")),
        (None, ("monotonic", "", "", "", "", "", "", "", "")),
    ],
)
def test_what_the_agent_did_not_see_of_the_stack_is_empty(stamps: Any, stack: tuple[str, ...]) -> None:
    found = made(cell(Class.OK, latency=timing(), stamps=stamps))["timing"]
    assert found.stack == stack


@pytest.mark.parametrize(
    ("known", "predicate", "said"),
    [
        (Side(None, why="not run"), "", "not run"),
        (Side(Class.BUILT, Grade.MEASURED, chip="INT8 1/1"), "", "builds (INT8 1/1)"),
        (Side(Class.BUILT, Grade.REPORTED), "", "reported: builds"),
        (Side(Class.BUILT, Grade.REPORTED, chip="FP32"), "is there", "reported: is there (FP32)"),
    ],
)
def test_a_side_is_told_in_words(known: Side, predicate: str, said: str) -> None:
    """A claim never passes for a measurement."""
    assert known.told(predicate) == said

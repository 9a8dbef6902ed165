"""The worst of a cell's results on several GPUs."""

from __future__ import annotations

import itertools

import pytest

from harness.known.cell import badness
from harness.words import GOOD, UNJUDGED, Class, Verdict

pytestmark = pytest.mark.unit


def test_every_class_has_its_place() -> None:
    """No two share one; what says nothing of the engine is before what works, and that before every failure."""
    places = [badness(cls, Verdict.EXPECTED) for cls in Class]
    assert len(set(places)) == len(Class)
    failures = set(Class) - GOOD - UNJUDGED
    for lesser, greater in itertools.pairwise((UNJUDGED, GOOD, failures)):
        worst = max(badness(cls, Verdict.EXPECTED) for cls in lesser)
        assert all(badness(cls, Verdict.EXPECTED) > worst for cls in greater)


@pytest.mark.parametrize("known", sorted(set(Class) - GOOD))
def test_a_regression_is_worse_than_any_known_failure(known: Class) -> None:
    """On whatever GPU; and any failure that was not known before is, too."""
    ranks = [
        badness(known, Verdict.KNOWN_FAILURE),
        badness(Class.PRECISION_LOST, Verdict.NEW),
        badness(Class.PRECISION_LOST, Verdict.REGRESSED),
    ]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_what_newly_works_is_no_failure() -> None:
    assert badness(Class.OK, Verdict.NEW) < badness(Class.BUILD_FAILED, Verdict.KNOWN_FAILURE)

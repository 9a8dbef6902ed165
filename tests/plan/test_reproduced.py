"""Where what is claimed was reproduced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.case import Basis, Case, Class, Expectation, Link, Variant
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.plan.cells import reproduced_on, reproduced_said
from tests.report import factory

if TYPE_CHECKING:
    from pathlib import Path

    from harness.matrix import Matrix

pytestmark = pytest.mark.unit

LINK = Link("https://github.com/NVIDIA/TensorRT/issues/1")
MATRIX = """
schema: 1
targets:
  trt86: {engine: tensorrt, version: "8.6.1", image: "a:b"}
  trt100: {engine: tensorrt, version: "10.0.1", image: "a:b"}
  trt102: {engine: tensorrt, version: "10.2.0", image: "a:b"}
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    """Three versions of TensorRT."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    return load_matrix(tmp_path / "matrix.yaml")


def says(outcome: Class, versions: str = "") -> Expectation:
    return Expectation.reported(outcome, versions, LINK)


def measured(outcome: Class, version: str, target: str) -> Expectation:
    return Expectation(outcome, f"=={version}", None, Basis.MEASURED, "measured", targets=(target,))


def cells(matrix: Matrix, **claims: tuple[Expectation, ...]) -> tuple[Cell, ...]:
    """Return the cells of a case of variants with these claims."""
    made = tuple(Variant(name, name, factory.model, expectations=found) for name, found in claims.items())
    return all_cells(matrix, (Case("c", "C", "", (LINK,), made),))


def test_a_variant_is_reproduced_where_it_was_measured_to_fail_as_claimed(matrix: Matrix) -> None:
    found = cells(matrix, a=(says(Class.BUILD_FAILED, "<10.1"),))
    assert reproduced_on(found) == ()
    assert reproduced_on(found, {"c.a-trt86": {Class.BUILD_FAILED}, "c.a-trt100": {Class.CRASHED}}) == (
        "trt86",
    )
    assert reproduced_on(found, {"c.a-trt102": {Class.BUILD_FAILED}}) == ()
    accepted = (says(Class.BUILD_FAILED, "<10.1"), measured(Class.BUILD_FAILED, "10.0.1", "trt100"))
    assert reproduced_on(cells(matrix, a=accepted)) == ("trt100",)


@pytest.mark.parametrize("cls", [Class.OK, Class.BUILT, Class.API_REMOVED, Class.NOT_RUN])
def test_where_nobody_claims_a_failure_there_is_nothing_to_reproduce(matrix: Matrix, cls: Class) -> None:
    assert reproduced_on(cells(matrix, a=(says(cls),)), {"c.a-trt86": {cls}}) is None


def test_where_in_words() -> None:
    assert [reproduced_said(each) for each in (None, (), ("trt86", "l4t86"))] == [
        "",
        "nowhere yet",
        "on trt86, l4t86",
    ]

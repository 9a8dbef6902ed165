"""Which cells are worth running first, and where what is claimed was reproduced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.case import Case, Class, Expectation, Grade, Link, Role, Variant
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.plan.questions import MOST, open_questions
from harness.plan.reproduced import reproduced_on, reproduced_said
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


def guess(outcome: Class, versions: str = "") -> Expectation:
    return Expectation.guessed(outcome, versions, "a guess")


def measured(outcome: Class, version: str, target: str) -> Expectation:
    return Expectation(outcome, f"=={version}", None, Grade.MEASURED, "measured", targets=(target,))


def cells(matrix: Matrix, **claims: tuple[Expectation, ...]) -> tuple[Cell, ...]:
    """Return the cells of a case of variants with these claims."""
    made = tuple(Variant(name, name, factory.model, expectations=found) for name, found in claims.items())
    return all_cells(matrix, (Case("c", "C", "", (LINK,), made),))


def asked(found: tuple[Cell, ...], *answered: str, most: int | None = MOST) -> list[str]:
    return [question.cell.id for question in open_questions(found, answered, most)]


def test_the_cell_of_most_claims_comes_first_and_settles_them(matrix: Matrix) -> None:
    """A claim over several versions is asked of once: where another one can be settled with it."""
    found = cells(matrix, a=(says(Class.OK, "<10.1"), says(Class.OK, "==10.0.1"), says(Class.OK, ">=10.1")))
    assert asked(found) == ["c[a]-trt100", "c[a]-trt102"]
    assert [len(each.claims) for each in open_questions(found, ())] == [2, 1]


def test_reports_come_before_guesses_and_failures_before_what_works(matrix: Matrix) -> None:
    one = "==8.6.1"
    found = cells(
        matrix,
        guessed=(guess(Class.CRASHED, one), guess(Class.OK, one)),
        works=(says(Class.OK, one),),
        fails=(says(Class.BUILD_FAILED, one),),
    )
    assert asked(found) == ["c[fails]-trt86", "c[works]-trt86", "c[guessed]-trt86"]


def test_a_reproducer_comes_before_what_is_held_beside_it(matrix: Matrix) -> None:
    found = cells(matrix, a=(says(Class.OK, "==8.6.1"),), b=(says(Class.OK, "==8.6.1"),))
    control = [
        replace(cell, variant=replace(cell.variant, role=Role.CONTROL)) if "[a]" in cell.id else cell
        for cell in found
    ]
    assert asked(tuple(control)) == ["c[b]-trt86", "c[a]-trt86"]


def test_what_was_measured_here_or_accepted_is_no_question_and_settles_its_claims(matrix: Matrix) -> None:
    claims = (says(Class.BUILD_FAILED, "<10.1"), says(Class.OK, ">=10.1"))
    found = cells(matrix, a=claims)
    assert asked(found, "c[a]-trt86") == ["c[a]-trt102"]
    assert asked(cells(matrix, a=(*claims, measured(Class.OK, "10.2.0", "trt102")))) == ["c[a]-trt86"]
    assert asked(found, "c[a]-trt86", "c[a]-trt102") == []


def test_what_a_release_note_says_is_not_asked_nor_what_makes_no_sense(matrix: Matrix) -> None:
    found = cells(matrix, a=(says(Class.API_REMOVED, ""), says(Class.NOT_APPLICABLE, "")), b=())
    assert asked(found) == []


def test_the_same_claim_of_two_variants_is_two(matrix: Matrix) -> None:
    """That one graph builds says nothing of another; the claim may be one object."""
    same = (says(Class.OK, "==8.6.1"),)
    assert asked(cells(matrix, a=same, b=same)) == ["c[a]-trt86", "c[b]-trt86"]


def test_no_more_than_asked_for_and_each_says_how_to_measure_it(matrix: Matrix) -> None:
    many = {f"v{number}": (says(Class.OK, "==8.6.1"),) for number in range(MOST + 5)}
    found = cells(matrix, **many)
    assert len(asked(found)) == MOST
    assert len(asked(found, most=None)) == MOST + 5
    assert open_questions(found, ())[0].command == "trt-compat run --pull -k 'c[v0]-trt86'"


def test_a_variant_is_reproduced_where_it_was_measured_to_fail_as_claimed(matrix: Matrix) -> None:
    found = cells(matrix, a=(says(Class.BUILD_FAILED, "<10.1"),))
    assert reproduced_on(found) == ()
    assert reproduced_on(found, {"c[a]-trt86": {Class.BUILD_FAILED}, "c[a]-trt100": {Class.CRASHED}}) == (
        "trt86",
    )
    assert reproduced_on(found, {"c[a]-trt102": {Class.BUILD_FAILED}}) == ()
    accepted = (says(Class.BUILD_FAILED, "<10.1"), measured(Class.BUILD_FAILED, "10.0.1", "trt100"))
    assert reproduced_on(cells(matrix, a=accepted)) == ("trt100",)


@pytest.mark.parametrize("cls", [Class.OK, Class.BUILT, Class.API_REMOVED, Class.NOT_RUN])
def test_where_nobody_claims_a_failure_there_is_nothing_to_reproduce(matrix: Matrix, cls: Class) -> None:
    assert reproduced_on(cells(matrix, a=(says(cls),)), {"c[a]-trt86": {cls}}) is None


def test_where_in_words() -> None:
    assert [reproduced_said(each) for each in (None, (), ("trt86", "l4t86"))] == [
        "",
        "nowhere yet",
        "on trt86, l4t86",
    ]

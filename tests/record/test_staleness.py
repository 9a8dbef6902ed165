"""Whether a record is of what its cell is today."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.case import model_sha256
from harness.errors import HandledError
from harness.plan import all_cells, find
from harness.record.staleness import is_stale, todays
from tests.report import factory

pytestmark = pytest.mark.unit

CELLS = all_cells(factory.matrix(), (factory.case(),))
TODAY = todays(CELLS)


def because(**stamps: Any) -> str:
    """Return why an outcome with these stamps is stale."""
    outcome = factory.outcome("qdq", "trt102")
    outcome = replace(outcome, stamps=replace(outcome.stamps, **stamps))
    said = TODAY[outcome.cell].stale_because(outcome)
    assert is_stale(outcome, TODAY) is bool(said)
    return said


@pytest.mark.parametrize("version", ["10.2.0.19", "10.2.0", "10.2.0.19.post1"])
def test_the_declared_version_in_any_spelling_is_current(version: str) -> None:
    """Wheels report three components, or a build of packaging."""
    assert because(engine_version=version) == ""


@pytest.mark.parametrize("version", ["10.2.0.18", "10.2.1", "10.3.0", "10.2"])
def test_any_other_version_is_stale_and_both_are_named(version: str) -> None:
    """Also of an older release: matrix.yaml may be moved back."""
    assert because(engine_version=version) == (
        f"it ran on version {version}, and matrix.yaml declares 10.2.0.19 today"
    )


@pytest.mark.parametrize("stamp", ["model_sha256", "recipe_sha256"])
def test_another_model_or_recipe_is_stale(stamp: str) -> None:
    """Each by itself."""
    assert because(**{stamp: "0" * 64}) == "the model or the recipe has changed since it ran"


def test_what_was_never_stamped_is_current() -> None:
    """An agent that never came up is trouble of the machine, on whatever version."""
    assert because(engine_version="") == ""
    assert because(engine_version="", model_sha256="", recipe_sha256="") == ""


def test_a_record_of_no_cell_of_today_is_nobody_s_to_judge() -> None:
    """As of a target that left matrix.yaml."""
    outcome = replace(factory.outcome("qdq", "trt102"), cell="gone.v-t")
    assert not is_stale(outcome, TODAY)


def test_the_hashes_are_those_that_records_carry() -> None:
    """A record made now is current."""
    for cell in CELLS:
        outcome = factory.outcome(cell.variant.name, cell.target.name)
        assert find(CELLS, outcome.cell) is cell
        assert TODAY[cell.id].stale_because(outcome) == ""


@pytest.mark.parametrize("stamp", ["model_sha256", "recipe_sha256"])
def test_what_either_side_does_not_know_is_no_difference(stamp: str) -> None:
    assert because(**{stamp: ""}) == ""
    outcome, unknown = factory.outcome("qdq", "trt102"), dict[str, Any]({stamp: ""})
    assert replace(TODAY[outcome.cell], **unknown).stale_because(outcome) == ""


def test_what_was_done_of_a_model_that_cannot_be_made_any_more_is_stale() -> None:
    """That a cell was not run is as true as it was."""
    broken = replace(CELLS[0].variant, build=unbuildable)
    (today,) = todays([replace(CELLS[0], variant=broken)]).values()
    assert (today.model_sha256, today.unbuildable) == ("", "the weights are gone")
    assert today.recipe_sha256 == TODAY[CELLS[0].id].recipe_sha256
    outcome = factory.outcome(CELLS[0].variant.name, CELLS[0].target.name)
    done = replace(outcome, state="done")
    assert today.stale_because(done) == "its model cannot be made any more: the weights are gone"
    assert today.stale_because(replace(done, state="not_run")) == ""


def unbuildable() -> Any:
    raise HandledError("the weights are gone")


def test_a_model_is_built_once_for_all_targets_and_not_where_it_is_given() -> None:
    built = []

    def model() -> Any:
        built.append(1)
        return factory.model()

    variant = replace(CELLS[0].variant, build=model)
    cells = [replace(cell, case=CELLS[0].case, variant=variant) for cell in CELLS[:3]]
    assert {today.model_sha256 for today in todays(cells).values()} == {model_sha256(variant.model_bytes())}
    assert len(built) == 1
    given = todays(cells, {(cells[0].case.name, variant.name): b"given"})
    assert {today.model_sha256 for today in given.values()} == {model_sha256(b"given")}
    assert len(built) == 1

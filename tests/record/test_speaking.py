"""Whose outcomes speak for a cell: current ones, one for each GPU, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.case import model_sha256
from harness.errors import HandledError
from harness.plan import all_cells, find
from harness.record.outcome import UNFED, End, Outcome, Stamps
from harness.record.speaking import gpu_of, is_stale, speaking, todays
from tests.report import factory

pytestmark = pytest.mark.unit

T4 = {"gpu": "Tesla T4", "compute_capability": "7.5", "driver": "535.183.01"}
L4 = {"gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "580.95.05"}
RAN: dict[str, Any] = {"ran": True, "phases": {"build": 1.0, "run": 1.0}}
FAILED: dict[str, Any] = {"failed_phase": "build"}


def outcome(gpu: dict[str, str] | None = None, day: int = 1, **changes: Any) -> Outcome:
    stamps = Stamps(when=f"2026-01-{day:02}T00:00:00Z", environment=gpu or {}, **changes.pop("stamps", {}))
    base = Outcome("c.v-t", "c", "v", "t", "done", end=End("finished"), stamps=stamps)
    return replace(base, **changes)


def spoken(*outcomes: Outcome, stale: str = "") -> tuple[Outcome, ...]:
    (found,) = speaking(outcomes, lambda each: each.reason == stale != "").values()
    # Whatever the order in which two machines' records are joined.
    assert speaking(outcomes[::-1], lambda each: each.reason == stale != "") == {"c.v-t": found}
    return found


@pytest.mark.parametrize("day", [1, 3])
def test_two_gpus_stand_side_by_side(day: int) -> None:
    """A T4's failure is not gone because an L4 works, whichever ran later."""
    t4, l4 = outcome(T4, day, **FAILED), outcome(L4, 2, **RAN)
    assert spoken(t4, l4) == (t4, l4)


def test_of_one_gpu_the_latest_speaks() -> None:
    """By compute capability, product and driver branch; a UUID, or another driver of the branch, tells no two apart."""
    other = {**T4, "gpu_uuid": "GPU-2", "driver": "535.54.03"}
    assert spoken(outcome(T4, 1, **FAILED), outcome(other, 2)) == (outcome(other, 2),)


@pytest.mark.parametrize("key", ["gpu", "compute_capability", "driver"])
def test_what_tells_two_gpus_apart(key: str) -> None:
    """A driver of another branch is another row while both are current."""
    other = outcome({**T4, key: "580.1"}, 2)
    found = spoken(outcome(T4, 1), other)
    assert len(found) == 2
    assert other in found


@pytest.mark.parametrize("state", ["not_run", "not_applicable", "infra_error"])
@pytest.mark.parametrize("day", [1, 3])
@pytest.mark.parametrize("found", [RAN, FAILED])
def test_what_did_not_run_without_a_gpu_adds_nothing(state: Any, day: int, found: dict[str, Any]) -> None:
    """Before the agent came up the GPU is unknown; beside one that ran this stays silent, early or late."""
    ran = outcome(L4, 2, **found)
    assert spoken(outcome(None, day, state=state), ran) == (ran,)


def test_what_did_not_run_on_one_gpu_speaks_for_it_alone() -> None:
    """It does not concern another GPU, and never hides a result of its own."""
    lost, ran = outcome(T4, 3, state="infra_error"), outcome(L4, 2, **RAN)
    assert spoken(lost, ran) == (lost, ran)
    assert spoken(lost, outcome(T4, 1, **FAILED), ran) == (outcome(T4, 1, **FAILED), ran)


@pytest.mark.parametrize("state", ["not_run", "not_applicable"])
def test_a_gpu_that_was_not_tried_took_no_part(state: Any) -> None:
    """A machine's GPU is in the stamps of every cell of a target, of inapplicable ones too."""
    assert spoken(outcome(T4, 1, state=state), outcome(L4, 2, state=state)) == (outcome(L4, 2, state=state),)


def test_a_build_without_a_gpu_adds_nothing_to_a_run() -> None:
    """It says less, also of another image; beside a GPU whose build failed it is another finding."""
    ran, failed = outcome(L4, 1, **RAN), outcome(T4, 1, **FAILED)
    built = outcome(None, 2, stamps={"image_digest": "sha256:1"})
    assert spoken(built, ran) == (ran,)
    assert spoken(built, failed) == (built, failed)
    assert spoken(built, failed, ran) == (failed, ran)
    lost = outcome(L4, 1, state="infra_error", **RAN)
    assert spoken(built, lost) == (built, lost)


def test_a_failure_without_a_gpu_stands_beside_a_run() -> None:
    """It hides no GPU's result, and is not hidden."""
    failed, ran = outcome(None, 1, **FAILED), outcome(L4, 2, **RAN)
    assert spoken(failed, ran) == (failed, ran)


def test_what_is_stale_stands_beside_nothing_current() -> None:
    """A T4's result of yesterday's model is no result; if all are yesterday's, one outcome stands for it."""
    old, new = outcome(T4, 1, reason="old"), outcome(L4, 2, **RAN)
    assert spoken(old, new, stale="old") == (new,)
    later = outcome(L4, 2, reason="old", **RAN)
    assert spoken(old, later, stale="old") == (later,)
    assert spoken(old, outcome(None, 3, reason="old", state="not_run"), stale="old") == (old,)
    never = outcome(None, 1, state="not_run")
    assert spoken(old, never, stale="old") == (never,)
    again = outcome(T4, 3)
    assert spoken(again, outcome(T4, 4, reason="old"), stale="old") == (again,)


LATER = 20
ON_2 = {"engine_version": "10.2.0"}
BUILT: dict[str, Any] = {"phases": {"build": 1.0}}


@pytest.mark.parametrize(
    ("before", "later", "speaks"),
    [
        pytest.param({}, {}, "later", id="the latest"),
        *(
            pytest.param({}, {"state": state}, "before", id=f"done, then {state}")
            for state in ("not_run", "infra_error", "not_applicable")
        ),
        pytest.param({"state": "not_run"}, {}, "later", id="not run, then done"),
        pytest.param({"state": "not_run"}, {"state": "infra_error"}, "later", id="neither ran"),
        pytest.param(RAN, {}, "before", id="ran, then only built"),
        pytest.param({"ran": True, **BUILT}, {}, "before", id="outputs without their phase"),
        pytest.param({**BUILT, "failed_phase": "load"}, {}, "before", id="failed on a GPU, then only built"),
        pytest.param(RAN, FAILED, "later", id="ran, then the build failed"),
        pytest.param(RAN, {"stamps": {"engine_version": "10.3.0"}}, "later", id="another version"),
        pytest.param(RAN, {"stamps": {**ON_2, "image_digest": "sha256:1"}}, "later", id="another image"),
        pytest.param({**RAN, "state": "infra_error"}, {}, "later", id="the machinery failed"),
        *(
            pytest.param(
                {"phases": {phase: 1.0}},
                {},
                "later" if phase in ("parse", "build") else "before",
                id=f"{phase} ended, then only built",
            )
            for phase in ("load", "run", "time", "profile", "parse", "build")
        ),
        pytest.param({"phases": {"load": 1.0}}, {"failed_phase": "run"}, "later", id="as far again"),
        pytest.param({"stamps": {"account": "them"}}, {}, "later", id="sent in, then our own"),
        pytest.param({}, {"stamps": {"account": "them"}}, "before", id="our own, then sent in"),
    ],
)
def test_of_two_outcomes_of_one_machine_one_speaks(
    before: dict[str, Any], later: dict[str, Any], speaks: str
) -> None:
    """A machine that can do less does not hide the finding of one that can do more; a new failure is news."""
    one = outcome(reason="before", **{"stamps": ON_2, **before})
    other = outcome(day=LATER, reason="later", **{"stamps": ON_2, **later})
    assert [each.reason for each in spoken(one, other)] == [speaks]


def test_ties_go_to_the_later_line_and_cells_are_sorted() -> None:
    same = [replace(outcome(reason=str(number)), cell=cell) for cell in "ba" for number in (1, 2)]
    assert {cell: each.reason for cell, (each,) in speaking(same).items()} == {"a": "2", "b": "2"}
    assert list(speaking(same)) == ["a", "b"]


@pytest.mark.parametrize("day", [1, LATER])
def test_a_stale_outcome_loses_to_any_current_one(day: int) -> None:
    """Even "not run" says more about today's cell, whichever came first."""
    old, new = outcome(day=2, reason="old"), outcome(day=day, state="not_run")
    assert spoken(old, new, stale="old") == (new,)
    assert spoken(old, stale="old") == (old,)


CARD = {**T4, "gpu_uuid": "GPU-1"}


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        ("gpu", None),
        ("compute_capability", None),
        ("driver", "Tesla T4 (compute capability 7.5)"),
        ("gpu_uuid", "Tesla T4 (compute capability 7.5, driver 535)"),
    ],
)
def test_a_driver_alone_is_no_gpu(missing: str, found: str | None) -> None:
    """A GPU of unknown driver is one, as with a driver library that does not tell."""
    gpu = gpu_of(Stamps(environment={key: text for key, text in CARD.items() if key != missing}))
    assert (gpu and str(gpu)) == found


CELLS = all_cells(factory.matrix(), (factory.case(),))
TODAY = todays(CELLS)


def because(**stamps: Any) -> str:
    """Return why an outcome with these stamps is stale."""
    found = factory.outcome("qdq", "trt102")
    found = replace(found, stamps=replace(found.stamps, **stamps))
    said = TODAY[found.cell].stale_because(found)
    assert is_stale(found, TODAY) is bool(said)
    return said


MOVED = "it ran on version {}, and matrix.yaml declares 10.2.0.19 today"
CHANGED = "the model or the recipe has changed since it ran"


@pytest.mark.parametrize(
    ("stamps", "said"),
    [
        # Wheels report three components, or a build of packaging.
        *(({"engine_version": version}, "") for version in ("10.2.0.19", "10.2.0", "10.2.0.19.post1")),
        # Also of an older release: matrix.yaml may be moved back.
        *(
            ({"engine_version": version}, MOVED.format(version))
            for version in ("10.2.0.18", "10.2.1", "10.2")
        ),
        ({"model_sha256": "0" * 64}, CHANGED),
        ({"recipe_sha256": "0" * 64}, CHANGED),
        # An agent that never came up is trouble of the machine, on whatever version.
        ({"engine_version": ""}, ""),
        ({"engine_version": "", "model_sha256": "", "recipe_sha256": ""}, ""),
    ],
)
def test_an_outcome_of_another_version_model_or_recipe_is_stale(stamps: dict[str, str], said: str) -> None:
    assert because(**stamps) == said


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
    """A cell that was not run is still not run."""
    broken = replace(CELLS[0].variant, build=unbuildable)
    (today,) = todays([replace(CELLS[0], variant=broken)]).values()
    assert (today.model_sha256, today.unbuildable) == ("", "the weights are gone")
    assert today.recipe_sha256 == TODAY[CELLS[0].id].recipe_sha256
    outcome = factory.outcome(CELLS[0].variant.name, CELLS[0].target.name)
    done = replace(outcome, state="done")
    assert today.stale_because(done).endswith(": the weights are gone")
    assert today.stale_because(replace(done, state="not_run")) == ""


def test_a_rule_that_is_no_more_keeps_no_cell_from_applying() -> None:
    """A variant that cannot be fed says so of the model, which no plan knows."""
    found = replace(
        factory.outcome("qdq", "trt102"), state="not_applicable", reason="TensorRT took no such thing"
    )
    assert is_stale(found, TODAY)
    assert not is_stale(replace(found, reason=f"{UNFED}'x' is a sequence"), TODAY)
    assert not is_stale(found, {found.cell: replace(TODAY[found.cell], applies=False)})


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

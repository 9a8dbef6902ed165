"""Whose outcomes speak for a cell: one for each GPU, side by side."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.record.outcome import End, Outcome, Stamps
from harness.record.speaking import latest, speaking

pytestmark = pytest.mark.unit

T4 = {"gpu": "Tesla T4", "compute_capability": "7.5", "driver": "535.183.01"}
L4 = {"gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "580.95.05"}
RAN: dict[str, Any] = {"ran": True, "phases": {"build": 1.0, "run": 1.0}}
FAILED: dict[str, Any] = {"failed_phase": "build"}


def outcome(gpu: dict[str, str] | None = None, day: int = 1, **changes: Any) -> Outcome:
    stamps = Stamps(when=f"2026-01-{day:02}T00:00:00Z", environment=gpu or {}, **changes.pop("stamps", {}))
    base = Outcome("c.v-t", "c", "v", "t", "done", end=End("finished"), stamps=stamps)
    return dataclasses.replace(base, **changes)


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
    """Before the agent came up nothing is known of a GPU; beside one that ran this says nothing, early or late."""
    ran = outcome(L4, 2, **found)
    assert spoken(outcome(None, day, state=state), ran) == (ran,)


def test_what_did_not_run_on_one_gpu_speaks_for_it_alone() -> None:
    """It says nothing of another GPU, and never hides a result of its own."""
    lost, ran = outcome(T4, 3, state="infra_error"), outcome(L4, 2, **RAN)
    assert spoken(lost, ran) == (lost, ran)
    assert spoken(lost, outcome(T4, 1, **FAILED), ran) == (outcome(T4, 1, **FAILED), ran)


@pytest.mark.parametrize("state", ["not_run", "not_applicable"])
def test_a_gpu_that_was_not_tried_took_no_part(state: Any) -> None:
    """A machine's GPU is in the stamps of every cell of a target, those too that mean nothing there."""
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
    """A T4's result of yesterday's model is no result; where all is of yesterday's one outcome stands for it."""
    old, new = outcome(T4, 1, reason="old"), outcome(L4, 2, **RAN)
    assert spoken(old, new, stale="old") == (new,)
    later = outcome(L4, 2, reason="old", **RAN)
    assert spoken(old, later, stale="old") == (later,)
    assert spoken(old, outcome(None, 3, reason="old", state="not_run"), stale="old") == (old,)
    never = outcome(None, 1, state="not_run")
    assert spoken(old, never, stale="old") == (never,)


def test_a_later_stale_outcome_of_the_same_gpu_displaces_none() -> None:
    new, old = outcome(T4, 1), outcome(T4, 2, reason="old")
    assert spoken(new, old, stale="old") == (new,)


def test_nothing_is_stale_unless_it_is_said_so() -> None:
    t4, l4 = outcome(T4, 1, **FAILED), outcome(L4, 2, **RAN)
    assert speaking([t4, l4]) == {"c.v-t": (t4, l4)}
    assert latest([l4, outcome(None, 3)]) == {"c.v-t": l4}


def test_latest_is_the_last_that_speaks() -> None:
    found = latest([outcome(L4, 2, **RAN), outcome(T4, 1, **FAILED), outcome(None, 3, state="not_run")])
    assert found == {"c.v-t": outcome(L4, 2, **RAN)}

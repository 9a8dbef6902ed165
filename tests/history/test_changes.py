"""Runs over time: a new failure, a fix, a flaky cell, a changed stack and a latency are each told apart."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec import structs

from harness.history import LEAST, MOST, NEEDED, CellHistory, RunRecord, Stack, histories, judge_latency
from harness.words import Class
from tests.history.seeded import CELL, OTHER, STACK, day, runs

pytestmark = pytest.mark.unit

OK, BUILT, BUILD, CRASH = Class.OK, Class.BUILT, Class.BUILD_FAILED, Class.CRASHED
DRIVER = dataclasses.replace(STACK, driver="580.1")
T4 = dataclasses.replace(STACK, device="Tesla T4", compute_capability="7.5")
NEWER = dataclasses.replace(T4, driver="580.95")
L4 = dataclasses.replace(STACK, device="NVIDIA L4", compute_capability="8.9")
SUBJECTS = {CELL: "m-r"}
BARE = dataclasses.replace(STACK, device="Xeon", driver="")


def past(records: tuple[RunRecord, ...]) -> CellHistory:
    """Return the history of the one cell."""
    return histories(records, {CELL: records[-1].cells[CELL].subject}, {})[CELL]


@pytest.mark.parametrize(
    ("classes", "stacks", "found"),
    [
        pytest.param(
            [BUILD], [], {"event": "first", "since": day(0), "first_seen": day(0)}, id="nothing before"
        ),
        pytest.param(
            [*[OK] * 5, *[BUILD] * 3],
            [],
            {"event": "new_failure", "since": day(5), "first_seen": day(5), "flaky": ()},
            id="a failure that stays",
        ),
        pytest.param([*[OK] * 5, BUILD, BUILD], [], {"event": "flaky"}, id="two runs are no proof"),
        pytest.param(
            [*[BUILD] * 4, *[OK] * 3],
            [],
            {"event": "fixed", "fixed_since": day(4), "first_seen": None},
            id="a fix",
        ),
        pytest.param([OK] * 4, [], {"event": "steady", "fixed_since": None}, id="steady"),
        pytest.param(
            [*[BUILD] * 4, *[CRASH] * 3], [], {"event": "changed", "first_seen": day(4)}, id="another failure"
        ),
        pytest.param(
            [*[BUILD] * 3, *[OK] * 3, *[BUILD] * 3],
            [*[STACK] * 6, *[OTHER] * 3],
            {"event": "new_failure", "since": day(6), "first_seen": day(0)},
            id="a failure that was there before",
        ),
        pytest.param(
            [OK, BUILD, OK, OK, BUILD, OK, OK, OK, OK],
            [],
            {"event": "flaky", "flaky": (BUILD, OK)},
            id="it comes and goes on one stack",
        ),
        pytest.param([OK, BUILD, *[OK] * 20], [], {"event": "fixed", "flaky": ()}, id="flaky long ago"),
        pytest.param(
            [*[OK] * 5, BUILD],
            [*[STACK] * 5, OTHER],
            {"event": "new_failure", "since": day(5), "flaky": ()},
            id="it changes with the stack",
        ),
        pytest.param(
            [OK] * 8,
            [*[STACK] * 5, *[OTHER] * 3],
            {"event": "steady", "since": day(0)},
            id="the stack alone changes",
        ),
        pytest.param(
            [OK, BUILD] * 4,
            [STACK, DRIVER] * 4,
            {"event": "new_failure", "flaky": ()},
            id="two machines, each of which agrees with itself",
        ),
        pytest.param(
            [OK, BUILD], [T4, NEWER], {"event": "new_failure", "before": OK}, id="one GPU under two drivers"
        ),
        pytest.param(
            [BUILT, OK],
            [BARE, T4],
            {"event": "changed", "before": BUILT},
            id="a GPU after a machine without one",
        ),
        pytest.param([BUILD, OK], [T4, L4], {"event": "first"}, id="another GPU is no past"),
    ],
)
def test_a_past_is_told_for_what_it_is(
    classes: list[Class], stacks: list[Stack], found: dict[str, Any]
) -> None:
    told = past(runs(classes, stacks or None))
    assert {name: getattr(told, name) for name in found} == found


def test_another_model_or_recipe_begins_anew() -> None:
    """A failure of last year's model does not concern this one, and does not make it flaky."""
    old, new = runs([BUILD] * 4, subject="old"), runs([OK] * 6, subject="new")[4:]
    found = past((*old, *new))
    assert (found.event, found.since, found.fixed_since) == ("steady", day(4), None)
    assert histories(old, {CELL: "new"}, {}) == {}


def test_a_later_run_that_does_not_speak_for_the_cell_is_no_change() -> None:
    """A machine without a GPU that only builds a model which another machine ran: the run still speaks."""
    records = runs([OK, OK, BUILT], [STACK, STACK, OTHER])
    found = histories(records, SUBJECTS, {CELL: "r1"})[CELL]
    assert (found.event, found.since) == ("steady", day(0))
    assert past(records).event == "changed"


def test_each_gpu_has_a_past_of_its_own() -> None:
    """A T4 that fails between an L4's successes is neither flaky nor a failure that came and went."""
    records = runs([OK, BUILD, OK, BUILD], [L4, T4, L4, T4])
    (t4, l4) = (histories(records, SUBJECTS, {CELL: run})[CELL] for run in ("r3", "r2"))
    assert (t4.event, t4.since, t4.first_seen, t4.flaky) == ("steady", day(1), day(1), ())
    assert (l4.event, l4.since, l4.fixed_since, l4.flaky) == ("steady", day(0), None, ())


@pytest.mark.parametrize("stacks", [(OTHER, STACK), (T4, L4)], ids=["image", "gpu"])
def test_latency_is_compared_on_one_stack_alone(stacks: tuple[Stack, Stack]) -> None:
    """A step that comes with another image or GPU is theirs and no regression of the cell."""
    old, new = stacks
    count = NEEDED + 1
    records = runs([OK] * 2 * count, [old] * count + [new] * count, medians=[0.5] * count + [0.9] * count)
    found = past(records)
    assert found.latency is not None
    assert (found.latency.change, found.latency.runs) == (None, NEEDED)


def test_a_latency_by_graph_is_not_held_to_one_by_launches() -> None:
    records = runs([OK] * (NEEDED + 1), medians=[0.9] * NEEDED + [0.4])
    assert past(records).latency
    (cell,) = records[-1].cells
    by_graph = structs.replace(records[-1].cells[cell], clock="cuda_graph")
    assert past((*records[:-1], dataclasses.replace(records[-1], cells={cell: by_graph}))).latency is None


@pytest.mark.parametrize(
    ("medians", "change"),
    [
        ([1.0] * NEEDED + [1.0], None),
        ([1.0] * NEEDED + [1.0 + LEAST], None),
        ([1.0] * NEEDED + [1.25], "slower"),
        ([1.0] * NEEDED + [0.8], "faster"),
        ([1.0] * NEEDED + [1.0 - LEAST], None),
        pytest.param([1.0, 1.0, 1.3, 1.0, 1.0, 1.25], None, id="one run before was as slow"),
        pytest.param([9.0] * 50 + [1.0] * MOST + [1.0], None, id="old runs are left out"),
    ],
)
def test_a_change_is_beyond_the_least_and_beyond_every_run_before(
    medians: list[float], change: str | None
) -> None:
    found = judge_latency(medians)
    assert found
    assert (found.before_ms, found.now_ms, found.change) == (1.0, medians[-1], change)
    assert found.runs == min(len(medians) - 1, MOST)


def test_too_few_runs_say_nothing() -> None:
    assert judge_latency([]) is None
    assert judge_latency([1.0] * (NEEDED - 1) + [9.0]) is None

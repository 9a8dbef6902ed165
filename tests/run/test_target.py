"""One target's runner: each failing engine costs its own cell, each failing machine is said to be that."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace

import pytest

from harness.judge.cell import judge_cell
from harness.matrix import Needs
from harness.run import target as module
from harness.run.provision.cache import locked
from harness.run.provision.model import Environment, Unavailable, Unreachable
from harness.run.target import Aborted, TargetRunner
from harness.words import Class, Engine, Verdict
from tests import needs
from tests.run.bench import (
    DIES_AT_START,
    SLEEPS_AT_START,
    Bench,
    cell,
    classified,
    lives,
    offer_to_the_kernel,
    run,
    target,
)
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.integration

#: A job may use what the container has less 512 MiB, but 512 MiB at least: here less than the container ...
WATCHED = 1200
#: ... and here more.
UNWATCHED = 400


@pytest.mark.parametrize(
    ("do", "cls", "reason"),
    [
        ("segfault", Class.CRASHED, "killed by SIGSEGV in build"),
        ("abort", Class.CRASHED, "killed by SIGABRT in build"),
        ("exit", Class.CRASHED, "the process ended with exit code 7 in build"),
        ("leave", Class.CRASHED, "the process ended with exit code 0 before its job was done in build"),
        ("hang", Class.TIMED_OUT, "did not end in time in build: not finished after 1 s"),
        ("eat", Class.OUT_OF_MEMORY, "ran out of memory in build: used more than 688 MiB"),
    ],
)
def test_an_engine_that_fails_costs_its_own_cell(bench: Bench, do: str, cls: Class, reason: str) -> None:
    """Each is classed for what it did, and the next cell runs in the same container or process."""
    runner = bench.runner(target(memory_mib=WATCHED, timeout_s=1 if do == "hang" else PATIENCE))
    found = run(runner, do)
    assert (found.cls, found.reason) == (cls, reason)
    assert run(runner, "echo").cls is Class.BUILT
    assert len(bench.agents) == 1


@pytest.mark.parametrize("bench", ["docker"], indirect=True)
def test_an_engine_killed_by_the_kernel_costs_its_own_cell(bench: Bench) -> None:
    runner = bench.runner(target(memory_mib=UNWATCHED))
    for _ in range(2):
        found = run(runner, "gulp")
        assert (found.cls, found.reason) == (
            Class.OUT_OF_MEMORY,
            "ran out of memory in build: killed by the kernel at the container's memory limit",
        )
        assert run(runner, "echo").cls is Class.BUILT
    assert len(bench.agents) == 1


@pytest.mark.parametrize("bench", ["docker"], indirect=True)
def test_an_agent_that_the_kernel_kills_is_out_of_memory_for_this_cell_alone(bench: Bench) -> None:
    """No second try: it would end in the same way. The next cell gets a new container."""
    runner = bench.runner(target(memory_mib=UNWATCHED))
    assert run(runner, "echo").cls is Class.BUILT
    offer_to_the_kernel(bench.agents[0])
    outcome, _ = runner.run(cell("betray", runner.target))
    found = classified(outcome)
    assert found.cls is Class.OUT_OF_MEMORY
    assert found.reason.startswith("ran out of")
    assert outcome.end is not None
    assert outcome.end.peak_rss_bytes is None
    assert len(bench.agents) == 1
    assert run(runner, "echo").cls is Class.BUILT
    assert len(bench.agents) == 2
    assert not lives(bench.agents[0])


@pytest.mark.parametrize("bench", ["docker"], indirect=True)
def test_a_cell_is_not_blamed_for_the_memory_limit_that_one_before_it_hit(bench: Bench) -> None:
    """Docker's out-of-memory flag stays with the container; an agent killed from outside is tried again."""
    runner = bench.runner(target(memory_mib=UNWATCHED))
    assert run(runner, "gulp").cls is Class.OUT_OF_MEMORY
    bench.kill_during(1)
    assert run(runner, "nap").cls is Class.BUILT
    assert len(bench.agents) == 2


def test_an_agent_lost_twice_is_infrastructure_for_that_cell_alone(bench: Bench) -> None:
    runner = bench.runner(target())
    bench.kill_during(2)
    found = run(runner, "nap")
    assert found.cls is Class.INFRA_ERROR
    assert "(killed by SIGKILL)" in found.reason
    assert run(runner, "echo").cls is Class.BUILT
    assert len(bench.agents) == 3


def test_agents_lost_now_and_then_are_replaced_and_do_not_add_up(bench: Bench) -> None:
    """Each cell gets its record. Only starts that fail give a target up, and not a loss in each of many cells."""
    runner = bench.runner(target())
    for _ in range(3):
        bench.kill_during(1)
        assert run(runner, "nap").cls is Class.BUILT
    assert len(bench.agents) == 4
    assert bench.prepared == 1


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_another_version_than_declared_is_infrastructure_and_names_both(bench: Bench) -> None:
    """The product is never blamed for what stands wrong in matrix.yaml."""
    toy = target(version="2.5.0")
    runner = bench.runner(toy)
    outcome, _ = runner.run(cell("echo", toy))
    judged = judge_cell(cell("echo", toy), outcome)
    assert judged.judgement.verdict is Verdict.INFRA
    assert judged.signature is None
    reason = judged.classification.reason
    assert reason.startswith("toy is declared")
    assert "\n" not in reason
    assert run(runner, "echo").cls is Class.INFRA_ERROR
    assert len(bench.agents) == 2


def test_an_agent_that_sees_no_gpu_where_one_is_needed_is_infrastructure_once(bench: Bench) -> None:
    """The machine has a GPU and the environment does not reach it: no cell is built, two agents are started in all."""
    if bench.via == "docker":
        pytest.skip("the daemon would refuse to pass on a GPU that is not there")
    runner = bench.runner(target(needs=Needs(gpu=True, architecture="x86_64")))
    found = [run(runner, "echo") for _ in range(3)]
    assert [each.cls for each in found] == [Class.INFRA_ERROR] * 3
    assert all("names no GPU" in each.reason for each in found)
    assert len(bench.agents) == 2


def test_an_engine_that_dies_when_loaded_is_not_started_for_every_cell(bench: Bench) -> None:
    """An agent lost at its start counts as a start that failed: a hundred cells do not wait for two hundred."""
    bench.engine = DIES_AT_START
    runner = bench.runner(target())
    found = [run(runner, "echo") for _ in range(3)]
    assert [each.cls for each in found] == [Class.INFRA_ERROR] * 3
    # The first process of a container cannot be aborted: what abort() does then is a fault.
    killed = re.compile(r"loading the engine \(killed by SIG(ABRT|SEGV)\)")
    assert all(killed.search(each.reason) for each in found), found[0].reason
    assert len(bench.agents) == 2


@pytest.mark.unit
def test_what_does_not_apply_needs_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module, "prepare")
    runner = TargetRunner(target(engine=Engine.ONNXRUNTIME, provider="cpu"), via="auto", run_id="bench")
    weak = cell("echo", runner.target)
    recipe = replace(weak.variant.recipe, mark_outputs=("x",))
    outcome, _ = runner.run(replace(weak, variant=replace(weak.variant, recipe=recipe)))
    assert outcome.state == "not_applicable"
    assert outcome.stamps.recipe_sha256 == recipe.sha256()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("refusal", "state"),
    [(Unavailable("needs a moon"), "not_run"), (Unreachable("no registry answers"), "infra_error")],
)
def test_a_target_that_cannot_be_had_is_asked_for_once(
    monkeypatch: pytest.MonkeyPatch, refusal: Unavailable, state: str
) -> None:
    """What this machine lacks is no failure; what could not be fetched is the machinery's."""
    asked = []

    def refuse(*_: object, **__: object) -> Environment:
        asked.append(1)
        raise refusal

    monkeypatch.setattr(module, "prepare", refuse)
    runner = TargetRunner(target(), via="auto", run_id="bench")
    for _ in range(2):
        outcome, _log = runner.run(cell("echo", runner.target))
        assert (outcome.state, outcome.reason) == (state, str(refusal))
    assert len(asked) == 1


@pytest.mark.parametrize("engine", [b"", SLEEPS_AT_START], ids=["in a cell", "at the start"])
def test_an_abort_from_another_thread_ends_the_agent_in_the_middle_of_its_cell(
    bench: Bench, engine: bytes
) -> None:
    bench.engine = engine or bench.engine
    runner = bench.runner(target(timeout_s=600))
    ended: list[bool] = []

    def work() -> None:
        with pytest.raises(Aborted):
            run(runner, "hang")
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    assert wait_for(lambda: bool(bench.agents))
    time.sleep(1)
    runner.abort()
    thread.join(timeout=PATIENCE)
    assert ended
    assert wait_for(lambda: not lives(bench.agents[0]))
    with pytest.raises(Aborted):
        run(runner, "echo")
    assert len(bench.agents) == 1


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_an_abort_just_before_the_agent_starts_leaves_none(bench: Bench) -> None:
    """The agent that is started meanwhile is found and ended by the thread that started it."""
    runner = bench.runner(target())
    bench.meanwhile = runner.abort
    with pytest.raises(Aborted):
        run(runner, "echo")
    assert len(bench.agents) == 1
    assert not lives(bench.agents[0])


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_an_abort_does_not_wait_for_the_device(bench: Bench) -> None:
    """Another harness on this machine may hold the lock for the ten minutes of a cell that hangs."""
    runner = bench.runner(target(engine=Engine.ONNXRUNTIME, provider="cpu"))
    with locked("cpu"):
        threading.Timer(1, runner.abort).start()
        with pytest.raises(Aborted):
            run(runner, "echo")
    assert not lives(bench.agents[0])


def test_the_record_says_where_it_was_made(bench: Bench) -> None:
    runner = bench.runner(target())
    stamps = runner.run(cell("echo", runner.target))[0].stamps
    assert (stamps.engine_version, stamps.via, stamps.run) == ("1.0.0", bench.via, "bench")
    assert stamps.image == (needs.base_image() if bench.via == "docker" else "")
    assert runner.note == "toy runs on the bench."

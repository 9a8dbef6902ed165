"""Many cells on this machine: every one gets its record, and no way to end a run leaves an agent."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.record.store import Store
from tests.run.bench import Bench, cell, classified, lives, target
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.integration


class Failure(Exception):
    """What a test's own callback raises."""


def nothing(_cell: Cell, _outcome: Outcome, _note: str) -> None:
    """Report to nobody."""


def test_every_cell_is_recorded_and_reported_with_more_workers_than_targets(
    bench: Bench, tmp_path: Path
) -> None:
    """A cell that crashes does not keep those after it from their records; each target has one agent."""
    doings = ("echo", "segfault", "print")
    cells = [cell(do, target(name)) for do in doings for name in ("one", "two")]
    reported: list[tuple[str, str]] = []
    with Store(tmp_path / "store") as store:
        bench.run(cells, store, lambda each, _outcome, note: reported.append((each.id, note)), workers=5)
        kept = {each.cell: each for each in store.outcomes()}
    assert set(kept) == {each.id for each in cells}
    assert {name: str(classified(outcome).cls) for name, outcome in kept.items()} == {
        each.id: "crashed" if "segfault" in each.id else "built" for each in cells
    }
    assert sorted(name for name, _ in reported) == sorted(kept)
    assert set(reported) == {(each.id, f"{each.target.name} runs on the bench.") for each in cells}
    assert len(bench.agents) == 2
    assert not any(lives(agent) for agent in bench.agents)


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_emulated_targets_go_first(bench: Bench, tmp_path: Path) -> None:
    """They take longest; begun last they would run alone at the end."""
    cells = [cell("echo", target("near")), cell("echo", target("far", platform="linux/arm64"))]
    order: list[str] = []
    with Store(tmp_path) as store:
        bench.run(cells, store, lambda each, *_: order.append(each.target.name))
    assert order == ["far", "near"]


def test_a_callback_that_fails_ends_the_run_at_once(bench: Bench, tmp_path: Path) -> None:
    """Another worker is in a cell with ten minutes to go: its agent is ended, and the failure comes through."""
    cells = [cell("hang", target("long", timeout_s=600)), cell("nap", target("short"))]

    def fail(each: Cell, _outcome: Outcome, _note: str) -> None:
        raise Failure(each.id)

    began = time.monotonic()
    with Store(tmp_path / "store") as store, pytest.raises(Failure, match=r"faulty\.nap-short"):
        bench.run(cells, store, fail, workers=2)
    assert time.monotonic() - began < PATIENCE
    assert {each.cell for each in Store(tmp_path / "store").outcomes()} == {"faulty.nap-short"}
    assert not any(lives(agent) for agent in bench.agents)


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_an_interrupt_ends_every_agent_and_keeps_what_is_recorded(bench: Bench, tmp_path: Path) -> None:
    cells = [
        cell("echo", target("one", timeout_s=600)),
        cell("hang", target("one", timeout_s=600)),
        cell("hang", target("two", timeout_s=600)),
    ]
    store = Store(tmp_path / "store")

    def interrupt() -> None:
        wait_for(lambda: len(bench.agents) == 2 and bool(list(Store(tmp_path / "store").outcomes())))
        time.sleep(0.5)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with store, pytest.raises(KeyboardInterrupt):
        bench.run(cells, store, nothing, workers=2)
    assert {each.cell for each in store.outcomes()} == {"faulty.echo-one"}
    assert len(bench.agents) == 2
    assert not any(lives(agent) for agent in bench.agents)

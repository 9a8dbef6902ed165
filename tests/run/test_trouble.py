"""One cell's trouble is one record: whatever the agent says or this program gets wrong, the next cell runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.agent.bootstrap import pack
from harness.agent.protocol import encode
from harness.case import Variant
from harness.judge.diagnosis import diagnose
from harness.record.store import Store
from harness.run import target as module
from harness.run.observation import Observation
from harness.run.prepared import Prepared
from harness.run.target import TargetRunner
from harness.words import Class
from tests.run.bench import ADAPTERS, Bench, cell, classified, run, target
from tests.run.prepared import prepare_variant

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SERVE = "harness/agent/serve.py"
#: Where it stands, the job's own id is put: that of another is passed over.
ID = b"the id of a job."


def said(message: Any, body: bytes = b"") -> bytes:
    return encode(message, body, ID)


PHASE = {"type": "phase", "name": "build", "seconds": 1.0, "ok": True}
END = {"type": "end", "kind": "finished", "exit_code": 0, "detail": "", "peak_rss_bytes": 1}
LIES: dict[str, tuple[bytes, str]] = {
    "no frame": (b"WARNING: a library says hello", "not a frame"),
    "a huge frame": (b"TCM2" + ID + b"\xff" * 8, "a frame with a message of 4294967295 bytes"),
    "an end": (said(END), "a frame of the type 'end'"),
    "a fact of the machine": (
        said({"type": "fact", "facts": {"gpu": "H100"}}),
        "a cell's job tells of ['gpu']",
    ),
    "a lack, then no frame": (said({"type": "unavailable", "text": "a GPU"}) + b"garbage", "not a frame"),
    "a good cell after an end": (
        said(END)
        + said({"type": "phase_begin", "name": "build"})
        + said({"type": "plan"}, b"x")
        + said(PHASE)
        + said(END),
        "a frame of the type 'end'",
    ),
}


class Telling:
    """Prepared variants whose model is the bytes that the agent is to say."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def of(self, variant: Variant, _wanted: Any = None) -> Prepared:
        return dataclasses.replace(prepare_variant(variant), model=self._said)

    def weights(self, _variant: Variant) -> None:
        return None


@pytest.fixture
def teller(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], TargetRunner]:
    """Return a maker of runners whose engine says what it is told to."""
    # The body of a job is its parts in a row: without inputs, the model alone.
    monkeypatch.setattr(Prepared, "wire_inputs", lambda _: ())

    def make(what: bytes) -> TargetRunner:
        runner = bench.runner(target())
        runner._prepared = Telling(what)  # type: ignore[assignment]
        return runner

    return make


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_frame_that_lies_is_its_own_cells_crash_and_the_agent_serves_the_next(
    bench: Bench, teller: Callable[[bytes], TargetRunner]
) -> None:
    """One agent for all of them: none of it is lost, and no cell takes part in another's."""
    runner = teller(b"")
    for lie, (what, reason) in LIES.items():
        runner._prepared = Telling(what)  # type: ignore[assignment]
        outcome, _ = runner.run(cell("lie", runner.target))
        found = classified(outcome)
        known = diagnose(outcome, found)
        assert (found.cls, known and known.id) == (Class.CRASHED, "broken-protocol"), lie
        assert reason in found.reason, lie
        assert run(runner, "segfault").reason.startswith("killed by SIGSEGV"), lie
    assert run(runner, "echo").cls is Class.BUILT
    assert len(bench.agents) == 1


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_python_exception_in_the_agents_child_is_ours_and_not_a_crash(bench: Bench) -> None:
    runner = bench.runner(target())
    outcome, log = runner.run(cell("raise", runner.target))
    found = classified(outcome)
    assert found.cls is Class.INFRA_ERROR
    assert found.reason.startswith("the agent failed:")
    assert "Traceback" in log


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
@pytest.mark.parametrize("where", ["outcome", "hear"])
def test_a_slip_of_this_program_costs_one_cell_and_leaves_a_trace_in_its_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    real = getattr(Observation, where)
    # What is heard first is the preflight.
    slips = iter([True] if where == "outcome" else [False, True])

    def slipping(self: Observation, *rest: Any) -> Any:
        if next(slips, False):
            raise ZeroDivisionError("a slip of ours")
        return real(self, *rest)

    monkeypatch.setattr(Observation, where, slipping)
    runner = bench.runner(target())
    outcome, log = runner.run(cell("echo", runner.target))
    assert outcome.state == "infra_error"
    assert outcome.reason.startswith("the harness failed:")
    assert "Traceback" in log
    if where == "outcome":
        assert "about to echo" in log
    assert run(runner, "echo").cls is Class.BUILT


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_slip_while_a_target_is_made_ready_is_told_once_and_the_other_target_runs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prepare, asked = vars(module)["prepare"], []

    def slipping(of: Any, via: Any, pulling: Any) -> Any:
        asked.append(of.name)
        if of.name == "one":
            raise KeyError("EXE")
        return prepare(of, via, pulling)

    monkeypatch.setattr(module, "prepare", slipping)
    cells = [cell(do, target(name)) for name in ("one", "two") for do in ("echo", "print")]
    with Store(tmp_path) as store:
        bench.run(cells, store, lambda *_: None, workers=2)
        kept = {each.cell: each for each in store.outcomes()}
    assert {name: outcome.state for name, outcome in kept.items()} == {
        each.id: "infra_error" if each.target.name == "one" else "done" for each in cells
    }
    assert "KeyError: 'EXE'" in kept["faulty.echo-one"].reason
    assert asked.count("one") == 1


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_full_temporary_folder_is_the_machines_trouble(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No disk has as much left as this agent wants to find."""
    source = (ROOT / SERVE).read_bytes()
    greedy = source.replace(b"\nSCRATCH_LEAST = 16 << 20\n", b"\nSCRATCH_LEAST = 1 << 62\n")
    assert greedy != source
    files = {SERVE: greedy} | dict.fromkeys(ADAPTERS, bench.engine)
    monkeypatch.setattr("harness.run.session.pack", lambda _=None: pack(files))
    runner = bench.runner(target())
    found = run(runner, "echo")
    assert found.cls is Class.INFRA_ERROR
    assert "MiB left for" in found.reason

"""One cell's trouble is one record: whatever the agent says or this program gets wrong, the next cell runs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent.protocol import encode
from harness.case import Variant
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.run import target as module
from harness.run.local import run_cells
from harness.run.observation import Observation
from harness.run.prepared import Prepared, prepare_variant
from harness.words import Class
from tests.run.bench import Bench, cell, classified, target

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

LIES: dict[str, tuple[bytes, str]] = {
    "a list": (encode([]), "a message without a type"),  # type: ignore[arg-type]
    "no type": (encode({"kind": "finished"}), "a message without a type"),
    "a number for a type": (encode({"type": 5}), "a message without a type"),
    "no JSON": (b"TCM1\0\0\0\1\0\0\0\0{", "not a message"),
    "deep JSON": (b"TCM1" + (200_000).to_bytes(4, "big") + bytes(4) + b"[" * 200_000, "not a message"),
    "no frame": (b"WARNING: a library says hello", "not a frame"),
    "unknown": (encode({"type": "confetti"}), "the agent sent 'confetti', which is no event"),
    "no field": (encode({"type": "phase", "name": "build"}), "'phase' cannot be read: KeyError"),
    "a list for a name": (encode({"type": "phase", "name": [], "seconds": 1.0, "ok": True}), "TypeError"),
    "a bad end": (encode({"type": "end"}), "'end' cannot be read: KeyError"),
    "a bad shape": (
        encode({"type": "output", "name": "y", "dtype": "float32", "shape": [3]}, b"1234"),
        "'output' cannot be read: ValueError",
    ),
    "a bad type": (
        encode({"type": "output", "name": "y", "dtype": "quaternion", "shape": [1]}, b"1234"),
        "'output' cannot be read",
    ),
    "a fact that is a number": (
        encode({"type": "fact", "facts": {"engine_version": 5}}),
        "the harness failed",
    ),
    "a reason that is a number": (encode({"type": "agent_fault", "text": 5}), "the harness failed"),
    "seconds that are none": (
        encode({"type": "phase", "name": "parse", "seconds": float("nan"), "ok": True}),
        "the harness failed",
    ),
}


class Telling:
    """Stands for prepared variants: the model is what the agent is to say."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def of(self, variant: Variant, _wanted: Any = None) -> Prepared:
        return dataclasses.replace(prepare_variant(variant), model=self._said)


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
@pytest.mark.parametrize("lie", LIES)
def test_a_frame_that_lies_is_the_record_of_its_cell_and_the_agent_serves_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    said, reason = LIES[lie]
    # The body of a job is its parts in a row: without inputs, the model alone.
    monkeypatch.setattr(Prepared, "wire_inputs", lambda _: ())
    runner = bench.runner(target())
    runner._prepared = Telling(said)  # type: ignore[assignment]
    outcome, _ = runner.run(cell("lie", runner.target))
    found = classified(outcome)
    assert found.cls is Class.INFRA_ERROR
    assert reason in found.reason
    assert classified(runner.run(cell("echo", runner.target))[0]).cls is Class.BUILT
    # "a bad end" makes two ends of one job, so that its agent is ended with it.
    assert len(bench.agents) <= 2


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_python_exception_in_the_agents_child_is_ours_and_not_a_crash(bench: Bench) -> None:
    runner = bench.runner(target())
    outcome, log = runner.run(cell("raise", runner.target))
    found = classified(outcome)
    assert found.cls is Class.INFRA_ERROR
    assert found.reason.startswith(
        "the agent failed: RuntimeError: a fault of the adapter (tensorrt/__init__.py:"
    )
    assert "Traceback" in log


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
@pytest.mark.parametrize("where", ["outcome", "hear"])
def test_a_slip_of_this_program_costs_one_cell_and_leaves_a_trace_in_its_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    real = getattr(Observation, where)
    slips = iter([True])

    def slipping(self: Observation, *rest: Any) -> Any:
        # The first call is the job that asks for devices.
        if next(slips, False):
            raise ZeroDivisionError("a slip of ours")
        return real(self, *rest)

    monkeypatch.setattr(Observation, where, slipping)
    runner = bench.runner(target())
    outcome, log = runner.run(cell("echo", runner.target))
    assert outcome.state == "infra_error"
    assert outcome.reason.startswith("the harness failed: ZeroDivisionError: a slip of ours (tests/run/")
    assert "Traceback" in log
    if where == "outcome":
        assert "about to echo" in log
    assert classified(runner.run(cell("echo", runner.target))[0]).cls is Class.BUILT


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_slip_while_a_target_is_made_ready_is_told_once_and_the_other_target_runs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prepare, asked = vars(module)["prepare"], []

    def slipping(of: Any, via: Any, pulling: Any, *, ignore_needs: bool) -> Any:
        asked.append(of.name)
        if of.name == "one":
            raise KeyError("EXE")
        return prepare(of, via, pulling, ignore_needs=ignore_needs)

    monkeypatch.setattr(module, "prepare", slipping)
    cells = [cell(do, target(name)) for name in ("one", "two") for do in ("echo", "print")]
    with Store(tmp_path) as store:
        run_cells(
            cells,
            make_runner=lambda first: bench.runner(first.target),
            store=store,
            workers=2,
            report=lambda *_: None,
        )
        kept = store.latest()
    assert {name: outcome.state for name, outcome in kept.items()} == {
        each.id: "infra_error" if each.target.name == "one" else "done" for each in cells
    }
    assert "KeyError: 'EXE'" in kept["faulty[echo]-one"].reason
    assert asked.count("one") == 1


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """Lend a folder on a file system of its own that has no room left."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_full_temporary_folder_is_the_machines_trouble(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, full: Path
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(full))
    runner = bench.runner(target())
    found = classified(runner.run(cell("echo", runner.target))[0])
    assert found.cls is Class.INFRA_ERROR
    assert "MiB left for temporary files" in found.reason
    monkeypatch.undo()


def test_a_record_that_no_report_could_read_is_not_kept() -> None:
    """One such line made a whole folder of records unreadable."""
    spoilt = Outcome("c", "c", "v", "t", "done", phases={"build": "long"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"phases\[...\]: Expected `float`, got `str`"):
        module._as_kept(spoilt)
    good = Outcome("c", "c", "v", "t", "done", phases={"build": 1.0})
    assert module._as_kept(good) == good
    assert json.loads(json.dumps(good.to_json()))["phases"] == {"build": 1.0}

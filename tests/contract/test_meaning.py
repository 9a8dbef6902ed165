"""The adapter's calls mean what they must on every version, and each of many faults is told by its own sentence.

The trace that `meaning` reads is of the real bindings' calls with their arguments, CUDA's and TensorRT's callbacks
among them. So it proves what the adapter asks for, in which order, from which memory, and how long Python keeps what
is in use. It does not prove what TensorRT or a GPU makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.contract import bindings
from tests.contract.bindings import ROOT, VERSIONS, Bindings
from tests.contract.conftest import Probe
from tests.contract.faults import FAULTS, Fault, seeded
from tests.contract.findings import findings
from tests.contract.meaning import lifetimes, misread
from tests.contract.meaning.job import Job
from tests.contract.scenarios import Scenario
from tests.contract.traces import Call

pytestmark = pytest.mark.contract


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.id.replace(" ", ""))
def test_calls_mean_what_they_must(version: Bindings, probe: Probe, jobs: Mapping[str, Scenario]) -> None:
    """Every call of every job on every version keeps to the rules."""
    assert misread(probe(version, ROOT), jobs) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_told(fault: Fault, stub: Path, jobs: Mapping[str, Scenario], tmp_path: Path) -> None:
    """The job says of a copy of the agent with this one fault what the fault is."""
    code = seeded(tmp_path, fault.file, fault.right, fault.wrong)
    version = next(each for each in VERSIONS if each.id == fault.version)
    report = bindings.probe(version, [jobs[fault.job].as_dict()], stub, code)
    assert f"{fault.job}: {fault.said}" in [
        sentence.rstrip(": ") for sentence in findings(report, jobs) + misread(report, jobs)
    ]


def _lives(*calls: tuple[str, str, tuple[str, ...], str]) -> list[str]:
    """Return what is said of how long things live where these calls were made: thing, name, arguments, result."""
    trace = tuple(Call(0, on, name, arguments, "", result) for on, name, arguments, result in calls)
    job = Job(Scenario("made up", {"kind": "run"}), frozenset(), "failed", "", trace)
    return list(lifetimes.objects(job))


_LOADED = (
    ("", "Runtime", ("ILogger#1",), "Runtime#1"),
    ("Runtime#1", "Runtime.deserialize_cuda_engine", ("<4 bytes>",), "ICudaEngine#1"),
    ("ICudaEngine#1", "ICudaEngine.create_execution_context", (), "IExecutionContext#1"),
    ("IExecutionContext#1", "IExecutionContext.profiler =", ("IProfiler#1",), ""),
)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("first", "user"),
    [
        ("Runtime#1", "ICudaEngine#1"),
        ("ICudaEngine#1", "IExecutionContext#1"),
        ("IProfiler#1", "IExecutionContext#1"),
        ("ILogger#1", "Runtime#1"),
    ],
)
def test_what_is_freed_too_early_is_told(first: str, user: str) -> None:
    """No fault of the adapter shows these: the bindings of every version keep them alive by themselves."""
    early, late = (("", "freed", (name,), "") for name in (first, user))
    sentence = f"{first} is freed while {user} still uses it"
    assert sentence in _lives(*_LOADED, early, late)
    assert sentence not in _lives(*_LOADED, late, early)

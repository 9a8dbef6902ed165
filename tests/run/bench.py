"""Cells whose engine fails on purpose, run by real agents in containers and in processes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from harness.agent.bootstrap import pack
from harness.case import Case, Graph, Link, Plugin, Recipe, Variant
from harness.judge.classify import Classification
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.run import target as module
from harness.run.docker import DockerTransport
from harness.run.docker.reaper import OWNER_LABEL
from harness.run.local import How, Report, run_cells
from harness.run.provision.model import Environment, Via
from harness.run.provision.prepare import start
from harness.run.session import Event, Job, Session
from harness.run.target import TargetRunner
from harness.run.transport import ProcessTransport
from harness.words import Engine
from tests import needs
from tests.run.provision.factory import target as make_target

FAULTY = (Path(__file__).parents[1] / "agent" / "faulty.py").read_bytes()
#: Engines that do not get as far as to greet.
SLEEPS_AT_START = b"import time\ndef preload(engine):\n    time.sleep(600)\n"
DIES_AT_START = b"import os\ndef preload(engine):\n    os.abort()\n"
ADAPTERS = ("harness/agent/engines/onnxruntime.py", "harness/agent/engines/tensorrt/__init__.py")
#: The version that the faulty engine reports.
VERSION = "1.0.0"


def relu(extent: int = 4) -> onnx.ModelProto:
    """Return the smallest model, with the node `/act`; the faulty engine does not look at it."""
    graph = Graph("relu")
    graph.node("Relu", [graph.input("x", [1, extent])], name="/act", output="y")
    graph.output("y", [1, extent])
    return graph.model()


def cell(do: str, target: Target, plugin: Plugin | None = None) -> Cell:
    """Return a cell in which the faulty engine does what `do` says: it goes as the recipe's only flag."""
    recipe = Recipe(flags=(do,), plugin=plugin)
    variant = Variant(do.replace("_", "-"), f"an engine that does {do}", relu, recipe)
    link = Link("https://github.com/NVIDIA/TensorRT/issues/1")
    case = Case("faulty", "faulty", "fails on purpose", (link,), (variant,))
    return Cell(f"faulty.{variant.name}-{target.name}", case, variant, target)


def target(name: str = "toy", **changes: Any) -> Target:
    """Return a target that the faulty engine stands for: a builder that needs no GPU, and so no lock on a device."""
    fields = {
        "name": name,
        "engine": Engine.TENSORRT_RTX,
        "version": VERSION,
        "memory_mib": 1024,
        "provider": "",
    }
    return make_target(**(fields | changes))


def classified(outcome: Outcome) -> Classification:
    """Return the class of an outcome, read from its JSON form as the report does."""
    from harness.judge.classify import classify

    return classify(type(outcome).from_json(json.loads(json.dumps(outcome.to_json()))))


def run(runner: TargetRunner, do: str) -> Classification:
    """Run a cell in which the faulty engine does what `do` says; return the class of its outcome."""
    return classified(runner.run(cell(do, runner.target))[0])


def identity(transport: ProcessTransport) -> str | int:
    """Name the container or process that an agent is in."""
    if isinstance(transport, DockerTransport):
        return transport.name
    assert isinstance(transport, ProcessTransport)
    return transport.pid


def kill(agent: str | int) -> None:
    """Kill an agent from outside."""
    if isinstance(agent, int):
        os.kill(agent, 9)
    else:
        subprocess.run(["docker", "kill", agent], check=True, capture_output=True)


def lives(agent: str | int) -> bool:
    """Tell whether an agent's process, or its container in any state, is still there."""
    if isinstance(agent, int):
        return Path(f"/proc/{agent}").exists()
    return subprocess.run(["docker", "inspect", agent], capture_output=True, check=False).returncode == 0


def offer_to_the_kernel(container: str | int) -> None:
    """Make an agent the kernel's first choice when memory is short, which no job of it can."""
    inspect = ["docker", "inspect", "--format", "{{.State.Pid}}", str(container)]
    found = subprocess.run(inspect, check=True, capture_output=True, text=True)
    Path(f"/proc/{found.stdout.strip()}/oom_score_adj").write_text("1000")


@dataclass
class Bench:
    """A stand-in for provisioning and the engine; `agents` are those started, in order.

    `meanwhile` is called while the environment is made ready.
    """

    via: Via
    monkeypatch: pytest.MonkeyPatch
    engine: bytes = FAULTY
    agents: list[str | int] = field(default_factory=list)
    prepared: int = 0
    runners: list[TargetRunner] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def install(self) -> None:
        """Replace provisioning by an environment with no engine, and the adapter by the faulty one."""

        def prepare(target: Target, _via: Via, *_: object, **__: bool) -> Environment:
            self.prepared += 1
            self.meanwhile()
            note = f"{target.name} runs on the bench."
            if self.via == "docker":
                image = needs.base_image()
                return Environment("docker", target.name, "python3", image=image, note=note)
            return Environment("venv", target.name, sys.executable, note=note)

        def noting(*args: Any, **options: Any) -> ProcessTransport:
            transport = start(*args, **options)
            self.agents.append(identity(transport))
            return transport

        def packed(_: None = None) -> bytes:
            return pack(dict.fromkeys(ADAPTERS, self.engine))

        self.monkeypatch.setattr(module, "prepare", prepare)
        self.monkeypatch.setattr(module, "start", noting)
        self.monkeypatch.setattr("harness.run.session.pack", packed)

    def runner(self, target: Target, **how: Any) -> TargetRunner:
        """Return a runner of the faulty engine."""
        self.runners.append(TargetRunner(target, via=self.via, run_id="bench", **how))
        return self.runners[-1]

    def run(self, cells: Sequence[Cell], store: Any, report: Report, workers: int = 1) -> None:
        """Run cells of several targets, each by a runner of the faulty engine."""
        runners: Any = SimpleNamespace(how=How(jobs=workers), of=self.runner)
        run_cells(cells, runners, store=store, report=report)

    def kill_during(self, times: int) -> None:
        """Kill the agent from outside, in the middle of each of the next `times` tries of a cell."""
        self.during(lambda: kill(self.agents[-1]), times)

    def during(self, act: Callable[[], object], times: int = 1) -> None:
        """Do something in the middle of each of the next `times` tries of a cell."""
        left = [None] * times
        run = Session.run

        def running(session: Session, job: Job) -> Iterator[Event]:
            for event in run(session, job):
                if left and event.type == "phase_begin":
                    left.pop()
                    act()
                yield event

        self.monkeypatch.setattr(Session, "run", running)


def containers_of(pid: int) -> list[str]:
    """List the containers that a process owns, in any state."""
    shown = ["docker", "ps", "-a", "--format", f'{{{{.Names}}}} {{{{.Label "{OWNER_LABEL}"}}}}']
    lines = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines if line.split()[3:4] == [str(pid)]]

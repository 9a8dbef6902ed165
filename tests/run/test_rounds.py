"""Cells in steps: what is built waits for a round, and what is doubted for the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.agent.protocol import NO_JOB, Decoder, read_message
from harness.case import Calibrator, Case, Link, Recipe, Typing, Variant
from harness.errors import InfraError
from harness.judge.classify import classify
from harness.matrix import load_matrix
from harness.plan import Cell
from harness.record.outcome import Stamps
from harness.run import rounds
from harness.run.gpus import Device
from harness.run.observation import Observation, Turn, observe
from harness.run.prepared import Prepared
from harness.run.provision.cache import CACHE_VARIABLE, locked
from harness.run.rounds import Later, Recorded, Round, Steps, Wait, whole
from harness.run.session import Event, Job
from tests.run.bench import relu
from tests.run.prepared import prepare_variant

pytestmark = pytest.mark.unit

Said = list[str]


@pytest.fixture(autouse=True)
def _locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    lines: Said = []
    alone = Device.alone

    @contextlib.contextmanager
    def noting(device: Device) -> Iterator[None]:
        with alone(device):
            lines.append("hold")
            yield
            lines.append("let go")

    monkeypatch.setattr(Device, "alone", noting)
    return lines


def device(**fields: Any) -> Device:
    return Device("GPU-1", **{"needed": lambda: True, **fields})


def cell(name: str, said: Said, *, again: bool = False, where: Device | None = None) -> Steps:
    for soon in (False, True)[: 1 + again]:
        said.append(f"build {name}")
        yield Wait(where or device(), 1, soon)
        said.append(f"run {name}")
        yield None
        said.append(f"fold {name}")
        if again and not soon:
            yield Later.AT_THE_END
    made: Any = name
    return Recorded(made, "")


def ended(under_way: Round) -> list[Any]:
    return [recorded.outcome for _, recorded in under_way.ended()]


def begin(under_way: Round, steps: Steps) -> None:
    nameless: Any = None
    under_way.begin(nameless, steps)


def test_a_cell_alone_holds_its_device_for_its_run_and_for_nothing_else(said: Said) -> None:
    made: Any = whole(cell("a", said, again=True)).outcome
    assert made == "a"
    assert said == ["build a", "hold", "run a", "let go", "fold a"] * 2


def test_cells_are_run_one_behind_the_other_in_one_round_and_the_doubted_at_the_end(said: Said) -> None:
    under_way = Round()
    for name in "abc":
        begin(under_way, cell(name, said, again=name == "b"))
        assert not under_way.due
    under_way.hold()
    assert said[:8] == ["build a", "build b", "build c", "hold", "run a", "run b", "run c", "let go"]
    assert sorted(ended(under_way)) == ["a", "c"]
    assert not under_way.waits
    del said[:]
    assert under_way.resume()
    assert under_way.due
    under_way.hold()
    assert (said, ended(under_way)) == (["build b", "hold", "run b", "let go", "fold b"], ["b"])
    assert not under_way.resume()


@pytest.mark.parametrize("why", ["time", "size", "another"])
def test_a_round_is_due(said: Said, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    under_way = Round()
    assert not under_way.due
    begin(under_way, cell("a", said))
    with contextlib.ExitStack() as held:
        if why == "another":
            held.enter_context(locked("GPU-1-waiting", shared=True))
        else:
            monkeypatch.setattr(rounds, {"time": "_PATIENCE", "size": "_LARGE"}[why], 0)
        assert under_way.due


def test_a_device_that_is_not_to_be_had_is_each_cells_trouble(said: Said) -> None:
    def told(steps: Steps) -> Steps:
        try:
            return (yield from steps)
        except InfraError as error:
            made: Any = str(error)
            return Recorded(made, "")

    under_way, gone = Round(), device(needed=lambda: False)
    for name in "ab":
        begin(under_way, told(cell(name, said, where=gone)))
    with locked("GPU-1"):
        under_way.hold()
    found = ended(under_way)
    assert len(found) == 2
    assert all("was given up" in each for each in found)


def test_builds_share_a_device_and_stay_away_from_whoever_waits_for_it() -> None:
    few = device(memory_mib=2 * 4096)
    with few.among_builds() as others:
        assert others() == 0
        with few.among_builds() as theirs:
            assert (others(), theirs()) == (1, 1)
            with (
                pytest.raises(InfraError, match="given up"),
                device(needed=lambda: False, memory_mib=2 * 4096).among_builds(),
            ):
                pass
        assert not few.wanted()
        with pytest.raises(InfraError, match="given up"), device(needed=lambda: False).alone():
            pass
    with locked("GPU-1-waiting", shared=True):
        assert few.wanted()
    with (
        few.alone(),
        pytest.raises(InfraError, match="given up"),
        device(needed=lambda: False).among_builds(),
    ):
        pass


MATRIX = load_matrix(Path(__file__).parents[2] / "matrix.yaml")


class Session:
    """A session that notes the parts of each job, and answers a build with a plan."""

    def __init__(self) -> None:
        self.parts: dict[str, list[str]] = {}
        self.timed: list[bool] = []

    def run(self, job: Job) -> Iterator[Event]:
        self.parts[job.kind] = [name for name, _ in job.parts]
        (frame,) = Decoder().feed(job.frame(NO_JOB))
        self.timed.append(read_message(frame.head)["timing"] is not None)
        if job.kind == "build":
            yield Event({"type": "plan"}, b"plan")
        yield Event(
            {"type": "end", "kind": "finished", "detail": "", "exit_code": 0, "peak_rss_bytes": None}, b""
        )


ONE = Turn()


def observed(cell: Cell, ready: Prepared, session: Any, gpu: str | None, turn: Turn = ONE) -> Observation:
    device = Device(gpu, lambda: True, memory_mib=1 << 14) if gpu else None
    steps = observe(cell, ready, session.run, device, turn, cpu=Device("cpu", lambda: True))
    with contextlib.ExitStack() as held:
        while True:
            try:
                wait = next(steps)
            except StopIteration as end:
                found: Observation = end.value
                return found
            held.enter_context(wait.device.alone()) if wait else held.close()


def parts(target: str, recipe: Recipe, gpu: str | None) -> dict[str, list[str]]:
    session: Any = Session()
    variant = Variant("v", "V", relu, recipe=recipe)
    case = Case("c", "C", "", (Link("https://example.org"),), (variant,))
    cell = Cell("c", case, variant, MATRIX.target(target))
    observed(cell, prepare_variant(variant), session, gpu)
    found: dict[str, list[str]] = session.parts
    return found


CALIBRATED = Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy"))
INPUTS = ["x", "shape:x"]


@pytest.mark.parametrize(
    ("target", "recipe", "gpu", "jobs"),
    [
        ("rtx17", Recipe(), None, {"build": ["model"]}),
        ("rtx17", Recipe(), "GPU-1", {"build": ["model"], "run": ["plan", *INPUTS]}),
        ("trt86", CALIBRATED, None, {"build": ["model", *INPUTS]}),
        ("ort131", Recipe(), None, {"run": ["model", *INPUTS]}),
    ],
)
def test_only_what_feeds_an_engine_is_sent_inputs(
    target: str, recipe: Recipe, gpu: str | None, jobs: dict[str, list[str]]
) -> None:
    assert parts(target, recipe, gpu) == jobs


@pytest.mark.parametrize(
    ("target", "gpu", "fed", "jobs"),
    [
        ("rtx17", "GPU-1", True, {"build": ["model"], "run": ["plan", *INPUTS]}),
        ("rtx17", "GPU-1", False, {"build": ["model"]}),
        ("ort131", None, True, {"run": ["model", *INPUTS]}),
        ("ort131", None, False, {"build": ["model"]}),
    ],
)
def test_a_model_of_a_suite_is_not_timed_and_without_inputs_only_built(
    target: str, gpu: str | None, *, fed: bool, jobs: dict[str, list[str]]
) -> None:
    session: Any = Session()
    variant = Variant("v", "V", relu)
    cell = Cell("c", Case("c", "C", "", (), (variant,)), variant, MATRIX.target(target))
    ready = replace(prepare_variant(variant), timed=False)
    if not fed:
        ready = replace(ready, inputs={}, unfed="input 'x' is not fed")
    seen = observed(cell, ready, session, gpu)
    assert session.parts == jobs
    assert not session.timed[-1]
    found = classify(seen.outcome(cell, ready, Stamps()))
    assert found.reason == ("built; not run on this machine" if fed else "built; input 'x' is not fed")


@pytest.mark.parametrize(
    ("target", "gpu", "turn", "held"),
    [
        ("trt86", "GPU-1", Turn(), ["building", "build", "", "alone", "run", ""]),
        ("trt86", "GPU-1", Turn(alone=True), ["alone", "build", "", "alone", "run", ""]),
        ("rtx17", "GPU-1", Turn(), ["build", "alone", "run", ""]),
        ("rtx17", None, Turn(), ["build"]),
        ("ort131", None, Turn(), ["alone", "run", ""]),
    ],
)
def test_a_device_is_held_by_what_times_on_it(
    target: str, gpu: str | None, turn: Turn, held: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build of TensorRT tunes there, beside other builds; nothing else is on it during a timed run."""
    said: list[str] = []

    @contextlib.contextmanager
    def alone(_: Device) -> Iterator[None]:
        said.append("alone")
        yield
        said.append("")

    @contextlib.contextmanager
    def among_builds(_: Device) -> Iterator[Callable[[], int]]:
        said.append("building")
        yield lambda: 3
        said.append("")

    run = Session.run

    def running(session: Session, job: Job) -> Iterator[Event]:
        said.append(job.kind)
        return run(session, job)

    monkeypatch.setattr(Device, "alone", alone)
    monkeypatch.setattr(Device, "among_builds", among_builds)
    monkeypatch.setattr(Session, "run", running)
    variant = Variant("v", "V", relu)
    cell = Cell("c", Case("c", "C", "", (), (variant,)), variant, MATRIX.target(target))
    seen = observed(cell, prepare_variant(variant), Session(), gpu, turn)
    assert said == held
    assert seen.builds_beside == (3 if "building" in held else 0)

"""Whatever could change an outcome changes the key of its cell, and nothing else does; which outcomes answer for it."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.case import Calibrator, Engine, Plugin, Profile, Recipe, Typing
from harness.case.model import Library
from harness.matrix import Build, Needs, Slurm, Target
from harness.plan import Cell, all_cells
from harness.record.outcome import OTHERS, Latency, Outcome
from harness.record.speaking import todays
from harness.run import key, stamps
from harness.run.key import answering, cell_key, keys_of, place_of, placed_in
from harness.run.provision.host import Host
from harness.run.provision.model import UNKNOWN, Environment, NotMade
from harness.run.transport import HEEDED
from tests.report import factory
from tests.share.measured import git
from tests.test_architecture import TABLE

pytestmark = pytest.mark.unit

CELL = next(iter(all_cells(factory.matrix(), (factory.case(),))))
ENVIRONMENT = Environment("docker", "trt86", "python3", "engine:1", "sha256:1", ("engine==1",), ("GPU-1",))
MODEL = "a" * 64
#: What each field of a target may be instead.
TARGET: dict[str, Any] = {
    "name": "trt87",
    "engine": Engine.ONNXRUNTIME,
    "version": "8.6.2",
    "platform": "linux/arm64",
    "image": "registry.example/engine:2",
    "build": Build("packages", "python:3.11-slim"),
    "digest": "sha256:2",
    "python": "3.12",
    "packages": ("engine==2",),
    "needs": Needs(gpu=True, architecture="x86_64", driver=">=580"),
    "compute_capability": "8.9",
    "timeout_s": 601,
    "memory_mib": 8193,
    "provider": "cuda",
    "untrusted": True,
}
#: Fields that are told of a target and decide nothing.
TOLD: dict[str, Any] = {
    "label": "another",
    "group": "another",
    "sources": (),
    "notes": "another",
    "line": 2,
    "size_gb": 2.0,
    "cuda": "12.9",
    "jetpack": "7",
    "released": "2026-01-01",
    "slurm": Slurm((("partition", "gpu"),)),
    "host": "ssh://orin",
}
PLACE: dict[str, Any] = {
    "via": "venv",
    "image": "engine:2",
    "image_digest": "sha256:2",
    "packages": ("engine==2",),
    "groups": ("44",),
    "files": "a hash",
    "machine": "orin",
    "device": "8.9 NVIDIA L4, driver 580",
}
RECIPE: dict[str, Any] = {
    "typing": Typing.STRONG,
    "flags": ("FP16",),
    "calibrator": Calibrator("entropy"),
    "parser_flags": (("NATIVE_INSTANCENORM", True),),
    "mark_outputs": ("y",),
    "plugin": Plugin("Identity", "fp32"),
    "profiles": (Profile("x", (1,), (1,), (2,)),),
    "workspace_mib": 64,
    "libraries": (Library("p.so", "0"),),
}


def key_of(target: Target = CELL.target, environment: Environment = ENVIRONMENT) -> str:
    return keyed(CELL, placed=placed_in(target, place_of(environment)))


def keyed(cell: Cell, model: str = MODEL, placed: str = "there") -> str:
    return cell_key(cell.id, model, cell.variant.recipe_sha256, placed)


def names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_every_field_is_in_the_key_or_known_to_decide_nothing() -> None:
    """Who adds a field is to say here which it is."""
    assert names(Target) == TARGET.keys() | TOLD.keys()
    assert names(Environment) == PLACE.keys() | {"target", "python", "gpus", "note", "folder"}
    assert names(Recipe) == RECIPE.keys()


@pytest.mark.parametrize("name", [*TARGET, *TOLD])
def test_what_decides_of_a_target_changes_the_key(name: str) -> None:
    """And what is told of it does not."""
    changed = replace(CELL.target, **{name: (TARGET | TOLD)[name]})
    assert (key_of(changed) != key_of()) is (name in TARGET)


@pytest.mark.parametrize("name", PLACE)
def test_where_a_cell_runs_changes_the_key(name: str) -> None:
    made = replace(ENVIRONMENT, folder="/made/here")
    assert key_of(environment=replace(made, **{name: PLACE[name]})) != key_of(environment=made)


@pytest.mark.parametrize("name", RECIPE)
def test_the_recipe_changes_the_key(name: str) -> None:
    variant = replace(CELL.variant, recipe=replace(Recipe(), **{name: RECIPE[name]}))
    plain = replace(CELL, variant=replace(CELL.variant, recipe=Recipe()))
    assert keyed(replace(CELL, variant=variant)) != keyed(plain)


def test_cell_and_model_change_the_key_and_what_is_claimed_does_not() -> None:
    plain = keyed(CELL)
    assert keyed(replace(CELL, id="another")) != plain
    assert keyed(CELL, "b" * 64) != plain
    told = replace(CELL.variant, title="another", expectations=(), precision=())
    assert keyed(replace(CELL, variant=told)) == plain
    assert keyed(CELL, "") == keyed(CELL, placed="") == "", "what is not known has no key"


def test_what_may_be_another_thing_under_one_name_has_no_key() -> None:
    """Anything that somebody else installed may be built anew under one version: its files tell."""
    theirs = replace(ENVIRONMENT, via="venv")
    assert key_of(environment=theirs) == ""
    assert key_of(environment=replace(theirs, files="a hash")) != ""
    assert key_of(environment=replace(theirs, folder="/made/here")) != ""
    assert key_of(environment=replace(ENVIRONMENT, device=UNKNOWN)) == ""


def test_the_machine_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine's records, CPU or number of processors are none of this one's."""
    before = key_of()
    for number in range(len(key.machine())):
        here = list(key.machine())
        here[number] += "x"
        with monkeypatch.context() as patch:
            patch.setattr(key, "machine", lambda here=here: tuple(here))
            assert key_of() != before


@pytest.mark.parametrize("name", HEEDED)
def test_what_an_engine_reads_of_the_environment_changes_the_key(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = replace(ENVIRONMENT, via="venv", folder="/made/here")
    before = key_of(environment=made)
    monkeypatch.setenv(name, os.environ.get(name, "") + "/elsewhere")
    assert key_of(environment=made) != before


def test_another_interpreter_changes_the_key(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("one")
    made = replace(ENVIRONMENT, via="venv", folder="/made/here", python=str(python))
    before = key_of(environment=made)
    python.write_text("other")
    assert key_of(environment=made) != before


@pytest.mark.parametrize("room", ["", *key._ROOMS])
def test_the_code_of_every_room_changes_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    module = tmp_path / room / "inner" / "module.py" if room else tmp_path / "module.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text("one")
    monkeypatch.setattr(key, "_TOP", tmp_path)
    before = key.code.__wrapped__()
    module.write_text("two")
    assert key.code.__wrapped__() != before


@pytest.mark.parametrize("name", key._LIBRARIES)
def test_the_libraries_that_make_numbers_change_the_key(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before, known = key.code.__wrapped__(), importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda each: known(each) + "x" * (each == name))
    assert key.code.__wrapped__() != before


def test_every_room_that_has_a_part_in_a_record_is_in_the_key() -> None:
    """What `run` imports, directly or not, by the table of docs/architecture.md."""
    found, waiting = set[str](), {name for name in TABLE if name.startswith("run")}
    while waiting:
        room = waiting.pop()
        found.add(room)
        waiting |= TABLE[room][0] - found
    top = key._TOP
    assert {room.partition("/")[0] for room in found if not (top / f"{room}.py").is_file()} == set(key._ROOMS)


ALL = all_cells(factory.matrix(), (factory.case(),))
ORT = next(cell for cell in ALL if cell.id == "conv_silu.qdq-ort131")
TODAY = todays(ALL)
MINE = {ORT.id: TODAY[ORT.id]}
KEYS = {ORT.id: "today"}


def outcome(key: str = "today", when: str = "2026-01-01", state: Any = "done", **fields: Any) -> Outcome:
    """Return an outcome of the cell as it is today."""
    plain = Outcome.blank(ORT, state, "" if state == "done" else "why")
    hashes: dict[str, Any] = {
        "model_sha256": MINE[ORT.id].model_sha256,
        "recipe_sha256": ORT.variant.recipe.sha256(),
        "engine_version": ORT.target.version,
        "when": when,
        "run": "a",
    }
    hashes |= fields.pop("stamps", {})
    return replace(plain, key=key, stamps=replace(plain.stamps, **hashes), **fields)


def answer(*outcomes: Outcome, keys: dict[str, str] = KEYS) -> Outcome | None:
    return answering(MINE, outcomes, keys).get(ORT.id)


def test_the_latest_outcome_of_todays_key_answers() -> None:
    old, new = outcome(when="2026-01-01"), outcome(when="2026-01-02")
    assert answer(new, old) is new
    assert answer(outcome(""), keys={ORT.id: ""}) is None, "no key is no key that two have in common"
    trouble = outcome(state="infra_error", when="2026-01-02")
    assert answer(old, trouble) is old, "trouble hides no answer"


TIMED = Latency((1.0,), 1, "cuda_events")


@pytest.mark.parametrize(
    ("made", "answers"),
    [
        (outcome("another"), False),
        (outcome(""), False),
        (outcome(state="infra_error"), False),
        pytest.param(outcome(stamps={"account": "theirs"}), False, id="sent in"),
        pytest.param(
            outcome(latency=replace(TIMED, after={OTHERS: "python3 (pid 7)"})), False, id="beside others"
        ),
        pytest.param(outcome(latency=TIMED), True, id="alone"),
    ],
)
def test_what_is_of_another_key_or_in_doubt_does_not_answer(made: Outcome, answers: bool) -> None:
    assert (answer(made) is not None) is answers


def test_an_outcome_that_does_not_speak_any_more_does_not_answer() -> None:
    """It was made another way since, and the report shows that."""
    since = outcome("another way", when="2026-01-02", ran=True, phases={"run": 1.0})
    assert answer(outcome(ran=True, phases={"run": 1.0}), since) is None
    stale = outcome("another way", when="2026-01-02", stamps={"model_sha256": "b" * 64})
    assert answer(outcome(), stale) is not None, "what is of another model hides nothing"


@pytest.mark.parametrize("state", ["not_run", "not_applicable"])
def test_what_cannot_run_here_answers_beside_what_ran_elsewhere(state: str) -> None:
    elsewhere = outcome("another machine")
    assert answer(elsewhere, outcome(state=state)) is not None


def test_keys_are_those_of_what_would_be_used_and_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that cannot run has the key of its reason; of one that would have to be made first nobody knows."""

    def refuse(*_: object, allow_build: bool, **__: object) -> None:
        assert not allow_build
        raise NotMade("needs its image")

    monkeypatch.setattr(key, "look_at_host", lambda **_: Host("amd64"))
    monkeypatch.setattr(key, "prepare", refuse)
    cells = [cell for cell in ALL if cell.variant is ORT.variant]
    found = keys_of(cells, TODAY)
    assert found["conv_silu.qdq-trt86"], "it needs a GPU"
    assert found["conv_silu.qdq-rtx17"] == ""
    monkeypatch.setattr(key, "look_at_host", lambda **_: Host("amd64", gpu_reason="another reason"))
    assert keys_of(cells, TODAY)["conv_silu.qdq-trt86"] != found["conv_silu.qdq-trt86"]


def test_an_untrusted_case_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is confined where another case of the same target is not."""
    cell = next(cell for cell in ALL if cell.target.name == "ort131")
    confined = replace(cell, target=replace(cell.target, untrusted=True))
    monkeypatch.setattr(key, "look_at_host", lambda **_: Host("amd64"))
    monkeypatch.setattr(key, "prepare", lambda *_, **__: Environment("docker", "ort131", "python3", "i"))
    there = [keys_of([each], TODAY)[cell.id] for each in (cell, confined)]
    assert there[0] != there[1]
    monkeypatch.setattr(key, "cell_key", lambda _, __, ___, place: place)
    trusted = replace(cell, id="trusted")
    cells = [trusted, replace(confined, id="confined")]
    both = keys_of(cells, todays(cells))
    assert both["trusted"] != both["confined"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(stamps, "TOP", tmp_path)
    stamps.harness_commit.cache_clear()
    yield tmp_path
    stamps.harness_commit.cache_clear()


def test_a_clean_checkout_gives_its_commit_and_a_changed_one_a_plus(checkout: Path) -> None:
    """A document may change; what decides results may not go unnoticed."""
    git(checkout, "init", "--quiet")
    for name in ("matrix.yaml", "README.md"):
        (checkout / name).write_text("a")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "a")
    head = git(checkout, "rev-parse", "--short=12", "HEAD")
    (checkout / "README.md").write_text("b")
    assert stamps.harness_commit() == head
    stamps.harness_commit.cache_clear()
    (checkout / "matrix.yaml").write_text("b")
    assert stamps.harness_commit() == f"{head}+"


def test_an_installed_harness_has_none(checkout: Path) -> None:
    """Also inside somebody else's repository."""
    git(checkout.parent, "init", "--quiet")
    assert stamps.harness_commit() == ""

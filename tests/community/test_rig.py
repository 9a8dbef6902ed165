"""From a measurement on somebody's GPU to the page: submit, intake, merge, report, in the rig.

What real GPUs and real images answer, the rig cannot say.
"""

from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.community import repository
from harness.community.archive import submission_id
from harness.community.intake import check
from harness.errors import HandledError
from harness.run import commit
from tests import needs
from tests.community.contributors import Contributor, git, harness, make_project
from tests.community.forgeries import FORGED, forged, packed, unpacked
from tests.contract.bindings import VERSIONS
from tests.rig.machine import GPUS, ROOT, Rig
from tests.waiting import HANGS

pytestmark = [pytest.mark.contract, pytest.mark.timeout(4 * HANGS)]

NEWEST = next(version for version in VERSIONS if version.id == "11.2")
ALICE = Contributor("alice", GPUS[0])
BOB = Contributor("bob", GPUS[1])
CAROL = Contributor(
    "carol",
    "GPU-33333333-3333-3333-3333-333333333333",
    (("Builder.build_serialized_network", None),),
)


class World(NamedTuple):
    """The project, the machine of the rig, and the archive of each contributor."""

    project: Path
    rig: Rig
    archives: dict[str, Path]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    if platform.machine() != "x86_64":
        pytest.skip("the stub returns structures as x86-64 does")
    needs.network()
    needs.program("git")
    rig = Rig(tmp_path_factory.mktemp("rig"), NEWEST)
    rig.write()
    project = make_project(tmp_path_factory.mktemp("world") / "project", rig)
    archives = {}
    for who in (ALICE, BOB, CAROL):
        done = who.submit(rig, project)
        assert done.returncode == 0, done.stdout + done.stderr
        archives[who.account] = project / f"{who.account}.tar.xz"
    return World(project, rig, archives)


def test_a_submission_says_who_measured_what_and_on_which_gpu(world: World, tmp_path: Path) -> None:
    """Everything but the UUID, which stays at home."""
    data = world.archives["alice"].read_bytes()
    files = unpacked(data, tmp_path)
    said = json.loads(files["submission/provenance.json"])
    assert {
        "account": "alice",
        "target": "rig",
        "cells": 2,
        "compute_capability": "9.0",
    }.items() <= said.items()
    assert len(said["commit"]) == 40
    assert not [name for name, text in files.items() if GPUS[0][4:].encode() in text]
    assert packed(files) == data
    code, told = intake(world, "alice", "--check")
    assert (code, "by alice holds: 2 cells of rig" in told) == (0, True), told


def test_no_lie_is_taken_in(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each forgery, made of what was measured here."""
    for module in (commit, repository):
        monkeypatch.setattr(module, "TOP", world.project)
    git(world.project, "checkout", "--quiet", "-b", "elsewhere")
    git(world.project, "commit", "--quiet", "--allow-empty", "-m", "mine")
    unpublished = git(world.project, "rev-parse", "HEAD")
    git(world.project, "checkout", "--quiet", "main")
    path = tmp_path / "forged.tar.xz"
    for name, forgery in FORGED.items():
        path.write_bytes(forged(name, world.archives["alice"].read_bytes(), tmp_path, unpublished))
        with pytest.raises(HandledError, match=forgery.said):
            check(path)
    path.write_bytes(b"no archive")
    code, told = harness_said(world.project, "intake", str(path), "--reports", str(tmp_path / "reports"))
    assert (code, told.startswith(f"error: {path}: ")) == (2, True), told
    assert not (tmp_path / "reports").exists()


def test_a_changed_checkout_is_not_submitted(world: World) -> None:
    """Nor is another project's case, or another engine than one that needs a GPU."""
    case = world.project / "cases" / "rig.py"
    text = case.read_text(encoding="utf-8")
    case.write_text(f"{text}# mine\n", encoding="utf-8")
    try:
        done = ALICE.submit(world.rig, world.project, "--output", "never.tar.xz")
    finally:
        case.write_text(text, encoding="utf-8")
    assert (done.returncode, "is changed, and nobody could tell what was measured" in done.stderr) == (
        2,
        True,
    )
    assert not (world.project / "never.tar.xz").exists()
    code, told = harness_said(world.project, "submit", "--cases", str(ROOT / "cases"))
    assert (code, "only the project's own can be submitted" in told) == (2, True)


def test_the_time_is_kept(world: World) -> None:
    """With none to spend, the cell that has begun ends and no other is started."""
    done = ALICE.submit(world.rig, world.project, "--minutes", "0", "--output", "short.tar.xz")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the time is spent: 1 cells were not started" in done.stdout
    assert "1 of 2 cells of rig" in done.stdout


def test_a_machine_in_trouble_sends_nothing(world: World) -> None:
    rig = replace(world.rig, fails=("cuInit 35",))
    done = ALICE.submit(rig, world.project, "--output", "trouble.tar.xz")
    replace(rig, fails=()).write()
    assert (done.returncode, "cuInit: 35 cudaErrorInsufficientDriver" in done.stderr) == (3, True), (
        done.stderr
    )
    assert not (world.project / "trouble.tar.xz").exists()


@pytest.mark.long
def test_from_the_gpus_to_the_page(world: World) -> None:
    """One is observed once, two who agree are measured, a third who does not disputes it, and can be taken back."""
    told = {}
    for account in ("alice", "bob", "carol"):
        code, said = intake(world, account, "--reports", account)
        assert code == 0, said
        code, said = harness_said(world.project, "merge", account, "--check", "--reports", "all")
        assert code == 0, said
        told[account] = shown(world, "all")
    assert {cell["verdict"] for cell in told["alice"].values()} == {"expected"}
    assert {(each["class"], each["trust"]) for each in by_gpu(told["alice"])} == {("ok", "observed once")}
    assert {(each["class"], each["trust"]) for each in by_gpu(told["bob"])} == {("ok", "measured")}
    for cell in told["carol"].values():
        assert (cell["verdict"], cell["by_gpu"][0]["trust"]) == ("disputed", "disputed")
        assert re.match(
            r"disputed: build_failed by carol \(NVIDIA H100.*\); ok by bob \(.*\); ok by alice \(",
            cell["sentence"],
        )
    page = (world.project / "all" / "index.html").read_text(encoding="utf-8")
    for words in ("Whose measurements these are", "alice", "bob", "carol", "disputed"):
        assert words in page
    for secret in (*GPUS, CAROL.uuid):
        assert secret not in page
    code, said = harness_said(world.project, "verify", "--reports", "all")
    assert code == 0, said
    revoke(world, "all", "carol")
    assert harness_said(world.project, "report", "--reports", "all")[0] == 0
    assert {(each["class"], each["trust"]) for each in by_gpu(shown(world, "all"))} == {("ok", "measured")}
    page = (world.project / "all" / "index.html").read_text(encoding="utf-8")
    assert ("carol" in page, "a patched driver" in page) == (False, True)


def shown(world: World, reports: str) -> dict[str, Any]:
    """Return the cells of a report."""
    data = json.loads((world.project / reports / "results.json").read_text(encoding="utf-8"))
    return {cell["id"]: cell for cell in data["cells"]}


def by_gpu(cells: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what cells ended as on each GPU."""
    return [each for cell in cells.values() for each in cell["by_gpu"]]


def revoke(world: World, reports: str, account: str) -> None:
    """Take back what somebody sent."""
    key = submission_id(world.archives[account])
    path = world.project / reports / "submissions" / "revoked.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{key}: measured with a patched driver\n", encoding="utf-8")


def intake(world: World, account: str, *words: str) -> tuple[int, str]:
    """Take in what somebody sent; returns the exit code and what was said."""
    return harness_said(world.project, "intake", str(world.archives[account]), *words)


def harness_said(project: Path, *words: str) -> tuple[int, str]:
    """Run `trt-compat` in the project; returns the exit code and what was said."""
    done = harness(project, *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr

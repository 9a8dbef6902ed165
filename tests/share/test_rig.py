"""From a measurement on somebody's GPU to the page: submit, merge, report, in the rig.

What real GPUs and real images answer, the rig cannot say.
"""

from __future__ import annotations

import json
import lzma
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.report.page import unpacked
from harness.share.submission import read
from tests import needs
from tests.contract.bindings import VERSIONS
from tests.rig.machine import GPUS, ROOT, Rig
from tests.share.contributors import Contributor, harness, make_project
from tests.waiting import HANGS

pytestmark = [pytest.mark.contract, pytest.mark.timeout(4 * HANGS)]

NEWEST = next(version for version in VERSIONS if version.id == "11.2")
ALICE = Contributor("alice", GPUS[0])
BOB = Contributor("bob", GPUS[1])


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
    for who in (ALICE, BOB):
        done = who.submit(rig, project)
        assert done.returncode == 0, done.stdout + done.stderr
        archives[who.account] = project / f"{who.account}.jsonl.xz"
    return World(project, rig, archives)


def test_an_archive_says_who_measured_what_on_which_gpu(world: World) -> None:
    """Everything but the UUID, which stays at home."""
    path = world.archives["alice"]
    found = read(path)
    assert (len(found.records), found.faults) == (2, ())
    assert GPUS[0][4:] not in lzma.decompress(path.read_bytes()).decode()
    code, told = harness_said(world.project, "merge", "--check", "--account", "alice", path.name)
    assert (code, "holds 2 records of alice on NVIDIA H100" in told) == (0, True), told


def test_a_changed_checkout_is_not_submitted(world: World) -> None:
    """Nor is another project's case, or another engine than one that needs a GPU."""
    case = world.project / "cases" / "rig.py"
    text = case.read_text(encoding="utf-8")
    case.write_text(f"{text}# mine\n", encoding="utf-8")
    try:
        done = ALICE.submit(world.rig, world.project, "--output", "never.jsonl.xz")
    finally:
        case.write_text(text, encoding="utf-8")
    assert (done.returncode, "is changed, and nobody could tell what was measured" in done.stderr) == (
        2,
        True,
    )
    assert not (world.project / "never.jsonl.xz").exists()
    code, told = harness_said(world.project, "submit", "--account", "alice", "--cases", str(ROOT / "cases"))
    assert (code, "only the project's own cases can be submitted" in told) == (2, True)


def test_the_time_is_kept(world: World) -> None:
    """With none to spend, the cell that has begun ends and no other is started."""
    done = ALICE.submit(world.rig, world.project, "--minutes", "0", "--output", "short.jsonl.xz")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the time is spent: 1 cells were not started" in done.stdout
    assert "1 of 2 cells of rig" in done.stdout


def test_a_machine_in_trouble_sends_nothing(world: World) -> None:
    rig = replace(world.rig, fails=("cuInit 35",))
    done = ALICE.submit(rig, world.project, "--output", "trouble.jsonl.xz")
    replace(rig, fails=()).write()
    assert (done.returncode, "cuInit: 35 cudaErrorInsufficientDriver" in done.stderr) == (3, True), (
        done.stderr
    )
    assert not (world.project / "trouble.jsonl.xz").exists()


@pytest.mark.long
def test_from_the_gpus_to_the_page(world: World) -> None:
    """Who sent in what on which GPU is on the page, and nothing that tells whose GPU it was."""
    archives = [path.name for path in world.archives.values()]
    code, told = harness_said(world.project, "merge", *archives, "--reports", "all")
    assert code == 0, told
    cells = shown(world, "all")
    assert {cell["class"] for cell in cells.values()} == {"ok"}
    # Of one product the later record counts.
    page = unpacked((world.project / "all" / "index.html").read_text(encoding="utf-8"))
    for words in ("alice", "bob"):
        assert words in page
    for secret in GPUS:
        assert secret not in page
    code, told = harness_said(world.project, "verify", "--reports", "all")
    assert code == 0, told


def shown(world: World, reports: str) -> dict[str, Any]:
    """Return the cells of a report."""
    data = json.loads((world.project / reports / "results.json").read_text(encoding="utf-8"))
    return {cell["id"]: cell for cell in data["cells"]}


def harness_said(project: Path, *words: str) -> tuple[int, str]:
    """Run `trt-compat` in the project; returns the exit code and what was said."""
    done = harness(project, *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr

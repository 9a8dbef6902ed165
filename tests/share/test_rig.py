"""From a measurement on somebody's GPU to the page: submit, merge, report, in the rig.

What real GPUs and real images answer, the rig cannot say.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.report.page import unpacked
from tests import needs
from tests.contract.bindings import VERSIONS
from tests.rig.machine import GPUS, ROOT, Rig
from tests.share.measured import git
from tests.waiting import HANGS

pytestmark = [pytest.mark.contract, pytest.mark.timeout(4 * HANGS)]

NEWEST = next(version for version in VERSIONS if version.id == "11.2")


class World(NamedTuple):
    """The project, and the machine of the rig whose owner measures it."""

    project: Path
    rig: Rig

    def submit(self, name: str) -> subprocess.CompletedProcess[str]:
        """Measure, and write NAME in the project's folder as alice."""
        self.rig.write()
        for words in (("run", "--via", "venv"), ("submit", "--account", "alice", "--output", name)):
            done = self.rig.harness(
                *(*words, "--target", "rig", "--reports", f"reports-{name}"),
                top=self.project,
                cwd=self.project,
                TRT_COMPAT_CACHE_DIR=str(self.rig.folder / "cache"),
            )
        return done


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A checkout of the harness as it is here, with the rig's case and matrix, on a branch main."""
    if platform.machine() != "x86_64":
        pytest.skip("the stub returns structures as x86-64 does")
    needs.network()
    needs.program("git")
    rig = Rig(tmp_path_factory.mktemp("rig"), NEWEST)
    rig.write()
    project = tmp_path_factory.mktemp("world") / "project"
    shutil.copytree(ROOT / "harness", project / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(rig.folder / "cases", project / "cases")
    shutil.copy(rig.folder / "matrix.yaml", project)
    (project / ".gitignore").write_text("__pycache__\nreports*\n*.jsonl.xz\n", encoding="ascii")
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "the project")
    return World(project, rig)


def test_from_the_gpu_to_the_page(world: World) -> None:
    """Who sent in what on which GPU is on the page, and nothing that tells whose GPU it was."""
    done = world.submit("alice.jsonl.xz")
    assert done.returncode == 0, done.stdout + done.stderr
    for words, said in (
        (
            ("merge", "--account", "alice", "alice.jsonl.xz", "--reports", "all"),
            "2 records taken in, of alice",
        ),
        (("verify", "--reports", "all"), "consistent"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "harness", *words],
            cwd=world.project,
            env={**os.environ, "PYTHONPATH": str(world.project), "DOCKER_HOST": "unix:///nonexistent/sock"},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS,
        )
        assert (done.returncode, said in done.stdout) == (0, True), done.stdout + done.stderr
    data = json.loads((world.project / "all" / "results.json").read_text(encoding="utf-8"))
    assert {cell["class"] for cell in data["cells"]} == {"ok"}
    page = unpacked((world.project / "all" / "index.html").read_text(encoding="utf-8"))
    assert "alice" in page
    assert GPUS[0][4:] not in page


def test_a_machine_in_trouble_sends_nothing(world: World) -> None:
    done = world._replace(rig=replace(world.rig, fails=("cuInit 35",))).submit("trouble.jsonl.xz")
    assert (done.returncode, "cuInit: 35 " in done.stderr) == (2, True), done.stderr
    assert not (world.project / "trouble.jsonl.xz").exists()

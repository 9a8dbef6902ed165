"""A project with a main branch, and people with GPUs who measure it in the rig and send in what they found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.rig.machine import Rig

ROOT = Path(__file__).resolve().parents[2]
TARGET = "rig"


def git(folder: Path, *words: str) -> str:
    """Run Git as somebody."""
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_project(folder: Path, rig: Rig) -> Path:
    """Make a checkout of the harness as it is here, with the rig's case and matrix, on a branch main."""
    folder.mkdir()
    shutil.copytree(ROOT / "harness", folder / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("cases", "matrix.yaml"):
        source = rig.folder / name
        shutil.copytree(source, folder / name) if source.is_dir() else shutil.copy(source, folder / name)
    (folder / ".gitignore").write_text("__pycache__\nreports*\n*.jsonl.xz\n", encoding="ascii")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "the project")
    return folder


@dataclass(frozen=True)
class Contributor:
    """Somebody with an account and a GPU; `answers` is what the engine does on their machine."""

    account: str
    uuid: str
    answers: tuple[tuple[str, Any], ...] = ()

    def submit(self, rig: Rig, project: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Measure and write `ACCOUNT.jsonl.xz` in the project's folder."""
        mine = replace(rig, uuids=(self.uuid,), answers=dict(self.answers))
        mine.write()
        return mine.harness(
            *("submit", "--target", TARGET, "--via", "venv", "--account", self.account),
            *("--reports", f"reports-{self.account}", "--output", f"{self.account}.jsonl.xz", *words),
            top=project,
            cwd=project,
            TRT_COMPAT_CACHE_DIR=str(rig.folder / f"cache-{self.account}"),
        )


def harness(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `trt-compat` in the project, on a machine without any GPU."""
    return subprocess.run(
        [sys.executable, "-m", "harness", *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project), "DOCKER_HOST": "unix:///nonexistent/docker.sock"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

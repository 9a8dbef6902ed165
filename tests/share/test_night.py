"""The nightly workflow takes in what was sent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.record.store import Store
from harness.run import stamps
from tests.cli.project import TOP as ROOT
from tests.fixtures import Patch
from tests.share.measured import cells, git, make_project, measure, send

pytestmark = pytest.mark.unit


@pytest.fixture
def project(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Return a published project that holds the harness, with a remote that has a pull request's head."""
    remote = make_project(tmp_path / "remote", monkeypatch)
    for name in ("harness", "docker", ".ci"):
        shutil.copytree(
            ROOT / name, remote / name, ignore=shutil.ignore_patterns("__pycache__", "environment")
        )
    git(remote, "add", ".")
    git(remote, "commit", "--quiet", "-m", "the harness")
    stamps.harness_commit.cache_clear()
    send(remote)
    git(tmp_path, "clone", "--quiet", str(remote), str(tmp_path / "clone"))
    return tmp_path / "clone"


def archive(project: Path) -> bytes:
    return (project.parent / "remote" / ".git" / "alice.jsonl.xz").read_bytes()


def published(project: Path, site: Path) -> tuple[str, list[str]]:
    """Run the night's last script on what one machine found; returns what was said, and who is in the report."""
    parts, github = project.parent / "parts", project.parent / "github"
    with Store(parts / "part-0", run="own") as store:
        store.append(measure(cells(project)[0])[1])
    done = subprocess.run(
        [project / ".ci" / "nightly-publish"],
        env={name: os.environ[name] for name in ("PATH", "HOME")}
        | {"PYTHON": sys.executable, "PYTHONPATH": str(project), "PARTS": str(parts), "REPORTS": str(site)}
        | dict.fromkeys(("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"), str(github)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads((site / "results.json").read_text(encoding="utf-8"))
    return done.stdout + done.stderr, [each["account"] for each in data["submissions"]]


@pytest.mark.long
def test_the_night_shows_what_was_sent_in(project: Path, tmp_path: Path) -> None:
    """One that cannot be read costs the others nothing."""
    folder = project / "submissions"
    folder.mkdir()
    (folder / "mine.jsonl.xz").write_bytes(archive(project))
    assert published(project, tmp_path / "one")[1] == ["alice"]
    (folder / "spoilt.jsonl.xz").write_bytes(b"no archive")
    said, who = published(project, tmp_path / "two")
    assert who == ["alice"]
    assert "::error::submissions/spoilt.jsonl.xz: not taken" in said

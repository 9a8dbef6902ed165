"""A pull request of measurements is read as data, by the harness of the branch that it is to go into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.record.store import Store
from harness.run import stamps
from tests.cli.project import TOP as ROOT
from tests.share.measured import cells, git, make_project, measure, send

pytestmark = pytest.mark.unit

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "submission.yml").read_text(encoding="utf-8"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def pull_request(project: Path, *paths: tuple[str, bytes | None], link: str = "") -> None:
    """Make the remote's pull request 1 add files with content; None deletes one, `link` is made a link."""
    remote = project.parent / "remote"
    git(remote, "checkout", "--quiet", "-B", "pull", "main")
    for name, data in paths:
        path = remote / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if data is None else path.write_bytes(data)
    if link:
        (remote / link).symlink_to("/etc/passwd")
    git(remote, "add", "--all", ".")
    git(remote, "commit", "--quiet", "-m", "mine")
    git(remote, "update-ref", "refs/pull/1/head", "HEAD")
    git(remote, "checkout", "--quiet", "main")


def looked_at(project: Path, account: str = "alice") -> tuple[int, str]:
    """Run the workflow's script as GitHub does; returns the exit code and what was said."""
    done = subprocess.run(
        [project / ".ci" / "submission"],
        env={name: os.environ[name] for name in ("PATH", "HOME")}
        | {"PYTHON": sys.executable, "PYTHONPATH": str(project), "ACCOUNT": account}
        | {"BASE": git(project, "rev-parse", "origin/main"), "PULL": "refs/pull/1/head"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def archive(project: Path) -> bytes:
    return (project.parent / "remote" / ".git" / "alice.jsonl.xz").read_bytes()


def test_what_a_pull_request_adds_is_held_against_all_there_is(project: Path) -> None:
    pull_request(project, ("submissions/mine.jsonl.xz", archive(project)))
    code, said = looked_at(project)
    assert (code, "holds 2 records of alice on NVIDIA L4" in said) == (0, True), said
    code, said = looked_at(project, "mallory")
    assert (code, "is by alice, and mallory sends it" in said) == (2, True), said
    pull_request(project, ("submissions/mine.jsonl.xz", b"no archive"))
    code, said = looked_at(project)
    assert (code, "cannot be unpacked" in said) == (2, True), said


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("harness/share/submission.py", b"raise SystemExit(0)"),
        ("matrix.yaml", None),
        ("submissions/.hidden.jsonl.xz", b""),
        ("submissions/two words.jsonl.xz", b""),
        ("submissions/in/a/folder.jsonl.xz", b""),
        ("submissions/a\n::error::b.jsonl.xz", b""),
        ("submissions/notes.yaml", b"x: y\n"),
    ],
)
def test_it_adds_archives_and_changes_nothing_else(project: Path, name: str, data: bytes | None) -> None:
    """Nothing of it is run: a harness of its own would hold everything for true."""
    pull_request(project, ("submissions/mine.jsonl.xz", archive(project)), (name, data))
    code, said = looked_at(project)
    assert (code, "adds submissions/NAME.jsonl.xz and changes nothing else" in said) == (2, True), said


def test_a_link_and_what_is_too_large_are_refused(project: Path) -> None:
    pull_request(project, ("submissions/mine.jsonl.xz", archive(project)), link="submissions/x.jsonl.xz")
    code, said = looked_at(project)
    assert (code, "x.jsonl.xz is no plain file of at most 8 MiB" in said) == (2, True), said
    pull_request(project, ("submissions/mine.jsonl.xz", bytes((8 << 20) + 1)))
    code, said = looked_at(project)
    assert (code, "mine.jsonl.xz is no plain file of at most 8 MiB" in said) == (2, True), said


def test_a_pull_request_that_adds_nothing_is_refused(project: Path) -> None:
    remote = project.parent / "remote"
    git(remote, "commit", "--quiet", "--allow-empty", "-m", "empty")
    git(remote, "update-ref", "refs/pull/1/head", "HEAD")
    assert "adds no file under submissions/" in looked_at(project)[1]


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
    assert "::error::submissions/spoilt.jsonl.xz: not taken in whole" in said


def test_the_workflow_gives_a_stranger_nothing() -> None:
    """No token that writes, no secret, no code of theirs, and their name from GitHub, not from them."""
    # YAML 1.1 takes "on" for true.
    assert WORKFLOW[True] == {"pull_request": {"paths": ["submissions/**/*.jsonl.xz"]}}
    assert WORKFLOW["permissions"] == {"contents": "read"}
    (job,) = WORKFLOW["jobs"].values()
    checkout, *_, last = job["steps"]
    assert checkout["with"]["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert (checkout["with"]["persist-credentials"], checkout["with"]["fetch-depth"]) == (False, 0)
    assert last["env"]["ACCOUNT"] == "${{ github.event.pull_request.user.login }}"
    assert "secrets" not in str(WORKFLOW)

"""A project with a main branch, and people with GPUs who measure it in the rig and send in what they found."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.record.archive import compress, decompress, members
from tests.rig.machine import Rig

ROOT = Path(__file__).resolve().parents[2]
TARGET = "rig"
#: Names that a machine of a contributor has, and that nobody else is to learn.
SECRETS = {"user": "zaphod-b", "host": "heartofgold", "home": "/srv/people/zaphod-b"}

#: The files of an archive by name, and what is changed in them.
Files = dict[str, bytes]
Forge = Callable[[Files], Files]


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
    (folder / ".gitignore").write_text("__pycache__\nreports\n*.tar.xz\n", encoding="ascii")
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
        """Measure and write `ACCOUNT.tar.xz` in the project's folder."""
        mine = replace(rig, uuids=(self.uuid,), answers=dict(self.answers))
        mine.write()
        return mine.harness(
            *("submit", "--target", TARGET, "--via", "venv", "--account", self.account),
            *("--reports", f"reports-{self.account}", "--output", f"{self.account}.tar.xz", *words),
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


def unpacked(path: Path) -> Files:
    """Return the files of a submission by name."""
    return {name: content for name, _, content in members(path, decompress(path))}


def packed(files: Files, more: tuple[tarfile.TarInfo, ...] = ()) -> bytes:
    """Return an archive of files, with members behind them that are no files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in more:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return compress("x", buffer.getvalue())


def provenance(**fields: Any) -> Forge:
    """Return what changes fields of the provenance."""

    def forge(files: Files) -> Files:
        data = json.loads(files["submission/provenance.json"]) | fields
        return files | {"submission/provenance.json": json.dumps(data).encode()}

    return forge


def records(change: Callable[[dict[str, Any]], None], *, first: bool = False) -> Forge:
    """Return what changes every record, or the first alone."""

    def forge(files: Files) -> Files:
        lines = [json.loads(line) for line in files["submission/records.jsonl"].splitlines()]
        for record in lines[: 1 if first else None]:
            change(record)
        return files | {
            "submission/records.jsonl": b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        }

    return forge


def logs(old: str, new: str) -> Forge:
    """Return what changes the text of every log, and the names by which records and archive know them."""

    def forge(files: Files) -> Files:
        found: Files = {}
        lines = files["submission/records.jsonl"]
        for name, data in files.items():
            if not name.startswith("submission/logs/"):
                continue
            assert old in data.decode(), f"the log has no {old!r}"
            changed = data.replace(old.encode(), new.encode())
            was, now = Path(name).stem, hashlib.sha256(changed).hexdigest()
            lines = lines.replace(was.encode(), now.encode())
            found[f"submission/logs/{now}.txt"] = changed
        kept = {name: data for name, data in files.items() if not name.startswith("submission/logs/")}
        return kept | {"submission/records.jsonl": lines} | found

    return forge

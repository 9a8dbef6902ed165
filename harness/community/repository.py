"""The project's repository, as a submission is held against it: what is published, and the cases at a commit."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HandledError, InfraError
from harness.run.commit import TOP, git, harness_commit
from harness.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The branch that submissions must come from, where it is not origin/main or main.
BRANCH_VARIABLE = "TRT_COMPAT_MAIN_BRANCH"
#: What says what a cell is.
CASES, MATRIX = "cases", "matrix.yaml"
_HASH = re.compile(r"[0-9a-f]{40}")
_PATIENCE = 60


def main_branch(given: str = "") -> str:
    """Return the branch whose commits are published: the given one, the variable's, origin/main, main.

    Raises HandledError where there is none.
    """
    named = given or os.environ.get(BRANCH_VARIABLE, "")
    for branch in (named,) if named else ("origin/main", "main"):
        if not branch.startswith("-") and git("rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}"):
            return branch
    raise HandledError(
        f"{TOP} has no branch {named or 'origin/main or main'!r} to hold a commit against; give one with --branch"
    )


def clean_commit(branch: str) -> str:
    """Return the commit that is checked out, whole; raises HandledError where nobody else could check it out."""
    short = harness_commit()
    if not short:
        raise HandledError(f"{TOP} is no checkout of the project: clone it with Git, and submit from there")
    if short.endswith("+"):
        raise HandledError(
            f"the checkout {TOP} is changed, and nobody could tell what was measured: commit or stash, "
            "and measure a commit of the project's main branch"
        )
    commit = git("rev-parse", "HEAD")
    refuse_unpublished(commit, branch)
    return commit


def refuse_unpublished(commit: str, branch: str) -> None:
    """Raise HandledError for what is no commit on the project's main branch; nothing of it is looked at."""
    if not _HASH.fullmatch(commit):
        raise HandledError(f"{commit!r:.60} is no whole hash of a commit")
    done = _run("merge-base", "--is-ancestor", commit, branch)
    if done.returncode:
        raise HandledError(f"commit {commit[:12]} is not on {branch}: only what the project published counts")


def committed_at(commit: str) -> float:
    """Return when a commit was made, in seconds since 1970; 0 where Git does not say."""
    return float(git("show", "--no-patch", "--format=%ct", commit) or 0)


@contextlib.contextmanager
def cases_at(commit: str) -> Iterator[Path]:
    """Give a folder with the cases and the matrix of a published commit: this checkout where they are the same."""
    if not _run("diff", "--quiet", commit, "--", CASES, MATRIX).returncode:
        yield TOP
        return
    with Scratch() as folder:
        packed = _run("archive", "--format=tar", commit, CASES, MATRIX)
        if packed.returncode == 0:
            packed = _bounded("tar", "-x", "-C", folder, data=packed.stdout)
        if packed.returncode:
            said = packed.stderr.decode("utf-8", "replace").strip()
            raise InfraError(f"the cases of commit {commit[:12]} cannot be checked out: {said}")
        yield Path(folder)


def same_readers(commit: str) -> bool:
    """Tell whether a commit reads layers and keeps records as this checkout does."""
    return not _run("diff", "--quiet", commit, "--", "harness/layers", "harness/record").returncode


def _run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return _bounded("git", "-C", str(TOP), *arguments)


def _bounded(*command: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=data, capture_output=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        raise InfraError(f"{shlex.join(command)} failed: {error}") from error

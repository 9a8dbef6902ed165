"""Which commit of the harness runs, for the stamps of its results."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
#: What decides a result; a changed document does not make another harness.
_DECIDES = ("harness", "cases", "docker", "matrix.yaml", "pyproject.toml")


@functools.cache
def harness_commit() -> str:
    """Return the commit that the harness is checked out at, with a "+" where its files were changed since.

    Empty where it is installed from a package, or Git is not there: then the version is all that is known.
    """
    if not (TOP / ".git").exists():
        return ""
    head = git("rev-parse", "--short=12", "HEAD")
    if not head:
        return ""
    return head + ("+" if git("status", "--porcelain", "--", *_DECIDES) else "")


def git(*arguments: str) -> str:
    """Return what Git says of the harness's checkout, "" where it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(TOP), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

"""The stamps of a record that no environment has a part in, the harness's commit among them."""

from __future__ import annotations

import datetime as dt
import functools
import subprocess
from pathlib import Path

from harness import __version__
from harness.case import Variant, model_sha256
from harness.errors import HandledError
from harness.plan import Cell
from harness.record.outcome import Stamps

TOP = Path(__file__).resolve().parents[2]
#: Files that decide a result; a changed document does not make another harness.
_DECIDES = ("harness", "cases", "docker", "matrix.yaml", "pyproject.toml")


def bare_stamps(cell: Cell, run_id: str) -> Stamps:
    """Return the stamps of a cell that no environment has a part in."""
    return Stamps(
        model_sha256=_hash(cell.variant),
        recipe_sha256=cell.variant.recipe_sha256,
        harness_version=__version__,
        when=dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds"),
        run=run_id,
        harness_commit=harness_commit(),
    )


def _hash(variant: Variant) -> str:
    """Return the hash of a variant's model, "" without one."""
    try:
        return model_sha256(variant.model_bytes())
    except HandledError:
        return ""


@functools.cache
def harness_commit() -> str:
    """Return the commit that the harness is checked out at, with a "+" if its files were changed since.

    Empty for an installed package, and without Git: then the version alone is known.
    """
    if not (TOP / ".git").exists():
        return ""
    head = git("rev-parse", "--short=12", "HEAD")
    if not head:
        return ""
    return head + ("+" if git("status", "--porcelain", "--", *_DECIDES) else "")


def git(*arguments: str) -> str:
    """Return Git's answer on the harness's checkout, "" if it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(TOP), *arguments], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

"""Writes every page and file of the repository that is made from its code: `make docs`.

What this machine lacks a program or a download for is left as it is, and named.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.case import load_cases
from harness.matrix import load_matrix
from tests.contract import written
from tools.bake_file import BAKE_FILE, bake_file
from tools.recipes_page import recipes_page
from tools.reuse.page import reuse_page
from tools.verdicts_page import verdicts_page

TOP = Path(__file__).resolve().parents[1]
#: What to do where a written file is not what the code says.
STALE = "is out of date: run `make docs` and commit what it writes"

#: The files that follow from matrix.yaml and the cases alone, by their place in the tree, and what writes their text.
PAGES: dict[str, Callable[[], str]] = {
    "docs/recipes.md": lambda: recipes_page(load_matrix(TOP / "matrix.yaml"), load_cases(TOP / "cases")),
    "docs/verdicts.md": verdicts_page,
    "docs/reuse.md": reuse_page,
    BAKE_FILE.relative_to(TOP).as_posix(): lambda: bake_file(load_matrix(TOP / "matrix.yaml")),
}
#: What is found out on the real bindings of every version.
PROBED = "docs/capabilities.md and tests/contract/data/traces"


def stale(name: str, text: str) -> str:
    """Return the sentence on a file that differs from `text`, which the code says it holds; "" where it is the same."""
    path = TOP / name
    return "" if path.is_file() and path.read_text(encoding="utf-8") == text else f"{name} {STALE}"


def main() -> None:
    """Write all pages."""
    for name, text in PAGES.items():
        _write(name, text())
    lacking = _lacking()
    if lacking:
        print(f"{PROBED} are left as they are: making them {lacking}")
        return
    try:
        found = written.probed()
    except subprocess.CalledProcessError as error:
        print(f"{PROBED} are left as they are: making them needs the package index; {error}")
        return
    for name, made in found.items():
        _write(name, made)


def _write(name: str, text: str) -> None:
    if not stale(name, text):
        print(f"{name} is up to date")
        return
    (TOP / name).parent.mkdir(exist_ok=True)
    (TOP / name).write_text(text, encoding="utf-8")
    print(f"wrote {name}")


def _lacking() -> str:
    """Return what this machine lacks to ask the real bindings; "" where nothing."""
    if platform.machine() != "x86_64":
        return "need an x86-64 machine"
    return "" if shutil.which("gcc") else "need gcc"


if __name__ == "__main__":
    main()

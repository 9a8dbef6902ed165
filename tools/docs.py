"""Writes every page and file of the repository that is made from its code: `make docs`.

What a machine lacks a program or a download for is left as it is, and said.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.case import load_cases
from harness.matrix import load_matrix
from tests.contract import capabilities
from tools.bake_file import BAKE_FILE, bake_file
from tools.recipes_page import recipes_page

TOP = Path(__file__).resolve().parents[1]
#: What to do where a written file is not what the code says.
STALE = "is out of date: run `make docs` and commit what it writes"

#: The files that follow from matrix.yaml and the cases alone, by their place in the tree, and what writes their text.
PAGES: dict[str, Callable[[], str]] = {
    "docs/recipes.md": lambda: recipes_page(load_matrix(TOP / "matrix.yaml"), load_cases(TOP / "cases")),
    BAKE_FILE.relative_to(TOP).as_posix(): lambda: bake_file(load_matrix(TOP / "matrix.yaml")),
}
#: The page that is found out on the real bindings of every version.
PROBED = "docs/capabilities.md"


def stale(name: str, text: str) -> str:
    """Return the sentence on a file that differs from `text`, which the code says it holds; "" where it is the same."""
    path = TOP / name
    return "" if path.is_file() and path.read_text(encoding="utf-8") == text else f"{name} {STALE}"


def main() -> None:
    """Write all pages."""
    for name, text in PAGES.items():
        made = text()
        if stale(name, made):
            (TOP / name).write_text(made, encoding="utf-8")
            print(f"wrote {name}")
        else:
            print(f"{name} is up to date")
    lacking = _lacking()
    if lacking:
        print(f"{PROBED} is left as it is: making it {lacking}")
        return
    try:
        capabilities.main()
    except subprocess.CalledProcessError as error:
        print(f"{PROBED} is left as it is: making it needs the package index; {error}")


def _lacking() -> str:
    """Return what this machine lacks to ask the real bindings; "" where nothing."""
    if platform.machine() != "x86_64":
        return "needs an x86-64 machine"
    return "" if shutil.which("gcc") else "needs gcc"


if __name__ == "__main__":
    main()

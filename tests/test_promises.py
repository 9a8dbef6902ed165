"""A case is one file and a target some eight lines, for the repository's own tests as well: the README's are added."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANGS

# It runs all unit tests once more.
pytestmark = [pytest.mark.integration, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "build", "__pycache__", ".*_cache", "*.egg-info", "node_modules"
)


def block(heading: str, language: str) -> str:
    """Return the first block of a language under a heading of the README."""
    found = re.search(
        rf"^```{language}\n(.*?)^```$", README.partition(f"\n## {heading}\n")[2], re.DOTALL | re.MULTILINE
    )
    assert found
    return found[1]


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """Return a copy of the repository with the README's case and the README's target in it, and `make docs` done."""
    copy = tmp_path / "grown"
    copy.mkdir()
    for path in ROOT.iterdir():
        if path.name == "reports":
            for name in ("README.md", "published"):
                source, to = path / name, copy / "reports" / name
                to.parent.mkdir(exist_ok=True)
                shutil.copytree(source, to) if source.is_dir() else shutil.copy(source, to)
        elif path.name not in _LEFT_OUT(str(ROOT), [path.name]):
            to = copy / path.name
            shutil.copytree(path, to, ignore=_LEFT_OUT) if path.is_dir() else shutil.copy(path, to)
    (copy / "cases" / "leaky_relu.py").write_text(block("Add a case", "python"), encoding="utf-8")
    target = block("Add a target", "yaml")
    matrix = copy / "matrix.yaml"
    text = matrix.read_text(encoding="utf-8")
    assert text.count("\n  trt107:\n") == 1
    matrix.write_text(text.replace("\n  trt107:\n", f"\n{target}\n  trt107:\n"), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "tools.docs"], cwd=copy, check=True)
    return copy


@pytest.mark.timeout(3 * HANGS)
def test_the_readmes_case_and_target_leave_the_unit_tests_green(grown: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests",
        "-m",
        "unit",
        "-q",
        "-p",
        "no:randomly",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(command, cwd=grown, capture_output=True, text=True, check=False, timeout=2 * HANGS)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    # Each of the two has tests of its own there.
    listed = subprocess.run(
        [sys.executable, "-m", "harness", "list", "-k", "leaky_relu and trt104"],
        cwd=grown,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "leaky_relu[qdq]-trt104" in listed.stdout

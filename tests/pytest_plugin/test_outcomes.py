"""Which of pytest's outcomes a verdict gets, and what is collected beside a repository's own tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.pytest_plugin import CellItem, pytest_runtest_makereport
from harness.words import Verdict
from tests.cli import project
from tests.cli.project import TOP

pytestmark = pytest.mark.unit


def reported(judged: Any) -> Any:
    """Return pytest's report of a cell that was judged so."""
    item = object.__new__(CellItem)
    item.judged = judged
    report: Any = SimpleNamespace(outcome="passed")
    call: Any = SimpleNamespace(when="call")
    made = pytest_runtest_makereport(item, call)
    next(made)
    with pytest.raises(StopIteration):
        made.send(report)
    return report


@pytest.mark.parametrize("verdict", [Verdict.KNOWN_FAILURE, Verdict.FAILS_WHEN_RUN, Verdict.VARIES])
def test_what_is_known_to_fail_is_no_pass(verdict: Verdict) -> None:
    """Nor is what was only built here and is known to fail when it is run."""
    judged: Any = SimpleNamespace(judgement=SimpleNamespace(verdict=verdict, sentence="as reported"))
    report = reported(judged)
    assert (report.outcome, report.wasxfail) == ("skipped", "as reported")


def test_collecting_a_matrix_beside_other_tests_loads_nothing_that_runs_cells(tmp_path: Path) -> None:
    """It takes most of a second; where there are no own cases those of the package are collected."""
    folder = project.make(tmp_path / "own")
    (folder / "test_own.py").write_text("def test_own(): pass\n")
    heavy = ("jinja2", "harness.report", "harness.run", "harness.models")
    (folder / "conftest.py").write_text(
        'import sys\n\npytest_plugins = ["harness.pytest_plugin"]\n\n'
        f"def pytest_unconfigure():\n    print('loaded:', {{*{heavy}}} & set(sys.modules))\n"
    )
    said = collect(folder, "-k", "own or relu")
    cells = [f"matrix.yaml::toy.relu-{target}" for target in ("trt86", "ort131")]
    assert [line for line in said.splitlines() if "::" in line] == ["test_own.py::test_own", *cells]
    assert "loaded: set()" in said
    shutil.rmtree(folder / "cases")
    assert "matrix.yaml::mish.fp32-ort131" in collect(folder)


def collect(folder: Path, *words: str) -> str:
    quiet = ("-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:randomly", "--collect-only")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *words],
        cwd=folder,
        env={"PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout

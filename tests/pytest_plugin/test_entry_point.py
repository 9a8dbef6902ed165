"""What a pytest does that has the installed package on its path: in its owner's repository, and in a foreign one."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.cli import main
from harness.pytest_plugin import options
from harness.run.provision import pulls
from tests.cli import project
from tests.test_package import installed, library

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

__all__ = ["library"]

#: Options of theirs that ours are called as well, one of them with a type and one a flag.
FOREIGN_CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--matrix", type=int)
    parser.addoption("--suite", choices=["theirs"])
    parser.addoption("--pull", action="store_true")
    parser.addoption("--cases", action="append")
"""
FOREIGN_TEST = """
import sys

def test_nothing_is_there(request):
    assert [name for name in sys.modules if name.startswith("harness")] == ["harness", "harness.pytest_plugin"]
    assert not {"docker", "jinja2", "jsonschema", "numpy", "onnx", "requests", "scipy", "yaml"} & set(sys.modules)
    assert not hasattr(request.config.option, "compat_via")
    assert request.config.option.matrix == 3
"""
OWN_TEST = "def test_own(): pass\n"
CELLS = [
    f"matrix.yaml::toy.{name}-{target}"
    for target in ("trt86", "ort131")
    for name in ("relu", "weak", "foreign")
]


def run(library: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    quiet = ("-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:randomly")
    return installed(library, folder, "-m", "pytest", *quiet, *words)


def collected(library: Path, folder: Path, *words: str) -> list[str]:
    done = run(library, folder, "--collect-only", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A repository with a matrix, cases and a test of its own, and no word on the plugin."""
    folder = project.make(tmp_path / "own")
    (folder / "test_own.py").write_text(OWN_TEST)
    return folder


def test_a_foreign_repository_notices_nothing(library: Path, tmp_path: Path) -> None:
    """Its options may be called as ours; a matrix.yaml with other fields is its own; nothing heavy is imported."""
    (tmp_path / "matrix.yaml").write_text("schema: of theirs\njobs: [a]\n")
    (tmp_path / "conftest.py").write_text(FOREIGN_CONFTEST)
    (tmp_path / "test_foreign.py").write_text(FOREIGN_TEST)
    done = run(library, tmp_path, "--matrix", "3", "--suite", "theirs", "--pull", "--cases=x")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "TensorRT" not in done.stdout + run(library, tmp_path, "--help").stdout


def test_an_own_matrix_is_collected_beside_the_repositorys_tests(library: Path, own: Path) -> None:
    """In the same way where a conftest.py asks for the plugin, as one had to."""
    assert collected(library, own) == ["test_own.py::test_own", *CELLS]
    assert collected(library, own, CELLS[0]) == CELLS[:1]
    (own / "conftest.py").write_text('pytest_plugins = ["harness.pytest_plugin"]\n')
    assert collected(library, own, "--via=venv") == ["test_own.py::test_own", *CELLS]


def test_what_runs_cells_is_not_loaded_to_collect_them(library: Path, own: Path) -> None:
    """It takes most of a second."""
    heavy = ("docker", "requests", "jinja2", "harness.report", "harness.run", "harness.models")
    (own / "conftest.py").write_text(
        f"import sys\n\ndef pytest_unconfigure():\n    print('loaded:', {{*{heavy}}} & set(sys.modules))\n"
    )
    done = run(library, own, "--collect-only", "-k", "relu")
    assert "toy.relu-ort131" in done.stdout
    assert "loaded: set()" in done.stdout


def test_the_variable_that_is_told_is_the_one_that_is_read() -> None:
    assert options.PULL_GB == pulls.THRESHOLD_VARIABLE


def test_an_option_that_a_conftest_has_stays_its_own(library: Path, own: Path) -> None:
    (own / "conftest.py").write_text(FOREIGN_CONFTEST)
    assert collected(library, own, "--matrix=3", "--compat-pull", "--via", "venv") == [
        "test_own.py::test_own",
        *CELLS,
    ]


def test_a_matrix_of_another_name_is_collected_in_place_of_matrix_yaml(library: Path, own: Path) -> None:
    """Beside what pytest looks through by itself; what is named on the command line is all that is collected."""
    (own / "ci").mkdir()
    text = (own / "matrix.yaml").read_text()
    (own / "ci" / "nightly.yaml").write_text(text.replace("ort131", "night"))
    cells = [f"ci/nightly.yaml::{each.partition('::')[2].replace('ort131', 'night')}" for each in CELLS]
    assert collected(library, own, "--matrix=ci/nightly.yaml") == ["test_own.py::test_own", *cells]
    assert collected(library, own, "--matrix=ci/nightly.yaml", "test_own.py") == ["test_own.py::test_own"]
    below = collected(library, own / "ci", "--matrix=nightly.yaml", f"--cases={own / 'cases'}")
    assert [f"ci/{each}" for each in below] == cells
    (own / "pytest.ini").write_text("[pytest]\ntestpaths = matrix.yaml\n")
    assert collected(library, own, "--matrix=ci/nightly.yaml") == cells
    done = run(library, own, "--matrix=ci/weekly.yaml")
    assert (done.returncode, done.stderr.strip()) == (
        4,
        f"ERROR: --matrix {own}/ci/weekly.yaml: no such file",
    )


def test_where_there_are_no_own_cases_those_of_the_package_are_run(library: Path, own: Path) -> None:
    (own / "cases" / "toy.py").unlink()
    (own / "cases").rmdir()
    ids = collected(library, own)
    assert "matrix.yaml::mish.fp32-ort131" in ids
    assert not any("toy[" in each for each in ids)


def test_a_cell_that_is_not_there_is_one_sentence(library: Path, own: Path) -> None:
    """Beside others that are."""
    done = run(library, own, CELLS[0], "matrix.yaml::toy.rely-ort131")
    assert done.returncode == 4
    (said,) = [line for line in done.stdout.splitlines() + done.stderr.splitlines() if "ERROR" in line]
    assert said == (
        f"ERROR: no cell 'toy.rely-ort131' in {own}/cases; did you mean 'toy.relu-ort131'?; "
        "--cases=FOLDER names other cases"
    )
    assert "not found" not in done.stdout + done.stderr


def test_a_line_of_show_finds_the_cell_of_a_matrix_and_cases_elsewhere(
    library: Path, own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "matrix.yaml").rename(own / "night.yaml")
    (own / "cases").rename(own / "mine")
    monkeypatch.chdir(own)
    assert main(["show", "toy.relu-trt86", "--matrix", "night.yaml", "--cases", "mine"]) == 0
    printed = capsys.readouterr().out.splitlines()
    _, *words = shlex.split(printed[printed.index("  # this cell again") + 1])
    assert collected(library, own, *words) == ["night.yaml::toy.relu-trt86"]

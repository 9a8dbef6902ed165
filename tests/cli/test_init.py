"""What `init` writes is valid as it stands, and nothing of the user's is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness import __version__
from harness.case import load_cases
from harness.cli import main
from harness.matrix import load_matrix
from tests.cli.project import TOP
from tests.fixtures import Capture, Patch

pytestmark = pytest.mark.unit

WORKFLOW = ".github/workflows/trt-compat.yml"
GATE = ".github/trt-compat-gate.sh"
WRITTEN = {"matrix.yaml", "cases/example.py", WORKFLOW, GATE, ".gitignore", "conftest.py"}


@pytest.fixture
def begun(tmp_path: Path, capsys: Capture) -> Path:
    """A folder that was made by `init`."""
    assert main(["init", str(tmp_path / "my own")]) == 0
    assert f"cd '{tmp_path}/my own'; trt-compat" in capsys.readouterr().out
    return tmp_path / "my own"


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_it_lists_its_cells_as_it_stands(begun: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.chdir(begun)
    assert set(files(begun)) == WRITTEN
    assert main(["list"]) == 0
    said = capsys.readouterr()
    assert said.out.split() == [f"example.int8-{target}" for target in ("rtx16", "rtx17", "ort131")]
    assert said.err == ""
    assert main(["show", "example.int8-rtx17"]) == 0
    assert "/fc/MatMul in int8" in capsys.readouterr().out


def test_its_targets_and_hints_are_those_that_come_with_the_harness(begun: Path) -> None:
    """A hint is a target once its comment signs are gone."""
    text = (begun / "matrix.yaml").read_text()
    hints = "\n".join(
        line.replace("# ", "", 1) if line.startswith("  #   ") else line for line in text.splitlines()
    )
    for name in ("rtx17-sm75", "trt102"):
        hints = hints.replace(f"  # {name}:", f"  {name}:")
    (begun / "matrix.yaml").write_text(hints)
    known = load_matrix(TOP / "matrix.yaml")
    targets = load_matrix(begun / "matrix.yaml")
    assert [target.name for target in targets] == ["rtx16", "rtx17", "rtx17-sm75", "trt102", "ort131"]
    for target in targets:
        of = ("engine", "version", "packages", "needs", "image", "build", "compute_capability", "python")
        for field in of:
            assert getattr(target, field) == getattr(known.target(target.name), field), (target.name, field)


def test_the_example_keeps_the_rules_of_a_case(begun: Path) -> None:
    (case,) = load_cases(begun / "cases")
    (variant,) = case
    assert variant.model_bytes() == variant.model_bytes()
    ruff = [sys.executable, "-m", "ruff", "check", "--quiet", "--config", str(TOP / "pyproject.toml")]
    subprocess.run([*ruff, "--ignore", "INP001", str(begun / "cases")], check=True)


def test_the_workflow_is_one_that_github_takes(begun: Path) -> None:
    """And it installs the version that wrote it."""
    assert yaml.safe_load((begun / WORKFLOW).read_text())["env"]["PACKAGE"] == f"trt-compat=={__version__}"
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    subprocess.run([*check, str(begun / WORKFLOW)], check=True, capture_output=True)
    audit = [str(Path(sys.executable).with_name("zizmor")), "--offline", "--quiet"]
    rules = str(TOP / ".github" / "zizmor.yml")
    subprocess.run([*audit, "--config", rules, str(begun / WORKFLOW)], check=True, capture_output=True)


def test_what_is_there_is_overwritten_only_by_force(begun: Path, capsys: Capture) -> None:
    """Of .gitignore nothing is lost in either case."""
    (begun / "matrix.yaml").unlink()
    (begun / "cases" / "example.py").write_text("mine")
    (begun / ".gitignore").write_text("/mine/\n/reports/")
    before = files(begun)
    assert main(["init", str(begun)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith(f" cases/example.py, {WORKFLOW}, {GATE}")
    assert files(begun) == before
    assert main(["init", str(begun), "--force"]) == 0
    assert (begun / "cases" / "example.py").read_text() != "mine"
    assert (begun / ".gitignore").read_text() == "/mine/\n/reports/\n__pycache__/\n"
    assert main(["init", str(begun), "--force"]) == 0
    assert (begun / ".gitignore").read_text() == "/mine/\n/reports/\n__pycache__/\n"


def test_a_conftest_that_is_there_stays_as_it_is(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "conftest.py").write_text("mine = 1\n")
    assert main(["init", str(tmp_path)]) == 0
    assert 'pytest_plugins = ["harness.pytest_plugin"]' in capsys.readouterr().out
    assert (tmp_path / "conftest.py").read_text() == "mine = 1\n"


def test_an_ignore_file_in_another_encoding_keeps_its_bytes(tmp_path: Path) -> None:
    mine = "/Größe/".encode("latin-1")
    (tmp_path / ".gitignore").write_bytes(mine)
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / ".gitignore").read_bytes() == mine + b"\n/reports/\n__pycache__/\n"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "below")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "be written: Not" in said

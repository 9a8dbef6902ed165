"""The loader takes one case from each module of a folder, in order, whatever the modules are called."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.case import load_cases
from harness.errors import HandledError
from tests.fixtures import Patch

pytestmark = pytest.mark.unit

TEXT = """
from harness.case import Case, Graph, Link, Variant
CASE = Case({name!r}, "A toy", "", (Link("https://example.org"),), (Variant("v", "V", Graph("g").model),))
"""


def add(folder: Path, file: str, name: str) -> Path:
    path = folder / file
    path.write_text(TEXT.format(name=name))
    return path


def test_cases_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    add(tmp_path, "a.py", "zebra")
    add(tmp_path, "z.py", "ant")
    add(tmp_path, "_helpers.py", "hidden")
    (tmp_path / "notes.txt").write_text("no module")
    assert [case.name for case in load_cases(tmp_path)] == ["ant", "zebra"]


def test_a_module_is_read_anew_each_time(tmp_path: Path) -> None:
    path = add(tmp_path, "a.py", "first")
    assert [case.name for case in load_cases(tmp_path)] == ["first"]
    path.write_text(TEXT.format(name="another"))
    assert [case.name for case in load_cases(tmp_path)] == ["another"]


def test_measurements_in_the_folder_are_taken_along(tmp_path: Path) -> None:
    add(tmp_path, "a.py", "toy")
    (tmp_path / "measured.yaml").write_text(
        "schema: 1\nrtx17: {engine: tensorrt_rtx, version: '1.7', measured: '2026-01-02', cells: {toy: {v: built}}}\n"
    )
    (case,) = load_cases(tmp_path)
    assert [claim.targets for claim in case.variants[0].expectations] == [("rtx17",)]


def test_a_line_is_named_for_a_relative_folder_too(tmp_path: Path, monkeypatch: Patch) -> None:
    """The folder is `cases`, relative, unless told; Python calls the module by its absolute path."""
    monkeypatch.chdir(tmp_path)
    Path("cases").mkdir()
    Path("cases/a.py").write_text("import onnx\n\n\nraise RuntimeError('no')\n")
    for folder in (Path("cases"), tmp_path / "cases"):
        with pytest.raises(HandledError, match=r"cases/a\.py:4: cannot be imported: RuntimeError: no"):
            load_cases(folder)


def test_a_mistake_in_a_recipe_is_told_with_file_and_line(tmp_path: Path) -> None:
    """Wherever the case lies: nobody outside this project runs its tests."""
    path = tmp_path / "a.py"
    path.write_text("from harness.case import Recipe\n\n\nRECIPE = Recipe(flags=('INT8'))\n")
    with pytest.raises(HandledError) as refused:
        load_cases(tmp_path)
    assert str(refused.value).startswith(f"{path}:4: cannot be")


def test_a_syntax_error_elsewhere_is_not_laid_at_this_line(tmp_path: Path, monkeypatch: Patch) -> None:
    """The line of a broken module that a case imports is no line of the case."""
    monkeypatch.syspath_prepend(tmp_path / "library")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "broken_for_tests.py").write_text("\n\n\n\nx = (\n")
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "a.py").write_text("import broken_for_tests\n")
    with pytest.raises(HandledError, match=r"a\.py:1: cannot be imported: SyntaxError"):
        load_cases(folder)


def test_a_module_that_fails_is_not_left_half_imported(tmp_path: Path) -> None:
    (tmp_path / "half_made.py").write_text("raise RuntimeError('no')\n")
    with pytest.raises(HandledError):
        load_cases(tmp_path)
    assert not [name for name in sys.modules if name.endswith("half_made")]


@pytest.mark.parametrize(
    "what", ["GeneratorExit", "SystemExit(1)", "BaseException('no')", "OSError(5, 'no')"]
)
def test_whatever_comes_out_of_a_module_is_told(tmp_path: Path, what: str) -> None:
    """GeneratorExit went through to the interpreter, whose exit code is that of a regression."""
    (tmp_path / "a.py").write_text(f"raise {what}\n")
    with pytest.raises(HandledError, match=r"a\.py:1: cannot be imported: "):
        load_cases(tmp_path)


def test_a_pipe_is_no_module(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.py")
    with pytest.raises(HandledError, match=r"a\.py: not a Python module"):
        load_cases(tmp_path)

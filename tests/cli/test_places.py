"""Matrix and cases are those given, else those here, else those that come with the harness."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import onnx
import pytest

from harness.cli import main
from harness.cli.options import add_places, places, settle
from tests.cli import project
from tests.fixtures import Capture, Patch
from tests.models import data

pytestmark = pytest.mark.unit


def listed(capsys: Capture, *words: str) -> tuple[set[str], set[str], str]:
    """Return the cases and the targets of `list`, and what was said on stderr."""
    found = []
    for what in ("cells", "targets"):
        assert main(["list", what, *words]) == 0
        said = capsys.readouterr()
        found.append([line.split()[0] for line in said.out.splitlines()])
    cells, targets = found
    return {name.partition(".")[0] for name in cells}, set(targets), said.err


def test_an_empty_folder_takes_what_is_shipped_and_says_so(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    cases, targets, said = listed(capsys)
    assert {"mish", "conv_silu"} <= cases
    assert {"trt86", "rtx17", "ort131"} <= targets
    assert said.startswith("no matrix.yaml and")
    assert len(said.splitlines()) == 1


def test_own_cases_are_for_all_known_targets_and_an_own_matrix_for_all_known_cases(
    toy: Path, capsys: Capture
) -> None:
    (toy / "matrix.yaml").rename(toy / "kept")
    cases, targets, said = listed(capsys)
    assert (cases, "rtx17" in targets, said[:32]) == ({"toy"}, True, "no matrix.yaml here: taking what")
    (toy / "kept").rename(toy / "matrix.yaml")
    shutil.rmtree(toy / "cases")
    cases, targets, said = listed(capsys)
    assert ("mish" in cases, targets, said[:21]) == (True, {"trt86", "ort131"}, "no cases here: taking")


def test_what_is_here_or_given_is_taken_without_a_word(
    toy: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    here = listed(capsys)
    assert here == ({"toy"}, {"trt86", "ort131"}, "")
    monkeypatch.chdir(toy.parent)
    assert listed(capsys, "--matrix", "project/matrix.yaml", "--cases", "project/cases") == here


def test_a_new_case_is_written_here_and_never_beside_those_that_are_shipped(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    for top in ("package", "here"):
        (tmp_path / top).mkdir()
    monkeypatch.setattr("harness.shipped._PACKAGE", tmp_path / "package" / "harness")
    monkeypatch.chdir(tmp_path / "here")
    onnx.save(data.model(), tmp_path / "model.onnx")
    (tmp_path / "here" / "matrix.yaml").touch()
    assert main(["new", "mine", "--from", "../model.onnx"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("cases/mine.py: ")
    assert said.err == ""
    assert (tmp_path / "here" / "cases" / "mine.py").is_file()
    assert not list((tmp_path / "package").iterdir())


@pytest.mark.parametrize("verb", ["accept", "submit"])
def test_what_writes_cases_or_sends_results_takes_nothing_that_is_shipped(
    verb: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([verb]) == 2
    assert "taking what comes" not in capsys.readouterr().err


def test_a_printed_line_names_only_what_would_not_be_looked_up(toy: Path, monkeypatch: Patch) -> None:
    def printed(*words: str) -> list[str]:
        parser = argparse.ArgumentParser()
        add_places(parser)
        options = parser.parse_args(words)
        settle(options, shipped_too=True)
        return places(options)

    assert printed("--cases", "cases", "--reports", "reports") == []
    assert printed("--cases", "../project/cases") == ["--cases", "../project/cases"]
    monkeypatch.chdir(project.TOP / "docs")
    assert printed() == []
    own = str(toy / "matrix.yaml")
    assert printed("--matrix", own, "--reports", "x") == ["--matrix", own, "--reports", "x"]


def test_show_of_what_is_shipped_prints_a_line_that_needs_no_matrix_here(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """pytest collects a matrix of one's own alone."""
    monkeypatch.chdir(tmp_path)
    assert main(["show", "mish.fp32-ort131"]) == 0
    printed = capsys.readouterr().out.splitlines()
    line = printed[printed.index("  # this cell again") + 1].strip()
    assert line.split()[2:] == ["-k", "mish.fp32-ort131", "--target", "ort131"]


def test_of_shipped_cases_nothing_is_to_be_accepted(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """`accept` writes beside the cases, which are not the user's."""
    told: list[str] = []

    def advice(_judged: object, accept: str, _places: object) -> tuple[str, ...]:
        told.append(accept)
        return ()

    monkeypatch.setattr("harness.cli.run.advice", advice)
    monkeypatch.setattr("harness.cli.run.built", lambda project, *_: project)
    for name in ("run_shown", "write_report"):
        monkeypatch.setattr(f"harness.cli.run.{name}", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-k", "mish.fp32-ort131"]) == 3
    (tmp_path / "cases").mkdir()
    shutil.copy(project.TOP / "cases" / "mish.py", tmp_path / "cases")
    assert main(["run", "-k", "mish.fp32-ort131"]) == 3
    assert [each.split()[1:] for each in told] == [[], ["accept", "-k", "mish.fp32-ort131"]]
    capsys.readouterr()

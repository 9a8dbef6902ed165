"""Every verb's help ends with lines that work as pasted, and the shell completes what the command takes."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.cli import main
from harness.cli.examples import EXAMPLES
from harness.cli.main import VERBS, _parse

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def test_every_verb_has_examples_that_the_command_takes() -> None:
    """A new verb gets one in harness/cli/examples.py."""
    assert set(EXAMPLES) == set(VERBS)
    for verb, lines in EXAMPLES.items():
        for line in lines:
            program, *words = shlex.split(line.partition(" > ")[0], comments=True)
            assert (program, words[0]) == ("trt-compat", verb)
            assert _parse(words).called == verb


def test_help_keeps_the_lines_of_examples_and_fills_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    described, _, examples = capsys.readouterr().out.partition("\nexamples:\n")
    assert examples.splitlines() == [f"  {line}" for line in EXAMPLES["check"]]
    assert max(map(len, described.splitlines())) <= 80


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


def completed(script: str, folder: Path, *words: str) -> list[str]:
    """Return what bash offers behind these words; the last one is what was begun."""
    asked = f"COMP_WORDS=({shlex.join(['trt-compat', *words])}) COMP_CWORD={len(words)}"
    told = 'printf "%s\\n" "${COMPREPLY[@]}"'
    bash = ["bash", "--norc", "-uc", f"{script}\n{asked}\n_trt_compat\n{told}"]
    done = subprocess.run(bash, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_verbs_options_choices_and_targets(script: str, toy: Path) -> None:
    assert completed(script, toy, "verif") == ["verify"]
    assert set(completed(script, toy, "")) == set(VERBS)
    assert completed(script, toy, "run", "--ta") == ["--target"]
    assert completed(script, toy, "accept", "--pull") == []
    assert completed(script, toy, "run", "--via", "") == ["auto", "docker", "venv"]
    assert completed(script, toy, "run", "--target", "ort") == ["ort131"]
    assert set(completed(script, toy, "check", "m.onnx", "--from", "")) == {"trt86", "ort131"}
    # A file's name, which bash completes by itself.
    assert completed(script, toy, "new", "mine", "--from", "") == []
    assert completed(script, toy, "run", "--matrix", "") == []
    assert completed(script, toy, "run", "ma") == []


def test_where_there_is_no_matrix_no_target_is_offered(script: str, tmp_path: Path) -> None:
    assert completed(script, tmp_path, "run", "--target", "") == []


def test_zsh_has_the_script_of_bash_and_fish_a_line_an_option(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out == f"autoload -U +X bashcompinit && bashcompinit\n{script}"
    assert main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out
    assert "-n '__fish_seen_subcommand_from run' -l via -x -a 'auto docker venv' -d " in lines
    if fish := shutil.which("fish"):
        (tmp_path / "it.fish").write_text(lines)
        subprocess.run([fish, "--no-execute", tmp_path / "it.fish"], check=True)
    assert main(["completion", "tcsh"]) == 2
    assert "no completion for 'tcsh'; known: bash, zsh, fish" in capsys.readouterr().err

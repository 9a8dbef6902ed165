"""The examples of the help work as pasted, and the shell completes what the command takes."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.cli.main import EXAMPLES, VERBS, _parse
from harness.cli.options import of_fields, words_of
from harness.models.checking import Building, Check
from harness.models.own.model import Wanted
from harness.models.own.shapes import Shapes
from harness.words import Typing
from tests.fixtures import Capture

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("verb", EXAMPLES)
def test_an_example_is_one_that_the_command_takes(verb: str, capsys: Capture) -> None:
    assert _parse([verb, *shlex.split(EXAMPLES[verb])]).called == verb
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert f"example: trt-compat {verb} {EXAMPLES[verb]}" in " ".join(capsys.readouterr().out.split())


def test_each_field_of_a_check_is_an_option_of_the_command() -> None:
    options = _parse(["check", "m.onnx"])
    options.matrix = options.cases = None
    assert of_fields(Check, options) == Check([Path("m.onnx")], targets=[], flags=[], plugins=[])


@pytest.mark.parametrize("verb", ["check", "reduce", "bisect", "new"])
def test_verbs_that_build_a_model_take_every_option_of_building_it(verb: str) -> None:
    words = ["--shapes", "x:1x3", "--typing", "weak", "--flag", "FP16", "--max-rel", "0.5", "--cosine", "0.9"]
    found = of_fields(Building, _parse([verb, *shlex.split(EXAMPLES[verb]), *words]))
    assert all(getattr(found, each.name) != each.default for each in fields(Building)), "give the new one too"
    assert list(words_of(found)) == words
    shapes = Shapes(optimum={"x": (1, 3)})
    for each in fields(Building):
        default: Any = {each.name: each.default}
        assert replace(found, **default).wanted != found.wanted, each.name
    assert found.wanted == Wanted(Typing.WEAK, ("FP16",), shapes=shapes, max_rel=0.5, cosine=0.9)


@pytest.fixture
def script(capsys: Capture) -> str:
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


def completed(script: str, folder: Path, *words: str) -> list[str]:
    """Return what bash offers behind these words; the last one is what was begun."""
    asked = f"COMP_WORDS=({shlex.join(['trt-compat', *words])}) COMP_CWORD={len(words)}"
    told = 'printf "%s\\n" "${COMPREPLY[@]}"'
    bash = ["bash", "--norc", "-c", f"{script}\n{asked}\n_shtab_trt_compat\n{told}"]
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
    assert completed(script, toy, "new", "mine", "--from", "matr") == ["matrix.yaml"]
    assert completed(script, toy, "run", "--matrix", "matr") == ["matrix.yaml"]


def test_where_there_is_no_matrix_no_target_is_offered(script: str, tmp_path: Path) -> None:
    assert completed(script, tmp_path, "run", "--target", "") == []


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells_have_a_script_too(shell: str, capsys: Capture) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("verify", "executor", "slurm", "grep -soE"))

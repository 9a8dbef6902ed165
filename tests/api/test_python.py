"""The page of examples runs as it stands; a script without a guard is not run again by what it starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import harness
from harness.api import Checked
from harness.case import load_cases
from harness.errors import HandledError
from tests import needs
from tests.fixtures import Patch
from tests.report import factory

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder as the page has it: a matrix, the cases, and a quantised model."""
    shutil.copy(ROOT / "matrix.yaml", tmp_path)
    shutil.copytree(ROOT / "cases", tmp_path / "cases", ignore=shutil.ignore_patterns("__pycache__"))
    case = next(each for each in load_cases(ROOT / "cases") if each.name == "depthwise_qdq")
    variant = next(each for each in case if each.name == "qdq")
    (tmp_path / "model.onnx").write_bytes(variant.model_bytes())
    return tmp_path


@pytest.mark.long
@pytest.mark.integration
def test_the_page_s_examples_run_as_a_script_without_a_guard(folder: Path) -> None:
    """As one file: were it run again by each process that prepares a model, it would not end."""
    needs.network()
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (value,) = onnx.load(folder / "model.onnx").graph.input
    shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    script = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    script = script.replace('"input"', repr(value.name)).replace("(1, 3, 64, 64)", repr(shape))
    (folder / "examples.py").write_text("print('begun')\n" + script)
    done = subprocess.run(
        [sys.executable, "examples.py"],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begun") == 1
    assert "rtx17-sm75 precision_lost" in done.stdout
    assert "'rtx17': 'built'" in done.stdout.replace("<Class.BUILT: 'built'>", "'built'")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.unit
def test_what_is_public_is_there_and_nothing_heavy_is_imported_before_it_is_asked_for() -> None:
    assert {name for name in harness.__all__ if getattr(harness, name)} == set(harness.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'chekc'"):
        harness.chekc  # noqa: B018
    code = "import harness, sys; print({'onnx', 'numpy', 'docker'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.unit
def test_names_are_completed_types_are_known_and_a_result_is_told_in_a_line() -> None:
    assert set(harness.__all__) <= set(dir(harness))
    assert Path(harness.__file__).with_name("py.typed").is_file()
    assert repr(factory.results()).startswith("<Results: ")
    assert len(repr(factory.results())) < 100


@pytest.mark.unit
def test_mistakes_are_sentences(folder: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(folder)
    for words, sentence in (
        ({"targets": "rtx71"}, "did you mean 'rtx17'"),
        ({"targets": "ort131", "jobs": -1}, "jobs=-1: give a whole number above 0"),
        ({"targets": "ort131", "seconds": "a"}, "seconds='a': give a number above 0"),
        ({"targets": "ort131", "seconds": float("nan")}, "seconds=nan: give a number above 0"),
        ({"targets": "ort131", "shapes": "input:" + "9" * 5000}, "write NAME:SIZExSIZE"),
        ({"targets": "ort131", "shapes": {"input": (1, 3)}}, "write a text"),
        ({"targets": "ort131", "jobs": "3"}, "jobs='3': give a whole number above 0"),
        (
            {"targets": "ort131", "via": "dokcer"},
            "via='dokcer': engines run in no such place; did you mean 'docker'",
        ),
        ({"targets": "ort131", "flags": ["INT88"]}, "no version of TensorRT has; did you mean 'INT8'"),
        ({"targets": "ort131", "shapes": "nothing:1"}, "has no input 'nothing'"),
        ({"targets": "ort131", "flags": "INT88"}, "no version of TensorRT has; did you mean 'INT8'"),
        ({"targets": "ort131", "max_rel": -1}, "-1 is no max-rel: give a number from 0 on"),
        ({"targets": "ort131", "max_rel": "much"}, "much is no max-rel"),
        ({"targets": "ort131", "cosine": 1.0000001}, "1.0000001 is no cosine"),
        ({"targets": "ort131", "inputs": {"nothing": [1.0]}}, "has no input 'nothing'"),
        (
            {"targets": "ort131", "expected": {"output": [1.0]}},
            "is .*x.* and what is expected has 1; give an array",
        ),
    ):
        with pytest.raises(harness.HandledError, match=sentence):
            harness.check("model.onnx", **words)
    with pytest.raises(HandledError, match="no node in its graph"):
        harness.check(onnx.ModelProto())
    with pytest.raises(HandledError, match="selects no cell"):
        harness.measure("nonsense")
    with pytest.raises(HandledError, match="jobs=0: give a whole number"):
        harness.measure("mish", targets="ort131", jobs=0)
    assert not Path("reports").exists()


@pytest.mark.unit
def test_a_target_that_was_not_asked_is_a_key_error_with_the_nearest() -> None:
    with pytest.raises(KeyError, match="was not asked; there are none"):
        Checked("m.onnx", {})["rtx17"]

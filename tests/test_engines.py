"""An engine is a word, a row of `ENGINES` and an adapter; no other module of the harness asks which one it is."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.engines import ENGINES, those_that
from harness.words import Engine

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
#: A claim is about TensorRT unless it says otherwise.
NAMES_ONE = {"harness/engines.py", "harness/case/claims.py"}

IMAGINARY_ADAPTER = """
def preload(engine):
    return {"engine_version": "9.8.7"}


def run(job, body, emit):
    emit("phase_begin", name="build")
    emit("phase", name="build", seconds=0.5, ok=True)
    emit("plan", b"plan")
"""
#: Run in a copy of the harness that has the imaginary engine.
USES_IT = """
import sys
from pathlib import Path

from harness.case import load_cases
from harness.cli import main
from harness.matrix import load_matrix
from harness.plan import all_cells
from tests.run.prepared import prepare_variant
from harness.run.gpus import Device
from harness.run.observation import Turn, observe
from harness.run.session import Session
from harness.run.transport import ProcessTransport
from harness.agent.bootstrap import ARGUMENTS

matrix = load_matrix(Path("matrix.yaml"))
target = matrix.target("dream9")
assert (target.label, target.group, target.needs.gpu) == ("Dream Engine 9.8", "Dream Engine", False)
(cell,) = [cell for cell in all_cells(matrix, load_cases(Path("cases"))) if cell.id == "mish.fp32-dream9"]
session = Session(
    ProcessTransport([sys.executable, *ARGUMENTS]), engine=target.module, adapter=target.traits.adapter
)
cpu = Device("cpu", lambda: True)
steps = observe(cell, prepare_variant(cell.variant), session.run, None, Turn(), cpu=cpu)
try:
    next(steps)
except StopIteration as end:
    seen = end.value
session.close()
assert (seen.phases, seen.plan) == ({"build": 0.5}, b"plan"), seen.log
raise SystemExit(main(["list", "--target", "dream9"]))
"""


def test_every_engine_has_a_row_and_an_adapter() -> None:
    """The adapter has the functions that the agent calls."""
    assert set(ENGINES) == set(Engine)
    for traits in ENGINES.values():
        module = ROOT / "harness" / "agent" / "engines" / traits.adapter
        source = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
        tree = ast.parse(source.read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {"preload", "run"} <= functions, source


def test_rows_are_told_apart_and_one_is_the_baseline() -> None:
    assert len({traits.product for traits in ENGINES.values()}) == len(ENGINES)
    assert len({traits.short for traits in ENGINES.values()}) == len(ENGINES)
    assert those_that("baseline") == "onnxruntime"


def test_no_module_asks_which_engine_it_is() -> None:
    """A property of the engine is a trait: a comparison with one engine would be forgotten for the next."""
    for path in sorted((ROOT / "harness").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        assert name in NAMES_ONE or not [one for one in named if one.startswith("Engine.")], name


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, path
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_an_imaginary_engine_is_added_by_the_steps_of_the_guide(tmp_path: Path) -> None:
    """After the steps of CONTRIBUTING.md, and no other, its target is listed and its adapter runs a cell."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("harness", "cases"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    _replace(
        tmp_path / "harness/words.py",
        '    ONNXRUNTIME = "onnxruntime"\n',
        '    ONNXRUNTIME = "onnxruntime"\n    DREAM = "dream"\n',
    )
    _replace(
        tmp_path / "harness/engines.py",
        "    Engine.ONNXRUNTIME: Traits(",
        '    Engine.DREAM: Traits(product="Dream Engine", short="Dream", adapter="dream"),\n'
        "    Engine.ONNXRUNTIME: Traits(",
    )
    for schema in ("matrix/matrix.schema.json", "case/measured.schema.json"):
        _replace(tmp_path / "harness" / schema, '"onnxruntime"]', '"onnxruntime", "dream"]')
    (tmp_path / "harness/agent/engines/dream.py").write_text(IMAGINARY_ADAPTER)
    (tmp_path / "matrix.yaml").write_text(
        "schema: 1\ntargets:\n  dream9:\n    engine: dream\n    version: 9.8.7\n    packages: [dream==9.8.7]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", USES_IT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Dream Engine 9.8" in done.stdout or "dream9" in done.stdout

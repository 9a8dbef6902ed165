"""A small project of its own for the command line's tests: two targets, one case of three variants; and its records."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from harness.case import load_cases, model_sha256
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells, find
from harness.record.outcome import End, Outcome, Stamps
from harness.record.store import Store

TOP = Path(__file__).resolve().parents[2]
TARGETS = yaml.safe_load((TOP / "matrix.yaml").read_text(encoding="utf-8"))

#: `relu` works everywhere; `weak` makes no sense on ONNX Runtime; `foreign` has an operator that nobody knows.
CASE = '''
"""A case for tests."""

from harness.case import Case, Graph, Link, Recipe, Typing, Variant


def relu():
    g = Graph("relu")
    g.node("Relu", [g.input("x", [1, 4])], name="/act", output="y")
    g.output("y", [1, 4])
    return g.model()


def foreign():
    g = Graph("foreign")
    g.node("Nonsense", [g.input("x", [1, 4])], name="/nonsense", output="y", domain="nobody.knows")
    g.output("y", [1, 4])
    return g.model()


CASE = Case(
    name="toy",
    title="A toy",
    summary="For tests.",
    links=(Link("https://example.org/1", "one"),),
    variants=(
        Variant("relu", "A Relu", relu),
        Variant("weak", "A Relu in weak typing", relu, recipe=Recipe(Typing.WEAK, flags=("INT8",))),
        Variant("foreign", "An operator of nobody's", foreign),
    ),
)
'''

#: The only two that the tests need: one that runs on any machine, one that needs a GPU.
MATRIX = {"schema": 1, "targets": {name: TARGETS["targets"][name] for name in ("trt86", "ort131")}}


def make(folder: Path) -> Path:
    """Write the project into a folder and return it."""
    (folder / "cases").mkdir(parents=True)
    (folder / "cases" / "toy.py").write_text(CASE, encoding="utf-8")
    (folder / "matrix.yaml").write_text(yaml.safe_dump(MATRIX, sort_keys=False), encoding="utf-8")
    return folder


def outcome(cell: Cell, **fields: Any) -> Outcome:
    """Return the outcome of a cell that ended well today; `fields` of it or of its stamps override."""
    stamps = Stamps(
        model_sha256=model_sha256(cell.variant.model_bytes()),
        recipe_sha256=cell.variant.recipe.sha256(),
        engine_version=cell.target.version,
        via="venv",
        packages=("toy==1.0",),
        harness_version="0.1.0",
        run="a-run",
        when="2026-01-02T03:04:05.678+00:00",
    )
    of_stamps = {name: fields.pop(name) for name in [*fields] if hasattr(stamps, name)}
    names = cell.id, cell.case.name, cell.variant.name, cell.target.name
    found = Outcome(*names, "done", end=End("finished", exit_code=0), stamps=replace(stamps, **of_stamps))
    return replace(found, **fields)


def record(folder: Path, name: str, reports: str = "reports", **fields: Any) -> Outcome:
    """Record such an outcome of a cell of a project in its folder of reports; return it."""
    cells = all_cells(load_matrix(folder / "matrix.yaml"), load_cases(folder / "cases"))
    with Store(folder / reports) as store:
        return store.append(outcome(find(cells, name), **fields), "a log")


def harness(folder: Path, *words: str, environment: Iterable[tuple[str, str]] = ()) -> subprocess.Popen[str]:
    """Start `trt-compat` in a folder, as a shell would."""
    # Buffered as it is for users: a reader that goes away shows only then.
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        cwd=folder,
        env=plain | {"PYTHONPATH": str(TOP)} | dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def counted(out: str) -> dict[str, int]:
    """Return the counts of a run's summary by their names."""
    (line,) = re.findall(r"^\d+ cells? on \d+ targets?: (.*)$", out, re.MULTILINE)
    return {name: int(number) for number, name in re.findall(r"(\d+) ([^,]+)", line)}

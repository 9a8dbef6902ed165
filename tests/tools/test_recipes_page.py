"""What is planned for a cell is what the agent, the bindings' sources and measured cells say, and the page shows it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.engines import MissingApi
from harness.agent.engines.tensorrt import api
from harness.case import Recipe, Typing, load_cases, measured
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells, claims_about
from harness.words import Class, Engine, Grade
from tools.capabilities import NAMES, has, missing_api
from tools.recipes_page import planned

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
MATRIX, CASES = load_matrix(ROOT / "matrix.yaml"), load_cases(ROOT / "cases")
CELLS = all_cells(MATRIX, CASES)
RECIPES = {cell.variant.recipe for cell in CELLS}
EXTRA = {
    Recipe(Typing.STRONG),
    Recipe(Typing.WEAK, flags=("FP8",)),
    Recipe(Typing.WEAK, flags=("BF16", "INT8")),
}


def bindings(engine: Engine, version: str) -> Any:
    """Return a module that has what the table says, and nothing more."""
    module = SimpleNamespace(__name__=str(engine))
    for name in NAMES:
        owner, _, member = name.partition(".")
        if not hasattr(module, owner):
            setattr(module, owner, SimpleNamespace())
        if has(name, engine, version):
            setattr(getattr(module, owner), member, 0)
    return module


@pytest.mark.parametrize(
    "target", [t for t in MATRIX if t.engine is not Engine.ONNXRUNTIME], ids=lambda t: t.name
)
def test_the_plan_misses_what_the_agents_own_check_misses(
    target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is on the host's side; the rule of what a recipe needs must not drift from the agent's."""
    monkeypatch.setattr(api, "trt", bindings(target.engine, target.version))
    for recipe in RECIPES | EXTRA:
        try:
            api.check_recipe(recipe.as_dict())
            missing = None
        except MissingApi as error:
            missing = error.name
        assert missing_api(recipe, target.engine, target.version) == missing, recipe


@pytest.mark.parametrize("version", ["8.5", "9.2"])
def test_the_table_agrees_with_the_public_sources_of_the_bindings(version: str) -> None:
    """No wheel of these versions exists; their names were read from the sources of the bindings."""
    facts = json.loads((ROOT / "tests" / "contract" / "data" / f"sources-{version}.json").read_text())
    for name in NAMES:
        assert has(name, Engine.TENSORRT, facts["version"]) is (name in facts["names"]), name


def test_the_table_agrees_with_the_real_bindings_of_every_version() -> None:
    """docs/capabilities.md is written by the contract test, from the bindings themselves."""
    rows = [
        [entry.strip() for entry in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "capabilities.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    versions = next(row[1:-1] for row in rows if row[0] == "recipe")
    assert len(versions) >= 16
    found = {row[0].strip("`"): row[1:] for row in rows}
    for name in NAMES:
        assert len(found[name]) == len(versions)
        for version, there in zip(versions, found[name], strict=True):
            engine = Engine.TENSORRT_RTX if version.startswith("rtx") else Engine.TENSORRT
            assert has(name, engine, version.removeprefix("rtx ")) is (there == "yes"), (name, version)


def test_every_measured_cell_ended_as_planned() -> None:
    """A missing API and nothing else ends in api_removed, on every engine that ran."""
    by_row = {(f"{cell.case.name}[{cell.variant.name}]", cell.target.name): cell for cell in CELLS}
    seen = 0
    for target in measured.read(ROOT / "cases" / measured.FILE):
        for row, (cls, _) in target.cells.items():
            fate = planned(by_row[row, target.target]).status
            assert (fate == "api_removed") is (cls is Class.API_REMOVED), (row, target.target)
            assert fate != "not_applicable", (row, target.target)
            seen += 1
    assert seen > 500


def test_claims_of_a_removed_api_are_planned_so() -> None:
    """Somebody's claim and the bindings agree on what is gone."""
    claimed = {
        cell.id
        for cell in CELLS
        for claim in claims_about(cell)
        if claim.outcome is Class.API_REMOVED and claim.grade is not Grade.MEASURED
    }
    gone = {cell.id for cell in CELLS if planned(cell).status == "api_removed"}
    assert claimed
    assert claimed <= gone


def by_id(cell_id: str) -> Cell:
    return next(cell for cell in CELLS if cell.id == cell_id)


@pytest.mark.parametrize(
    ("cell", "status", "detail"),
    [
        ("conv_silu[int8-entropy]-trt86", "runnable", ""),
        ("conv_silu[int8-entropy]-trt1016", "runnable", ""),
        ("conv_silu[int8-entropy]-trt110", "api_removed", "BuilderFlag.INT8"),
        ("conv_silu[int8-entropy]-rtx14", "api_removed", "IBuilderConfig.int8_calibrator"),
        ("mish[qdq-strong]-trt86", "api_removed", "NetworkDefinitionCreationFlag.STRONGLY_TYPED"),
        ("mish[qdq-strong]-trt92", "runnable", ""),
        ("instance_norm[qdq-native]-l4t85", "api_removed", "OnnxParserFlag.NATIVE_INSTANCENORM"),
        ("instance_norm[qdq-native]-trt112", "runnable", ""),
        ("conv_silu[qdq]-ort131-cuda", "runnable", ""),
    ],
)
def test_the_known_walls_stand_where_they_stand(cell: str, status: str, detail: str) -> None:
    """8.6 brought the parser flags, 9 strong typing; 11 took weak typing away."""
    assert (planned(by_id(cell)).status, planned(by_id(cell)).detail) == (status, detail)

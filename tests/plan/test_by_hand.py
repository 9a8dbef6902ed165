"""The lines that a person pastes: repro.py with a recipe unless trtexec does the same, and how to run it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from harness.case import Calibrator, Data, Profile, Recipe, Typing, load_cases
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells, inapplicable_because
from harness.plan.by_hand import REPRO, ByHand, asked_of, by_hand

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]


@functools.cache
def cells() -> dict[str, Cell]:
    return {cell.id: cell for cell in all_cells(load_matrix(TOP / "matrix.yaml"), load_cases(TOP / "cases"))}


def recipe(name: str) -> dict[str, Any]:
    """Return a cell's recipe as the program reads it."""
    cell = cells()[name]
    made: dict[str, Any] = json.loads(json.dumps(asked_of(cell, "model.onnx", cell.variant.model_bytes())))
    return made


def hand(name: str, digest: str = "") -> ByHand:
    cell = cells()[name]
    return by_hand(cell, cell.variant.model_bytes(), digest)


@pytest.mark.long
def test_every_cell_has_a_line_or_a_recipe_and_never_both() -> None:
    given = 0
    for cell in cells().values():
        found = by_hand(cell, cell.variant.model_bytes())
        if inapplicable_because(cell):
            assert found == ByHand()
            continue
        assert any(found.command.split()[-1] in line for line in found.lines), cell.id
        assert bool(found.recipe) == ("trtexec" not in found.command), cell.id
        given += bool(found.recipe)
    assert given > 800


def test_the_program_is_python_of_the_oldest_image() -> None:
    ast.parse(REPRO.read_text(), feature_version=(3, 8))


def test_what_somebody_allows_is_no_data_that_a_file_would_lack() -> None:
    known = cells()["depthwise_qdq.qdq-ort131"]
    for data, has in ((Data(max_rel=0.5), True), (Data(inputs="in.npz"), False)):
        variant = dataclasses.replace(known.variant, data=data)
        cell = dataclasses.replace(known, variant=variant)
        assert bool(by_hand(cell, variant.model_bytes()).recipe) is has


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("conv_silu.int8-entropy-trt86", "nvcr.io/nvidia/tensorrt:23.06-py3"),
        ("conv_silu.int8-entropy-trt92", "tensorrt-9.2.0.5.linux"),
        ("conv_silu.qdq-rtx17", "pip install tensorrt-rtx-cu12==1.7.1.116"),
        ("conv_silu.qdq-rtx17-arm64", "arm64"),
        ("conv_silu.qdq-ort131-cuda", "GPU"),
    ],
)
def test_a_recipe_names_what_it_needs(name: str, needs: str) -> None:
    assert needs in recipe(name)["needs"]


def test_rtx_is_run_in_python_and_its_program_is_said_to_be_elsewhere() -> None:
    """No wheel holds a program."""
    found = hand("conv_silu.qdq-rtx17-sm75")
    made, installed, ran = (line.split() for line in found.lines[:3])
    assert made == ["python3.11", "-m", "venv", "venv"]
    assert installed[-1] == "tensorrt-rtx-cu12==1.7.1.116"
    assert ran[1:] == ["repro.py", "conv_silu-qdq.json"]
    assert found.lines[3].startswith("# its wheels")
    assert recipe("conv_silu.qdq-rtx17-sm75")["compute_capability"] == "7.5"
    assert not any("SDK" in line for line in hand("conv_silu.qdq-ort131").lines)


def test_the_image_is_the_measured_one_and_untried_lines_say_so() -> None:
    found = hand("conv_silu.qdq-trt102", "sha256:abc")
    assert found.lines[0] == (
        'docker run --rm --gpus all --platform linux/amd64 -v "$PWD:/work" -w /work '
        f"nvcr.io/nvidia/tensorrt:24.07-py3@sha256:abc {found.command}"
    )
    assert found.lines[1].startswith("# these lines")
    assert "@" not in hand("conv_silu.qdq-trt102").lines[0]
    jetson = hand("conv_silu.qdq-l4t86").lines[0]
    assert "--runtime nvidia" in jetson
    assert "/usr/src/tensorrt/bin/trtexec --onnx=conv_silu-qdq.onnx" in jetson


def test_no_image_is_made_up_for_a_tarball_or_for_the_plugin() -> None:
    """A line that cannot work is worse than no line; it names the plugin's source."""
    assert hand("conv_silu.qdq-trt92").lines[0].startswith("trtexec --onnx")
    found = hand("q_plugin_dq.q-plugin-dq-int8-trt102")
    assert "--staticPlugins=/opt/compat/plugins/libcompat_identity.so" in found.lines[0]
    assert any("compiles docker/plugin" in line for line in found.lines)
    strong = hand("q_plugin_dq.q-plugin-dq-int8-strong-trt92")
    assert recipe("q_plugin_dq.q-plugin-dq-int8-strong-trt92")["libraries"] == [
        "/opt/compat/plugins/libcompat_identity.so"
    ]
    assert any("compiles docker/plugin" in line for line in strong.lines)


def test_profiles_and_workspace_reach_the_recipe() -> None:
    """No case has them yet, and a model of somebody's may."""
    asked_for = Recipe(
        Typing.WEAK,
        flags=("INT8",),
        calibrator=Calibrator("minmax", batches=2),
        profiles=(Profile("images", (1, 3, 64, 64), (2, 3, 64, 64), (4, 3, 64, 64)),),
        workspace_mib=7,
    )
    cell = cells()["conv_silu.int8-minmax-trt86"]
    cell = dataclasses.replace(cell, variant=dataclasses.replace(cell.variant, recipe=asked_for))
    asked = json.loads(json.dumps(asked_of(cell, "model.onnx", cell.variant.model_bytes())))
    assert asked["recipe"]["profiles"] == [
        {"input": "images", "minimum": [1, 3, 64, 64], "optimum": [2, 3, 64, 64], "maximum": [4, 3, 64, 64]}
    ]
    assert asked["recipe"]["workspace_mib"] == 7
    assert asked["inputs"] == [{"name": "images", "shape": [2, 3, 64, 64], "type": "float32"}]

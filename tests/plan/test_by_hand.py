"""The lines that a person pastes: repro.py with a recipe unless trtexec, in its version's words, does the same."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from harness.case import Case, Data, Graph, Link, Recipe, Typing, Variant, load_cases
from harness.case.model import Calibrator, Plugin, Profile
from harness.matrix import Matrix, load_matrix
from harness.plan import Cell, all_cells
from harness.plan.by_hand import REPRO, ByHand, asked_of, by_hand, trtexec_line

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
        if cell.inapplicable:
            assert found == ByHand()
            continue
        assert any(found.command.split()[-1] in line for line in found.lines), cell.id
        assert bool(found.recipe) == ("trtexec" not in found.command), cell.id
        given += bool(found.recipe)
    assert given > 800


@pytest.mark.parametrize("field", dataclasses.fields(Recipe), ids=lambda field: field.name)
def test_each_field_of_a_recipe_is_read_by_the_program_and_decides_on_trtexec(
    field: dataclasses.Field[Any],
) -> None:
    """A forgotten one would have people paste a line that builds another engine."""
    assert f'["{field.name}"]' in REPRO.read_text() or field.name in {"plugin", "libraries"}
    assert f"recipe.{field.name}" in Path(inspect.getfile(by_hand)).read_text()


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


EVERYWHERE = {
    "--onnx", "--memPoolSize", "--verbose", "--profilingVerbosity", "--dumpLayerInfo",
    "--minShapes", "--optShapes", "--maxShapes",
}  # fmt: skip
WEAK = EVERYWHERE | {"--int8", "--fp16"}
TYPED = {"--stronglyTyped", "--pluginInstanceNorm", "--staticPlugins"}
#: The options of this project that each release's trtexec knows, by samples/common/sampleOptions.cpp at its tag.
KNOWN = {
    "8.5": WEAK | {"--plugins"},
    "8.6": WEAK | {"--staticPlugins"},
    "9.2": WEAK | {"--staticPlugins", "--nativeInstanceNorm"},
    "10": WEAK | TYPED,
    "11": EVERYWHERE | TYPED,
}


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix(TOP / "matrix.yaml")


def line(matrix: Matrix, target: str, recipe: Recipe, *, quantised: bool = True) -> list[str] | None:
    """Return the words of the line, if any."""
    variant = Variant("v", "V", Graph("g").model, recipe=recipe)
    case = Case("toy", "A toy", "", (Link("https://example.org"),), (variant,))
    cell = Cell(f"toy.v-{target}", case, variant, matrix.target(target))
    found = trtexec_line(cell, "model.onnx", quantised=quantised)
    return None if found is None else shlex.split(found)


@pytest.mark.long
def test_every_line_does_what_its_recipe_does(matrix: Matrix) -> None:
    """Over all cells: no calibrator, marked output or flag is dropped, and no option is one that the version lacks."""
    given = 0
    for each in all_cells(matrix, load_cases(TOP / "cases")):
        recipe, target = each.variant.recipe, each.target
        data = each.variant.model_bytes()
        found = trtexec_line(each, "model.onnx", quantised=b"DequantizeLinear" in data)
        if found is None:
            continue
        given += 1
        assert target.engine == "tensorrt", each.id
        assert not recipe.calibrator, each.id
        assert not recipe.mark_outputs, each.id
        known = next(KNOWN[start] for start in KNOWN if target.version.startswith(f"{start}."))
        words = shlex.split(found)[1:]
        used = {word.partition("=")[0] for word in words}
        assert used <= known, (each.id, used - known)
        weak = not target.version.startswith("11.") and recipe.typing is not Typing.STRONG
        assert {"--int8", "--fp16"} & used == {f"--{flag.lower()}" for flag in recipe.flags if weak}, each.id
        assert ("--stronglyTyped" in used) == (
            recipe.typing is Typing.STRONG and target.version.startswith("10.")
        )
        assert any("lugins=" in word for word in words) == (recipe.plugin is not None), each.id
        assert ("--int8" not in used) or b"DequantizeLinear" in data or b"QuantizeLinear" in data, each.id
    assert given > 500


@pytest.mark.parametrize(
    ("target", "typing", "wanted"),
    [
        ("trt86", Typing.WEAK, ["--int8"]),
        ("trt86", Typing.GRAPH, ["--int8"]),
        ("trt86", Typing.STRONG, None),
        ("trt92", Typing.STRONG, None),
        ("trt103", Typing.STRONG, ["--stronglyTyped"]),
        ("trt112", Typing.WEAK, None),
        ("trt112", Typing.GRAPH, []),
        ("trt112", Typing.STRONG, []),
        ("rtx17", Typing.GRAPH, None),
        ("ort131", Typing.GRAPH, None),
    ],
)
def test_precision_is_asked_for_as_the_version_has_it(
    matrix: Matrix, target: str, typing: Typing, wanted: list[str] | None
) -> None:
    words = line(matrix, target, Recipe(typing, flags=("INT8",)))
    assert (words is None) == (wanted is None)
    assert words is None or [word for word in words if word in ("--int8", "--stronglyTyped")] == wanted


@pytest.mark.parametrize(
    ("target", "on", "wanted"),
    [
        ("l4t85", False, None),
        ("trt86", True, None),
        ("trt86", False, []),
        ("trt92", True, ["--nativeInstanceNorm"]),
        ("trt92", False, []),
        ("trt103", True, []),
        ("trt103", False, ["--pluginInstanceNorm"]),
    ],
)
def test_the_native_norm_is_switched_the_way_round_that_the_version_needs(
    matrix: Matrix, target: str, on: bool, wanted: list[str] | None
) -> None:
    words = line(matrix, target, Recipe(parser_flags=(("NATIVE_INSTANCENORM", on),)))
    assert (words is None) == (wanted is None)
    assert words is None or [word for word in words if word.endswith("InstanceNorm")] == wanted
    assert line(matrix, target, Recipe(parser_flags=(("ENABLE_PLUGIN_OVERRIDE", True),))) is None


def test_what_trtexec_does_otherwise_has_no_line(matrix: Matrix) -> None:
    """It calibrates with random data, by an algorithm of its own, and marks no output."""
    weak = Recipe(Typing.WEAK, flags=("INT8",))
    for calibrator in (Calibrator("entropy"), Calibrator("minmax")):
        assert line(matrix, "trt86", Recipe(Typing.WEAK, ("INT8",), calibrator)) is None
    assert line(matrix, "trt86", Recipe(mark_outputs=("a",))) is None
    assert line(matrix, "trt86", weak, quantised=False) is None
    assert line(matrix, "trt86", weak) is not None
    assert line(matrix, "trt86", Recipe(Typing.WEAK, ("BF16",))) is None


def test_the_rest_of_a_recipe(matrix: Matrix) -> None:
    recipe = Recipe(
        plugin=Plugin("P", "fp32"), profiles=(Profile("x", (1, 3), (2, 3), (4, 3)),), workspace_mib=7
    )
    words = line(matrix, "trt86", recipe) or []
    assert {"--minShapes=x:1x3", "--optShapes=x:2x3", "--maxShapes=x:4x3"} <= set(words)
    assert "--memPoolSize=workspace:7M" in words
    assert any(word.startswith("--staticPlugins=/opt/compat/plugins/") for word in words)
    assert any(word.startswith("--plugins=") for word in line(matrix, "l4t85", recipe) or [])
    bare = line(matrix, "trt86", Recipe()) or []
    assert not any("memPoolSize" in word or "lugins" in word for word in bare)


def test_on_a_jetson_trtexec_is_not_on_the_path(matrix: Matrix) -> None:
    assert (line(matrix, "l4t86", Recipe()) or [""])[0] == "/usr/src/tensorrt/bin/trtexec"
    assert (line(matrix, "trt86", Recipe()) or [""])[0] == "trtexec"

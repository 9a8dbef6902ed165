"""A trtexec line is given only if it does the same as the recipe, in the words of the target's own trtexec.

The options by version are those of samples/common/sampleOptions.cpp at the release tags of NVIDIA/TensorRT.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from harness.case import Case, Graph, Link, Recipe, Typing, Variant, load_cases
from harness.case.model import Calibrator, Plugin, Profile
from harness.matrix import Matrix, load_matrix
from harness.plan import Cell, all_cells
from harness.plan.by_hand import trtexec_line

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
EVERYWHERE = {
    "--onnx", "--memPoolSize", "--verbose", "--profilingVerbosity", "--dumpLayerInfo",
    "--minShapes", "--optShapes", "--maxShapes",
}  # fmt: skip
WEAK = EVERYWHERE | {"--int8", "--fp16"}
TYPED = {"--stronglyTyped", "--pluginInstanceNorm", "--staticPlugins"}
#: The options of this project that each release's trtexec knows.
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

"""The trtexec line asks for what the recipe asks for, in the words of the target's own trtexec.

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
from harness.plan.trtexec import docker_line, trtexec_lines

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
EVERYWHERE = {
    "--onnx", "--memPoolSize", "--verbose", "--profilingVerbosity", "--dumpLayerInfo",
    "--minShapes", "--optShapes", "--maxShapes",
}  # fmt: skip
WEAK = EVERYWHERE | {"--int8", "--fp16"}
TYPED = {"--stronglyTyped", "--pluginInstanceNorm", "--staticPlugins", "--skipInference"}
#: What each release's trtexec knows, of the options that this project uses.
KNOWN = {
    "8.5": WEAK | {"--plugins"},
    "8.6": WEAK | {"--staticPlugins", "--skipInference"},
    "9.2": WEAK | {"--staticPlugins", "--skipInference", "--nativeInstanceNorm"},
    "10": WEAK | TYPED,
    "11": EVERYWHERE | TYPED,
}


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix(TOP / "matrix.yaml")


def cell(matrix: Matrix, target: str, recipe: Recipe) -> Cell:
    variant = Variant("v", "V", Graph("g").model, recipe=recipe)
    case = Case("toy", "A toy", "", (Link("https://example.org"),), (variant,))
    return Cell(f"toy[v]-{target}", case, variant, matrix.target(target))


def options(matrix: Matrix, target: str, recipe: Recipe) -> tuple[list[str], list[str]]:
    """Return the options of the line, and the comments behind it."""
    line, *comments = trtexec_lines(cell(matrix, target, recipe), "model.onnx")
    assert all(comment.startswith("# ") for comment in comments)
    return shlex.split(line), comments


def test_no_cell_of_the_matrix_gets_an_option_that_its_trtexec_lacks(matrix: Matrix) -> None:
    for each in all_cells(matrix, load_cases(TOP / "cases")):
        lines = trtexec_lines(each, "model.onnx")
        if each.target.engine != "tensorrt":
            assert lines == [] or lines[0].startswith("tensorrt_rtx "), each.id
            continue
        version = each.target.version
        known = next(KNOWN[start] for start in KNOWN if version.startswith(f"{start}."))
        used = {word.partition("=")[0] for word in shlex.split(lines[0])[1:]}
        assert used <= known, (each.id, used - known)


@pytest.mark.parametrize(
    ("target", "typing", "wanted", "refused"),
    [
        ("trt86", Typing.WEAK, "--int8", "--stronglyTyped"),
        ("trt86", Typing.GRAPH, "--int8", "--stronglyTyped"),
        ("trt103", Typing.STRONG, "--stronglyTyped", "--int8"),
        ("trt112", Typing.WEAK, "# this version has no INT8 flag", "--int8"),
        ("trt112", Typing.STRONG, "", "--stronglyTyped"),
        ("trt92", Typing.STRONG, "# this trtexec has no --stronglyTyped", "--stronglyTyped"),
        ("rtx17", Typing.GRAPH, "", "--int8"),
    ],
)
def test_precision_is_asked_for_as_the_version_has_it(
    matrix: Matrix, target: str, typing: Typing, wanted: str, refused: str
) -> None:
    words, comments = options(matrix, target, Recipe(typing, flags=("INT8",)))
    assert not wanted or wanted in [*words, *comments]
    assert refused not in words


@pytest.mark.parametrize(
    ("target", "on", "said"),
    [
        ("trt86", True, "# the cell has NATIVE_INSTANCENORM on, for which this trtexec has no option"),
        ("trt86", False, "# the cell has NATIVE_INSTANCENORM off, as is the default"),
        ("trt92", True, "--nativeInstanceNorm"),
        ("trt92", False, "# the cell has NATIVE_INSTANCENORM off, as is the default"),
        ("trt103", True, "# the cell has NATIVE_INSTANCENORM on, as is the default"),
        ("trt103", False, "--pluginInstanceNorm"),
        ("rtx17", False, "# the cell has NATIVE_INSTANCENORM off; parsers have it on since TensorRT 10"),
    ],
)
def test_the_native_norm_is_switched_the_way_round_that_the_version_needs(
    matrix: Matrix, target: str, on: bool, said: str
) -> None:
    words, comments = options(matrix, target, Recipe(parser_flags=(("NATIVE_INSTANCENORM", on),)))
    assert said in [*words, *comments]


def test_the_rest_of_a_recipe(matrix: Matrix) -> None:
    recipe = Recipe(
        Typing.WEAK,
        flags=("INT8",),
        calibrator=Calibrator("entropy"),
        mark_outputs=("a", "b c"),
        plugin=Plugin("P", "fp32"),
        profiles=(Profile("x", (1, 3), (2, 3), (4, 3)),),
        workspace_mib=7,
    )
    words, comments = options(matrix, "trt86", recipe)
    assert {"--minShapes=x:1x3", "--optShapes=x:2x3", "--maxShapes=x:4x3"} <= set(words)
    assert "--memPoolSize=workspace:7M" in words
    assert not any("memPoolSize" in word for word in options(matrix, "trt86", Recipe())[0])
    assert any(word.startswith("--staticPlugins=") for word in words)
    assert any("calibrates with random data" in comment for comment in comments)
    assert any("--trt-outputs a 'b c'" in comment for comment in comments)
    assert any(word.startswith("--plugins=") for word in options(matrix, "l4t85", recipe)[0])
    assert not any("lugins=" in word for word in options(matrix, "rtx17", recipe)[0])


def test_the_gpu_generation_and_a_missing_gpu_are_heeded(matrix: Matrix) -> None:
    words, _ = options(matrix, "rtx17-sm75", Recipe())
    assert words[0] == "tensorrt_rtx"
    assert {"--computeCapabilities=75", "--skipInference"} <= set(words)
    assert "--skipInference" not in options(matrix, "trt86", Recipe())[0]


def test_a_model_whose_name_holds_a_space_is_quoted(matrix: Matrix) -> None:
    assert "'--onnx=a b.onnx'" in trtexec_lines(cell(matrix, "trt86", Recipe()), "a b.onnx")[0]


def test_the_docker_line_runs_the_same_command_in_the_vendors_image(matrix: Matrix) -> None:
    """On a Jetson with its runtime, and with the folder of the model inside."""
    made = cell(matrix, "trt102", Recipe(Typing.WEAK, ("INT8",)))
    line = docker_line(made, "model.onnx") or ""
    assert line == (
        'docker run --rm --gpus all --platform linux/amd64 -v "$PWD:/work" -w /work '
        f"nvcr.io/nvidia/tensorrt:24.07-py3 {trtexec_lines(made, 'model.onnx')[0]}"
    )
    jetson = docker_line(cell(matrix, "l4t86", Recipe()), "model.onnx") or ""
    assert "--runtime nvidia" in jetson
    assert "/usr/src/tensorrt/bin/trtexec --onnx=model.onnx" in jetson


@pytest.mark.parametrize("target", ["trt92", "rtx17", "ort131"])
def test_no_docker_line_is_made_up_for_an_image_without_trtexec(matrix: Matrix, target: str) -> None:
    """A line that cannot work is worse than none."""
    assert docker_line(cell(matrix, target, Recipe()), "model.onnx") is None
    assert docker_line(cell(matrix, "trt102", Recipe(plugin=Plugin("P", "fp32"))), "model.onnx") is None

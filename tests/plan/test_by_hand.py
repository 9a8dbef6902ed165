"""What a person pastes: a file of at most 30 lines wherever trtexec would do something else, and how to run it."""

from __future__ import annotations

import ast
import dataclasses
import functools
from pathlib import Path

import pytest

from harness.case import Calibrator, Data, Profile, Recipe, Typing, load_cases
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells, inapplicable_because
from harness.plan.by_hand import ByHand, by_hand
from harness.plan.script import MOST_LINES, body_of

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]


@functools.cache
def cells() -> dict[str, Cell]:
    return {cell.id: cell for cell in all_cells(load_matrix(TOP / "matrix.yaml"), load_cases(TOP / "cases"))}


def hand(name: str, digest: str = "") -> ByHand:
    cell = cells()[name]
    return by_hand(cell, cell.variant.model_bytes(), digest)


@pytest.mark.long
def test_every_cell_has_a_line_or_a_file_and_never_both() -> None:
    """And each file is short, is Python of the oldest image, and names no calibrator but the recipe's."""
    parents = {"entropy": "IInt8EntropyCalibrator2", "minmax": "IInt8MinMaxCalibrator"}
    files = 0
    for cell in cells().values():
        found = by_hand(cell, cell.variant.model_bytes())
        if inapplicable_because(cell):
            assert found == ByHand()
            continue
        assert found.command
        assert any(found.command.split()[-1] in line for line in found.lines), cell.id
        assert bool(found.body) == ("trtexec" not in found.command), cell.id
        if not found.body:
            continue
        files += 1
        lines = found.file.splitlines()
        assert len(lines) <= MOST_LINES, cell.id
        assert lines[0].startswith(f"# {cell.target.traits.product} {cell.target.version}"), cell.id
        ast.parse(found.file, feature_version=(3, 8))
        named = {name for name in parents.values() if name in found.file}
        kind = cell.variant.recipe.calibrator
        weak = cell.target.engine == "tensorrt" and not cell.target.version.startswith("11.")
        assert named == ({parents[kind.kind]} if kind and weak else set()), cell.id
    assert files > 800


def test_what_somebody_allows_is_no_data_that_a_file_would_lack() -> None:
    known = cells()["depthwise_qdq.qdq-ort131"]
    for data, has in ((Data(max_rel=0.5), True), (Data(inputs="in.npz"), False)):
        variant = dataclasses.replace(known.variant, data=data)
        cell = dataclasses.replace(known, variant=variant)
        assert bool(by_hand(cell, variant.model_bytes()).body) is has


def test_recipes_that_differ_have_files_that_differ() -> None:
    """One model, three recipes: a reader must not run the one under the name of the other."""
    names = ("int8-entropy", "int8-minmax", "int8-mark-conv")
    found = [hand(f"conv_silu.{name}-trt86") for name in names]
    bodies = [
        "\n".join(one.body.replace(name, "X").splitlines()[1:])
        for one, name in zip(found, names, strict=True)
    ]
    assert len(set(bodies)) == 3
    assert not any("trtexec" in line for one in found for line in one.lines)
    faults = ("calibrator-host-pointer", "calibrator-float64", "calibrator-non-contiguous", "int8-native")
    others = {hand(f"instance_norm.{name}-trt103").body.replace(name, "X") for name in faults}
    assert len(others) == 4


def test_a_file_is_the_same_wherever_the_same_is_called() -> None:
    """So a variant has a few files, not one a target; the first line alone is the target's."""
    first, second = hand("conv_silu.int8-entropy-trt102"), hand("conv_silu.int8-entropy-trt1016")
    assert first.body == second.body
    assert first.head != second.head


def test_what_a_file_needs_is_in_its_first_line() -> None:
    assert hand("conv_silu.int8-entropy-trt86").head.endswith("nvcr.io/nvidia/tensorrt:23.06-py3")
    assert "tensorrt-9.2.0.5.linux" in hand("conv_silu.int8-entropy-trt92").head
    assert hand("conv_silu.qdq-rtx17").head.endswith("pip install tensorrt-rtx-cu12==1.7.1.116")
    assert "arm64" in hand("conv_silu.qdq-rtx17-arm64").head
    assert "GPU" in hand("conv_silu.qdq-ort131-cuda").head


def test_rtx_is_run_in_python_and_its_program_is_said_to_be_elsewhere() -> None:
    """No wheel holds a program."""
    found = hand("conv_silu.qdq-rtx17-sm75")
    assert found.lines[:3] == (
        "python3.11 -m venv venv",
        "venv/bin/python -m pip install tensorrt-rtx-cu12==1.7.1.116",
        "venv/bin/python conv_silu-qdq.py",
    )
    assert found.lines[3].startswith(
        "# its wheels hold no program; tensorrt_rtx is in NVIDIA's SDK: https://"
    )
    assert "trt.ComputeCapability.SM75" in found.body
    assert not any("SDK" in line for line in hand("conv_silu.qdq-ort131").lines)


def test_the_image_is_the_measured_one_and_untried_lines_say_so() -> None:
    found = hand("conv_silu.qdq-trt102", "sha256:abc")
    assert found.lines[0] == (
        'docker run --rm --gpus all --platform linux/amd64 -v "$PWD:/work" -w /work '
        f"nvcr.io/nvidia/tensorrt:24.07-py3@sha256:abc {found.command}"
    )
    assert found.lines[1].startswith("# these lines were not tried")
    assert "@" not in hand("conv_silu.qdq-trt102").lines[0]
    jetson = hand("conv_silu.qdq-l4t86").lines[0]
    assert "--runtime nvidia" in jetson
    assert "/usr/src/tensorrt/bin/trtexec --onnx=conv_silu-qdq.onnx" in jetson


def test_no_image_is_made_up_for_a_tarball_or_for_the_plugin() -> None:
    """A line that cannot work is worse than none; of the plugin it says where it comes from."""
    assert hand("conv_silu.qdq-trt92").lines[0].startswith("trtexec --onnx")
    found = hand("q_plugin_dq.q-plugin-dq-int8-trt102")
    assert "--staticPlugins=/opt/compat/plugins/libcompat_identity.so" in found.lines[0]
    assert any("compiles docker/plugin" in line for line in found.lines)
    strong = hand("q_plugin_dq.q-plugin-dq-int8-strong-trt92")
    assert "ctypes.CDLL('/opt/compat/plugins/libcompat_identity.so')" in strong.body
    assert any("compiles docker/plugin" in line for line in strong.lines)


def test_profiles_and_workspace_reach_the_file() -> None:
    """No case has them yet, and a model of somebody's may."""
    recipe = Recipe(
        Typing.WEAK,
        flags=("INT8",),
        calibrator=Calibrator("minmax", batches=2),
        profiles=(Profile("images", (1, 3, 64, 64), (2, 3, 64, 64), (4, 3, 64, 64)),),
        workspace_mib=7,
    )
    cell = cells()["conv_silu.int8-minmax-trt86"]
    cell = dataclasses.replace(cell, variant=dataclasses.replace(cell.variant, recipe=recipe))
    body = body_of(cell, "model.onnx", cell.variant.model_bytes())
    assert "profile.set_shape('images', (1, 3, 64, 64), (2, 3, 64, 64), (4, 3, 64, 64))" in body
    assert "config.set_calibration_profile(profile)" in body
    assert "trt.MemoryPoolType.WORKSPACE, 7 << 20" in body
    assert ".random((2, 3, 64, 64))" in body
    assert "scales=iter((1.0, 0.5,))" in body

"""The trtexec line that does by hand what a cell does, for a bug report: maintainers ask for it.

trtexec's options moved with the API: the precision flags are gone in 11, where every network is strongly typed.
Source: samples/common/sampleOptions.cpp of NVIDIA/TensorRT at the release tags.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.words import Engine, Typing

if TYPE_CHECKING:
    from harness.case import Recipe
    from harness.plan import Cell

_NO_WEAK_TYPING = Version("11.0")


def trtexec_lines(cell: Cell, model: str) -> list[str]:
    """Return the lines: how to save the model, the trtexec command, and what trtexec cannot express, as comments."""
    save = f"python -m harness show {shlex.quote(cell.id)} --save {shlex.quote(model)}"
    if cell.target.engine is Engine.ONNXRUNTIME:
        return [save]
    program = "tensorrt_rtx" if cell.target.engine is Engine.TENSORRT_RTX else "trtexec"
    options, unsaid = _options(cell.variant.recipe, cell)
    command = [
        program,
        f"--onnx={model}",
        *options,
        "--verbose",
        "--profilingVerbosity=detailed",
        "--dumpLayerInfo",
    ]
    return [save, shlex.join(command), *(f"# {text}" for text in unsaid)]


def _options(recipe: Recipe, cell: Cell) -> tuple[list[str], list[str]]:
    options: list[str] = []
    unsaid: list[str] = []
    weak = cell.target.engine is Engine.TENSORRT and Version(cell.target.version) < _NO_WEAK_TYPING
    if recipe.typing is Typing.STRONG and weak:
        options.append("--stronglyTyped")
    elif weak:
        options += [f"--{flag.lower()}" for flag in recipe.flags]
    elif recipe.typing is Typing.WEAK and recipe.flags:
        unsaid.append(f"this version has no {', '.join(recipe.flags)} flag")
    unsaid += _beyond_trtexec(recipe)
    if recipe.plugin:
        options.append("--staticPlugins=libcompat_plugin.so")
    for profile in recipe.profiles:
        for word, shape in (("min", profile.minimum), ("opt", profile.optimum), ("max", profile.maximum)):
            options.append(f"--{word}Shapes={profile.input}:{'x'.join(map(str, shape))}")
    options.append(f"--memPoolSize=workspace:{recipe.workspace_mib}M")
    if not cell.target.needs.gpu:
        options.append("--skipInference")
    return options, unsaid


def _beyond_trtexec(recipe: Recipe) -> list[str]:
    unsaid = []
    if recipe.calibrator:
        unsaid.append(
            f"trtexec calibrates with random data or --calib=CACHE; the cell uses a {recipe.calibrator.kind} calibrator"
        )
    for name, on in recipe.parser_flags:
        if name == "NATIVE_INSTANCENORM" and not on:
            unsaid.append("trtexec always sets NATIVE_INSTANCENORM; the cell clears it")
    if recipe.mark_outputs:
        unsaid.append(
            f"trtexec cannot mark outputs; use polygraphy run --trt-outputs {' '.join(recipe.mark_outputs)}"
        )
    return unsaid

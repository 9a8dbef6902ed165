"""The trtexec line that does by hand what a cell does, for a bug report: maintainers ask for it.

trtexec's options moved with the API: the precision flags are gone in 11, where every network is strongly typed.
Source: samples/common/sampleOptions.cpp and sampleEngines.cpp of NVIDIA/TensorRT at the release tags 8.5.2 to 11.1. The
counterpart of TensorRT for RTX is closed source; NVIDIA's documentation of it names the options that differ.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.words import Typing

if TYPE_CHECKING:
    from harness.case import Recipe
    from harness.plan import Cell

#: The one of TensorRT itself, whose options are known by version.
_TRTEXEC = "trtexec"
_NO_WEAK_TYPING = Version("11.0")
#: Where the image keeps this project's compiled plugin.
_PLUGIN = "/opt/compat/plugins/libcompat_identity.so"


def trtexec_lines(cell: Cell, model: str) -> list[str]:
    """Return the command on the saved `model`, then as comments what it cannot express; nothing without a program."""
    target = cell.target
    program = target.traits.program
    if program is None:
        return []
    options, unsaid = _options(cell.variant.recipe, cell)
    words = [program, f"--onnx={model}", *options]
    words += ["--verbose", "--profilingVerbosity=detailed", "--dumpLayerInfo"]
    return [shlex.join(words), *(f"# {text}" for text in unsaid)]


def model_file(cell: Cell) -> str:
    """Return the name that a cell's model is saved under: the report links to it, and the lines here name it."""
    return f"{cell.case.name}-{cell.variant.name}.onnx"


def docker_line(cell: Cell, model: str) -> str | None:
    """Return the `docker run` line of the trtexec command in NVIDIA's own image, with `model` in the current folder.

    None where that image has no trtexec (ONNX Runtime, TensorRT for RTX, a version that comes as a tarball or from the
    package index), and for a recipe with this project's plugin, which is only in the image that this project builds.
    The line is untried: no such image was at hand.
    """
    target, build = cell.target, cell.target.build
    if target.traits.program != _TRTEXEC or cell.variant.recipe.plugin:
        return None
    if build is not None and build.kind not in ("ngc", "l4t"):
        return None
    jetson = target.platform == "jetson"
    gpu = ["--runtime", "nvidia"] if jetson else ["--gpus", "all"]
    line = trtexec_lines(cell, model)[0]
    # The package of a Jetson's image puts it there, and not on the PATH.
    trtexec = line.replace("trtexec", "/usr/src/tensorrt/bin/trtexec", 1) if jetson else line
    run = shlex.join(["docker", "run", "--rm", *gpu, "--platform", target.docker_platform])
    return f'{run} -v "$PWD:/work" -w /work {shlex.quote(target.pull_reference)} {trtexec}'


def _options(recipe: Recipe, cell: Cell) -> tuple[list[str], list[str]]:
    target = cell.target
    options, unsaid = _precision(recipe, cell)
    for name, on in recipe.parser_flags:
        found = _parser_flag(name, cell, on=on)
        (options if found.startswith("--") else unsaid).append(found)
    if recipe.calibrator and "--int8" in options:
        unsaid.append(
            "trtexec calibrates with random data or --calib=CACHE, the cell with a calibrator of its own"
        )
    if recipe.mark_outputs:
        tensors = shlex.join(recipe.mark_outputs)
        unsaid.append(f"trtexec cannot mark outputs; polygraphy run --trt-outputs {tensors} can")
    if recipe.plugin and target.traits.program == _TRTEXEC:
        old = Version(target.version) < Version("8.6")
        options.append(f"{'--plugins' if old else '--staticPlugins'}={_PLUGIN}")
    for profile in recipe.profiles:
        for word, shape in (("min", profile.minimum), ("opt", profile.optimum), ("max", profile.maximum)):
            options.append(f"--{word}Shapes={profile.input}:{'x'.join(map(str, shape))}")
    if recipe.workspace_mib is not None:
        options.append(f"--memPoolSize=workspace:{recipe.workspace_mib}M")
    if target.compute_capability:
        options.append(f"--computeCapabilities={target.compute_capability.replace('.', '')}")
    if not target.needs.gpu:
        options.append("--skipInference")
    return [option for option in options if option], unsaid


def _precision(recipe: Recipe, cell: Cell) -> tuple[list[str], list[str]]:
    version = Version(cell.target.version)
    if cell.target.traits.program != _TRTEXEC or version >= _NO_WEAK_TYPING:
        gone = recipe.typing is Typing.WEAK and recipe.flags
        return [], [f"this version has no {', '.join(recipe.flags)} flag"] if gone else []
    if recipe.typing is not Typing.STRONG:
        return [f"--{flag.lower()}" for flag in recipe.flags], []
    if version < Version("10.0"):
        return [], ["this trtexec has no --stronglyTyped"]
    return ["--stronglyTyped"], []


def _parser_flag(name: str, cell: Cell, *, on: bool) -> str:
    """Return trtexec's option for a parser flag, or else a sentence on what it does instead."""
    version = Version(cell.target.version)
    wanted = f"the cell has {name} {'on' if on else 'off'}"
    if name != "NATIVE_INSTANCENORM":
        return f"{wanted}, for which trtexec has no option"
    if cell.target.traits.program != _TRTEXEC:
        return f"{wanted}; parsers have it on since TensorRT 10"
    if version >= Version("10.0"):
        return f"{wanted}, as is the default" if on else "--pluginInstanceNorm"
    if not on:
        return f"{wanted}, as is the default"
    if version >= Version("9.0"):
        return "--nativeInstanceNorm"
    return f"{wanted}, for which this trtexec has no option"

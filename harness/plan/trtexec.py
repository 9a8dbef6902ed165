"""The trtexec line that does by hand what a cell does, where trtexec does the same thing: maintainers ask for it.

trtexec's options moved with the API: the precision flags are gone in 11, where every network is strongly typed.
Source: samples/common/sampleOptions.cpp and sampleEngines.cpp of NVIDIA/TensorRT at the release tags 8.5.2 to 11.1.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.words import Typing

if TYPE_CHECKING:
    from harness.case import Recipe
    from harness.matrix import Target
    from harness.plan.cells import Cell

_NO_WEAK_TYPING = Version("11.0")
_STRONG_TYPING = Version("10.0")
#: Where the project's image keeps its compiled plugin.
PLUGIN = "/opt/compat/plugins/libcompat_identity.so"
#: The package of a Jetson's image, and JetPack, put it there, and not on the PATH.
_ON_JETSON = "/usr/src/tensorrt/bin/"
_WORDS = ("--verbose", "--profilingVerbosity=detailed", "--dumpLayerInfo")


def trtexec_line(cell: Cell, model: str, *, quantised: bool) -> str | None:
    """Return the command on the saved `model`, None where there is no trtexec or where it would do something else.

    `quantised`: there are Q/DQ nodes in the model. Without them and with INT8 trtexec calibrates with random data, and
    with them it sets no calibrator: it never uses the one of a recipe.
    """
    target, recipe = cell.target, cell.variant.recipe
    if target.traits.program is None or recipe.calibrator or recipe.mark_outputs:
        return None
    precision = _precision(recipe, target)
    norm = _parser_flags(recipe, target)
    if precision is None or norm is None or ("--int8" in precision and not quantised):
        return None
    program = f"{_ON_JETSON if target.platform == 'jetson' else ''}{target.traits.program}"
    return shlex.join([program, f"--onnx={model}", *precision, *norm, *_rest(recipe, target), *_WORDS])


def _precision(recipe: Recipe, target: Target) -> list[str] | None:
    version = Version(target.version)
    if version >= _NO_WEAK_TYPING:
        # Without its flags it would build another engine, where the API has no such flags and builds none.
        return None if recipe.typing is Typing.WEAK else []
    if recipe.typing is Typing.STRONG:
        return ["--stronglyTyped"] if version >= _STRONG_TYPING else None
    known = {"INT8", "FP16"}
    return [f"--{flag.lower()}" for flag in recipe.flags] if known.issuperset(recipe.flags) else None


def _parser_flags(recipe: Recipe, target: Target) -> list[str] | None:
    found = [_parser_flag(name, Version(target.version), on=on) for name, on in recipe.parser_flags]
    options = [option for option in found if option is not None]
    return [option for option in options if option] if len(options) == len(found) else None


def _parser_flag(name: str, version: Version, *, on: bool) -> str | None:
    """Return trtexec's option for a parser flag, "" where it is the default, None where trtexec has none.

    8.5 knows no such flag: the recipe fails there, and trtexec without an option does not.
    """
    if name != "NATIVE_INSTANCENORM" or version < Version("8.6"):
        return None
    if version >= _STRONG_TYPING:
        return "" if on else "--pluginInstanceNorm"
    if not on:
        return ""
    return "--nativeInstanceNorm" if version >= Version("9.0") else None


def _rest(recipe: Recipe, target: Target) -> list[str]:
    options = []
    if recipe.plugin:
        old = Version(target.version) < Version("8.6")
        options.append(f"{'--plugins' if old else '--staticPlugins'}={PLUGIN}")
    for library in recipe.libraries:
        old = Version(target.version) < Version("8.6")
        options.append(f"{'--plugins' if old else '--staticPlugins'}=./{library.name}")
    for profile in recipe.profiles:
        for word, shape in (("min", profile.minimum), ("opt", profile.optimum), ("max", profile.maximum)):
            options.append(f"--{word}Shapes={profile.input}:{'x'.join(map(str, shape))}")
    if recipe.workspace_mib is not None:
        options.append(f"--memPoolSize=workspace:{recipe.workspace_mib}M")
    return options

"""Which names of the TensorRT API a recipe can ask for, and which versions have them: for planning, without an engine.

What a version really has is asked by the agent, at the version. This table holds the names that recipes can need and no
more; tests/tools/test_recipes_page.py holds it against the agent's own check, every measured cell, and
docs/capabilities.md, which is written from the real bindings of each version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from harness.words import Engine, Typing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.case import Recipe

#: What no version of an engine has.
_NEVER = "<0"
#: Version specifiers by name, for TensorRT and for TensorRT for RTX.
NAMES: Mapping[str, tuple[str, str]] = {
    "NetworkDefinitionCreationFlag.STRONGLY_TYPED": (">=9", ""),
    "BuilderFlag.FP16": ("<11", "<1.5"),
    "BuilderFlag.INT8": ("<11", "<1.5"),
    "BuilderFlag.BF16": (">=9,<11", "<1.5"),
    "BuilderFlag.FP8": (">=8.6,<11", "<1.5"),
    "IBuilderConfig.int8_calibrator": ("<11", _NEVER),
    "IBuilderConfig.set_calibration_profile": ("<11", _NEVER),
    "OnnxParserFlag.NATIVE_INSTANCENORM": (">=8.6", ""),
}


def has(name: str, engine: Engine, version: str) -> bool:
    """Tell whether a version of TensorRT or of TensorRT for RTX has a name; KeyError for one not in the table."""
    tensorrt, rtx = NAMES[name]
    specifier = rtx if engine is Engine.TENSORRT_RTX else tensorrt
    return SpecifierSet(specifier).contains(version, prereleases=True)


def missing_api(recipe: Recipe, engine: Engine, version: str) -> str | None:
    """Return the first name that a recipe needs and the version lacks, in the agent's order, or None."""
    return next((name for name in _needed(recipe) if not has(name, engine, version)), None)


def _needed(recipe: Recipe) -> Iterator[str]:
    if recipe.typing is Typing.STRONG:
        yield "NetworkDefinitionCreationFlag.STRONGLY_TYPED"
    if recipe.typing is Typing.WEAK:
        yield from (f"BuilderFlag.{flag}" for flag in recipe.flags)
    if recipe.calibrator:
        yield "IBuilderConfig.int8_calibrator"
        if recipe.profiles:
            yield "IBuilderConfig.set_calibration_profile"
    yield from (f"OnnxParserFlag.{name}" for name, _ in recipe.parser_flags)

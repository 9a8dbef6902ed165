"""The lines that do a cell by hand, for a bug report: trtexec if it can do the same, else repro.py with a recipe.

trtexec's options moved with the API: the precision flags are gone in 11, which types every network strongly.
Source: samples/common/sampleOptions.cpp and sampleEngines.cpp of NVIDIA/TensorRT at the release tags 8.5.2 to 11.1.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

import onnx
from packaging.version import Version

from harness.case import Profile, Recipe
from harness.case.model import NetworkInput, network_inputs
from harness.matrix import Target
from harness.plan import Cell
from harness.words import Typing

#: The program that builds or runs a model by its recipe, without this project.
REPRO = Path(__file__).with_name("repro.py")
#: The path of the compiled plugin in the project's image.
PLUGIN = "/opt/compat/plugins/libcompat_identity.so"

_UNTRIED = "# these lines were not tried here: no such image and no such GPU was at hand"
_COMPILED = (
    "# no image of NVIDIA's has the plugin: building the project's image compiles docker/plugin to that path"
)
#: The source of the trtexec of TensorRT for RTX, which no wheel holds.
_SDK = "# its wheels hold no program; tensorrt_rtx is in NVIDIA's SDK: {0}"
_SDK_PAGE = "https://docs.nvidia.com/deeplearning/tensorrt-rtx/latest/installing-tensorrt-rtx/installing.html"
#: Images of the vendor's own that have trtexec and the bindings in them.
_VENDORS = ("ngc", "l4t")
_STRONG_TYPING = Version("10.0")
_STATIC_PLUGINS = Version("8.6")
#: The package of a Jetson's image, and JetPack, put it there, and not on the PATH.
_ON_JETSON = "/usr/src/tensorrt/bin/"
_WORDS = ("--verbose", "--profilingVerbosity=detailed", "--dumpLayerInfo")


@dataclass(frozen=True)
class ByHand:
    """How to do a cell by hand, in the folder of its model.

    lines: to be pasted together; those that begin with # are remarks.
    command: the last line that is no remark, without the environment that it is called in.

    Everything is empty for a cell that does not apply to its target.
    """

    lines: tuple[str, ...] = ()
    command: str = ""
    asked: Mapping[str, Any] | None = None

    @property
    def recipe(self) -> tuple[str, str] | None:
        """Return the name of the recipe that repro.py reads, and its text; None if trtexec does the same."""
        return (
            (_recipe_file(self.asked["model"]), json.dumps(self.asked, indent=1) + "\n")
            if self.asked
            else None
        )

    @property
    def files(self) -> dict[str, str]:
        """Return the texts, by name, that the command needs beside the model."""
        program = {REPRO.name: REPRO.read_text(encoding="utf-8")}
        return program | dict([self.recipe]) if self.recipe else {}


def by_hand(cell: Cell, data: bytes, digest: str = "", model: str = "") -> ByHand:
    """Return the lines that do by hand the same as a cell does with the model `data`.

    digest: that of the image in which the cell was measured, or of its base; "" without an image.
    model: the name of the file, by default `model_file`.
    """
    if cell.inapplicable is not None:
        return ByHand()
    model = model or model_file(cell)
    command = trtexec_line(cell, model, quantised=_quantised(data))
    if command is not None:
        return ByHand(_lines(cell, command, digest), command)
    asked = asked_of(cell, model, data)
    if asked is None:
        return ByHand()
    command = shlex.join(["python3", REPRO.name, _recipe_file(model)])
    return ByHand(_lines(cell, command, digest), command, asked)


def model_file(cell: Cell) -> str:
    """Return the name that a cell's model is saved under: the report links to it, and the lines here name it."""
    return f"{cell.case.name}-{cell.variant.name}.onnx"


@lru_cache(maxsize=1)
def _recipe_file(model: str) -> str:
    return str(PurePath(model).with_suffix(".json"))


def asked_of(cell: Cell, model: str, data: bytes) -> dict[str, Any] | None:
    """Return a cell's recipe as repro.py reads it, None if repro.py cannot follow it.

    It cannot follow arrays of the user's own and an input that is no tensor, which no engine takes.
    """
    variant, target = cell.variant, cell.target
    inputs = _inputs(data, variant.recipe.profiles)
    if variant.data and (variant.data.inputs or variant.data.expected or variant.data.calibration):
        return None
    if any(one.elem_type == onnx.TensorProto.UNDEFINED for one in inputs):
        return None
    libraries = [f"./{library.name}" for library in variant.recipe.libraries]
    return {
        "cell": cell.id,
        "needs": _needs(target),
        "model": model,
        "module": target.module,
        "provider": target.provider,
        "compute_capability": target.compute_capability,
        "libraries": [*([PLUGIN] if variant.recipe.plugin else []), *libraries],
        "inputs": [
            {
                "name": one.name,
                "shape": one.shape,
                "type": onnx.helper.tensor_dtype_to_np_dtype(one.elem_type).name,
            }
            for one in inputs
        ],
        "recipe": _plain(variant.recipe),
    }


#: The cells of a variant follow one another.
_plain = lru_cache(maxsize=1)(Recipe.as_dict)


@lru_cache(maxsize=1)
def _quantised(data: bytes) -> bool:
    return b"DequantizeLinear" in data


@lru_cache(maxsize=1)
def _inputs(data: bytes, profiles: tuple[Profile, ...]) -> tuple[NetworkInput, ...]:
    """Return a model's inputs; the cells of a variant ask for the same ones, one after the other."""
    return network_inputs(onnx.load_model_from_string(data), profiles)


def _needs(target: Target) -> str:
    name = f"{target.traits.product} {target.version}"
    if target.traits.needs_gpu:
        where = target.pull_reference
        if target.build is not None and target.build.kind == "tarball":
            where = dict(target.build.args).get("TENSORRT_URL", where)
        return f"{name} with its Python bindings and numpy, and a GPU: {where}"
    machine = " on Linux for arm64" if target.docker_platform == "linux/arm64" else ""
    gpu = ", and an NVIDIA GPU" if target.provider == "cuda" else ""
    return f"{name}{machine}{gpu}: pip install {' '.join(target.packages)}"


def started_in(target: Target, image: str) -> str:
    """Return the start of the line that runs a command in an image, with the current folder and its GPU."""
    gpu = []
    if target.platform == "jetson":
        gpu = ["--runtime", "nvidia"]
    elif target.needs.gpu:
        gpu = ["--gpus", "all"]
    run = shlex.join(["docker", "run", "--rm", *gpu, "--platform", target.docker_platform])
    return f'{run} -v "$PWD:/work" -w /work {shlex.quote(image)}'


def _lines(cell: Cell, command: str, digest: str) -> tuple[str, ...]:
    target = cell.target
    if not target.traits.needs_gpu:
        python = "venv/bin/python"
        packages = shlex.join([python, "-m", "pip", "install", *target.packages])
        made = (f"python{target.python} -m venv venv", packages, command.replace("python3", python, 1))
        return (*made, _SDK.format(_SDK_PAGE)) if target.traits.for_generation else made
    if cell.variant.recipe.plugin:
        return (command, _COMPILED, _UNTRIED)
    image = _published_image(target, digest)
    return (started_in(target, image) + f" {command}", _UNTRIED) if image else (command, _UNTRIED)


def _published_image(target: Target, digest: str) -> str:
    """Return the vendor's own image, as it was measured if it was; "" for a tarball."""
    if target.build is not None and target.build.kind not in _VENDORS:
        return ""
    reference = target.pull_reference
    return f"{reference}@{digest}" if digest and "@" not in reference else reference


def trtexec_line(cell: Cell, model: str, *, quantised: bool) -> str | None:
    """Return the command on the saved `model`, None if trtexec is missing or would do something else.

    `quantised`: the model has Q/DQ nodes. Without them trtexec calibrates INT8 with random data, and with them it sets
    no calibrator: it never uses a recipe's.
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
    if target.strong_alone:
        # Without the recipe's flags trtexec would build another engine, whereas the API lacks them and fails.
        return None if recipe.typing is Typing.WEAK else []
    if recipe.typing is Typing.STRONG:
        return ["--stronglyTyped"] if Version(target.version) >= _STRONG_TYPING else None
    known = {"INT8", "FP16"}
    return [f"--{flag.lower()}" for flag in recipe.flags] if known.issuperset(recipe.flags) else None


def _parser_flags(recipe: Recipe, target: Target) -> list[str] | None:
    found = [_parser_flag(name, Version(target.version), on=on) for name, on in recipe.parser_flags]
    options = [option for option in found if option is not None]
    return [option for option in options if option] if len(options) == len(found) else None


def _parser_flag(name: str, version: Version, *, on: bool) -> str | None:
    """Return trtexec's option for a parser flag, "" for the default, None for a missing option.

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
    plugins = "--plugins" if Version(target.version) < _STATIC_PLUGINS else "--staticPlugins"
    paths = [*([PLUGIN] if recipe.plugin else []), *(f"./{library.name}" for library in recipe.libraries)]
    options = [f"{plugins}={path}" for path in paths]
    for profile in recipe.profiles:
        for word, shape in (("min", profile.minimum), ("opt", profile.optimum), ("max", profile.maximum)):
            options.append(f"--{word}Shapes={profile.input}:{'x'.join(map(str, shape))}")
    if recipe.workspace_mib is not None:
        options.append(f"--memPoolSize=workspace:{recipe.workspace_mib}M")
    return options

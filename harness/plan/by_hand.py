"""What a person pastes to do a cell by hand, for a bug report: trtexec where that does the same, else a Python file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from harness.plan.inapplicable import inapplicable_because
from harness.plan.script import body_of, head_of
from harness.plan.trtexec import trtexec_line

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.plan.cells import Cell

_UNTRIED = "# these lines were not tried here: no such image and no such GPU was at hand"
_COMPILED = (
    "# no image of NVIDIA's has the plugin: building the project's image compiles docker/plugin to that path"
)
#: Where TensorRT for RTX has its counterpart of trtexec, which no wheel holds.
_SDK = "# its wheels hold no program; tensorrt_rtx is in NVIDIA's SDK: {0}"
_SDK_PAGE = "https://docs.nvidia.com/deeplearning/tensorrt-rtx/latest/installing-tensorrt-rtx/installing.html"
#: What a pull of the vendor's own image has trtexec and the bindings in.
_VENDORS = ("ngc", "l4t")


@dataclass(frozen=True)
class ByHand:
    """How to do a cell by hand, in the folder of its model.

    `lines` are to be pasted together, those that begin with # are remarks; the last line that does not is `command`,
    but for the environment that it is called in. Where it runs a Python file, that is `head` and `body`: what is needed
    of this target, and the rest. All is empty for a cell that means nothing on its target.
    """

    lines: tuple[str, ...] = ()
    command: str = ""
    head: str = ""
    body: str = ""

    @property
    def file(self) -> str:
        """Return the text of the Python file, "" where there is none."""
        return f"{self.head}\n{self.body}" if self.body else ""


def by_hand(cell: Cell, data: bytes, digest: str = "", model: str = "") -> ByHand:
    """Return what does by hand what a cell does with the model `data`.

    `digest` is that of the image that the cell was measured in, or that this was built on, "" where none was; `model`
    the name of the file, by default `model_file`.
    """
    if inapplicable_because(cell) is not None:
        return ByHand()
    target, model = cell.target, model or model_file(cell)
    line = trtexec_line(cell, model, quantised=b"DequantizeLinear" in data)
    if line is not None:
        return ByHand(_lines(cell, line, digest), line)
    if cell.variant.data is not None and cell.variant.data.has_files:
        return ByHand()
    body = body_of(cell, model, data)
    if not body:
        return ByHand()
    command = shlex.join(["python3", script_file(model)])
    return ByHand(_lines(cell, command, digest), command, head_of(target), body)


def model_file(cell: Cell) -> str:
    """Return the name that a cell's model is saved under: the report links to it, and the lines here name it."""
    return f"{cell.case.name}-{cell.variant.name}.onnx"


def script_file(model: str) -> str:
    """Return the name of the Python file beside a model."""
    return str(PurePath(model).with_suffix(".py"))


def started_in(target: Target, image: str) -> str:
    """Return the start of the line that runs a command in an image, with the current folder and what GPU it needs."""
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
    """Return the vendor's own image, as it was measured if it was; "" for what comes as a tarball."""
    if target.build is not None and target.build.kind not in _VENDORS:
        return ""
    reference = target.pull_reference
    return f"{reference}@{digest}" if digest and "@" not in reference else reference

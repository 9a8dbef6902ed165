"""TensorRT's packages as wheels: what is asked of the package index instead of source packages that cannot be built.

`tensorrt` and `tensorrt-cu12` are source packages that call `pip` while they are built, which is not there in the
environment that uv builds in (https://github.com/astral-sh/uv/issues/6250). All they hold is the module `tensorrt`, of
two lines; the libraries and bindings that they fetch are wheels, the libraries on NVIDIA's own index alone.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Where TensorRT's libraries are, instead of NVIDIA's own package index: a mirror's address.
INDEX_VARIABLE = "TRT_COMPAT_NVIDIA_INDEX"
_INDEX = "https://pypi.nvidia.com"
_SOURCE = re.compile(r"(tensorrt(?:-cu\d+)?)==(.+)")
_MODULE = "tensorrt"
#: The whole of that module in NVIDIA's packages; newer ones have `tensorrt.plugin` besides, which no cell uses.
_LINES = ("from tensorrt_bindings import *", "from tensorrt_bindings import __version__")


@dataclass(frozen=True)
class Wheels:
    """What `uv pip install` is asked for: `options`, then `pins`; `shim` says that the module is to be written too."""

    options: tuple[str, ...]
    pins: tuple[str, ...]
    shim: bool = False


def wheels_of(packages: Sequence[str], index: str = _INDEX) -> Wheels:
    """Return what to ask for instead of `packages`: the same where none of them is a source package of TensorRT."""
    pins: list[str] = []
    named: list[str] = []
    for pin in packages:
        source = _SOURCE.fullmatch(pin)
        if source is None:
            pins.append(pin)
            continue
        name, version = source.groups()
        # The libraries' packages of the same name on the public index are stubs that fetch the wheel while they are
        # built: those are not wanted either.
        named += (parts := [f"{name}-libs", f"{name}-bindings"])
        pins += [f"{part}=={version}" for part in parts]
    if not named:
        return Wheels((), tuple(pins))
    only = [word for name in named for word in ("--only-binary", name)]
    return Wheels(("--extra-index-url", index, *only), tuple(pins), shim=True)


def asked_for(packages: Sequence[str]) -> Wheels:
    """Return the same with the index that this machine is set up for."""
    return wheels_of(packages, os.environ.get(INDEX_VARIABLE) or _INDEX)


def write_shim(site_packages: Path) -> None:
    """Write the module `tensorrt` beside its bindings."""
    folder = site_packages / _MODULE
    folder.mkdir()
    (folder / "__init__.py").write_text("\n".join(_LINES) + "\n", encoding="ascii")


def shim_line(site_packages: Path) -> str:
    """Return the line of a shell that writes it."""
    folder = site_packages / _MODULE
    written = shlex.join(["printf", "%s\\n", *_LINES])
    return f"mkdir -p {shlex.quote(str(folder))} && {written} > {shlex.quote(str(folder / '__init__.py'))}"

"""Engines from the package index: a virtual environment for this machine, or a folder for any other.

`tensorrt` and `tensorrt-cu12` are source packages that call `pip` while they are built, which is not there in the
environment that uv builds in (https://github.com/astral-sh/uv/issues/6250). All they hold is the module `tensorrt`, of
two lines; the libraries and bindings that they fetch are wheels, the libraries on NVIDIA's own index alone.

`uv` resolves and downloads on the host, with the user's own configuration (uv.toml, UV_* variables, certificates), for
whatever platform the target is. So an image needs no network while it is built, holds no host's certificates or
mirrors, and an arm64 image is put together on an amd64 machine without emulating anything.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from harness.errors import InfraError
from harness.matrix import Target
from harness.run.provision.cache import CACHE_VARIABLE, cache_dir, make_once
from harness.run.provision.model import NotMade, Unavailable, Unreachable
from harness.run.provision.requirements import architecture
from harness.run.transport import run_to_end

#: Bumped when the layout of a cached environment changes.
_LAYOUT = 1
#: The oldest C library that the base image may have; Debian 12 has 2.36, which NVIDIA's arm64 wheels need.
_WHEELS = {"amd64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_36"}
_TIMEOUT = 1800
_UV_LOCK = threading.Lock()
_PINS = "packages.json"
#: A mirror of TensorRT's libraries, instead of NVIDIA's own package index.
INDEX_VARIABLE = "TRT_COMPAT_NVIDIA_INDEX"
_INDEX = "https://pypi.nvidia.com"
_SOURCE = re.compile(r"(tensorrt(?:-cu\d+)?)==(.+)")
#: Published as source alone, without native code: a module that imports the bindings.
_RTX_SOURCE = re.compile(r"(tensorrt-rtx(?:-cu\d+)?)==.+")
_MODULE = "tensorrt"
#: The whole of that module in NVIDIA's packages; newer ones have `tensorrt.plugin` besides, which no cell uses.
_LINES = ("from tensorrt_bindings import *", "from tensorrt_bindings import __version__")

PYTHON = "bin/python"
#: The folder that the Dockerfile puts the packages into, and the line of a .pth file that makes Python find them there.
ENGINE_FOLDER = "/opt/engine"


@dataclass(frozen=True)
class Wheels:
    """The arguments of `uv pip install`: `options`, then `pins`; `shim` tells to write the module too."""

    options: tuple[str, ...]
    pins: tuple[str, ...]
    shim: bool = False


def wheels_of(packages: Sequence[str]) -> Wheels:
    """Return the wheels in place of `packages`, which stay as they are without a source package of TensorRT.

    The index is the one that this machine is set up for.
    """
    pins: list[str] = []
    named: list[str] = []
    for pin in packages:
        if source := _SOURCE.fullmatch(pin):
            # The libraries' packages of the same name on the public index are stubs that fetch the wheel while they
            # are built: those are not wanted either.
            parts = [f"{source[1]}-libs", f"{source[1]}-bindings"]
            named += parts
            pins += [f"{part}=={source[2]}" for part in parts]
        else:
            pins.append(pin)
    if not named:
        return Wheels((), tuple(pins))
    index = os.environ.get(INDEX_VARIABLE) or _INDEX
    only = [word for name in named for word in ("--only-binary", name)]
    return Wheels(("--extra-index-url", index, *only), tuple(pins), shim=True)


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


def venv(target: Target, *, allow_build: bool = True) -> tuple[Path, tuple[str, ...]]:
    """Return the Python of the target's virtual environment, made if missing, and the pins in it.

    Raises NotMade if it would have to be made and that is not allowed.
    """
    root = venv_folder(target)
    _make_once(root, lambda partial: _make_venv(target, partial), PYTHON, allow_build=allow_build)
    return root / PYTHON, _pins(root)


def venv_folder(target: Target) -> Path:
    """Return the place of the target's virtual environment, made or not."""
    return cache_dir() / "venvs" / key(target)


def site(target: Target, *, allow_build: bool = True) -> tuple[Path, tuple[str, ...]]:
    """Return a build context with the packages for the target's platform, made if missing, and the pins.

    Raises as `venv` does.
    """
    root = cache_dir() / "sites" / key(target)
    _make_once(root, lambda partial: _make_site(target, partial), _PINS, allow_build=allow_build)
    return root, _pins(root)


def by_hand(target: Target, kind: str) -> Path:
    """Return the folder, relative to the repository's root, that lines to paste make their environment in.

    It is not the cache: an environment half made there by hand would be taken for finished.
    """
    return Path("build", target.name, kind)


def key(target: Target) -> str:
    """Return the name of the environment: targets with the same platform, Python and pins share one."""
    made_of = [_LAYOUT, target.docker_platform, target.python, sorted(target.packages)]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]


def venv_commands(target: Target, folder: Path) -> tuple[list[str], ...]:
    """Return the arguments of each call of `uv` that makes the target's virtual environment in `folder`."""
    # Relocatable, as it is made under another name than it is used by.
    create = ["venv", "--relocatable", "--allow-existing", "--python", target.python, str(folder)]
    wheels = wheels_of(target.packages)
    python = str(folder / "bin" / "python")
    return create, ["pip", "install", "--python", python, *wheels.options, *wheels.pins]


def venv_shim(target: Target, folder: Path) -> tuple[str, ...]:
    """Return the line of a shell that writes the module that no wheel of the target holds, if there is one."""
    site_packages = folder / "lib" / f"python{target.python}" / "site-packages"
    return (shim_line(site_packages),) if wheels_of(target.packages).shim else ()


def site_command(target: Target, folder: str) -> list[str]:
    """Return the arguments of `uv` that fill `folder` with the target's packages for its platform."""
    wheels = _WHEELS[architecture(target)]
    options = ["--target", folder, "--python-platform", wheels, "--python-version", target.python]
    asked = wheels_of(target.packages)
    # Native code that is compiled here would be for this machine.
    options += ["--only-binary", ":all:"]
    for source in filter(None, map(_RTX_SOURCE.fullmatch, asked.pins)):
        options += ["--no-binary", source[1]]
    return ["pip", "install", *options, *asked.options, *asked.pins]


def _make_venv(target: Target, partial: Path) -> None:
    for arguments in venv_commands(target, partial):
        _uv(target, arguments)
    _finish(target, partial, next((partial / "lib").glob("python*/site-packages")))


def _make_site(target: Target, partial: Path) -> None:
    partial.mkdir(parents=True)
    folder = partial / "site"
    command = site_command(target, str(folder))
    # uv wants some interpreter to ask; that of the harness is there.
    _uv(target, [*command[:2], "--python", sys.executable, *command[2:]])
    (partial / "engine.pth").write_text(ENGINE_FOLDER + "\n", encoding="ascii")
    _finish(target, partial, folder)


def _finish(target: Target, root: Path, site_packages: Path) -> None:
    if wheels_of(target.packages).shim:
        write_shim(site_packages)
    found = importlib.metadata.distributions(path=[str(site_packages)])
    pins = sorted(f"{canonicalize_name(each.metadata['Name'])}=={each.version}" for each in found)
    (root / _PINS).write_text(json.dumps(pins, indent=1) + "\n", encoding="utf-8")


def _uv_program() -> str:
    """Return uv's path; it asks sysconfig, which two threads must not be the first to use at once."""
    import uv  # noqa: PLC0415  (a host whose engines are installed does without)

    with _UV_LOCK:
        try:
            return uv.find_uv_bin()
        except FileNotFoundError as error:
            raise InfraError(f"the program uv is not where its package puts it: {error}") from error


def _uv_environment() -> dict[str, str]:
    """Return the environment for uv: it keeps its own files in a chosen cache folder of this project."""
    if not os.environ.get(CACHE_VARIABLE):
        return dict(os.environ)
    own = {"UV_CACHE_DIR": cache_dir() / "uv", "UV_PYTHON_INSTALL_DIR": cache_dir() / "python"}
    return {name: str(path) for name, path in own.items()} | dict(os.environ)


def _uv(target: Target, arguments: Sequence[str]) -> None:
    command = [_uv_program(), "--no-progress", "--color", "never", *arguments]
    done = run_to_end(command, _TIMEOUT, _uv_environment())
    if done.returncode == 0:
        return
    # The place of its search is not the reason of its failure.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Using Python ")]
    text = " ".join(" ".join(lines).split())[-600:]
    if "No space left on device" in text:
        raise InfraError(f"no space left for the packages of {target.name}: {text}")
    if arguments[0] == "venv":
        sentence = f"needs Python {target.python}, which cannot be had: {text}"
    else:
        sentence = f"needs {' '.join(target.packages)}, which cannot be installed: {text}"
    raise (Unavailable if _is_refusal(done.stderr) else Unreachable)(sentence)


def _is_refusal(text: str) -> bool:
    """Tell whether uv found that there is no such thing, rather than fail to look or to fetch it."""
    found_none = re.search(r"No solution found|No interpreter found|has no wheels with a matching", text)
    return bool(found_none) and "in the cache" not in text


def _make_once(root: Path, make: Callable[[Path], None], needed: str, *, allow_build: bool) -> None:
    """Make an environment, unless it is whole: the list of its pins is written last, and is its stamp."""

    def whole(folder: Path) -> bool:
        try:
            _pins(folder)
        except (OSError, ValueError, TypeError):
            return False
        return (folder / needed).exists()

    if not allow_build and not whole(root):
        raise NotMade(f"needs {root} to be made, which was not allowed")
    make_once(root, make, whole=whole)


def _pins(root: Path) -> tuple[str, ...]:
    pins = json.loads((root / _PINS).read_text(encoding="utf-8"))
    if not isinstance(pins, list) or not all(isinstance(pin, str) for pin in pins):
        raise TypeError(f"{root / _PINS}: no list of pins")
    return tuple(pins)

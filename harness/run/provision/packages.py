"""Engines from the package index: a virtual environment for this machine, or a folder for any other.

`uv` resolves and downloads on the host, with the user's own configuration (uv.toml, UV_* variables, certificates), for
whatever platform the target is. So an image needs no network while it is built, holds no host's certificates or
mirrors, and an arm64 image is put together on an amd64 machine without emulating anything.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from harness.errors import InfraError
from harness.run.provision import manifest
from harness.run.provision.cache import CACHE_VARIABLE, cache_dir, make_once
from harness.run.provision.model import NotMade, Unavailable, Unreachable
from harness.run.provision.requirements import architecture
from harness.run.provision.wheels import asked_for, shim_line, write_shim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.matrix import Target

#: Bumped when the layout of a cached environment changes.
_LAYOUT = 1
#: What the C library of the base image must be at least; Debian 12 has 2.36, which NVIDIA's arm64 wheels need.
_WHEELS = {"amd64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_36"}
_OTHER_MACHINE = {"amd64": "aarch64", "arm64": "x86_64"}
_TIMEOUT = 1800
_UV_LOCK = threading.Lock()
_PINS = "packages.json"
PYTHON = "bin/python"
#: Where the Dockerfile puts the packages, and the line of a .pth file that makes Python find them there.
ENGINE_FOLDER = "/opt/engine"


def venv(target: Target, *, allow_build: bool = True) -> tuple[Path, tuple[str, ...]]:
    """Return the Python of the target's virtual environment, made if missing or damaged, and the pins in it.

    Raises NotMade where it would have to be made and that is not allowed.
    """
    root = venv_folder(target)
    damaged = damage(target)
    if not allow_build:
        _refuse_unmade(root, PYTHON)

    def make(partial: Path) -> None:
        _make_venv(target, partial)
        if damaged:
            _refuse_cached_damage(target, partial)

    _make_once(root, make, PYTHON)
    return root / PYTHON, _pins(root)


def damage(target: Target) -> str:
    """Return what is wrong with the target's virtual environment, "" where it is whole or not there yet."""
    root = venv_folder(target)
    return _damage(root, PYTHON) if os.path.lexists(root) else ""


def venv_folder(target: Target) -> Path:
    """Return where the target's virtual environment is, or will be."""
    return cache_dir() / "venvs" / key(target)


def site(target: Target, *, allow_build: bool = True) -> tuple[Path, tuple[str, ...]]:
    """Return a build context with the packages for the target's platform, made if missing, and the pins.

    Raises as `venv` does.
    """
    root = cache_dir() / "sites" / key(target)
    if not allow_build:
        _refuse_unmade(root, _PINS)
    _make_once(root, lambda partial: _make_site(target, partial), _PINS)
    return root, _pins(root)


def by_hand(target: Target, what: str) -> Path:
    """Return the folder, relative to the repository's root, that lines to paste make their environment in.

    It is not the cache: what is half made there by hand would be taken for finished.
    """
    return Path("build", target.name, what)


def key(target: Target) -> str:
    """Return what names the environment: targets with the same platform, Python and pins share one."""
    what = [_LAYOUT, target.docker_platform, target.python, sorted(target.packages)]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


def venv_commands(target: Target, folder: Path) -> tuple[list[str], ...]:
    """Return the arguments of each call of `uv` that makes the target's virtual environment in `folder`."""
    # Relocatable, as it is made under another name than it is used by.
    create = ["venv", "--relocatable", "--allow-existing", "--python", target.python, str(folder)]
    wheels = asked_for(target.packages)
    python = str(folder / "bin" / "python")
    return create, ["pip", "install", "--python", python, *wheels.options, *wheels.pins]


def venv_shim(target: Target, folder: Path) -> tuple[str, ...]:
    """Return the line of a shell that writes what no wheel of the target holds, if there is such a thing."""
    site_packages = folder / "lib" / f"python{target.python}" / "site-packages"
    return (shim_line(site_packages),) if asked_for(target.packages).shim else ()


def site_command(target: Target, folder: str) -> list[str]:
    """Return the arguments of `uv` that fill `folder` with the target's packages for its platform."""
    wheels = _WHEELS[architecture(target)]
    options = ["--target", folder, "--python-platform", wheels, "--python-version", target.python]
    asked = asked_for(target.packages)
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
    _refuse_foreign(target, folder)
    _finish(target, partial, folder)


def _finish(target: Target, root: Path, site_packages: Path) -> None:
    if asked_for(target.packages).shim:
        write_shim(site_packages)
    _write_pins(root, site_packages)


def _refuse_foreign(target: Target, folder: Path) -> None:
    """Refuse native code that was compiled from source for this machine where another architecture is wanted."""
    other = _OTHER_MACHINE[architecture(target)]
    for wheel in sorted(folder.glob("*.dist-info/WHEEL")):
        tags = [line for line in wheel.read_text(encoding="utf-8").splitlines() if line.startswith("Tag:")]
        if tags and all(tag.endswith(other) for tag in tags):
            name = wheel.parent.name.removesuffix(".dist-info")
            raise Unavailable(
                f"needs {name} for {target.docker_platform}; the package index has only its source"
            )


@functools.cache
def _find_uv() -> str:
    import uv  # noqa: PLC0415  (a host whose engines are installed already needs none)

    return uv.find_uv_bin()


def _uv_program() -> str:
    """Return uv's path, looked up once: it asks sysconfig, which two threads must not be the first to use at once."""
    with _UV_LOCK:
        try:
            return _find_uv()
        except FileNotFoundError as error:
            raise InfraError(f"the program uv is not where its package puts it: {error}") from error


def _uv_environment() -> dict[str, str]:
    """Return the environment for uv: where this project's cache folder was chosen, uv keeps its own things in it."""
    if not os.environ.get(CACHE_VARIABLE):
        return dict(os.environ)
    own = {"UV_CACHE_DIR": cache_dir() / "uv", "UV_PYTHON_INSTALL_DIR": cache_dir() / "python"}
    return {name: str(path) for name, path in own.items()} | dict(os.environ)


def _uv(target: Target, arguments: Sequence[str]) -> None:
    command = [_uv_program(), "--no-progress", "--color", "never", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, env=_uv_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"uv {arguments[0]} did not finish: {error}") from error
    if done.returncode == 0:
        return
    # Where it looks is not why it fails.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Using Python ")]
    said = " ".join(" ".join(lines).split())[-600:]
    if "No space left on device" in said:
        raise InfraError(f"no space left for the packages of {target.name}: {said}")
    if arguments[0] == "venv":
        sentence = f"needs Python {target.python}, which cannot be had: {said}"
    else:
        sentence = f"needs {' '.join(target.packages)}, which cannot be installed: {said}"
    raise (Unavailable if _is_refusal(done.stderr) else Unreachable)(sentence)


def _is_refusal(said: str) -> bool:
    """Tell whether uv found that there is no such thing, rather than fail to look or to fetch it."""
    found_none = re.search(r"No solution found|No interpreter found|has no wheels with a matching", said)
    return bool(found_none) and "in the cache" not in said


def _make_once(root: Path, make: Callable[[Path], None], needed: str) -> None:
    """Make an environment with the list of its files, unless it is whole."""

    def listed(partial: Path) -> None:
        make(partial)
        manifest.write(partial)

    make_once(root, listed, whole=lambda folder: not _damage(folder, needed))
    if not (root / manifest.FILE).exists():
        # It was made before there were such lists.
        manifest.write(root)


def _refuse_unmade(root: Path, needed: str) -> None:
    if not os.path.lexists(root) or _damage(root, needed):
        raise NotMade(f"needs {root} to be made, which was not allowed")


def _damage(root: Path, needed: str) -> str:
    try:
        _pins(root)
    except (OSError, ValueError, TypeError):
        return f"{_PINS} is gone or is no list of pins"
    return manifest.damage(root) if (root / needed).exists() else f"{needed} is gone"


def _refuse_cached_damage(target: Target, folder: Path) -> None:
    """Install anew, from the index, the packages that uv keeps damaged: it links them into environments."""
    names = manifest.unlike_records(next((folder / "lib").glob("python*/site-packages")))
    if names:
        _, install = venv_commands(target, folder)
        _uv(target, ["cache", "clean", *names])
        _uv(target, [*install, "--reinstall"])


def _write_pins(root: Path, packages: Path) -> None:
    pins = sorted(_pin(metadata) for metadata in packages.glob("*.dist-info/METADATA"))
    (root / _PINS).write_text(json.dumps(pins, indent=1) + "\n", encoding="utf-8")


def _pin(metadata: Path) -> str:
    fields: dict[str, str] = {}
    for line in metadata.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line:
            break  # the description follows
        name, colon, value = line.partition(": ")
        if colon:
            fields.setdefault(name, value.strip())
    return f"{canonicalize_name(fields['Name'])}=={fields['Version']}"


def _pins(root: Path) -> tuple[str, ...]:
    pins = json.loads((root / _PINS).read_text(encoding="utf-8"))
    if not isinstance(pins, list) or not all(isinstance(pin, str) for pin in pins):
        raise TypeError(f"{root / _PINS}: no list of pins")
    return tuple(pins)

"""Engines from the package index: a virtual environment for this machine, or a folder for any other.

`uv` resolves and downloads on the host, with the user's own configuration (uv.toml, UV_* variables,
certificates), for whatever platform the target is. So an image needs no network while it is built, holds no
host's certificates or mirrors, and an arm64 image is put together on an amd64 machine without emulating
anything.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from harness.errors import InfraError
from harness.provision.cache import cache_dir, make_once
from harness.provision.model import Unavailable
from harness.provision.requirements import architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.matrix import Target

#: Bumped when the layout of a cached environment changes.
_LAYOUT = 1
#: What the C library of the base image must be at least; Debian 12 has 2.36, which NVIDIA's arm64 wheels
#: need.
_WHEELS = {"amd64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_36"}
_OTHER_MACHINE = {"amd64": "aarch64", "arm64": "x86_64"}
_TIMEOUT = 1800
_PINS = "packages.json"
#: Where the Dockerfile puts the packages, and the line of a .pth file that makes Python find them there.
ENGINE_FOLDER = "/opt/engine"


def venv(target: Target) -> tuple[Path, tuple[str, ...]]:
    """Return the Python of the target's virtual environment, made if missing, and the pins in it."""
    root = venv_folder(target)
    make_once(root, lambda partial: _make_venv(target, partial))
    return root / "bin" / "python", _pins(root)


def venv_folder(target: Target) -> Path:
    """Return where the target's virtual environment is, or will be."""
    return cache_dir() / "venvs" / key(target)


def site(target: Target) -> tuple[Path, tuple[str, ...]]:
    """Return a build context with the packages for the target's platform, made if missing, and the pins."""
    root = cache_dir() / "sites" / key(target)
    make_once(root, lambda partial: _make_site(target, partial))
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
    return create, ["pip", "install", "--python", str(folder / "bin" / "python"), *target.packages]


def site_command(target: Target, folder: str) -> list[str]:
    """Return the arguments of `uv` that fill `folder` with the target's packages for its platform."""
    wheels = _WHEELS[architecture(target)]
    options = ["--target", folder, "--python-platform", wheels, "--python-version", target.python]
    return ["pip", "install", *options, *target.packages]


def _make_venv(target: Target, partial: Path) -> None:
    for arguments in venv_commands(target, partial):
        _uv(target, arguments)
    _write_pins(partial, next((partial / "lib").glob("python*/site-packages")))


def _make_site(target: Target, partial: Path) -> None:
    partial.mkdir(parents=True)
    folder = partial / "site"
    command = site_command(target, str(folder))
    # uv wants some interpreter to ask; that of the harness is there.
    _uv(target, [*command[:2], "--python", sys.executable, *command[2:]])
    (partial / "engine.pth").write_text(ENGINE_FOLDER + "\n", encoding="ascii")
    _refuse_foreign(target, folder)
    _write_pins(partial, folder)


def _refuse_foreign(target: Target, folder: Path) -> None:
    """Refuse what was compiled here for here: native code from source, wanted for another machine."""
    other = _OTHER_MACHINE[architecture(target)]
    for wheel in sorted(folder.glob("*.dist-info/WHEEL")):
        tags = [line for line in wheel.read_text(encoding="utf-8").splitlines() if line.startswith("Tag:")]
        if tags and all(tag.endswith(other) for tag in tags):
            name = wheel.parent.name.removesuffix(".dist-info")
            raise Unavailable(
                f"needs {name} for {target.docker_platform}; the package index has only its source"
            )


def _uv(target: Target, arguments: Sequence[str]) -> None:
    import uv  # noqa: PLC0415  (a host whose engines are installed already needs none)

    command = [uv.find_uv_bin(), "--no-progress", "--color", "never", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"uv {arguments[0]} did not finish: {error}") from error
    if done.returncode == 0:
        return
    said = " ".join(done.stderr.split())[-600:]
    if "No space left on device" in said:
        raise InfraError(f"no space left for the packages of {target.name}: {said}")
    if arguments[0] == "venv":
        raise Unavailable(f"needs Python {target.python}, which cannot be had: {said}")
    raise Unavailable(f"needs {' '.join(target.packages)}, which cannot be installed: {said}")


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
    return tuple(json.loads((root / _PINS).read_text(encoding="utf-8")))

"""Where the matrix, the cases and the Dockerfiles are that come with the harness."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
#: Made by the build of a wheel (pyproject.toml); a checkout has none.
_INSTALLED = _PACKAGE / "_shipped"


def installed() -> bool:
    """Tell whether the harness runs from a package, not from a checkout."""
    return _INSTALLED.is_dir()


def shipped(name: str) -> Path:
    """Return where `matrix.yaml`, `cases` or `docker` is: in a checkout at its top, installed beside this module."""
    return (_INSTALLED if installed() else _PACKAGE.parent) / name


def published() -> Path:
    """Return the folder of the published results that come with the harness."""
    return _INSTALLED / "published" if installed() else _PACKAGE.parent / "reports" / "published"


def looked_up(given: str | Path | None, usual: str) -> Path:
    """Return the path that is given, else the usual one here, else the one that comes with the harness."""
    here = Path(usual if given is None else given)
    return here if given is not None or here.exists() else shipped(usual)

"""The hashes of the models of a folder of cases, kept so that unchanged cases need not be built to be known."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from harness.bounded import SMALL, parse_json, read_text
from harness.case import model_sha256
from harness.case.model import Built
from harness.run.key import code
from harness.run.provision import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.case import Case

#: What says something of models and is no part of them.
_SAID = frozenset({"measured.yaml"})
#: The program that was started, under its own name and that of multiprocessing.
_PROGRAM = frozenset({"__main__", "__mp_main__"})
#: A folder of more files than this is not looked through.
_MOST = 10_000
#: By case and variant.
Hashes = dict[tuple[str, str], str]


def known_models(folder: Path) -> Hashes | None:
    """Return the hashes of a folder's models, without those that cannot be built; None where one may have changed."""
    try:
        kept = parse_json(read_text(_file(folder), SMALL))
        if kept["made_of"] != made_of(folder):
            return None
        return {(case, variant): str(sha256) for case, variant, sha256 in kept["models"]}
    except (OSError, ValueError, LookupError, TypeError):
        return None


def keep_models(folder: Path, cases: Iterable[Case], before: str) -> Hashes:
    """Return the hashes of models that are built, and keep them where that can be done.

    `before` is `made_of` the folder as it was asked before they were built: what is saved meanwhile is in none of them.
    """
    found = {
        (case.name, variant.name): model_sha256(variant.build.model)
        for case in cases
        for variant in case
        if isinstance(variant.build, Built)
    }
    path = _file(folder)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [[*key, sha256] for key, sha256 in found.items()]
        temporary.write_text(json.dumps({"made_of": before, "models": rows}), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
    return found


def _file(folder: Path) -> Path:
    name = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return cache_dir() / "models" / f"{name}.json"


def made_of(folder: Path) -> str:
    """Return a hash of all that the models of a folder's cases are made of; another each time where that is too much.

    Asked after the cases are imported: the modules that they import, from wherever, count as much as the files beside
    them.
    """
    digest = hashlib.sha256(code().encode())
    for number, path in enumerate(_files(folder)):
        if number >= _MOST:
            return os.urandom(16).hex()
        digest.update(f"{path.relative_to(folder)} {_content(path)}\n".encode("utf-8", "surrogateescape"))
    for word in (*sorted(_foreign_modules()), *sorted(_distributions())):
        digest.update(f"{word}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name != "__pycache__" and not name.startswith("."))
        yield from (
            Path(place, name) for name in sorted(names) if name not in _SAID and not name.startswith(".")
        )


def _content(path: Path) -> str:
    """Return the hash of a module, and of any other file, which may be large, its size and time."""
    try:
        if path.suffix == ".py":
            return hashlib.sha256(path.read_bytes()).hexdigest()
        found = path.stat()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return f"{found.st_size} {found.st_mtime_ns}"


def _foreign_modules() -> Iterator[str]:
    """Yield the modules that are loaded and belong neither to Python nor to an installed package nor to the harness."""
    own = [*sysconfig.get_paths().values(), str(Path(__file__).resolve().parents[1])]
    for name, module in list(sys.modules.items()):
        file = None if name in _PROGRAM else getattr(module, "__file__", None)
        if isinstance(file, str) and not any(file.startswith(f"{place}{os.sep}") for place in own):
            path = Path(file)
            if path.is_file():
                yield f"{name} {_content(path)}"


def _distributions() -> set[str]:
    """Return the packages that are installed, with their versions, by how their folders are called."""
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return {path.name for place in places for path in Path(place).glob("*.dist-info")}

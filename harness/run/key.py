"""The key of a cell: a hash of all that could change its outcome: one of today's key need not be made anew.

It is made of the cell and of what matrix.yaml decides of its target; of the model, whose inputs follow from it, and of
the recipe; of where the cell is run (`place_of`); of the code that runs it, agent and all, with the libraries
that make inputs and reference; and of this machine. What is said of a cell, and how it is judged, is no part of it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.run.provision.model import UNKNOWN
from harness.run.transport.process import HEEDED

if TYPE_CHECKING:
    from harness.case.model import Recipe, Variant
    from harness.matrix import Target
    from harness.plan import Cell
    from harness.run.provision import Environment

_TOP = Path(__file__).resolve().parents[1]
#: The rooms that have a part in a record; so have the modules that stand in none.
_ROOMS = ("agent", "case", "document", "layers", "matrix", "plan", "record", "run")
#: Distributions that make models, inputs and reference numbers.
_LIBRARIES = ("onnx", "numpy", "protobuf", "ml_dtypes")


def cell_key(cell: Cell, model_sha256: str, placed: str) -> str:
    """Return the key of a cell with this model in a place (`placed_in`); "" where one of the two is not known."""
    if not model_sha256 or not placed:
        return ""
    return _sha256([cell.id, model_sha256, recipe_sha256(cell.variant), placed])


def placed_in(target: Target, place: str) -> str:
    """Return what the keys of a target's cells have in common in a place; "" where that is ""."""
    return _sha256([target.deciding(), target.untrusted, place, code(), machine()]) if place else ""


def place_of(environment: Environment) -> str:
    """Return an environment in words that tell any two apart; "" where nobody here knows all that an engine finds."""
    # What somebody else has installed may be built anew under one version.
    if environment.device == UNKNOWN or (environment.via == "venv" and not environment.folder):
        return ""
    words: list[object] = [
        *(environment.via, environment.image, environment.image_digest, sorted(environment.packages)),
        *(environment.device, environment.machine, environment.ignored, environment.groups),
    ]
    if environment.via == "venv":
        python = Path(environment.python).resolve()
        found = python.stat() if python.is_file() else None
        words += [str(python), found and (found.st_size, found.st_mtime_ns), platform.libc_ver()]
        words += [os.environ.get(name) for name in HEEDED]
    return json.dumps(words)


@functools.cache
def code() -> str:
    """Return a hash of the code that has a part in a record, and of the versions of the libraries that it uses."""
    kinds = ("*.py", "*.json")
    files = [
        *_TOP.glob("*.py"),
        *(path for room in _ROOMS for kind in kinds for path in (_TOP / room).rglob(kind)),
    ]
    digest = hashlib.sha256()
    for path in sorted(files):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(_TOP)} {len(data)}\n".encode())
        digest.update(data)
    return _sha256([digest.hexdigest(), sys.version, *map(_version, _LIBRARIES)])


@functools.cache
def machine() -> tuple[str, ...]:
    """Return what this machine is: its id, its CPU's model, and how many processors this process may use."""
    told = _text("/etc/machine-id").strip() or platform.node()
    model = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return told, model[1] if model else platform.processor(), platform.machine(), str(processors)


def recipe_sha256(variant: Variant) -> str:
    """Return the hash of a variant's recipe and own data, made once of a recipe alone."""
    return variant.recipe_sha256 if variant.data else _recipe_sha256(variant.recipe)


@functools.lru_cache(maxsize=4096)
def _recipe_sha256(recipe: Recipe) -> str:
    return recipe.sha256()


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _sha256(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

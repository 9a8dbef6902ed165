"""The key of a cell, a hash of all that could change its outcome, and the recorded outcomes that it lets stand.

It is made of the cell and of the fields of its target in matrix.yaml that decide something; of the model, whose inputs
follow from it, and of the recipe; of the place that the cell is run in (`place_of`); of the code that runs it, agent
and all, with the libraries that make inputs and reference; and of this machine. Labels and judgement are no part of it.
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
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.errors import HandledError, InfraError
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import OTHERS, Outcome
from harness.record.speaking import Today, speaking
from harness.run.provision.host import Host, host_of, look_at_host
from harness.run.provision.model import UNKNOWN, Environment, NotMade, Unavailable, Via
from harness.run.provision.prepare import prepare
from harness.run.provision.requirements import can_run
from harness.run.transport import HEEDED

_TOP = Path(__file__).resolve().parents[1]
#: The rooms that have a part in a record; so have the modules outside of rooms.
_ROOMS = ("agent", "case", "layers", "matrix", "plan", "record", "run")
#: Distributions that make models, inputs and reference numbers.
_LIBRARIES = ("onnx", "numpy", "protobuf", "ml_dtypes")


def cell_key(cell_id: str, model_sha256: str, recipe_sha256: str, placed: str) -> str:
    """Return the key of a cell with this model in a place (`placed_in`); "" if one of the two is not known."""
    if not model_sha256 or not placed:
        return ""
    return _sha256([cell_id, model_sha256, recipe_sha256, placed])


def placed_in(target: Target, place: str) -> str:
    """Return the part that the keys of a target's cells share in a place; "" for the place ""."""
    return _sha256([target.deciding(), target.untrusted, place, code(), machine()]) if place else ""


def place_of(environment: Environment) -> str:
    """Return an environment in words that tell any two apart; "" if it holds things unknown here."""
    if environment.device == UNKNOWN or (
        environment.via == "venv" and not (environment.folder or environment.files)
    ):
        return ""
    words: list[object] = [
        *(environment.via, environment.image, environment.image_digest, sorted(environment.packages)),
        *(environment.device, environment.machine, environment.groups, environment.files),
    ]
    if environment.via == "venv":
        python = Path(environment.python).resolve()
        # It may lie in the home of another user.
        found = python.stat() if os.access(python, os.R_OK) else None
        words += [str(python), found and (found.st_size, found.st_mtime_ns), platform.libc_ver()]
        words += [os.environ.get(name) for name in HEEDED]
    return json.dumps(words)


@functools.cache
def code() -> str:
    """Return a hash of the code that has a part in a record, and of the versions of the libraries that it uses."""
    files = [
        *_TOP.glob("*.py"),
        *(path for room in _ROOMS for kind in ("*.py", "*.json") for path in (_TOP / room).rglob(kind)),
    ]
    digest = hashlib.sha256()
    for path in sorted(files):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(_TOP)} {len(data)}\n".encode())
        digest.update(data)
    return _sha256([digest.hexdigest(), sys.version, *map(_version, _LIBRARIES)])


@functools.cache
def machine() -> tuple[str, ...]:
    """Return the identity of this machine: its id, its CPU's model, and how many processors this process may use."""
    told = _text("/etc/machine-id").strip() or platform.node()
    model = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return told, model[1] if model else platform.processor(), platform.machine(), str(processors)


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


def keys_of(cells: Iterable[Cell], today: Mapping[str, Today], via: Via = "auto") -> dict[str, str]:
    """Return the keys that cells would be recorded under if they were run now, by cell id; "" for an unknown one.

    Their models are built. This machine is looked at, without making, pulling or starting anything.
    """
    places: dict[tuple[str, bool, str | None], str] = {}
    here, found = functools.cache(lambda: look_at_host(docker=via != "venv")), {}
    for cell in cells:
        target, reason, now = cell.target, cell.inapplicable, today[cell.id]
        # A case may be untrusted on a target that others trust.
        place = (target.name, target.untrusted, reason)
        if place not in places:
            places[place] = placed_in(target, reason or _place(target, via, here()))
        found[cell.id] = cell_key(cell.id, now.model_sha256, now.recipe_sha256, places[place])
    return found


def _place(target: Target, via: Via, here: Host) -> str:
    """Return the place that a target would run in here, "" if the machinery fails, which the run then says."""
    host = host_of(target, here)
    try:
        lacking = can_run(target, host, via)
        return lacking or place_of(prepare(target, via, allow_build=False, host=host))
    except (NotMade, Unavailable, InfraError, HandledError):
        return ""


def answering(
    today: Mapping[str, Today], outcomes: Iterable[Outcome], keys: Mapping[str, str]
) -> dict[str, Outcome]:
    """Return the outcomes that need not be made anew, by cell id: the latest of today's key.

    One in which an engine took part must speak for its cell, as it would if it were made anew. An outcome
    that was timed beside others on its GPU does not count, nor does somebody else's, nor an infra_error.
    """
    mine = [each for each in outcomes if each.cell in today]
    speaks = speaking(mine, lambda each: bool(today[each.cell].stale_because(each)))
    found: dict[str, Outcome] = {}
    for each in sorted(mine, key=lambda outcome: outcome.stamps.when):
        if _may_answer(each, keys.get(each.cell, "")):
            found[each.cell] = each
    return {
        cell: outcome
        for cell, outcome in found.items()
        if outcome.state != "done" or any(outcome is each for each in speaks[cell])
    }


def _may_answer(outcome: Outcome, key: str) -> bool:
    latency = outcome.latency
    disturbed = latency is not None and OTHERS in {**latency.before, **latency.after}
    theirs = outcome.stamps.account or outcome.state == "infra_error"
    return bool(key) and outcome.key == key and not disturbed and not theirs

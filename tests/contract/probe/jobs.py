"""Runs one scenario through the adapter, in a child of its own as the agent does."""

from __future__ import annotations

import json
import mmap
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.contract.probe.wrap import Probe
from tests.contract.trace import TRACE

Json = dict[str, Any]

#: The events that carry what the engine made.
_KEPT = ("plan", "calibration_cache", "output", "layers")


class Lines:
    """Notes the lines that run in the adapter's files."""

    def __init__(self, files: list[str]) -> None:
        self.seen: dict[str, set[int]] = {file: set() for file in files}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Lines | None:
        seen = self.seen.get(frame.f_code.co_filename)
        if seen is None:
            return None
        if event == "line":
            seen.add(frame.f_lineno)
        return self

    def report(self) -> dict[str, list[int]]:
        """Return the lines by file."""
        return {file: sorted(seen) for file, seen in self.seen.items()}

    def add(self, lines: dict[str, list[int]]) -> None:
        """Add what another process noted."""
        for file, numbers in lines.items():
            self.seen[file].update(numbers)


def run(adapter: Any, api: Any, scenario: Json, probe: Probe) -> Json:
    """Run one job through the adapter and return how it ended and what it said."""
    events: list[str] = []
    end: Json = {"end": "done", "detail": ""}

    def emit(kind: str, body: bytes = b"", **fields: Any) -> None:
        json.dumps(fields)  # as the agent does to send it
        events.append(kind)
        if kind in _KEPT:
            TRACE.call("emit", None, lambda: None, kind, *fields.values(), body)
        if kind in ("missing_api", "failed", "unavailable", "agent_fault"):
            end.update(end=kind, detail=fields.get("name") or fields.get("text"))

    parts = {name: bytes(data, "latin-1") for name, data in scenario["parts"].items()}
    job = dict(scenario["job"], parts=[[name, len(data)] for name, data in parts.items()])
    try:
        probe.answers = {path: spoken(api.trt, value) for path, value in scenario["answers"].items()}
    except AttributeError as error:
        return {"end": "impossible", "detail": str(error), "events": [], "trace": []}
    TRACE.begin(probe.classes)
    try:
        adapter.run(job, b"".join(parts.values()), emit)
    except Exception as error:  # noqa: BLE001  (whatever the adapter lets out is the finding)
        where = traceback.extract_tb(error.__traceback__)[-1]
        end.update(end="raised", detail=f"{type(error).__name__}: {error} ({Path(where.filename).name})")
    return dict(end, events=events, trace=TRACE.events)


def in_child(work: Callable[[], Json]) -> Json:
    """Return what `work` returns in a forked child, as each job of the agent has one; a crash is an end too."""
    inward, outward = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(outward, "w") as pipe:
            json.dump(work(), pipe)
        # Objects of the stub have no destructors worth running.
        os._exit(0)
    os.close(outward)
    with os.fdopen(inward) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status or not said:
        return {
            "result": {"end": "crashed", "detail": f"wait status {status}", "events": [], "trace": []},
            "touched": [],
            "lines": {},
        }
    found: Json = json.loads(said)
    return found


def spoken(trt: Any, value: Any) -> list[Any]:
    """Return a scenario's answers in their order, the last for ever: JSON as it is, or an enum's member, or zeros.

    These are `{"enum": "DataType.FP8"}` and `{"zeros": 8}`, which take no memory until they are read.
    """
    if isinstance(value, list):
        return [spoken(trt, each)[0] for each in value]
    if isinstance(value, dict):
        if "zeros" in value:
            return [mmap.mmap(-1, value["zeros"])]
        owner, _, name = value["enum"].partition(".")
        return [getattr(getattr(trt, owner), name)]
    return [value]


def log_slot(engine: str, version: str) -> int:
    """Return where a logger has `log` in its table: after four functions of a base class since TensorRT 11, RTX 1.5."""
    based = (1, 5) if engine == "tensorrt_rtx" else (11, 0)
    return 4 if tuple(map(int, version.split(".")[:2])) >= based else 0

"""A project of its own, and measurements of it that no engine made: what an agent would have sent, folded as always."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from harness import __version__
from harness.case import load_cases, model_sha256
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.record.outcome import Outcome, Stamps, whole_log
from harness.run import stamps
from harness.run.numbers.wire import to_wire
from harness.run.observation import Observation
from harness.run.session import Event
from harness.share.submission import submission
from tests.cli.project import make
from tests.fixtures import Patch
from tests.run.prepared import prepare_variant

UUID = "GPU-11111111-1111-1111-1111-111111111111"
DIGEST = "sha256:" + "1" * 64
TARGET = "trt86"
LAYER = {
    "Name": "/act",
    "LayerType": "PointWiseV2",
    "Inputs": [{"Name": "x", "Dimensions": [1, 4], "Format/Datatype": "Row major linear FP32"}],
    "Outputs": [{"Name": "y", "Dimensions": [1, 4], "Format/Datatype": "Row major linear FP32"}],
    "Metadata": "[ONNX Layer: /act]",
}


def git(folder: Path, *words: str) -> str:
    """Run Git as somebody."""
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_project(folder: Path, monkeypatch: Patch) -> Path:
    """Make a project with a branch main, and let it be the one that this process is of."""
    make(folder)
    matrix = yaml.safe_load((folder / "matrix.yaml").read_text(encoding="utf-8"))
    matrix["targets"][TARGET]["digest"] = DIGEST
    (folder / "matrix.yaml").write_text(yaml.safe_dump(matrix), encoding="utf-8")
    # Else the bytecode of its cases makes it a changed checkout.
    (folder / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "the project")
    monkeypatch.setattr(stamps, "TOP", folder)
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(folder / ".git" / "cache"))
    stamps.harness_commit.cache_clear()
    return folder


def cells(project: Path) -> list[Cell]:
    """Return the cells that are measured."""
    every = all_cells(load_matrix(project / "matrix.yaml"), load_cases(project / "cases"))
    return [cell for cell in every if cell.target.name == TARGET and cell.variant.name != "foreign"]


def _event(type_: str, body: bytes = b"", /, **fields: Any) -> Event:
    return Event({"type": type_, **fields}, body)


def measure(
    cell: Cell, *, uuid: str = UUID, fails: bool = False, say: Callable[[str], str] = str
) -> tuple[Cell, Outcome, str]:
    """Return a cell with its record and log; `say` is done to every text that an engine or a machine says."""
    ready = prepare_variant(cell.variant)
    assert ready.reference.outputs is not None
    (array,) = ready.reference.outputs.values()
    dtype, shape, data = to_wire(array)
    end = _event("end", kind="finished", detail=say(""), exit_code=0, peak_rss_bytes=10)
    seen = Observation()
    seen.hear(
        [
            _event("phase", name="parse", seconds=0.1, ok=True),
            _event("message", severity="INFO", text=say("building")),
            _event("message", severity="WARNING", text=say("it is so\n[WARNING] and so")),
            _event("native", text=say("printed ")[:4]),
            _event("native", text=say("printed ")[4:] + "\n"),
            _event("phase", name="build", seconds=0.2, ok=not fails),
        ]
    )
    if fails:
        parser_error = {"text": say('it\'s "no"\nuse'), "code": "8", "node": "/act", "operator": "Relu"}
        seen.hear([_event("parser_error", **parser_error), _event("failed", text=say("refused")), end])
    else:
        layer = json.dumps({"Layers": [LAYER | {"TacticName": say("tactic")}]}).encode()
        samples = {"samples_ms": [0.5] * 100, "warmup": 3, "clock": "cuda_events", "scope": say("run")}
        sensors = {"power_w": say("70")}
        seen.hear(
            [
                _event("plan", b"plan"),
                end,
                *(_event("phase", name=name, seconds=0.1, ok=True) for name in ("load", "run")),
                _event("output", data, name="y", dtype=dtype, shape=list(shape)),
                _event("layers", layer, source="inspector"),
                _event("latency", **samples, before=sensors, after={}),
                _event("phase", name="time", seconds=0.1, ok=True),
                _event("layer_times", times={"/act": [0.1, 0.2, 0.3]}),
                end,
            ]
        )
        seen.note_others(say("python3 (pid 7)") if uuid.endswith("9") else "", "")
    outcome = seen.outcome(cell, ready, _stamps(cell, uuid, say))
    outcome = Outcome.from_json(json.loads(json.dumps(outcome.to_json())))
    return cell, outcome, whole_log(outcome, seen.log)


def _stamps(cell: Cell, uuid: str, say: Callable[[str], str]) -> Stamps:
    return Stamps(
        model_sha256=model_sha256(cell.variant.model_bytes()),
        recipe_sha256=cell.variant.recipe.sha256(),
        engine_version=cell.target.version,
        via="docker",
        image=cell.target.pull_reference,
        image_digest=DIGEST,
        harness_version=__version__,
        when=dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds"),
        run="0a1b2c3d4e5f",
        environment={
            "engine_version": cell.target.version,
            "gpu": "NVIDIA L4",
            "gpu_uuid": uuid,
            "compute_capability": "8.9",
            "driver": "550.54.15",
            "kernel": say("6.1"),
            "hostname": say("x"),
        },
        harness_commit=stamps.harness_commit(),
    )


def sent(project: Path, account: str = "alice", **how: Any) -> bytes:
    """Return the archive of somebody who measured the project."""
    return submission([measure(cell, **how)[1:] for cell in cells(project)], account)


def send(project: Path, account: str = "alice", **how: Any) -> Path:
    """Write the archive of somebody who measured the project; return its place."""
    path = project / ".git" / f"{account}.jsonl.xz"
    path.write_bytes(sent(project, account, **how))
    return path

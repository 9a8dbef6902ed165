"""One retrained model at every front: `run`, `diff`, results.json, which the page draws, and pytest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.case import load_cases
from harness.cli import main
from harness.judge.cell import judge_cell
from harness.matrix import load_matrix
from harness.plan import all_cells, find
from harness.record.outcome import Latency, Layer, Node
from harness.record.store import Store
from harness.run import local
from tests.cli.test_run import Scripted
from tests.fixtures import Capture, Patch

pytestmark = pytest.mark.unit

CELL = "toy.relu-trt86"
GPU = {"gpu": "NVIDIA T4", "compute_capability": "7.5", "driver": "580"}


def seen(
    kept: int, lost: int = 0, floats: int = 0, ms: float = 1.0, gpu: str = "NVIDIA T4"
) -> dict[str, Any]:
    """Return what a fake engine shows: nodes in INT8, nodes that lost it, others; and its latency."""
    kinds = [("int8", "int8")] * kept + [("int8", "fp32")] * lost + [("", "fp32")] * floats
    return {
        "nodes": tuple(Node(f"/{at}", "Conv", asks) for at, (asks, _) in enumerate(kinds)),
        "layers": tuple(
            Layer(f"/{at}", "Convolution", got, onnx_nodes=(f"/{at}",)) for at, (_, got) in enumerate(kinds)
        ),
        "latency": Latency(tuple(ms * (1 + at % 5 / 1000) for at in range(100)), 10, "cuda_events"),
        "environment": {**GPU, "gpu": gpu},
    }


class Fake(Scripted):
    """An engine whose outcomes have stamps of a GPU too."""

    def run(self, cell: Any, **more: bool) -> Any:
        fields = dict(self._script[cell.variant.name])
        environment = fields.pop("environment")
        self._script = {cell.variant.name: fields}
        outcome, log = super().run(cell, **more)
        self._script = {cell.variant.name: {**fields, "environment": environment}}
        stamps = outcome.stamps.__class__(**{**vars(outcome.stamps), "environment": environment})
        return outcome.__class__(**{**vars(outcome), "stamps": stamps}), log


@pytest.mark.parametrize(
    ("before", "now", "run", "diff", "verdict"),
    [
        pytest.param(seen(2), seen(2), 0, 0, "expected", id="the same"),
        pytest.param(seen(2), seen(0, floats=2), 1, None, "regressed", id="Q/DQ dropped"),
        pytest.param(seen(2, 1), seen(2, 2), 1, None, "regressed", id="2 of 3 becomes 2 of 4"),
        pytest.param(seen(2), seen(3), 0, 0, "expected", id="raised"),
        pytest.param(seen(2), seen(2, ms=2.0), 1, 1, "regressed", id="latency doubled"),
        pytest.param(seen(2), seen(2, ms=2.0, gpu="Tesla V"), 0, 0, "expected", id="on another GPU"),
    ],
)
def test_every_front_tells_the_same(  # noqa: PLR0913, PLR0917  (fixtures and parameters)
    toy: Path,
    monkeypatch: Patch,
    capsys: Capture,
    before: dict[str, Any],
    now: dict[str, Any],
    run: int,
    diff: int | None,
    verdict: str,
) -> None:
    def ran(script: dict[str, Any]) -> int:
        monkeypatch.setattr(local, "TargetRunner", lambda target, **_: Fake(target, {"relu": script}))
        return main(["run", "--target", "trt86", "-k", "relu", "--fresh"])

    ran(before)
    assert main(["accept"]) == 0
    shutil.copytree("reports", "base")
    # A folder of its own: a result of another GPU would stand beside the first.
    shutil.rmtree("reports")
    assert ran(now) == run
    # Which of the parts may not get worse is the caller's to say.
    assert main(["run", "--target", "trt86", "-k", "relu", "--fresh", "--fail-on", "none"]) == 0
    (cell,) = (
        each for each in json.loads(Path("reports/results.json").read_text())["cells"] if each["id"] == CELL
    )
    assert cell["verdict"] == verdict
    outcome = Store(Path("reports")).speaking(lambda _: False)[CELL][0]
    judged = judge_cell(
        find(all_cells(load_matrix(toy / "matrix.yaml"), load_cases(toy / "cases")), CELL), outcome
    )
    assert judged.failed is (verdict == "regressed" or judged.classification.cls == "precision_lost")
    if diff is not None:
        # Its nodes are those of the model, which is the same in both.
        assert main(["diff", "base", "reports", "--fail-on", "class,precision,latency"]) == diff
    capsys.readouterr()

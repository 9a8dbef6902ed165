"""repro.py with the recipe of a cell, run as a person would, says what the record of the cell says.

On the engines that run here: TensorRT for RTX in every version, and ONNX Runtime. A few are programs of their own; the
rest share one interpreter a target, which forks for each file.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from harness.case import Class, model_sha256
from harness.known.model import Known
from harness.layers.asked import asked
from harness.layers.parse import parse_layers
from harness.layers.precision import node_precision
from harness.plan import Cell
from harness.plan.by_hand import REPRO, asked_of, by_hand, model_file
from harness.report.model import load_results
from harness.run.numbers.inputs import make_inputs
from harness.run.provision import packages
from tests import needs
from tests.integration.runs import ROOT, project_cells
from tests.run.prepared import prepare_variant

pytestmark = [pytest.mark.integration, pytest.mark.contract]

#: A cell for each feature of a recipe that these engines have, and each way to end.
SAMPLE = (
    *("conv_silu.qdq-rtx17", "conv_silu.qdq-rtx16", "conv_silu.qdq-mark-conv-rtx17", "mish.qdq-strong-rtx17"),
    *("conv_silu.int8-entropy-rtx14", "conv_silu.int8-entropy-rtx17", "conv_silu.fp16-rtx14"),
    *("conv_silu.fp32-rtx14", "instance_norm.qdq-plugin-rtx15", "instance_norm.qdq-native-rtx17"),
    *(
        "q_plugin_dq.q-plugin-dq-int8-rtx17",
        "depthwise_qdq.qdq-rtx17-sm75",
        "instance_norm.int64-shape-rtx17",
    ),
    *("conv_silu.qdq-ort131", "conv_silu.fp16-graph-ort117", "mish.mish-op-ort117"),
)
_BUILT = frozenset({Class.OK, Class.BUILT, Class.PRECISION_LOST})


@pytest.fixture(scope="module")
def recorded() -> dict[str, Known]:
    """Return the published cells that are of today's models."""
    results = load_results(ROOT / "reports" / "published")
    models = {cell.id: model_sha256(cell.variant.model_bytes()) for cell in project_cells()}
    published = {(variant.case, variant.name): variant.model_sha256 for variant in results.variants}
    return {
        cell.id: cell
        for cell in results.cells
        if cell.measured and published[cell.case, cell.variant] == models.get(cell.id)
    }


def write(cell: Cell, folder: Path) -> Path:
    data = cell.variant.model_bytes()
    (folder / model_file(cell)).write_bytes(data)
    hand = by_hand(cell, data)
    for name, text in hand.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert hand.recipe
    return folder / hand.recipe[0]


def agrees(cell: Cell, seen: Known, code: int, said: str) -> None:
    """Hold what a file printed, and how it ended, against the record of its cell."""
    if seen.cls is Class.API_REMOVED:
        assert code
        assert "AttributeError" in said
        assert re.search(rf"'{(seen.missing_api or '').rpartition('.')[2]}'|{seen.missing_api}", said), said[
            -800:
        ]
    elif seen.cls is Class.PARSE_FAILED:
        assert code
        assert "not parsed" in said or "Error" in said, said[-800:]
    elif seen.cls in (Class.BUILD_FAILED, Class.NEEDS_GPU_TO_BUILD):
        assert code
        assert ("InvalidGraph" if cell.target.traits.baseline else "no engine was built") in said, said[-800:]
    elif seen.cls is Class.CRASHED:
        assert code < 0, said[-800:]
    elif seen.cls is Class.INACCURATE:
        assert not code, said[-800:]
    else:
        assert seen.cls in _BUILT, seen.cls
        assert not code, said[-800:]
        (_numbers if cell.target.traits.baseline else _layers)(cell, seen, said)


def _layers(cell: Cell, seen: Known, said: str) -> None:
    nodes = asked(cell.variant.build())
    told = said[said.index("Layers:") :].rpartition("an engine of")[0]
    report = parse_layers("verbose_log", told, nodes=nodes)
    assert report.layers
    assert node_precision(nodes, report.layers) == seen.precision, cell.id


def _numbers(cell: Cell, _seen: Known, said: str) -> None:
    reference = prepare_variant(cell.variant).reference
    # Operators of a plugin have no such line.
    for name, wanted in (reference.outputs or {}).items():
        first = re.search(rf"^{re.escape(name)} \S+ \([^)]*\) \[([^\]]*)", said, re.MULTILINE)
        assert first, said
        shown = np.array([float(word) for word in first.group(1).split()])
        close = np.asarray(wanted, dtype="float64").ravel()[: shown.size]
        assert np.allclose(shown, close, rtol=0.05, atol=0.2), (cell.id, shown, close)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_file_says_what_the_record_says(name: str, recorded: Mapping[str, Known], tmp_path: Path) -> None:
    needs.network()
    cell = next(cell for cell in project_cells() if cell.id == name)
    python, _ = packages.venv(cell.target)
    path = write(cell, tmp_path)
    done = subprocess.run(
        [python, REPRO.name, path.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    agrees(cell, recorded[name], done.returncode, done.stdout + done.stderr)


def test_a_file_feeds_what_the_harness_feeds() -> None:
    """Calibration and outputs are of the same numbers, in the same type."""
    program = runpy.run_path(str(REPRO))
    for name in (
        "conv_silu.int8-entropy-trt86",
        "instance_norm.int8-as-reported-trt103",
        "conv_silu.qdq-ort131",
    ):
        cell = next(cell for cell in project_cells() if cell.id == name)
        asked = json.loads(json.dumps(asked_of(cell, "model.onnx", cell.variant.model_bytes())))
        wanted = make_inputs(cell.variant.build(), cell.variant.recipe.profiles)
        fed = program["fed"](asked)
        calibrator = asked["recipe"]["calibrator"]
        batches = program["batches"](asked, calibrator) if calibrator else []
        for made in (fed, *batches[:1]):
            assert made.keys() == wanted.keys()
            for key, array in wanted.items():
                assert made[key].dtype == array.dtype
                assert np.array_equal(made[key], array)

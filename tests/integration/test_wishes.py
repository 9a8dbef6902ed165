"""A model that nobody wrote a wish for, on real engines: lost INT8 is told, and numbers are held to its types."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Case, Class, Link, Precision, Variant
from harness.compare.kinds import Kind
from harness.compare.step import Step
from harness.compare.step import step as judged_step
from harness.matrix import load_matrix
from harness.plan import all_cells
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.report.results import assemble
from harness.words import Verdict
from tests import needs
from tests.integration.runs import ROOT, Result, project_cells, run

pytestmark = [pytest.mark.integration, pytest.mark.contract]

MATRIX = load_matrix(ROOT / "matrix.yaml")
LINK = Link("https://github.com/NVIDIA/TensorRT/issues/3659", "an issue")


def toy(*variants: Variant) -> Case:
    return Case("toy", "A toy", "", (LINK,), variants)


def ran(case: Case, targets: set[str], folder: Path) -> dict[str, Result]:
    """Run a case on some targets."""
    needs.network()
    return run([cell for cell in all_cells(MATRIX, [case]) if cell.target.name in targets], "venv", folder)


@pytest.fixture(scope="module")
def quantised() -> Case:
    """Return a quantised model of two convolutions three times: its nodes named, left to the graph, and unwanted."""
    (named,) = {cell.variant for cell in project_cells() if cell.id.startswith("conv_silu.qdq-two")}
    plain = dataclasses.replace(named, counterpart=None, expectations=())
    wishes = {"named": plain.precision, "left": None, "unwanted": ()}
    return toy(
        *(dataclasses.replace(plain, name=name, precision=wish) for name, wish in wishes.items()),
    )


@pytest.fixture(scope="module")
def step(quantised: Case, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Result], Step]:
    """Return what became of it on rtx17 and rtx17-sm75, and the step from one to the other."""
    folder = tmp_path_factory.mktemp("wishes")
    found = ran(quantised, {"rtx17", "rtx17-sm75"}, folder)
    with Store(folder) as store:
        outcomes: dict[str, Outcome] = {each.cell: each for each in store.outcomes()}
    results = assemble(MATRIX, [quantised], outcomes)
    return found, judged_step(results.column("rtx17"), results.column("rtx17-sm75"))


def test_the_same_loss_of_int8_is_told_whoever_wished(step: tuple[dict[str, Result], Step]) -> None:
    """One more or less line in a case changes nothing in what is lost; () makes it news that fails nothing."""
    found, told = step
    for name in ("named", "left"):
        before, after = (found[f"toy.{name}-{target}"].judged for target in ("rtx17", "rtx17-sm75"))
        assert (before.classification.cls, after.classification.cls) == (Class.BUILT, Class.PRECISION_LOST)
        assert len(after.classification.lost) == len(before.wished) == 2
        assert set(before.wished.values()) == {Precision.INT8}
        assert after.judgement.verdict is Verdict.NEW
    unwanted = found["toy.unwanted-rtx17-sm75"].judged
    assert (unwanted.classification.cls, unwanted.wished) == (Class.BUILT, {})
    rows = {row.variant.removeprefix("toy."): row for row in told.rows}
    assert rows["named"].text == rows["left"].text
    assert rows["left"].text.endswith(
        "/model.0/conv/Conv in fp32 instead of int8, /model.1/conv/Conv in fp32 instead of int8"
    )
    assert rows["unwanted"].text.endswith(": /model.0/conv/Conv int8 → fp32, /model.1/conv/Conv int8 → fp32")
    kinds = {name: row.kind for name, row in rows.items()}
    assert kinds == {"named": Kind.PRECISION_LOST, "left": Kind.PRECISION_LOST, "unwanted": Kind.WIDER}


def half_norm() -> onnx.ModelProto:
    """Return a LayerNormalization in FP16."""
    rng = np.random.default_rng(0)
    constants = [
        numpy_helper.from_array(rng.random(256).astype(np.float16), name) for name in ("scale", "bias")
    ]
    edges = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, 64, 256]) for name in ("x", "y")]
    node = helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], name="/norm")
    graph = helper.make_graph([node], "g", edges[:1], edges[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def int4_weights() -> onnx.ModelProto:
    """Return a MatMul whose weights are stored in INT4."""
    values = np.random.default_rng(0).integers(-8, 8, 128 * 64).tolist()
    constants = [
        helper.make_tensor("w", TensorProto.INT4, [128, 64], values),
        numpy_helper.from_array(np.full((4, 64), 0.01, np.float32), "s"),
    ]
    edges = [helper.make_tensor_value_info(*each) for each in (("x", 1, [8, 128]), ("y", 1, [8, 64]))]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], name="/w/D", axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "d"], ["y"], name="/MatMul"),
    ]
    graph = helper.make_graph(nodes, "g", edges[:1], edges[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_numbers_are_held_to_the_types_of_the_graph(tmp_path: Path) -> None:
    """ONNX Runtime computes both in FP32 layers, and is off by more than FP32 alone would be."""
    case = toy(Variant("half", "A norm in FP16", half_norm), Variant("int4", "INT4 weights", int4_weights))
    found = ran(case, {"ort131"}, tmp_path)
    for name in ("half", "int4"):
        result = found[f"toy.{name}-ort131"].judged
        assert max(one.max_rel for one in result.outcome.accuracy) > 1e-4
        assert result.classification.cls is Class.OK, result.classification.reason

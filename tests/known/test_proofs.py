"""An advice is proven on a target by what was measured to work there, and by no other operator's case."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case import load_cases
from harness.judge.cell import Judged, judge_cell
from harness.judge.diagnosis import Diagnosis
from harness.known.proofs import proofs_on
from harness.matrix import load_matrix
from harness.plan import Cell
from harness.record.outcome import Node, Outcome

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
CASES = load_cases(TOP / "cases")


def on(target: str, *operators: str) -> Judged:
    """Return a model with these operators that was not run on a target."""
    where = next(each for each in load_matrix(TOP / "matrix.yaml") if each.name == target)
    case = CASES[0]
    cell = Cell(f"{case.name}.{case.variants[0].name}-{target}", case, case.variants[0], where)
    blank = Outcome.blank(cell, "not_run", "")
    nodes = tuple(Node(f"/{at}", operator) for at, operator in enumerate(operators))
    return judge_cell(cell, Outcome(**{**vars(blank), "nodes": nodes}))


def told(*proofs: str, operator: str = "") -> Diagnosis:
    return Diagnosis("id", "", "", "", "", {}, (), proofs, "", operator, "")


@pytest.mark.parametrize(
    ("found", "target", "operators", "proofs"),
    [
        (told("mish.qdq"), "trt106", ("Conv", "Relu"), ("mish.qdq",)),
        # Not measured there, and measured to fail there.
        (told("mish.qdq"), "trt110", ("Conv",), ()),
        (told("mish.qdq"), "rtx16", ("Conv",), ()),
        (told("mish.qdq"), "rtx17", ("Conv",), ("mish.qdq",)),
        (told("q_plugin_dq.q-plugin-dq-int8", operator="CompatIdentity"), "trt106", ("CompatIdentity",), ()),
        # Another operator's.
        (told("mish.qdq", "exporters.swish-written-out", operator="Swish"), "trt106", ("Swish", "Conv"),
         ("exporters.swish-written-out",)),
        (told("mish.qdq", operator="RMSNormalization"), "trt106", ("RMSNormalization", "Conv"), ()),
        (told("mish.qdq"), "trt106", ("MatMul",), ()),
        (told("mish.qdq", operator="Mish"), "trt86", ("Mish", "Conv"), ("mish.qdq",)),
    ],
)  # fmt: skip
def test_a_proof_was_measured_to_work_there(
    found: Diagnosis, target: str, operators: tuple[str, ...], proofs: tuple[str, ...]
) -> None:
    assert proofs_on(found, on(target, *operators), CASES) == proofs

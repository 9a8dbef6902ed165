"""NVIDIA's operator tables against the cells that TensorRT 8.6.1 and 10.6.0 were measured at."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from harness.case import load_cases
from harness.case.measured import FILE, read
from harness.known.listed import State, StaticModel
from harness.matrix import load_matrix
from harness.words import Class

TOP = Path(__file__).parents[2]
MATRIX = load_matrix(TOP / "matrix.yaml")
CASES = {case.name: case for case in load_cases(TOP / "cases")}
#: Refused by the parser, and by no table: operators of other domains, those and the types that came between two tables,
#: inputs of types that do not go together, and a plugin's library that is not loaded.
NOT_LISTED = {
    "trt86": {
        "low_precision_gemm.fp4",
        "ort_output.ort-int32-bias",
        "q_plugin_dq.int8-constant-v3",
        "q_plugin_dq.q-plugin-dq-int8-v3",
    },
    "trt106": {
        "attention.op-*",
        "exporters.swish-op",
        "instance_norm.fp16-fp32-scale",
        "instance_norm.int8-5d-plugin",
        "low_precision_gemm.fp4",
        "low_precision_gemm.fp4-weights",
        "norms.rmsnorm-op-large",
        "ort_output.contrib-rotary",
        "ort_output.ort-int32-bias",
        "ort_output.rotary",
    },
}


@pytest.mark.parametrize("name", ["trt86", "trt106"])
def test_what_a_table_blocks_was_refused_and_what_was_refused_is_blocked(name: str) -> None:
    target = MATRIX.target(name)
    cells = {
        cell: how
        for each in read(TOP / "cases" / FILE)
        if each.target == name
        for cell, how in each.cells.items()
    }
    built, unlisted, blocked = [], [], 0
    for (case, variant), (cls, _) in cells.items():
        found = next(each for each in CASES[case] if each.name == variant)
        model = onnx.load_model_from_string(found.model_bytes())
        answer = StaticModel(model, plugins=bool(found.recipe.plugin)).on(target)
        is_blocked = bool(answer) and answer[0].state is State.BLOCKED
        blocked += is_blocked
        if is_blocked and cls not in (Class.PARSE_FAILED, Class.BUILD_FAILED, Class.API_REMOVED):
            built.append(f"{case}.{variant}")
        if cls is Class.PARSE_FAILED and not is_blocked:
            unlisted.append("attention.op-*" if variant.startswith("op-") else f"{case}.{variant}")
    assert built == []
    assert set(unlisted) <= NOT_LISTED[name]
    assert blocked > 7

"""NVIDIA's operator tables against the cells that TensorRT 8.6.1 and 10.6.0 were measured at."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from harness.case import load_cases
from harness.case.measured import FILE, read
from harness.known.listed import State, StaticModel
from harness.matrix import load_matrix
from harness.matrix.operators import node_tests
from harness.suites.items import find_suite
from harness.words import Class

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
MATRIX = load_matrix(TOP / "matrix.yaml")
CASES = {case.name: case for case in load_cases(TOP / "cases")}
#: Refused by the parser, and by no table: operators of other domains, types that came between two tables, inputs of
#: types that do not go together.
NOT_LISTED = {
    "trt86": {
        "low_precision_gemm.fp4",
        "ort_output.ort-int32-bias",
        "q_plugin_dq.int8-constant-v3",
        "q_plugin_dq.q-plugin-dq-int8-v3",
    },
    "trt106": {
        *("instance_norm.fp16-fp32-scale", "low_precision_gemm.fp4", "low_precision_gemm.fp4-weights"),
        *("ort_output.contrib-rotary", "ort_output.ort-int32-bias"),
    },
}


@pytest.mark.parametrize("name", ["trt86", "trt106"])
def test_what_a_table_blocks_was_refused_and_what_was_refused_is_blocked(name: str) -> None:
    target = MATRIX.target(name)
    cells = {
        cell: how
        for each in read(TOP / "cases" / FILE).measured
        if each.target == name
        for cell, how in each.cells.items()
    }
    built, unlisted, blocked = [], [], 0
    for (case, variant), (cls, *_) in cells.items():
        found = next(each for each in CASES[case] if each.name == variant)
        model = onnx.load_model_from_string(found.model_bytes())
        answer = StaticModel(model, plugins=bool(found.recipe.plugin)).on(target)
        is_blocked = bool(answer) and answer[0].state is State.BLOCKED
        blocked += is_blocked
        if is_blocked and cls not in (Class.PARSE_FAILED, Class.BUILD_FAILED, Class.API_REMOVED):
            built.append(f"{case}.{variant}")
        if cls is Class.PARSE_FAILED and not is_blocked:
            unlisted.append(f"{case}.{variant}")
    assert built == []
    assert set(unlisted) <= NOT_LISTED[name]
    assert blocked > 18


#: By target the tests that did not end as `check` says: a plain type that no table names, axes that are not read, data
#: that hides what is ignored, scales that are network inputs.
OTHERWISE = {
    "trt86": {
        *("resize_downsample_scales_linear_antialias", "resize_downsample_sizes_linear_antialias"),
        *("scatter_elements_with_reduction_min", "shape_clip_end", "shape_clip_start"),
    },
    "trt106": {
        "equal_uint8",
        "reduce_log_sum_exp_default_axes_keepdims_example",
        "reduce_log_sum_exp_default_axes_keepdims_random",
    },
}
_REFUSED = {"parse_failed", "build_failed"}


@pytest.mark.parametrize(("at", "name"), [(0, "trt86"), (1, "trt106")])
def test_a_node_test_is_refused_or_wrong_where_it_is_said_to_be(at: int, name: str) -> None:
    target, models = MATRIX.target(name), {item.id: item.model for item in find_suite("onnx-node").items()}
    told: dict[State, list[str]] = {State.BLOCKED: [], State.IGNORED: []}
    otherwise = set()
    for test in node_tests():
        if test.ends[at] == "-" or test.name not in models:
            continue
        answer = StaticModel(onnx.load_model_from_string(models[test.name])).on(target)
        state = answer[0].state if answer else State.CLEAR
        if state in told:
            told[state].append(test.name)
            if test.ends[at] not in (_REFUSED if state is State.BLOCKED else {"wrong"}):
                otherwise.add(test.name)
    assert otherwise == OTHERWISE[name]
    assert len(told[State.BLOCKED]) > 20

"""The objections of NVIDIA's operator tables to a graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Calibrator, Expectation
from harness.known.listed import KEPT, Objection, State, StaticModel, uses
from harness.matrix import load_matrix
from harness.matrix.operators import operator_tables, restrictions
from harness.models.deciding import Patterns
from harness.models.own.model import Wanted, own_model
from harness.models.static import held_against, static_answers
from harness.words import Basis, Class, Engine
from tests.models import data
from tests.models.test_check import judged
from tests.report.factory import ISSUE

pytestmark = pytest.mark.unit

TARGET = load_matrix(Path(__file__).parents[2] / "matrix.yaml").target("trt86")


def on(version: str, model: onnx.ModelProto) -> tuple[Objection, ...]:
    return StaticModel(model).on(replace(TARGET, version=version))


def states(model: onnx.ModelProto, *versions: str) -> list[str]:
    return [
        str((on(version, model) or (Objection(State.CLEAR, "", "", ""),))[0].state) for version in versions
    ]


def graph(
    op: str,
    given: dict[str, Any],
    *,
    opset: int = 17,
    shape: tuple[int | str, ...] = (2, 4),
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one node on x and constants; a constant of None is a network input of INT64."""
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, shape)]
    inputs += [value(name, TensorProto.INT64, [1]) for name, each in given.items() if each is None]
    held = [
        numpy_helper.from_array(np.asarray(each), name) for name, each in given.items() if each is not None
    ]
    nodes = [helper.make_node(op, ["x", *given], ["y"], name="n", **attributes)]
    made = helper.make_graph(nodes, "g", inputs, [value("y", TensorProto.UNDEFINED, None)], held)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)])


def test_every_restriction_has_its_predicate() -> None:
    facts = {
        fact.condition
        for table in operator_tables()
        for each in table.importers.values()
        for fact in each.facts
    }
    assert set(KEPT) == {*restrictions(), *facts}


def test_an_operator_is_blocked_until_a_table_has_it_and_stays_from_then_on() -> None:
    model = data.model("Gelu", opset=20)
    (found,) = on("8.6.1", model)
    assert (found.state, found.restriction, found.first) == (State.BLOCKED, "no importer", "10.0")
    assert states(model, "10.0.1", "10.3.0", "11.2.1") == ["clear"] * 3


def squeeze(axis: int | str | None, **attributes: Any) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    node = helper.make_node("Squeeze", ["x"], ["y"], name="n", **attributes)
    made = helper.make_graph([node], "g", [value("x", 1, [axis, 8, 1])], [value("y", 1, None)])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 11)])


def test_a_size_that_shape_inference_made_up_may_be_one_that_the_engine_knows() -> None:
    model = squeeze("n")
    model.graph.node[0].input[0] = "z"
    model.graph.node.insert(0, helper.make_node("Concat", ["x", "x"], ["z"], axis=0))
    assert states(model, "8.6.1") == ["restricted"]


def squeezed_rank() -> onnx.ModelProto:
    """Return a model that squeezes the number of a tensor's axes, which shape inference does not know."""
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], name="c", to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["c", "to"], ["r"], name="r"),
        helper.make_node("Shape", ["r"], ["s"], name="s"),
        helper.make_node("Squeeze", ["s"], ["y"], name="n"),
    ]
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [2, 4]), value("to", TensorProto.INT64, ["rank"])]
    made = helper.make_graph(nodes, "g", inputs, [value("y", TensorProto.INT64, None)])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    ("came", "went", "gathered", "told"),
    [([2, 3], [2, 3], 0, "clear"), ([2, 3], [2, 3], 1, "restricted"), (["n"], ["n"], 0, "restricted"),
     ([2, 3], [2, 6], 0, "restricted"), (None, None, 0, "restricted")],
)  # fmt: skip
def test_a_loop_is_restricted_unless_its_body_hands_on_the_sizes_that_it_takes(
    came: list[int | str] | None, went: list[int | str] | None, gathered: int, told: str
) -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", [one], [two]) for one, two in (("c", "d"), ("a", "b"))],
        "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("a", 1, came)],
        [value("d", TensorProto.BOOL, []), value("b", 1, went), *[value("b", 1, went)] * gathered],
    )
    outputs = ["y", "z"][: 1 + gathered]
    node = helper.make_node("Loop", ["m", "", "x"], outputs, name="n", body=body)
    inputs = [value("m", TensorProto.INT64, []), value("x", 1, came)]
    made = helper.make_graph([node], "g", inputs, [value(each, 1, None) for each in outputs])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    assert states(model, "10.0.1", "10.1.0") == ["clear", told]


SCATTERED = {"i": np.zeros((2, 4), np.int64), "u": np.ones((2, 4), np.float32)}


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (graph("ScatterElements", SCATTERED, opset=18, reduction="add"), "ignored ignored restricted unknown clear"),
        (graph("ScatterElements", SCATTERED, opset=18, reduction="none"), "clear clear clear clear clear"),
        (graph("ScatterND", {"i": np.zeros((2, 1), np.int64), "u": SCATTERED["u"]}, opset=18, reduction="add"),
         "ignored ignored blocked blocked blocked"),
        (graph("ScatterND", {"i": np.zeros((2, 1), np.int64), "u": SCATTERED["u"]}, opset=18, reduction="none"),
         "clear clear blocked blocked clear"),
        (squeeze("n"), "blocked blocked blocked blocked blocked"),
        (squeeze(None), "restricted restricted restricted restricted restricted"),
        (squeeze(2), "clear clear clear clear clear"),
        (squeeze("n", axes=[2]), "clear clear clear clear clear"),
        (graph("Shape", {}, start=1), "ignored ignored clear clear clear"),
        (graph("ReduceSum", {}, noop_with_empty_axes=1), "ignored ignored clear clear clear"),
        (graph("ReduceSum", {"a": [0]}, noop_with_empty_axes=1), "clear clear clear clear clear"),
        (graph("ReduceMean", {"a": [0]}, opset=18), "ignored ignored clear clear clear"),
        (graph("ReduceMean", {"a": [-1, 0]}, opset=18), "clear clear clear clear clear"),
        (graph("ReduceMean", {"a": None}, opset=18), "ignored ignored blocked blocked blocked"),
        (graph("ReduceMean", {}, opset=17, axes=[0]), "clear clear clear clear clear"),
        (graph("ReduceLogSum", {"a": [0]}, opset=18), "clear clear clear clear clear"),
        (graph("Split", {}, opset=18, num_outputs=2, axis=1), "clear clear clear clear clear"),
        (graph("Split", {}, opset=18, num_outputs=3, axis=1), "ignored ignored clear clear clear"),
        (graph("Split", {"s": [1, 3]}, opset=18, axis=1), "clear clear clear clear clear"),
        (squeezed_rank(), "clear clear clear clear clear"),
        (graph("MaxPool", {}, shape=(1, 1, 8, 8), kernel_shape=[2, 2], dilations=[2, 2]),
         "blocked blocked blocked blocked blocked"),
        (graph("LpPool", {}, opset=18, shape=(1, 1, 8, 8), kernel_shape=[2, 2], dilations=[2, 2]),
         "ignored ignored blocked blocked blocked"),
        (graph("LpPool", {}, shape=(1, 1, 8, 8), kernel_shape=[2, 2], p=3), "blocked blocked blocked blocked clear"),
        (graph("LpPool", {}, shape=(1, 1, 8, 8), kernel_shape=[2, 2], p=1), "clear clear clear clear clear"),
        (graph("Mod", {"d": np.ones(4, np.float32)}), "blocked blocked blocked blocked clear"),
        (graph("Mod", {"d": np.ones(4, np.float32)}, fmod=1), "clear clear clear clear clear"),
        (graph("BatchNormalization", dict.fromkeys("sbmv", np.ones(4, np.float32)), training_mode=1),
         "blocked blocked blocked blocked clear"),
        (graph("Resize", {"r": np.array([], np.float32), "s": np.ones(2, np.float32)}, opset=18, antialias=1,
               mode="linear"), "ignored ignored blocked blocked blocked"),
    ],
)  # fmt: skip
def test_an_attribute_that_an_importer_does_not_obey_is_told_with_its_source(
    model: onnx.ModelProto, told: str
) -> None:
    """On 8.6, 9.2, 10.0, 10.6 between two tables, and 10.15; each with the address of the importer."""
    versions = ("8.6.1", "9.2.0", "10.0.1", "10.6.0", "10.15.1")
    assert states(model, *versions) == told.split()
    found = on("8.6.1", model)
    assert all("onnx-tensorrt/blob" in str(each.restriction) for each in found)


@pytest.mark.parametrize(
    ("model", "version", "state"),
    [
        # What a fact says ends with its last release, be there a table of that or not.
        (graph("ScatterND", {"i": np.zeros((2, 1), np.int64), "u": SCATTERED["u"]}, opset=18, reduction="none"),
         "10.7.0", "blocked"),
        (graph("ScatterND", {"i": np.zeros((2, 1), np.int64), "u": SCATTERED["u"]}, opset=18, reduction="none"),
         "10.9.0", "clear"),
        (squeeze("n"), "11.4.0", "unknown"),
        (squeeze("n"), "11.5.0", "clear"),
        (graph("BatchNormalization", dict.fromkeys("sbmv", np.ones(4, np.float32)), training_mode=1),
         "8.5.1", "clear"),
        # A changelog dates what the next table has.
        (data.model("RMSNormalization", opset=23), "10.6.0", "blocked"),
        (data.model("RMSNormalization", opset=23), "10.14.1", "blocked"),
        (data.model("HannWindow", opset=17), "10.3.0", "blocked"),
        (data.model("HannWindow", opset=17), "10.6.0", "clear"),
        (data.model("Swish", opset=24), "10.16.1", "blocked"),
        (data.model("Swish", opset=24), "11.0.0", "unknown"),
        (data.model("DFT", opset=20), "11.1.0", "blocked"),
        (data.model("DFT", opset=20), "11.2.1", "unknown"),
    ],
)  # fmt: skip
def test_a_version_between_two_tables_or_beyond_has_its_own_facts(
    model: onnx.ModelProto, version: str, state: str
) -> None:
    assert states(model, version) == [state]


#: By condition of a fact: the attributes that break it.
BROKEN: dict[str, dict[str, Any]] = {
    "no-reduction": {"reduction": "add"},
    "reduction-left-out": {"reduction": "none"},
    "no-antialias": {"antialias": 1},
    "resize-policy": {"keep_aspect_ratio_policy": "not_larger"},
    "whole-shape": {"start": 1},
    "layout-zero": {"layout": 1},
    "noop-without-effect": {"noop_with_empty_axes": 1},
    "dilations-ones": {"dilations": [2, 2]},
    "parts-alike": {"num_outputs": 3},
    "norm-one-or-two": {"p": 3},
    "no-training-mode": {"training_mode": 1},
    "remainder-of-integers": {"fmod": 0},
}
FACTS = sorted(
    {
        (operator, fact.condition)
        for table in operator_tables()
        for operator, importer in table.importers.items()
        for fact in importer.facts
        if operator not in ("If", "Loop")
    }
)


@pytest.mark.parametrize(("operator", "condition"), FACTS)
def test_a_fact_is_told_at_every_opset_that_has_the_attribute_and_of_no_plain_node(
    operator: str, condition: str
) -> None:
    def kept(opset: int, inputs: dict[str, Any], **attributes: Any) -> bool | None:
        shape = ("n", 1) if condition == "axes-or-sizes" else (2, 4)
        model = graph(operator, inputs, opset=opset, shape=shape, **attributes)
        (use,) = uses(model, lambda node: node.name)
        return KEPT[condition](use)

    broken = 0
    for opset in range(1, onnx.defs.onnx_opset_version() + 1):
        if not onnx.defs.has(operator, opset):
            continue
        schema, axes = onnx.defs.get_schema(operator, opset), {"a": np.array([0])}
        as_input = "axes" in [each.name for each in schema.inputs]
        if condition == "axes-or-sizes":
            assert kept(opset, axes if as_input else {}, **({} if as_input else {"axes": [0]}))
            assert kept(opset, {}) is False
        elif condition == "axes-all":
            assert kept(opset, {}, **({} if as_input else {"axes": [0]}))
            assert not as_input or kept(opset, axes) is False
        else:
            usual = {"fmod": 1} if condition == "remainder-of-integers" else {}
            assert kept(opset, {}, **usual)
            has_it = set(BROKEN[condition]) <= set(schema.attributes)
            assert not has_it or kept(opset, {}, **BROKEN[condition]) is False
            broken += has_it
    assert broken or condition.startswith("axes")


def test_a_model_that_cannot_be_read_costs_no_other_its_answer() -> None:
    good = data.model().SerializeToString()
    states = [[each.state for each in held_against(held).on(TARGET)] for held in (good, b"no model", good)]
    assert states == [[], [State.UNKNOWN], []]


def test_beyond_the_last_table_and_between_two_that_disagree_it_is_unknown() -> None:
    assert states(data.model("BitwiseNot", opset=18), "10.15.1", "10.16.1") == ["blocked", "unknown"]
    padded = graph("Pad", {"p": np.zeros(4, np.int64), "v": np.zeros((), np.float32), "a": None}, opset=18)
    assert states(padded, "10.0.1", "10.1.0", "10.15.1") == ["blocked", "blocked", "clear"]
    assert states(padded, "10.3.0") == ["unknown"]


def test_a_type_blocks_only_where_the_row_lacks_it_and_it_is_not_cast() -> None:
    assert states(data.model("Abs", number=TensorProto.BFLOAT16), "8.6.1", "9.2.0") == ["blocked", "clear"]
    assert states(data.model("Abs", number=TensorProto.INT64), "8.6.1") == ["clear"]
    assert states(data.model("Abs", number=TensorProto.DOUBLE), "8.6.1") == ["clear"]
    assert states(data.model("Abs", number=TensorProto.UINT16), "10.15.1") == ["blocked"]


@pytest.mark.parametrize(
    ("model", "state"),
    [
        (graph("TopK", {"k": np.array([3])}), "clear"),
        (graph("TopK", {"k": np.array([4000])}), "blocked"),
        (graph("TopK", {"k": None}), "restricted"),
        (graph("TopK", {"k": np.array([3])}, sorted=0), "blocked"),
        (graph("ReduceSum", {"axes": np.array([1])}), "clear"),
        (graph("ReduceSum", {"axes": None}), "blocked"),
        (graph("Slice", {"s": None, "e": np.array([2]), "a": np.array([0])}), "clear"),
        (graph("Slice", {"s": np.array([0]), "e": np.array([2]), "a": None}), "blocked"),
        (graph("QuantizeLinear", {"s": np.float32(1), "z": np.int8(0)}), "clear"),
        (graph("QuantizeLinear", {"s": np.float32(1), "z": np.int8(3)}), "blocked"),
        (graph("QuantizeLinear", {"s": np.float32(1), "z": np.uint8(0)}), "clear"),
        (
            graph("Resize", {"r": np.array([], np.float32), "s": np.array([1, 2], np.float32)}, mode="cubic"),
            "blocked",
        ),
        (
            graph(
                "Resize", {"r": np.array([], np.float32), "s": np.array([1, 2], np.float32)}, mode="linear"
            ),
            "clear",
        ),
        (graph("MaxPool", {}, shape=(1, 1, 8, 8), kernel_shape=[2, 2], dilations=[2, 2]), "blocked"),
        (graph("MaxPool", {}, shape=(1, 1, 8), kernel_shape=[2]), "clear"),
        (graph("RandomNormalLike", {}, seed=1.0), "restricted"),
    ],
)
def test_a_restriction_blocks_where_the_graph_breaks_it(model: onnx.ModelProto, state: str) -> None:
    assert states(model, "10.1.0") == [state]


def test_nodes_of_branches_and_functions_are_looked_at() -> None:
    value = helper.make_tensor_value_info
    bodies = [
        helper.make_graph([helper.make_node(op, ["x"], [out], name=op)], op, [], [value(out, 1, None)])
        for op, out in (("Det", "a"), ("Relu", "b"))
    ]
    node = helper.make_node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1])
    made = helper.make_graph([node], "g", [value("c", 9, []), value("x", 1, [2, 2])], [value("y", 1, None)])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    assert any(each.operator == "Det" and each.state is State.BLOCKED for each in on("10.1.0", model))

    body = helper.make_function(
        "own", "F", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])], [helper.make_opsetid("", 17)]
    )
    call = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="own")], "g", [value("x", 1, [2])], [value("y", 1, [2])]
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_model(call, opset_imports=imports, functions=[body])
    assert states(function, "8.6.1", "9.2.0") == ["blocked", "clear"]


def test_an_operator_of_another_domain_is_blocked_only_where_no_plugin_can_be_meant() -> None:
    model = data.model("QLinearAdd")
    model.graph.node[0].domain = "com.microsoft"
    assert states(model, "10.1.0") == ["blocked"]
    (meant,) = StaticModel(model, plugins=True).on(replace(TARGET, version="10.1.0"))
    assert meant.state is State.UNKNOWN
    model.graph.node[0].domain = "of.somebody"
    assert states(model, "10.1.0") == ["unknown"]


def test_an_opset_is_remarked_on_only_above_the_highest_of_the_table() -> None:
    said = [
        StaticModel(data.model(opset=opset)).remark(replace(TARGET, version="8.6.1")) for opset in (17, 18)
    ]
    assert (said[0], said[1].split(",")[0]) == ("", "opset 18 is above 17")


def branching(condition: str) -> onnx.ModelProto:
    """Return an If whose branches have unlike ranks, and the first no importer; its condition comes so."""
    value, node = helper.make_tensor_value_info, helper.make_node
    bodies = [
        helper.make_graph([node(op, ["x"], [out], name=op)], op, [], [value(out, 1, shape)])
        for op, out, shape in (("Det", "a", [2]), ("Relu", "b", [2, 3, 3]))
    ]
    nodes = [node("If", ["c"], ["y"], name="if", then_branch=bodies[0], else_branch=bodies[1])]
    sized = [node("Shape", ["x"], ["s"]), node("Size", ["s"], ["r"]), node("Equal", ["r", "two"], ["c"])]
    stored = [numpy_helper.from_array(np.array(2), "two")]
    stored += [numpy_helper.from_array(np.array(False), "c")] if condition == "stored" else []
    inputs = [value("x", 1, [2, 3, 3])] + [value("c", 9, [])] * (condition == "fed")
    nodes = [*sized, *nodes] if condition == "sized" else nodes
    made = helper.make_graph(nodes, "g", inputs, [value("y", 1, None)], stored)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    ("condition", "told"), [("stored", []), ("sized", ["restricted"]), ("fed", ["blocked"])]
)
def test_a_branch_counts_only_if_it_may_be_taken(condition: str, told: list[str]) -> None:
    found = on("10.1.0", branching(condition))
    assert [str(each.state) for each in found if each.operator == "If"] == told
    assert any(each.operator == "Det" for each in found) == (condition != "stored")
    # 8.6.1 was measured to refuse an If of unlike ranks whose condition sizes decide.
    older = [each for each in on("8.6.1", branching(condition)) if each.operator == "If"]
    assert [str(each.state) for each in older] == [] if condition == "stored" else ["blocked"]


def test_a_loop_that_cuts_by_what_it_computes_is_restricted_on_8_6() -> None:
    value, node = helper.make_tensor_value_info, helper.make_node
    for ends, told in ((["s", "e"], "restricted"), (["zero", "one"], "clear")):
        body = helper.make_graph(
            [node("Slice", ["x", *ends, "zero"], ["part"]), node("Identity", ["c"], ["d"]),
             node("ReduceSum", ["part"], ["sum"]), node("Unsqueeze", ["i", "zero"], ["s"]),
             node("Add", ["s", "one"], ["e"])],
            "body",
            [value("i", 7, []), value("c", 9, [])],
            [value("d", 9, []), value("sum", 1, None)],
        )  # fmt: skip
        stored = [numpy_helper.from_array(np.array([each]), name) for each, name in ((0, "zero"), (1, "one"))]
        loop = node("Loop", ["m", ""], ["y"], name="n", body=body)
        made = helper.make_graph(
            [loop], "g", [value("m", 7, []), value("x", 1, [4])], [value("y", 1, None)], stored
        )
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
        assert states(model, "8.6.1") == [told]


def test_a_bias_in_int32_behind_dequantize_linear_is_blocked_everywhere() -> None:
    node = helper.make_node("DequantizeLinear", ["b", "s"], ["y"], name="n")
    stored = [
        numpy_helper.from_array(np.arange(4, dtype=np.int32), "b"),
        numpy_helper.from_array(np.float32(0.1), "s"),
    ]
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", 1, [4])], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert states(model, "8.6.1", "10.0.1", "10.6.0", "10.15.1") == ["blocked"] * 4


NOT_RUN: dict[str, Any] = {"state": "not_run", "reason": "no GPU", "layers": ()}
BUILT: dict[str, Any] = {}


def says(outcome: Class, basis: Basis) -> Expectation:
    link, kind, note = (ISSUE, "users", "") if basis is Basis.REPORTED else (None, None, "Measured.")
    return Expectation(outcome, "", link, basis, note, engine=Engine.TENSORRT_RTX, kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("here", "claims", "told"),
    [
        (NOT_RUN, [says(Class.BUILD_FAILED, Basis.REPORTED)], True),
        (NOT_RUN, [says(Class.BUILD_FAILED, Basis.REPORTED), says(Class.OK, Basis.MEASURED)], False),
        (BUILT, [says(Class.BUILD_FAILED, Basis.REPORTED)], False),
        (BUILT, [says(Class.RUN_FAILED, Basis.REPORTED), says(Class.BUILT, Basis.MEASURED)], True),
        ({"ran": True}, [says(Class.INACCURATE, Basis.REPORTED)], False),
        ({"failed_phase": "build"}, [says(Class.RUN_FAILED, Basis.REPORTED)], False),
    ],
)
def test_a_failure_of_a_pattern_is_told_where_what_is_known_here_leaves_it_open(
    here: dict[str, Any], claims: list[Expectation], told: bool
) -> None:
    own = own_model(data.model(), "m.onnx", Wanted(), name="m")
    each = judged("int8", "int8", **here)
    known = replace(each.cell.case, variants=(replace(own.variant, expectations=tuple(claims)),))
    answer = static_answers([own], [each], Patterns([known]))[each.cell.id]
    assert (answer.state is State.REPORTED) is told


@pytest.mark.parametrize(("mine", "told"), [(None, False), (Calibrator("entropy"), True)])
def test_a_report_of_a_calibrator_is_told_of_a_model_that_is_calibrated(
    mine: Calibrator | None, told: bool
) -> None:
    own = own_model(data.model(), "m.onnx", Wanted(), name="m")
    each = judged("int8", "int8", **NOT_RUN)
    claims = (says(Class.BUILD_FAILED, Basis.REPORTED),)
    reported = replace(
        own.variant, expectations=claims, recipe=replace(own.variant.recipe, calibrator=Calibrator("entropy"))
    )
    mine_too = replace(each.cell.variant, name="m", recipe=replace(each.cell.variant.recipe, calibrator=mine))
    each = replace(each, cell=replace(each.cell, variant=mine_too))
    known = replace(each.cell.case, variants=(reported,))
    answer = static_answers([own], [each], Patterns([known]))[each.cell.id]
    assert (answer.state is State.REPORTED) is told

"""Inputs, reference, comparison, wire form."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.agent.tensors import ELEMENTS, size
from harness.case import Graph, Profile, load_cases
from harness.judge.classify import classify
from harness.record.outcome import End, Node, Outcome
from harness.run.numbers.inputs import NotFeedable, check_sizes, make_inputs
from harness.run.numbers.reference import compare, ranked_outputs, reference
from harness.run.numbers.wire import Array, from_wire, to_wire
from harness.words import Class

pytestmark = pytest.mark.unit
X_VALUES = [-0.6197222471237183, 0.6079039573669434, -0.8587023019790649]
I_VALUES = [3, 7, 0, 7]
CASES = Path(__file__).parents[2] / "cases"


def graph_of_inputs(**inputs: tuple[int, list[int | str]]) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in inputs]
    outputs = [helper.make_tensor_value_info(f"{n}_out", d, s) for n, (d, s) in inputs.items()]
    graph = helper.make_graph(nodes, "g", values, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_inputs_are_fixed_by_name_and_seed() -> None:
    """Another input beside it changes nothing; another name or seed does."""
    one = make_inputs(graph_of_inputs(a=(TensorProto.FLOAT, [64])))
    two = make_inputs(graph_of_inputs(b=(TensorProto.FLOAT, [64]), a=(TensorProto.FLOAT, [64])))
    assert np.array_equal(one["a"], two["a"])
    assert not np.array_equal(two["a"], two["b"])
    assert not np.array_equal(
        one["a"], make_inputs(graph_of_inputs(a=(TensorProto.FLOAT, [64])), seed=1)["a"]
    )


def test_inputs_are_these_numbers_on_every_machine() -> None:
    """A change here makes every recorded accuracy incomparable."""
    found = make_inputs(graph_of_inputs(x=(TensorProto.FLOAT, [3]), i=(TensorProto.INT64, [4])))
    assert found["x"].tolist() == X_VALUES
    assert found["i"].tolist() == I_VALUES


@pytest.mark.parametrize("word", ELEMENTS)
def test_input_types_and_ranges(word: str) -> None:
    """Floats fill [-1, 1], integers [0, 7], as far as the type goes; scales of E8M0 are powers of two up to 1."""
    values = make_inputs(graph_of_inputs(x=(ELEMENTS[word].onnx, [1000])))["x"]
    assert values.dtype.name == word
    assert values.shape == (1000,)
    ranges = {"bool": (0, 1), "int2": (0, 1), "uint2": (0, 3), "float8_e8m0fnu": (0, 1)}
    low, high = ranges.get(word, (-1, 1) if "float" in word else (0, 7))
    as_float = values.astype(np.float64)
    assert as_float.min() >= low
    assert as_float.max() <= high
    assert as_float.max() - as_float.min() > 0.95 * (high - low)


@pytest.mark.parametrize("shape", [[], [0, 3], [2, 1 << 20]])
def test_scalars_empty_tensors_and_more_than_one_chunk(shape: list[int | str]) -> None:
    """However the values are drawn, they are those of one draw."""
    values = make_inputs(graph_of_inputs(x=(TensorProto.FLOAT, shape)))["x"]
    assert list(values.shape) == shape
    key = int.from_bytes(hashlib.sha256(b"0:x").digest()[:8], "little")
    unit = np.random.Generator(np.random.PCG64(key)).random(values.size)
    assert np.array_equal(values.ravel(), (unit * 2 - 1).astype(np.float32))


TIB = 1 << 40


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"x": (1, [TIB])}, "input 'x' has 1099511627776 elements, 4 TiB; the most is 2 GiB"),
        ({"x": (22, [1 << 33])}, "input 'x' has 8589934592 elements, 4 GiB; the most is 2 GiB"),
        ({"x": (1, [1 << 28]), "y": (3, [3 << 29])}, "the inputs have together 2.5 GiB; the most is 2 GiB"),
        ({"x": (1, [2, -1])}, r"input x: a dimension of \[2, -1\] is negative"),
    ],
)
def test_inputs_are_looked_at_before_they_are_made(
    inputs: dict[str, tuple[int, list[int | str]]], said: str
) -> None:
    """Making them would end this process, or take minutes."""
    with pytest.raises(ValueError, match=said):
        make_inputs(graph_of_inputs(**inputs))


def test_the_largest_inputs_are_let_through() -> None:
    found = check_sizes(graph_of_inputs(x=(TensorProto.FLOAT, [(1 << 29) - 1]), e=(1, [0, TIB]), s=(1, [])))
    assert found == {"x": ("float32", ((1 << 29) - 1,)), "e": ("float32", (0, TIB)), "s": ("float32", ())}


def test_a_profile_is_looked_at_too() -> None:
    model = graph_of_inputs(x=(TensorProto.FLOAT, ["n"]))
    with pytest.raises(ValueError, match="input 'x' has 1099511627776 elements"):
        check_sizes(model, (Profile("x", (1,), (TIB,), (TIB,)),))


def test_an_input_without_a_shape_takes_its_profiles() -> None:
    model = graph_of_inputs(x=(TensorProto.FLOAT, [2]))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert check_sizes(model, (Profile("x", (1,), (2,), (3,)),)) == {"x": ("float32", (2,))}
    with pytest.raises(ValueError, match="input x: the model gives it no shape; give it a profile"):
        check_sizes(model)


def tensor(name: str, dims: list[int], data_type: int = TensorProto.FLOAT, **data: Any) -> onnx.TensorProto:
    return TensorProto(name=name, dims=dims, data_type=data_type, **data)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (tensor("w", [TIB], raw_data=b"1234"), "1099511627776 elements of float32, 4 TiB, and holds 4 B"),
        (tensor("w", [TIB], float_data=[1.0]), "1099511627776 elements of float32, 4 TiB, and holds 4 B"),
        (tensor("w", [3], TensorProto.INT4, int32_data=[1]), "3 elements of int4, 2 B, and holds 1 B"),
        (tensor("w", [3]), "3 elements of float32, 12 B, and holds 0 B"),
        (tensor("w", [2], data_location=TensorProto.EXTERNAL), "its data in another file; load it into"),
    ],
)
def test_stored_tensors_hold_what_they_declare(stored: onnx.TensorProto, said: str) -> None:
    model = graph_of_inputs(x=(TensorProto.FLOAT, [2]))
    model.graph.initializer.append(stored)
    with pytest.raises(ValueError, match=f"initialiser 'w' (declares|has) {said}"):
        make_inputs(model)


def test_stored_tensors_are_looked_at_in_every_graph() -> None:
    """A constant in the branch of an If declares as much as it likes."""
    lying = helper.make_node("Constant", [], ["c"], name="lying", value=tensor("", [TIB], raw_data=b"1234"))
    branch = helper.make_graph([lying], "b", [], [])
    model = graph_of_inputs(x=(TensorProto.BOOL, []))
    model.graph.node.append(helper.make_node("If", ["x"], ["i"], then_branch=branch, else_branch=branch))
    with pytest.raises(ValueError, match="attribute 'value' of node 'lying' declares 1099511627776 elements"):
        make_inputs(model)


def test_honest_stored_tensors_are_let_through() -> None:
    model = graph_of_inputs(x=(TensorProto.FLOAT, [2]))
    for word, element in ELEMENTS.items():
        model.graph.initializer.append(
            helper.make_tensor(f"typed {word}", element.onnx, [3], [0, 1, 1] if word != "bool" else [1, 0, 1])
        )
        model.graph.initializer.append(
            tensor(f"raw {word}", [3], element.onnx, raw_data=bytes(size(word, [3])))
        )
    model.graph.initializer.append(tensor("s", [2], TensorProto.STRING, string_data=[b"a", b"b"]))
    assert list(check_sizes(model)) == ["x"]


FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])


@pytest.mark.parametrize(
    ("proto", "said"),
    [
        (helper.make_sequence_type_proto(FLOATS), "is a sequence; the harness feeds tensors alone"),
        (helper.make_optional_type_proto(FLOATS), "is an optional; the harness feeds tensors alone"),
        (helper.make_map_type_proto(TensorProto.INT64, FLOATS), "is a map; the harness feeds tensors alone"),
        (helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2]), "is a sparse tensor; the harness"),
        (onnx.TypeProto(), "is of no type; the harness feeds tensors alone"),
        (helper.make_tensor_type_proto(TensorProto.STRING, [2]), "is a tensor of string; the harness"),
        (helper.make_tensor_type_proto(TensorProto.COMPLEX64, [2]), "is a tensor of complex64; the"),
        (helper.make_tensor_type_proto(99, [2]), "is a tensor of element type 99; the harness feeds"),
    ],
)
def test_what_is_no_tensor_of_numbers_is_not_fed(proto: onnx.TypeProto, said: str) -> None:
    model = graph_of_inputs(x=(TensorProto.FLOAT, [2]))
    model.graph.input[0].type.CopyFrom(proto)
    with pytest.raises(NotFeedable, match=f"^input 'x' {said}"):
        make_inputs(model)


def test_dynamic_dimensions_take_the_profiles_optimum() -> None:
    model = graph_of_inputs(x=(TensorProto.FLOAT, ["n", 3]))
    assert make_inputs(model, (Profile("x", (1, 3), (4, 3), (8, 3)),))["x"].shape == (4, 3)
    with pytest.raises(ValueError, match="input x: dimension 'n' is dynamic"):
        make_inputs(model)
    with pytest.raises(ValueError, match=r"profile has 1 dimensions, the model 2"):
        make_inputs(model, (Profile("x", (1,), (4,), (8,)),))


def test_initialisers_listed_as_inputs_get_no_values() -> None:
    """IR versions before 4 list them among the inputs."""
    model = graph_of_inputs(x=(TensorProto.FLOAT, [2]), w=(TensorProto.FLOAT, [2]))
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0]))
    assert list(make_inputs(model)) == ["x"]


def quantised(scale: list[float]) -> onnx.ModelProto:
    g = Graph("qdq")
    x = g.input("x", [1, len(scale), 2])
    x = g.quantize(x, name="q", scale=scale)
    g.dequantize(x, name="dq", scale=scale, output="y", prefix="x")
    g.output("y", [1, len(scale), 2])
    return g.model()


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_the_reference_norms_in_fp32(op: str) -> None:
    """Squares that leave FP16 stay numbers, and the result is in FP16 again."""
    g = Graph("norm", opset=23)
    x = g.input("x", [1, 2], TensorProto.FLOAT16)
    g.node(op, [x, g.constant("s", [1.0, 1.0], [2], TensorProto.FLOAT16)], name="n", output="y")
    g.output("y", [1, 2], TensorProto.FLOAT16)
    found = reference(g.model(), {"x": np.array([[600.0, -600.0]], np.float16)})
    assert found.outputs is not None
    assert found.outputs["y"].dtype == np.float16
    assert found.outputs["y"].tolist() == [[1.0, -1.0]]


def test_the_reference_gives_marked_tensors_too() -> None:
    found = reference(quantised([0.5]), {"x": np.ones((1, 1, 2), np.float32)}, also=("q_output_0",))
    assert found.outputs is not None
    assert found.outputs["q_output_0"].tolist() == [[[2, 2]]]


def test_no_reference_for_foreign_operators_and_bad_graphs() -> None:
    """There is a reason instead, and no exception."""
    g = Graph("foreign")
    g.node("Mine", [g.input("x", [1])], name="m", output="y", domain="compat")
    g.output("y", [1])
    found = reference(g.model(), {"x": np.ones(1, np.float32)})
    assert found.outputs is None
    assert "compat::Mine" in found.reason
    missing = reference(quantised([0.5]), {})
    assert missing.outputs is None
    assert missing.reason.startswith("the reference evaluator")


def test_the_reference_leaves_out_what_is_no_tensor_of_numbers() -> None:
    """A sequence and strings beside a tensor; alone they are the reason why there is no reference."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["sequence"]),
        helper.make_node("Cast", ["x"], ["strings"], to=TensorProto.STRING),
        helper.make_node("Neg", ["x"], ["y"]),
    ]
    sequence = helper.make_tensor_sequence_value_info("sequence", TensorProto.FLOAT, None)
    strings = helper.make_tensor_value_info("strings", TensorProto.STRING, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    for outputs, names in (([sequence, strings, y], ["y"]), ([sequence, strings], [])):
        graph = helper.make_graph(nodes, "g", [x], outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        found = reference(model, make_inputs(model))
        assert list(found.outputs or {}) == names
        assert found.reason == ("" if names else "no output of the graph is a tensor of numbers")


def arrays(*values: float) -> dict[str, np.ndarray]:
    return {"y": np.array(values, np.float32)}


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("right", "actual", "figures"),
    [
        pytest.param(
            [1, -2, 3], [1, -2, 3], {"max_abs": 0, "max_rel": 0, "not_finite": 0, "cosine": 1}, id="equal"
        ),
        pytest.param(
            [3, -4], [3, -5], {"max_abs": 1, "max_rel": 0.25, "cosine": 29 / (5 * 34**0.5)}, id="one off"
        ),
        pytest.param([1, 2], [10, 20], {"cosine": 1}, id="the cosine sees direction alone"),
        pytest.param([1, 2], [-1, -2], {"cosine": -1}, id="the other direction"),
        pytest.param(
            [1, 2, 3, 4], [1, NAN, INF, 5], {"not_finite": 2, "max_abs": 1, "max_rel": 0.25}, id="left out"
        ),
        pytest.param([1, 2], [NAN, NAN], {"not_finite": 2, "cosine": 0}, id="nothing finite"),
        pytest.param(
            [1, NAN, INF], [1, NAN, 7], {"not_finite": 0, "max_abs": 0}, id="the reference is not finite"
        ),
        pytest.param([0, 0], [0, 0], {"cosine": 1}, id="zeros"),
        pytest.param(
            [0, 0], [0, 0.5], {"max_abs": 0.5, "max_rel": 0.5, "cosine": 0}, id="zeros have no magnitude"
        ),
        pytest.param([1, 2], [1, 2, 3], {"shape_matches": False}, id="another shape"),
        pytest.param([], [], {"cosine": 1}, id="empty"),
    ],
)
def test_figures(right: list[float], actual: list[float], figures: dict[str, float]) -> None:
    """max_rel is over the reference's largest magnitude."""
    (found,) = compare(arrays(*right), arrays(*actual))
    assert {name: getattr(found, name) for name in figures} == pytest.approx(figures, abs=1e-12)


def test_extremes_stay_finite() -> None:
    """Figures are written to JSON, which has no infinity."""
    big = float(np.finfo(np.float32).max)
    (found,) = compare(arrays(big, -big), arrays(-big, big))
    assert all(np.isfinite([found.max_abs, found.max_rel, found.cosine]))
    assert found.cosine == pytest.approx(-1.0)
    big = float(np.finfo(np.float64).max)
    (found,) = compare({"y": np.array([big, 1e-300])}, {"y": np.array([-big, 1e300])})
    assert (found.max_abs, found.max_rel) == (big, 1.0)
    (found,) = compare({"y": np.array([1e-300])}, {"y": np.array([1e300])})
    assert (found.max_abs, found.max_rel) == (1e300, big)


def test_outputs_are_those_of_the_reference() -> None:
    assert not compare(arrays(1), {})[0].shape_matches
    found = compare({**arrays(1), "z": np.ones(1)}, {"z": np.ones(1), **arrays(1)})
    assert [each.output for each in found] == ["y", "z"]


@pytest.mark.parametrize("word", ELEMENTS)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_wire_round_trip(word: str, shape: tuple[int, ...]) -> None:
    array = make_inputs(graph_of_inputs(x=(ELEMENTS[word].onnx, list(shape))))["x"]
    wire = to_wire(array)
    assert wire[:2] == (word, shape)
    assert len(wire[2]) == size(word, shape)
    back = from_wire(*wire)
    assert back.dtype == array.dtype
    assert back.shape == shape
    assert np.array_equal(back, array)
    (same,) = compare({"y": array}, {"y": back})
    assert (same.max_abs, same.cosine, same.not_finite, same.shape_matches) == (0, 1, 0, True)


def test_wire_is_little_endian_and_row_major() -> None:
    assert to_wire(np.array([1, 2], ">i4"))[2] == bytes.fromhex("0100000002000000")
    assert to_wire(np.arange(4, dtype=np.int8).reshape(2, 2).T)[2] == bytes([0, 2, 1, 3])


@pytest.mark.parametrize(
    ("word", "data", "values"),
    [
        ("bfloat16", "803f00c0", [1.0, -2.0]),
        ("float8_e4m3fn", "38bc", [1.0, -1.5]),
        ("float8_e5m2", "3cbe", [1.0, -1.5]),
        ("int4", "210d", [1, 2, -3]),
        ("uint4", "210d", [1, 2, 13]),
        ("float4_e2m1fn", "a203", [1.0, -1.0, 1.5]),
    ],
)
def test_wire_is_as_onnx_and_the_engines_hold_it(word: str, data: str, values: list[float]) -> None:
    """Elements of less than a byte are packed, the first in the lowest bits."""
    array = from_wire(word, (len(values),), bytes.fromhex(data))
    assert array.astype(np.float64).tolist() == values
    assert to_wire(array)[2].hex() == data


@pytest.mark.parametrize("what", ["complex64", "str", "object"])
def test_types_without_a_wire_form(what: str) -> None:
    with pytest.raises(ValueError, match="has no wire form; it is one of float32"):
        to_wire(np.ones(1, what))
    with pytest.raises(ValueError, match=what):
        from_wire(what, (1,), b"12345678")


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        ("float32", (3,), b"1234"),
        ("float32", (-1,), b"1234"),
        ("float32", (1,), b"12345678"),
        ("int4", (3,), b"123"),
    ],
)
def test_bytes_that_do_not_fill_the_shape(dtype: str, shape: tuple[int, ...], data: bytes) -> None:
    with pytest.raises(ValueError, match=f"{len(data)} bytes do not fill the shape"):
        from_wire(dtype, shape, data)


@pytest.mark.parametrize("damage", ["permuted channels", "one channel zero", "scaled", "sign"])
def test_the_int8_tolerance_still_sees_a_wrong_kernel(damage: str) -> None:
    """On the real graph of a case: the loosest tolerance in use must not hide a wrong result."""
    variant = next(v for case in load_cases(CASES) if case.name == "mish" for v in case if v.name == "qdq")
    model = variant.build()
    outputs = reference(model, make_inputs(model)).outputs
    assert outputs is not None
    right = next(iter(outputs.values()))
    wrong = {
        "permuted channels": np.roll(right, 1, axis=1),
        "one channel zero": right
        * (np.arange(right.shape[1]) != np.abs(right).max(axis=(0, 2, 3)).argmax())[:, None, None],
        "scaled": right * 1.5,
        "sign": -right,
    }[damage]
    record = Outcome(
        "c.v-t", "c", "v", "t", "done", end=End("finished"), ran=True, nodes=(Node("q", "QuantizeLinear"),)
    )
    for actual, cls in ((right, Class.OK), (wrong, Class.INACCURATE)):
        found = classify(Outcome(**{**record.__dict__, "accuracy": compare({"y": right}, {"y": actual})}))
        assert found.cls is cls


def test_the_reference_sorts_and_puts_functions_in_place() -> None:
    """Nodes out of order, in a function of the model's own."""
    nodes = [helper.make_node("Relu", ["b"], ["y"]), helper.make_node("twice", ["x"], ["b"], domain="own")]
    function = helper.make_function(
        "own",
        "twice",
        ["a"],
        ["o"],
        [helper.make_node("Add", ["a", "a"], ["o"])],
        [helper.make_opsetid("", 17)],
    )
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)
    found = reference(model, {"x": np.array([1, -1], np.float32)}).outputs
    assert found is not None
    assert found["y"].tolist() == [2, 0]


def test_functions_that_call_one_another_without_end_have_no_reference() -> None:
    own = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    functions = [
        helper.make_function(
            "my", name, ["x"], ["y"], [helper.make_node(other, ["x"], ["y"], domain="my")], own
        )
        for name, other in (("A", "B"), ("B", "A"))
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("A", ["x"], ["y"], domain="my")], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, functions=functions, opset_imports=own)
    found = reference(model, {"x": np.ones(1, np.float32)})
    assert found.outputs is None
    assert "functions" in found.reason


@pytest.mark.parametrize(
    ("kind", "differing"), [("int64", 1), ("int32", 1), ("bool", 1), ("int8", None), ("float32", None)]
)
def test_of_indices_it_counts_those_that_differ(kind: str, differing: int | None) -> None:
    wanted, got = np.array([0, 1, 1, 0]).astype(kind), np.array([0, 1, 0, 0]).astype(kind)
    (found,) = compare({"y": wanted}, {"y": got})
    assert (found.elements, found.differing) == (4, differing)


def test_the_evaluator_s_own_errors_never_come_out_but_the_node_does() -> None:
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Reshape", ["x", "to"], ["y"], name="odd")]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [4]), value("to", 7, [1])], [value("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    found = reference(model, {"x": np.ones(4, np.float32), "to": np.array([3])})
    assert (found.outputs, found.node, found.operator) == (None, "odd", "Reshape")
    assert "cannot reshape" not in found.reason


RANKED = frozenset({"boxes", "scores"})
RANDOM = np.random.default_rng(7)


def detections(many: int = 50) -> dict[str, Array]:
    scores = np.sort(RANDOM.random((1, many)).astype(np.float32))[:, ::-1]
    return {"boxes": (RANDOM.random((1, many, 4)) * 640).astype(np.float32), "scores": scores.copy()}


def swapped(given: dict[str, Array], *names: str) -> dict[str, Array | None]:
    """Return outputs with two rows in the other's place in some of them."""
    found = {name: each.copy() for name, each in given.items()}
    for name in names:
        found[name][:, [3, 4]] = found[name][:, [4, 3]]
    return dict(found)


def worst(expected: dict[str, Array], actual: dict[str, Array | None]) -> float:
    return max(each.max_rel for each in compare(expected, actual, RANKED))


def test_rows_that_tie_may_come_in_another_order() -> None:
    expected = detections()
    expected["scores"][0, 4] = expected["scores"][0, 3]
    assert worst(expected, swapped(expected, "boxes", "scores")) == 0
    # By place alone they are wrong.
    assert compare(expected, swapped(expected, "boxes", "scores"))[0].max_rel > 0.01


def test_a_list_of_nothing_is_left_as_it_is() -> None:
    empty: dict[str, Array] = {"boxes": np.zeros((1, 3, 0), np.float32)}
    assert worst(empty, dict(empty)) == 0


def test_a_row_beside_another_s_score_is_wrong() -> None:
    """The boxes alone are swapped: each then has the score of the other."""
    expected = detections()
    expected["scores"][0, 3], expected["scores"][0, 4] = 0.95, 0.5
    assert worst(expected, swapped(expected, "boxes")) > 0.1


def test_a_row_that_is_another_one_is_wrong_unless_it_ties_with_the_last() -> None:
    expected = detections()
    for at, wrong in ((2, True), (49, False)):
        other = swapped(expected)
        boxes = other["boxes"]
        assert boxes is not None
        boxes[0, at] += 320
        assert (worst(expected, other) > 0.1) == wrong


def test_outputs_behind_a_rank_are_found_unless_something_joins_their_rows() -> None:
    value, node = helper.make_tensor_value_info, helper.make_node
    nodes = [
        node("TopK", ["x", "k"], ["v", "i"]),
        node("Sigmoid", ["v"], ["scores"]),
        node("ReduceSum", ["v"], ["sum"]),
        node("Relu", ["x"], ["plain"]),
    ]
    outputs = [value(name, 1, None) for name in ("scores", "sum", "plain")]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, 9]), value("k", 7, [1])], outputs)
    assert ranked_outputs(helper.make_model(graph)) == {"scores"}
    assert isinstance(graph, onnx.GraphProto)

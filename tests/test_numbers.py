"""Inputs, reference, comparison, wire form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.case import Graph, Profile, load_cases
from harness.classify import classify
from harness.numbers import compare, from_wire, make_inputs, reference, round_to_bfloat16, to_wire
from harness.outcome import End, Node, Outcome
from harness.words import Class

pytestmark = pytest.mark.unit
X_VALUES = [-0.6197222471237183, 0.6079039573669434, -0.8587023019790649]
I_VALUES = [3, 7, 0, 7]
CASES = Path(__file__).parents[1] / "cases"


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


@pytest.mark.parametrize(
    ("elem_type", "dtype"),
    [
        (TensorProto.FLOAT, np.float32),
        (TensorProto.FLOAT16, np.float16),
        (TensorProto.DOUBLE, np.float64),
        (TensorProto.INT8, np.int8),
        (TensorProto.UINT8, np.uint8),
        (TensorProto.INT32, np.int32),
        (TensorProto.INT64, np.int64),
        (TensorProto.BOOL, np.bool_),
        (TensorProto.BFLOAT16, np.float32),
    ],
)
def test_input_types_and_ranges(elem_type: int, dtype: type[np.generic]) -> None:
    """Floats fill [-1, 1], integers [0, 7]."""
    values = make_inputs(graph_of_inputs(x=(elem_type, [1000])))["x"]
    assert values.dtype == dtype
    assert values.shape == (1000,)
    low, high = {"f": (-1, 1), "b": (0, 1)}.get(values.dtype.kind, (0, 7))
    as_float = values.astype(np.float64)
    assert as_float.min() >= low
    assert as_float.max() <= high
    assert as_float.max() - as_float.min() > 0.95 * (high - low)


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


def test_the_reference_quantises_where_the_graph_says() -> None:
    """Per channel, half to even, saturating, in opset 13, which the evaluator cannot do by itself."""
    x = np.array([[[0.25, 0.75], [0.4, 100.0]]], np.float32)
    found = reference(quantised([0.5, 0.1]), {"x": x})
    assert found.outputs is not None
    assert np.allclose(found.outputs["y"], [[[0.0, 1.0], [0.4, 12.7]]])


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
    assert missing.reason.startswith("the reference evaluator failed")


def arrays(*values: float) -> dict[str, np.ndarray]:
    return {"y": np.array(values, np.float32)}


def test_equal_is_exact() -> None:
    (found,) = compare(arrays(1, -2, 3), arrays(1, -2, 3))
    assert (found.max_abs, found.max_rel, found.not_finite, found.shape_matches) == (0, 0, 0, True)
    assert found.cosine == pytest.approx(1.0, abs=1e-12)


def test_figures() -> None:
    """max_rel is over the reference's largest magnitude; the cosine sees direction alone."""
    (found,) = compare(arrays(3, -4), arrays(3, -5))
    assert found.max_abs == 1
    assert found.max_rel == 0.25
    assert found.cosine == pytest.approx(29 / (5 * 34**0.5))
    assert compare(arrays(1, 2), arrays(10, 20))[0].cosine == pytest.approx(1.0)
    assert compare(arrays(1, 2), arrays(-1, -2))[0].cosine == pytest.approx(-1.0)


def test_nan_and_infinity_are_counted_and_left_out() -> None:
    nan, inf = float("nan"), float("inf")
    (found,) = compare(arrays(1, 2, 3, 4), arrays(1, nan, inf, 5))
    assert (found.not_finite, found.max_abs, found.max_rel) == (2, 1, 0.25)
    (all_nan,) = compare(arrays(1, 2), arrays(nan, nan))
    assert (all_nan.not_finite, all_nan.cosine) == (2, 0.0)


def test_where_the_reference_is_not_finite_nothing_is_held_against_the_engine() -> None:
    nan, inf = float("nan"), float("inf")
    (found,) = compare(arrays(1, nan, inf), arrays(1, nan, 7))
    assert (found.not_finite, found.max_abs) == (0, 0)


def test_a_zero_reference_has_no_magnitude() -> None:
    assert compare(arrays(0, 0), arrays(0, 0))[0].cosine == 1.0
    (found,) = compare(arrays(0, 0), arrays(0, 0.5))
    assert (found.max_abs, found.max_rel, found.cosine) == (0.5, 0.5, 0.0)


def test_extremes_stay_finite() -> None:
    """Figures are written to JSON, which has no infinity."""
    big = float(np.finfo(np.float32).max)
    (found,) = compare(arrays(big, -big), arrays(-big, big))
    assert all(np.isfinite([found.max_abs, found.max_rel, found.cosine]))
    assert found.cosine == pytest.approx(-1.0)


def test_shapes_and_missing_outputs() -> None:
    assert not compare(arrays(1, 2), arrays(1, 2, 3))[0].shape_matches
    assert not compare(arrays(1), {})[0].shape_matches
    assert [a.output for a in compare({**arrays(1), "z": np.ones(1)}, {"z": np.ones(1), **arrays(1)})] == [
        "y",
        "z",
    ]
    assert compare({"y": np.ones((0, 3))}, {"y": np.ones((0, 3))})[0].cosine == 1.0


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_wire_round_trip(name: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(name)
    wire = to_wire(array)
    assert wire[:2] == (name, shape)
    back = from_wire(*wire)
    assert back.dtype == array.dtype
    assert back.shape == shape
    assert np.array_equal(back, array)


def test_wire_is_little_endian_and_row_major() -> None:
    assert to_wire(np.array([1, 2], ">i4"))[2] == bytes.fromhex("0100000002000000")
    assert to_wire(np.arange(4, dtype=np.int8).reshape(2, 2).T)[2] == bytes([0, 2, 1, 3])


def test_bfloat16_rounds_to_nearest_even() -> None:
    """Ties by the bits: 1 + 2^-8 lies half way and goes down to even, 1 + 3 * 2^-8 up."""
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-7, -3.14159, np.inf, np.nan], np.float32)
    found = round_to_bfloat16(values)
    assert found[:6].tolist() == [1.0, 1.0, 1 + 2**-6, 1 + 2**-7, -3.140625, np.inf]
    assert np.isnan(found[6])
    assert to_wire(np.array([1.0, -2.0], np.float32), dtype="bfloat16") == (
        "bfloat16",
        (2,),
        bytes.fromhex("803f00c0"),
    )
    assert from_wire("bfloat16", (2,), bytes.fromhex("803f00c0")).tolist() == [1.0, -2.0]
    assert round_to_bfloat16(np.float32(1.0)).shape == ()


@pytest.mark.parametrize("what", ["float64", "complex64"])
def test_types_without_a_wire_form(what: str) -> None:
    with pytest.raises(ValueError, match=what):
        to_wire(np.ones(1, what))
    with pytest.raises(ValueError, match=what):
        from_wire(what, (1,), b"12345678")


def test_bytes_that_do_not_fill_the_shape() -> None:
    with pytest.raises(ValueError, match=r"."):
        from_wire("float32", (3,), b"1234")


def test_every_case_has_a_reference_or_says_why() -> None:
    """Of what ONNX's own evaluator does not know nothing can be said."""
    without = set()
    for case in load_cases(CASES):
        for variant in case:
            model = variant.build()
            found = reference(
                model, make_inputs(model, variant.recipe.profiles), also=variant.recipe.mark_outputs
            )
            if found.outputs is None:
                without.add(found.reason)
            else:
                assert all(np.isfinite(np.asarray(v, np.float64)).all() for v in found.outputs.values())
    assert all("does not know" in reason or "evaluator failed" in reason for reason in without)
    assert len(without) <= 2, without


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
        "c[v]-t", "c", "v", "t", "done", end=End("finished"), ran=True, nodes=(Node("q", "QuantizeLinear"),)
    )
    for actual, cls in ((right, Class.OK), (wrong, Class.INACCURATE)):
        found = classify(Outcome(**{**record.__dict__, "accuracy": compare({"y": right}, {"y": actual})}), {})
        assert found.cls is cls

"""The bytes of elements: those of onnx's own types, for every type that a case may have."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from harness.case import Graph, Quantiser
from harness.case.graph import FIRST_IR, elements

pytestmark = pytest.mark.unit

FLOATS = [
    *(TensorProto.BFLOAT16, TensorProto.FLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT4E2M1),
    TensorProto.DOUBLE,
]
#: The largest number of the small floats.
LARGEST: dict[int, float] = {TensorProto.FLOAT4E2M1: 6.0, TensorProto.FLOAT8E4M3FN: 448.0}
HALF = Quantiser(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT16)


def read(values: list[float], dtype: int) -> np.ndarray:
    return numpy_helper.to_array(numpy_helper.from_array(elements(values, dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_rounded_as_numpy_rounds_them(dtype: int) -> None:
    """The nearest number, the even one between two, subnormal ones and the largest too."""
    largest = LARGEST.get(dtype, 1000.0)
    generator = np.random.default_rng(7)
    values = [
        *np.linspace(-largest, largest, 1025),
        *generator.normal(0, 0.01, 200),
        0.0,
        0.25,
        0.75,
        1.75,
        2.5,
    ]
    exact = np.array(values, np.float32)
    wanted = exact.astype(helper.tensor_dtype_to_np_dtype(dtype)).astype(np.float32)
    assert np.array_equal(read(exact.tolist(), dtype).astype(np.float32), wanted)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT4E2M1])
def test_what_is_too_large_becomes_the_largest(dtype: int) -> None:
    """A quantiser saturates; nothing becomes infinite or no number."""
    assert float(read([-1e9], dtype)[0]) == -LARGEST[dtype]


@pytest.mark.parametrize(
    ("dtype", "values"), [(TensorProto.INT4, [-8, 7, -1]), (TensorProto.UINT4, [0, 15, 8])]
)
def test_halves_of_bytes_keep_their_order_and_sign(dtype: int, values: list[float]) -> None:
    """Elements of 4 bits come back, also an odd number of them."""
    assert [int(each) for each in read(values, dtype)] == values


def stored(shape: tuple[int, int], *, axis: int, block: int, to: Quantiser) -> dict[str, np.ndarray]:
    g = Graph("g", opset=21)
    x = g.input("x", [1, shape[0]], to.scale_type)
    g.node(
        "MatMul",
        [x, g.stored_weight("w", shape, name="/dq", axis=axis, block=block, to=to)],
        name="",
        output="y",
    )
    g.output("y", [1, shape[1]], to.scale_type)
    return {each.name: numpy_helper.to_array(each) for each in g.model().graph.initializer}


@pytest.mark.parametrize("axis", [0, 1])
def test_a_block_has_a_scale_of_its_own(axis: int) -> None:
    """Each scale is the largest magnitude of its block over the type's largest, along either axis."""
    given = stored((8, 12), axis=axis, block=4, to=Quantiser(TensorProto.INT4))
    plain = Graph("g")
    plain.weight("w", (8, 12))
    exact = numpy_helper.to_array(plain.body().initializer[0])
    parts = np.abs(exact).reshape((2, 4, 12) if axis == 0 else (8, 3, 4)).max(axis=axis + 1)
    assert given["w_scale"] == pytest.approx(parts / 7)
    spread = np.repeat(given["w_scale"], 4, axis=axis)
    assert np.all(np.abs(given["w"].astype(np.float32) * spread - exact) <= spread * 0.500001)


def test_blocks_must_fit() -> None:
    """An axis that is no whole number of blocks is a mistake of the case."""
    with pytest.raises(ValueError, match="has no blocks of 5"):
        stored((8, 12), axis=0, block=5, to=Quantiser(TensorProto.INT4))


def test_scales_and_zero_points_have_their_types() -> None:
    """FP8 with FP16 scales; a zero point that is not 0; a scale that is a vector of one element."""
    g = Graph("g", opset=19)
    x = g.input("x", [1, 2, 4, 4], TensorProto.FLOAT16)
    x = g.qdq(x, name="/a", scale=0.5, to=HALF)
    weight = g.weight_qdq(g.weight("w", (2, 2, 3, 3), dtype=TensorProto.FLOAT16), name="/w", to=HALF)
    g.conv(x, weight, name="/conv", output="y")
    g.output("y", [1, 2, 4, 4], TensorProto.FLOAT16)
    model = g.model()
    types = {each.name: (each.data_type, list(each.dims)) for each in model.graph.initializer}
    assert types["/a_scale"] == (TensorProto.FLOAT16, [])
    assert types["/w_zero_point"] == (TensorProto.FLOAT8E4M3FN, [2])
    assert model.ir_version == FIRST_IR[TensorProto.FLOAT8E4M3FN]

    odd = Graph("g")
    odd.qdq(odd.input("x", [1, 2]), name="/a", scale=(0.5,), to=Quantiser(TensorProto.UINT8, zero_point=128))
    values = {each.name: numpy_helper.to_array(each) for each in odd.body().initializer}
    assert values["/a_zero_point"].tolist() == [128]
    assert values["/a_scale"].shape == (1,)


@pytest.mark.parametrize(("opset", "ir"), [(13, 8), (17, 8), (19, 9), (21, 10), (23, 11), (24, 12)])
def test_the_ir_is_the_oldest_that_has_the_opset(opset: int, ir: int) -> None:
    """TensorRT 8.5 reads IR 8; what needs none newer gets it."""
    g = Graph("g", opset=opset)
    g.node("Relu", [g.input("x", [1])], name="", output="y")
    g.output("y", [1])
    assert g.model().ir_version == ir


def test_subgraphs_and_several_outputs() -> None:
    """An If between two bodies over a Split's halves passes the checker and runs in the reference."""
    g = Graph("g", opset=18)
    x, condition = g.input("x", [4]), g.input("c", [], TensorProto.BOOL)
    low, high = g.node_of_several("Split", [x], 2, name="/split", axis=0, num_outputs=2)
    branches = []
    for name, half in (("then", low), ("else", high)):
        branch = Graph(name)
        branch.node("Neg", [half], name=f"/{name}", output=name)
        branch.output(name, [2])
        branches.append(branch.body())
    g.node("If", [condition], name="/if", output="y", then_branch=branches[0], else_branch=branches[1])
    g.output("y", [2])
    evaluator = ReferenceEvaluator(g.model())
    for taken, wanted in ((True, [-1, -2]), (False, [-3, -4])):
        fed = {"x": np.array([1, 2, 3, 4], np.float32), "c": np.array(taken)}
        assert np.array_equal(np.asarray(evaluator.run(None, fed)), [wanted])


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_convolutions_of_every_dimension(dimensions: int) -> None:
    """A convolution keeps the size, a transposed one doubles it; the checker holds the declared shapes."""
    g = Graph("g")
    x = g.input("x", [1, 2, *[8] * dimensions])
    y = g.conv(x, g.weight("w", (4, 2, *[3] * dimensions)), name="/conv", dimensions=dimensions)
    weight = g.weight("v", (4, 1, *[4] * dimensions))
    g.conv_transpose(y, weight, name="/up", group=2, dimensions=dimensions, output="y")
    g.output("y", [1, 2, *[16] * dimensions])
    g.model()

"""The reference against ONNX Runtime without its optimisations: each operator at each opset that changed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from harness.run.numbers.reference import compare, reference
from harness.run.numbers.wire import Array

pytestmark = pytest.mark.unit

OPSETS = (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21)
#: Relative to the largest value of an output. The engines are allowed 1e-3 and more.
TOLERANCE = 1e-4
#: Forms without a reference, by label.
UNCOMPARED = {"Resize linear align_corners 1.5", "Upsample linear"}

Opset = int
Made = Mapping[str, Any]


def normal(*shape: int, seed: int = 5) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(low: int, high: int, shape: tuple[int, ...], dtype: type = np.int8) -> Array:
    return np.random.default_rng(7).integers(low, high, shape).astype(dtype)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


X = normal(2, 4, 9, 9)


@dataclass(frozen=True)
class Form:
    """One use of an operator: `data` are fed, `constants` are initializers behind them; None leaves one out."""

    operator: str
    label: str = ""
    data: tuple[Array, ...] = (X,)
    constants: tuple[Array | None, ...] = ()
    opsets: range = range(8, 99)
    outputs: int = 1
    attributes: Made = field(default_factory=dict)

    def model(self, opset: Opset) -> tuple[onnx.ModelProto, dict[str, Array]]:
        fed = {f"x{at}": value for at, value in enumerate(self.data)}
        constants = {f"c{at}": value for at, value in enumerate(self.constants) if value is not None}
        names = [*fed, *(f"c{at}" if f"c{at}" in constants else "" for at in range(len(self.constants)))]
        results = [f"y{at}" for at in range(self.outputs)]
        graph = helper.make_graph(
            [helper.make_node(self.operator, names, results, **self.attributes)],
            "form",
            [_value(name, value) for name, value in fed.items()],
            [onnx.ValueInfoProto(name=name) for name in results],
            [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model), fed


def _value(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def form(operator: str, label: str = "", *, since: int = 8, until: int = 98, **more: Any) -> Form:
    known = {key: more.pop(key) for key in ("data", "constants", "outputs") if key in more}
    return Form(operator, label, opsets=range(since, until + 1), attributes=more, **known)


def elementwise() -> Iterator[Form]:
    for operator in ("HardSigmoid", "Selu", "Softplus", "Softsign", "Dropout"):
        yield form(operator)
    yield form("Elu", alpha=0.7)
    yield form("LeakyRelu", alpha=0.2)
    yield form("ThresholdedRelu", since=10)
    yield form("Shrink", since=9, lambd=0.5, bias=0.1)
    yield form("HardSwish", since=14)
    yield form("Mish", since=18)
    yield form("PRelu", constants=(np.abs(normal(4, 1, 1)),))
    yield form("Clip", until=10, min=0.0, max=6.0)
    yield form("Clip", since=11, constants=(np.float32(0), np.float32(6)))
    yield form("Mean", since=9, data=(X, X * 2))
    yield form("Mod", since=11, data=(X, X[::-1] + 3), fmod=1)
    yield form("Round", since=11, data=(f32(0.5, 1.5, 2.5, -0.5, -1.5),))


def normalising() -> Iterator[Form]:
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (1, 2):
            yield form(operator, f"axis {axis}", axis=axis)
        yield form(operator)
    stored = (np.abs(normal(4)), normal(4), normal(4), np.abs(normal(4, seed=6)) + 0.5)
    yield form("BatchNormalization", constants=stored)
    yield form("BatchNormalization", "momentum", constants=stored, momentum=0.1)
    yield form("InstanceNormalization", constants=stored[:2])
    yield form("LayerNormalization", since=17, constants=(normal(9), normal(9)))
    yield form("GroupNormalization", since=21, constants=stored[:2], num_groups=2)
    yield form("LRN", data=(np.abs(X),), size=3, alpha=0.3)
    yield form("LpNormalization", axis=1, p=2)
    yield form("MeanVarianceNormalization", since=9)


def windows() -> Iterator[Form]:
    two: Made = {"kernel_shape": [2, 2], "strides": [2, 2]}
    three: Made = {"kernel_shape": [3, 3], "strides": [2, 2]}
    yield form("MaxPool", "ceil 3", since=10, ceil_mode=1, **three)
    yield form("MaxPool", "ceil 2", since=10, ceil_mode=1, **two)
    yield form("MaxPool", "pads", kernel_shape=[5, 5], pads=[2] * 4)
    yield form("MaxPool", "same", auto_pad="SAME_UPPER", **three)
    yield form("AveragePool", "pads", pads=[1] * 4, **three)
    yield form("AveragePool", "include", pads=[1] * 4, count_include_pad=1, **three)
    yield form("AveragePool", "ceil", since=10, ceil_mode=1, **two)
    yield form(
        "AveragePool", "ceil include", since=10, pads=[1] * 4, ceil_mode=1, count_include_pad=1, **three
    )
    yield form("LpPool", p=2, **two)
    for operator in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        yield form(operator)
        yield form(operator, "1-D", data=(X[..., 0],))
    yield form("Conv", "depthwise", constants=(normal(4, 1, 3, 3),), group=4, dilations=[2, 2], pads=[2] * 4)
    yield form("Conv", "same lower", constants=(normal(4, 4, 3, 3),), auto_pad="SAME_LOWER", **three)
    yield form("Conv", "same upper", constants=(normal(4, 4, 2, 2),), auto_pad="SAME_UPPER", **two)
    weights = normal(4, 3, 3, 3)
    yield form("ConvTranspose", "pads", constants=(normal(4, 3, 4, 4),), strides=[2, 2], pads=[1] * 4)
    yield form("ConvTranspose", "more", constants=(weights,), pads=[1] * 4, output_padding=[1, 1], **three)
    yield form("ConvTranspose", "group", constants=(normal(4, 1, 2, 2),), group=4, **two)
    yield form("ConvTranspose", "dilated", constants=(weights,), dilations=[2, 2], **three)
    yield form("ConvTranspose", "sized", constants=(weights,), output_shape=[18, 18], **three)
    boxes = f32(0, 0, 6, 6, 1, 1, 8, 7).reshape(2, 4)
    yield form(
        "RoiAlign", since=10, constants=(boxes, i64(0, 1)), output_height=3, output_width=3, sampling_ratio=2
    )


def resizing() -> Iterator[Form]:
    none = f32()
    for mode in ("nearest", "linear", "cubic"):
        for corners in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            kind: Made = {"mode": mode, "coordinate_transformation_mode": corners, "nearest_mode": "floor"}
            yield form("Resize", f"{mode} {corners}", since=11, constants=(none, f32(1, 1, 3, 2)), **kind)
    for label, scale in (("half_pixel 1.5", 1.5), ("align_corners 1.5", 1.5)):
        kind = {"mode": "linear", "coordinate_transformation_mode": label.split()[0]}
        yield form("Resize", f"linear {label}", since=11, constants=(none, f32(1, 1, scale, 2)), **kind)
    yield form("Resize", "sizes", since=11, constants=(none, none, i64(2, 4, 20, 13)))
    half = f32(1, 1, 0.5, 0.5)
    yield form("Resize", "antialias", since=18, constants=(none, half), mode="linear", antialias=1)
    double = (f32(1, 1, 2, 2),)
    yield form("Upsample", since=9, until=9, constants=double, mode="nearest")
    yield form("Upsample", "linear", since=9, until=9, constants=double, mode="linear")
    yield form("DepthToSpace", blocksize=2)
    yield form("DepthToSpace", "CRD", since=11, blocksize=2, mode="CRD")
    yield form("SpaceToDepth", data=(normal(1, 2, 4, 4),), blocksize=2)


def arranging() -> Iterator[Form]:
    pads = i64(0, 0, 1, 2, 0, 0, 1, 0)
    for mode in ("reflect", "edge"):
        yield form("Pad", mode, until=10, pads=pads.tolist(), mode=mode)
        yield form("Pad", mode, since=11, constants=(pads,), mode=mode)
    yield form("Pad", "wrap", since=19, constants=(pads,), mode="wrap")
    yield form("Slice", until=9, starts=[1], ends=[3], axes=[1])
    yield form("Slice", "back", since=10, constants=(i64(-1), i64(-9), i64(3), i64(-2)))
    yield form("Flatten", axis=1)
    yield form("Tile", constants=(i64(1, 2, 1, 1),))
    yield form("Split", until=12, outputs=2, axis=1)
    yield form("Split", "sizes", since=13, constants=(i64(1, 3),), outputs=2, axis=1)
    yield form("Unsqueeze", until=12, axes=[0])
    yield form("ReduceMean", until=17, axes=[2, 3])
    yield form("ReduceMean", "axes given", since=18, constants=(i64(2, 3),))
    yield form("ReduceL2", until=17, axes=[1])
    yield form("ReduceSum", until=12, axes=[1])
    yield form("ReduceSum", "axes given", since=13, constants=(i64(1),))
    yield form("ArgMax", axis=1)
    yield form("TopK", since=11, constants=(i64(3),), outputs=2)
    yield form("CumSum", since=11, constants=(np.array(1),), exclusive=1)
    yield form("GatherND", since=11, constants=(i64(0, 1, 1, 2).reshape(2, 2),))
    yield form(
        "GatherElements",
        since=11,
        data=(normal(3, 100),),
        constants=(i64(99, -1, 0, 70).reshape(2, 2),),
        axis=1,
    )
    grid = normal(2, 5, 5, 2) / 3
    yield form("GridSample", since=16, until=19, constants=(grid,), mode="bilinear")
    yield form("GridSample", since=20, constants=(grid,), mode="linear")
    yield form("ScatterND", since=11, constants=(i64(0, 1).reshape(1, 2), normal(1, 9, 9)))
    yield form("OneHot", since=9, data=(i64(1, 2, -1),), constants=(np.array(4), f32(0, 1)))
    yield form("EyeLike", since=9, data=(X[0, 0],))


def quantised() -> Iterator[Form]:
    scale, zero = np.float32(0.02), np.int8(3)
    yield form("QuantizeLinear", since=10, constants=(scale, zero))
    yield form("QuantizeLinear", "unsigned", since=10, constants=(scale, np.uint8(120)))
    halves = f32(0.5, 1.5, 2.5, -0.5, -127.5, 130)
    yield form("QuantizeLinear", "halves", since=10, data=(halves,), constants=(np.float32(1), np.int8(0)))
    scales = np.linspace(0.01, 0.1, 4).astype(np.float32)
    yield form("QuantizeLinear", "axis", since=13, constants=(scales, np.zeros(4, np.int8)), axis=1)
    one = np.array([2, 4], np.int32)
    yield form(
        "DequantizeLinear", "a vector's one scale", since=13, data=(one,), constants=(f32(0.5),), axis=1
    )
    x, w = integers(-100, 100, (2, 4, 8, 8)), integers(-100, 100, (5, 4, 3, 3))
    yield form("DequantizeLinear", since=10, data=(x,), constants=(scale, zero))
    yield form(
        "DequantizeLinear", "axis", since=13, data=(x,), constants=(scales, np.zeros(4, np.int8)), axis=1
    )
    conv = (scale, zero, w, np.full(5, 0.01, np.float32), np.zeros(5, np.int8), np.float32(0.5), np.int8(-2))
    yield form("QLinearConv", since=10, data=(x,), constants=conv, pads=[1] * 4)
    unsigned = integers(0, 200, (3, 4), np.uint8)
    other = integers(0, 200, (4, 5), np.uint8)
    dot = (scale, np.uint8(100), other, np.float32(0.01), np.uint8(90), np.float32(0.05), np.uint8(128))
    yield form("QLinearMatMul", since=10, data=(unsigned,), constants=dot)
    yield form("MatMulInteger", since=10, data=(unsigned,), constants=(other, np.uint8(7)))
    yield form(
        "ConvInteger",
        since=10,
        data=(integers(0, 9, (1, 4, 8, 8), np.uint8),),
        constants=(w.astype(np.uint8),),
    )
    yield form("DynamicQuantizeLinear", since=11, outputs=3)


def products() -> Iterator[Form]:
    yield form("Gemm", data=(normal(3, 4), normal(5, 4), normal(5)), transB=1, alpha=0.5, beta=2.0)
    yield form("Einsum", since=12, data=(normal(2, 3, 4), normal(2, 4, 5)), equation="bij,bjk->bik")
    steps, w, r, b = normal(5, 2, 3), normal(1, 16, 3), normal(1, 16, 4), normal(1, 32)
    yield form("LSTM", data=(steps,), constants=(w, r, b), outputs=3, hidden_size=4)
    both = tuple(np.concatenate([value, -value]) for value in (w, r, b))
    yield form(
        "LSTM",
        "both ways",
        data=(steps,),
        constants=both,
        outputs=3,
        hidden_size=4,
        direction="bidirectional",
    )
    gru = (w[:, :12], r[:, :12], b[:, :24])
    for label, kind in (("", {}), ("linear", {"linear_before_reset": 1}), ("back", {"direction": "reverse"})):
        yield form("GRU", label, data=(steps,), constants=gru, outputs=2, hidden_size=4, **kind)


FAMILIES: tuple[Callable[[], Iterator[Form]], ...] = (
    elementwise,
    normalising,
    windows,
    resizing,
    arranging,
    quantised,
    products,
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_the_reference_agrees_with_onnx_runtime(family: Callable[[], Iterator[Form]]) -> None:
    wrong, uncompared = {}, set()
    for each in family():
        label = f"{each.operator} {each.label}".strip()
        for opset in (opset for opset in OPSETS if opset in each.opsets):
            model, fed = each.model(opset)
            expected = reference(model, fed).outputs
            if expected is None:
                uncompared.add(label)
            elif (off := _off(expected, _witness(model, fed))) > TOLERANCE:
                wrong[f"{label}, opset {opset}"] = off
    assert wrong == {}
    assert uncompared == UNCOMPARED & {f"{each.operator} {each.label}" for each in family()}


def _witness(model: onnx.ModelProto, fed: Mapping[str, Array]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(fed)), strict=True))


def _off(expected: Mapping[str, Array], actual: Mapping[str, Array]) -> float:
    found = compare(expected, actual)
    return max(accuracy.max_rel if accuracy.shape_matches else float("inf") for accuracy in found)

"""Inputs, the reference on them, and how far an engine's outputs are from it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from harness.outcome import Accuracy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.case import Profile

Array = npt.NDArray[Any]

#: Domains whose operators the reference evaluator knows.
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})
#: Element types as the wire names them. bfloat16 has no numpy type: it is float32 on this side.
_WIRE: Mapping[str, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "int8": np.dtype("i1"),
    "uint8": np.dtype("u1"),
    "int32": np.dtype("<i4"),
    "int64": np.dtype("<i8"),
    "bool": np.dtype("?"),
}


@dataclass(frozen=True)
class Reference:
    """The reference outputs by name, or None and the reason why there are none."""

    outputs: Mapping[str, Array] | None
    reason: str = ""


def make_inputs(
    model: onnx.ModelProto, profiles: Sequence[Profile] = (), *, seed: int = 0
) -> dict[str, Array]:
    """Return one array for each network input, the same on every machine for the same name, shape and seed.

    Floating inputs are uniform in [-1, 1], integers in [0, 7], booleans even odds. A dynamic dimension takes
    the profile's optimum; raises ValueError where no profile gives one. BFLOAT16 inputs are float32 arrays
    that hold bfloat16 values.
    """
    optimum = {profile.input: profile.optimum for profile in profiles}
    constants = {initializer.name for initializer in model.graph.initializer}
    return {
        value.name: _random(
            value.name, _shape(value, optimum.get(value.name)), value.type.tensor_type.elem_type, seed
        )
        for value in model.graph.input
        if value.name not in constants
    }


def _shape(value: onnx.ValueInfoProto, optimum: tuple[int, ...] | None) -> tuple[int, ...]:
    dims = value.type.tensor_type.shape.dim
    if optimum is not None:
        if len(optimum) != len(dims):
            raise ValueError(
                f"input {value.name}: its profile has {len(optimum)} dimensions, the model {len(dims)}"
            )
        return optimum
    shape = []
    for dim in dims:
        if not dim.HasField("dim_value"):
            raise ValueError(
                f"input {value.name}: dimension {dim.dim_param or '?'!r} is dynamic; give it a profile"
            )
        shape.append(int(dim.dim_value))
    return tuple(shape)


def _random(name: str, shape: tuple[int, ...], elem_type: int, seed: int) -> Array:
    # Keyed by name, so that adding an input leaves the others' values alone.
    key = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "little")
    # PCG64's raw doubles are the part of numpy's generators that its compatibility policy keeps from drifting
    # least; anything finer is built on them here.
    unit = np.random.Generator(np.random.PCG64(key)).random(shape)
    if elem_type == TensorProto.BFLOAT16:
        return round_to_bfloat16((unit * 2 - 1).astype(np.float32))
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
    if dtype.kind == "f":
        return np.asarray(unit * 2 - 1).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(unit < 0.5)  # noqa: PLR2004
    return np.asarray(np.floor(unit * 8)).astype(dtype)


def reference(model: onnx.ModelProto, inputs: Mapping[str, Array], *, also: Sequence[str] = ()) -> Reference:
    """Return the ONNX reference evaluator's outputs, and the tensors named in `also`.

    `also` is for tensors that a recipe marks as outputs. Q/DQ is evaluated as written, so that an engine that
    quantises where the graph says is held to the quantised numbers. Operators of other domains, and what the
    evaluator cannot do, give a reason instead of outputs.
    """
    foreign = sorted(
        {f"{node.domain}::{node.op_type}" for node in model.graph.node if node.domain not in _KNOWN_DOMAINS}
    )
    if foreign:
        return Reference(None, f"the reference evaluator does not know {', '.join(foreign)}")
    names = [value.name for value in model.graph.output]
    names += [name for name in also if name not in names]
    try:
        with np.errstate(all="ignore"):
            operators: list[type[OpRun]] = [DequantizeLinear] if _opset(model) < _NEW_DQ else []
            values = ReferenceEvaluator(model, new_ops=operators).run(names, dict(inputs))
    except Exception as error:  # noqa: BLE001  (another project's operators raise anything)
        first = (str(error).splitlines() or [""])[0]
        return Reference(None, f"the reference evaluator failed: {type(error).__name__}: {first}")
    return Reference({name: np.asarray(value) for name, value in zip(names, values, strict=True)})


#: The first opset whose DequantizeLinear the reference evaluator implements (onnx 1.16 to 1.23).
_NEW_DQ = 19


class DequantizeLinear(OpRun):
    """DequantizeLinear of opsets 10 to 18, which the reference evaluator lacks; it finds it by this name."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        scale: Array,
        zero_point: Array | None = None,
        axis: int = 1,
        **_newer: Any,  # noqa: ANN401  (attributes of newer opsets, which the evaluator fills in)
    ) -> tuple[Array]:
        shape = [1] * x.ndim
        if scale.ndim:
            shape[axis] = scale.size
        zero = np.float32(0) if zero_point is None else zero_point.astype(np.float32).reshape(shape)
        values = (x.astype(np.float32) - zero) * scale.reshape(shape)
        return (values.astype(scale.dtype).reshape(x.shape),)


def _opset(model: onnx.ModelProto) -> int:
    return next((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)


def compare(expected: Mapping[str, Array], actual: Mapping[str, Array]) -> tuple[Accuracy, ...]:
    """Return one Accuracy for each reference output, in the reference's order.

    An output that is missing or has another shape has `shape_matches` False and no figures. An output that is
    all zero in the reference has no magnitude: `max_rel` is then absolute, and the cosine 1 if the output is
    zero too, else 0. Positions where the reference itself is not finite are left out.
    """
    return tuple(_compare(name, wanted, actual.get(name)) for name, wanted in expected.items())


def _compare(name: str, expected: Array, actual: Array | None) -> Accuracy:
    if actual is None or actual.shape != expected.shape:
        return Accuracy(name, max_abs=0.0, max_rel=0.0, cosine=0.0, shape_matches=False)
    # float64 holds every value of the types compared but INT64 beyond 2^53, which no case uses.
    wanted, got = expected.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    comparable = np.isfinite(wanted)
    not_finite = int(np.count_nonzero(comparable & ~np.isfinite(got)))
    comparable &= np.isfinite(got)
    wanted, got = wanted[comparable], got[comparable]
    if not wanted.size:
        return Accuracy(
            name, max_abs=0.0, max_rel=0.0, cosine=0.0 if not_finite else 1.0, not_finite=not_finite
        )
    max_abs = float(np.max(np.abs(got - wanted)))
    magnitude = float(np.max(np.abs(wanted)))
    return Accuracy(
        name,
        max_abs=max_abs,
        max_rel=max_abs / magnitude if magnitude else max_abs,
        cosine=_cosine(wanted, got),
        not_finite=not_finite,
    )


def _cosine(left: Array, right: Array) -> float:
    # Scaled first: squares of float32 extremes leave float64.
    scale = float(np.max(np.abs(left))), float(np.max(np.abs(right)))
    if not all(scale):
        return 1.0 if not any(scale) else 0.0
    left, right = left / scale[0], right / scale[1]
    cosine = float(left @ right) / float(np.sqrt((left @ left) * (right @ right)))
    return min(1.0, max(-1.0, cosine))


def to_wire(array: Array, *, dtype: str | None = None) -> tuple[str, tuple[int, ...], bytes]:
    """Return an array as (element type, shape, little-endian bytes in row-major order).

    `dtype` "bfloat16" sends a float32 array as bfloat16, rounded to nearest even; else it is the array's own.
    """
    name = dtype or array.dtype.name
    if name == "bfloat16":
        bits = round_to_bfloat16(array).view(np.uint32) >> np.uint32(16)
        return name, array.shape, bits.astype("<u2").tobytes()
    if name not in _WIRE:
        raise ValueError(
            f"element type {name!r} has no wire form; it is one of {', '.join([*_WIRE, 'bfloat16'])}"
        )
    return name, array.shape, array.astype(_WIRE[name], copy=False).tobytes()


def from_wire(dtype: str, shape: Sequence[int], data: bytes) -> Array:
    """Return the array that `to_wire` sent; bfloat16 comes back as float32.

    Raises ValueError where the bytes do not fill the shape.
    """
    if dtype == "bfloat16":
        bits = np.frombuffer(data, "<u2").astype(np.uint32) << np.uint32(16)
        return np.asarray(bits.view(np.float32)).reshape(tuple(shape))
    if dtype not in _WIRE:
        raise ValueError(
            f"element type {dtype!r} has no wire form; it is one of {', '.join([*_WIRE, 'bfloat16'])}"
        )
    flat: Array = np.frombuffer(data, _WIRE[dtype])
    return np.array(flat.reshape(tuple(shape)))


def round_to_bfloat16(array: Array) -> Array:
    """Return float32 values rounded to the nearest bfloat16, ties to even; NaN stays NaN."""
    # Contiguous without ascontiguousarray, which makes an array of no dimension one of one.
    bits = np.array(array, dtype=np.float32, order="C").view(np.uint32)
    rounded = (bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    kept = np.where(np.isnan(array), np.uint32(0x7FC00000), rounded)
    return np.asarray(kept, dtype=np.uint32).view(np.float32)

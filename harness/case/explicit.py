"""Writes the types that an engine ran in into a graph: Casts at borders alone, Q/DQ with scales, weights stored narrow.

A strongly typed engine takes its types from the graph. Each tensor keeps its name and its type for whoever reads it as
it was; a node that is typed otherwise reads and gives a version of its own, so that one Cast stands at each border and
tensor. Inputs and outputs of the network keep their types. A node is kept as it is if it runs other graphs, has Q/DQ
already, or is of no operator that ONNX's schemas allow in the type. A node of no known type takes that of its data.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.case.graph_reader import GraphReader, attribute, inferred, opsets, reads, sorted_nodes, subgraphs
from harness.case.model import effective_name
from harness.words import Precision

#: ONNX's element type of each float, and its name in ONNX's schemas.
FLOATS: dict[Precision, tuple[int, str]] = {
    Precision.FP32: (TensorProto.FLOAT, "tensor(float)"),
    Precision.TF32: (TensorProto.FLOAT, "tensor(float)"),
    Precision.FP16: (TensorProto.FLOAT16, "tensor(float16)"),
    Precision.BF16: (TensorProto.BFLOAT16, "tensor(bfloat16)"),
}
_NUMBERS: dict[int, Precision] = {number: word for word, (number, _) in reversed(FLOATS.items())}
_FP32 = TensorProto.FLOAT
#: An attribute names the type of their output, or they bring one into the graph.
_TYPED = frozenset(
    {
        *("Cast", "CastLike", "Constant", "ConstantOfShape", "EyeLike", "RandomNormal", "RandomUniform"),
        *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
    }
)
#: The place of the weights, and the axis of their output channels.
_WEIGHTS = {"Conv": (1, 0), "ConvTranspose": (1, 1), "Gemm": (1, 1), "MatMul": (1, -1)}
_MATRIX = 2
#: The first opset whose Q/DQ takes scales in FP16 and BF16.
_NARROW_SCALES = 19
#: The first opset whose convolutions take BF16.
_BF16_SINCE = 22
_MOST = 127
#: They read the extents of a tensor, not its values.
_OF_SHAPES = frozenset({"Shape", "Size"})


@dataclass(frozen=True)
class NodeTypes:
    """The precision that each node is to run in, by its effective name, and the scale of each tensor in INT8."""

    nodes: Mapping[str, Precision]
    scales: Mapping[str, float] = field(default_factory=dict)

    @property
    def float(self) -> Precision:
        """Return the float around nodes in INT8: the narrow one of the engine, if it has one."""
        found = set(self.nodes.values())
        return next((each for each in (Precision.FP16, Precision.BF16) if each in found), Precision.FP32)


@dataclass(frozen=True)
class Explicit:
    """A model with types: the precision of each node in floating point, and why one is not typed as it was to be."""

    model: onnx.ModelProto
    typed: Mapping[str, Precision]
    why: Mapping[str, str]

    def count(self, *operators: str) -> int:
        """Return how many nodes of these operators it has."""
        return sum(node.op_type in operators for node in self.model.graph.node)


def explicit(model: onnx.ModelProto, types: NodeTypes) -> Explicit:
    """Return a model whose graph has these types; the one given is not changed."""
    writer = _Writer(_raised(model, types), types)
    for node in sorted_nodes(writer.model.graph.node):
        writer.take(node)
    return writer.done()


def _raised(model: onnx.ModelProto, types: NodeTypes) -> onnx.ModelProto:
    """Return a model at an opset that has the types, if it needs one and can be brought there."""
    needed = _BF16_SINCE if Precision.BF16 in types.nodes.values() else 0
    if types.scales and types.float is not Precision.FP32:
        needed = max(needed, _NARROW_SCALES)
    if opsets(model).get("", 0) >= needed:
        return model
    try:
        raised = onnx.version_converter.convert_version(model, needed)
    except Exception:  # noqa: BLE001  (the converter raises anything for unknown operators)
        return model
    names = [[effective_name(node) for node in each.graph.node] for each in (model, raised)]
    return raised if names[0] == names[1] else model


def float_slots(
    node: onnx.NodeProto, floats: Container[str], name: str, versions: Mapping[str, int]
) -> tuple[list[int], list[int]] | None:
    """Return which inputs and outputs of a node may be of a type, by its name in ONNX's schemas.

    `floats` are the tensors in floating point. None if the operator has no schema, or one type for both sides that
    this may not be.
    """
    version = versions.get(node.domain, 1)
    if not onnx.defs.has(node.op_type, version, node.domain):
        return None
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    allowed = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    found: tuple[list[int], list[int]] = [], []
    sides = zip(found, (node.input, node.output), (schema.inputs, schema.outputs), strict=True)
    for mine, names, formal in sides:
        for index in (at for at, tensor in enumerate(names) if tensor in floats):
            types = allowed.get(formal[min(index, len(formal) - 1)].type_str, ())
            if name in types:
                mine.append(index)
            elif len(types) > 1:
                return None
    return found


def of_data(graph: GraphReader) -> set[str]:
    """Return the tensors that the values of the network's inputs decide; shapes alone decide none."""
    data = set(graph.inputs)
    for node in sorted_nodes(graph.nodes):
        if node.op_type not in _OF_SHAPES and not data.isdisjoint(reads(node)):
            data.update(node.output)
    return data


class _Writer:
    """The typed graph while it is written, node by node; `model` is the one to type."""

    def __init__(self, model: onnx.ModelProto, types: NodeTypes) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self._types = types
        self._versions = opsets(model)
        self._tensors = GraphReader(inferred(model))
        self._data = of_data(self._tensors)
        self._floats = {name: kind for name, kind in self._tensors.types.items() if kind in _NUMBERS}
        around = FLOATS[types.float][0]
        self._around = around if self._versions.get("", 0) >= _NARROW_SCALES else _FP32
        #: The type in which the node that makes a tensor gives it, if that is not its own; its versions by type.
        self._native: dict[str, int] = {}
        self._made: dict[tuple[str, int], str] = {}
        self._quantised: dict[tuple[str, int | None], str] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._typed: dict[str, Precision] = {}
        self._why: dict[str, str] = {}
        self._taken = {each.name for each in model.graph.input} | {
            each.name for each in model.graph.initializer
        }
        self._taken |= {name for node in model.graph.node for name in node.output}

    def take(self, node: onnx.NodeProto) -> None:
        """Write the next node, in the type that it is to have."""
        wish, why = self._types.nodes.get(effective_name(node)), self._kept(node)
        if not why and ((wish is Precision.INT8 and self._in_int8(node)) or self._in_float(node, wish)):
            return
        own = self._type_of(node)
        if own is not None:
            self._typed[effective_name(node)] = _NUMBERS[own]
            if node.op_type not in _TYPED and wish is not None and FLOATS.get(wish, (None,))[0] != own:
                why = why or "ONNX has no such type for its operator"
                self._why.setdefault(effective_name(node), why)
        self._keep(node)

    def done(self) -> Explicit:
        """Return the model, without the nodes and constants that nothing reads any more."""
        graph = self.model.graph
        for value in graph.output:
            if value.name in self._floats:
                self._version(value.name, self._floats[value.name])
        live, wanted = [], {value.name for value in graph.output}
        for node in reversed(self._nodes):
            if wanted.intersection(node.output):
                live.append(node)
                wanted.update(reads(node))
        del graph.node[:]
        graph.node.extend(reversed(live))
        stored = [each for each in graph.initializer if each.name in wanted]
        values = [each for each in graph.value_info if each.name in wanted]
        del graph.initializer[:], graph.value_info[:]
        graph.initializer.extend(stored)
        graph.value_info.extend(values)
        return Explicit(self.model, self._typed, self._why)

    def _kept(self, node: onnx.NodeProto) -> str:
        """Return why a node is kept as it is; "" if it may be typed."""
        if any(subgraphs(node)):
            return "it runs a graph of its own, which is kept as it is"
        if node.op_type in _TYPED:
            return "it names its type itself"
        if any(self._is_dequantised(name) for name in node.input):
            return "it has Q/DQ already, which is kept"
        return ""

    def _is_dequantised(self, tensor: str) -> bool:
        maker = self._tensors.producer(tensor)
        return maker is not None and maker.op_type == "DequantizeLinear"

    def _in_float(self, node: onnx.NodeProto, wish: Precision | None) -> bool:
        """Write a node in a float type: that of its data if nothing is known of it. Tell whether it can be."""
        kind = self._kind(node, wish)
        slots = None if kind is None else self._slots(node, kind)
        if kind is None or not slots or not any(slots):
            return False
        reading = {index: self._version(node.input[index], kind) for index in slots[0]}
        self._append(node, reading, kind, slots[1])
        self._typed[effective_name(node)] = Precision.TF32 if wish is Precision.TF32 else _NUMBERS[kind]
        return True

    def _kind(self, node: onnx.NodeProto, wish: Precision | None) -> int | None:
        """Return the float that a node is to be in, None if neither it nor its data tells one."""
        if wish in FLOATS:
            return FLOATS[wish][0]
        if wish is Precision.INT8:
            return self._around
        # A scale that is made of shapes alone has whatever type its reader has.
        data = self._floats.keys() & {*node.input} & self._data
        kinds = {self._native.get(name, self._floats[name]) for name in data}
        return kinds.pop() if len(kinds) == 1 else None

    def _slots(self, node: onnx.NodeProto, kind: int) -> tuple[list[int], list[int]] | None:
        name = FLOATS[_NUMBERS[kind]][1]
        return float_slots(node, self._floats, name, self._versions)

    def _type_of(self, node: onnx.NodeProto) -> int | None:
        """Return the float that a node has in the graph as it was."""
        kinds = [self._floats[name] for name in (*node.output, *node.input) if name in self._floats]
        return kinds[0] if kinds else None

    def _keep(self, node: onnx.NodeProto) -> None:
        """Write a node as it is; a Cast reads the tensor in the type that it comes in."""
        if node.op_type == "Cast" and (native := self._native.get(node.input[0])) is not None:
            made = helper.make_node(
                "Cast", [self._version(node.input[0], native)], node.output, name=node.name
            )
            made.attribute.extend(node.attribute)
            if attribute(node, "to") == native:
                made = helper.make_node("Identity", made.input, node.output, name=node.name)
            self._nodes.append(made)
            return
        for name in reads(node):
            if name in self._floats:
                self._version(name, self._floats[name])
        self._nodes.append(node)

    def _append(
        self, node: onnx.NodeProto, reading: Mapping[int, str], kind: int, outputs: Sequence[int]
    ) -> None:
        """Write a node that reads these tensors, and gives these outputs in a type."""
        made = onnx.NodeProto()
        made.CopyFrom(node)
        # A node without a name is called after its first output, which may get another name.
        made.name = effective_name(node)
        for index, tensor in reading.items():
            made.input[index] = tensor
        for name in node.output:
            if name in self._floats and name not in {node.output[index] for index in outputs}:
                self._made[name, self._floats[name]] = name
        for index in outputs:
            name = node.output[index]
            if kind != self._floats[name]:
                made.output[index] = self._free(f"{name}/{_NUMBERS[kind]}")
            self._native[name], self._made[name, kind] = kind, made.output[index]
        self._nodes.append(made)

    def _version(self, tensor: str, kind: int) -> str:
        """Return the name of a tensor in a type: as it is made, a constant, or the output of a Cast."""
        own = self._floats[tensor]
        native = self._native.get(tensor, own)
        if native == own:
            self._made.setdefault((tensor, own), tensor)
        if (tensor, kind) not in self._made:
            self._made[tensor, kind] = self._other(tensor, kind, native)
        return self._made[tensor, kind]

    def _other(self, tensor: str, kind: int, native: int) -> str:
        stored = self._tensors.value(tensor)
        if stored is not None:
            return self._constant(f"{tensor}/{_NUMBERS[kind]}", _as_type(stored, kind), kind)
        maker = self._tensors.producer(tensor)
        source = maker.input[0] if maker is not None and maker.op_type == "Cast" else ""
        if source in self._floats and kind in (self._native.get(source), self._floats[source]):
            # The rounding in between was not done by an engine that ran both sides in one type.
            return self._version(source, kind)
        name = tensor if kind == self._floats[tensor] else self._free(f"{tensor}/{_NUMBERS[kind]}")
        if not source or source in self._floats:
            source = self._version(tensor, native)
        self._nodes.append(helper.make_node("Cast", [source], [name], name=f"{name}/Cast", to=kind))
        return name

    def _in_int8(self, node: onnx.NodeProto) -> bool:
        """Write a node that reads dequantised tensors; one without weights gives its outputs rounded too.

        Tell whether it can be; else a sentence says why not.
        """
        name, slots = effective_name(node), self._slots(node, self._around)
        planned = self._plan(node)
        if isinstance(planned, str) or slots is None:
            self._why[name] = planned if isinstance(planned, str) else "its operator takes no such type"
            return False
        reading = {
            index: self._dequantised(*planned[index])
            if index in planned
            else self._version(node.input[index], self._around)
            for index in slots[0]
        }
        self._append(node, reading, self._around, slots[1])
        self._typed[name] = Precision.INT8
        if {axis for _, axis in planned.values()} == {None}:
            self._round(node.output)
        return True

    def _round(self, tensors: Iterable[str]) -> None:
        """Let whoever reads one of these tensors, if it has a scale, read it behind Q/DQ."""
        for tensor in tensors:
            if tensor in self._types.scales:
                self._made[tensor, self._around] = self._dequantised(tensor, None)

    def _plan(self, node: onnx.NodeProto) -> dict[int, tuple[str, int | None]] | str:
        """Return the tensors to quantise by input, weights with their axis; a sentence if they cannot be."""
        found: dict[int, tuple[str, int | None]] = {}
        place = _WEIGHTS.get(node.op_type, (None, 0))[0]
        for index, name in enumerate(node.input):
            if name in self._tensors.constants:
                if index == place and self._tensors.value(name) is None:
                    return f"its weights {name} are computed, or not in the model"
                if index == place:
                    found[index] = name, self._axis(node, name)
            elif name in self._floats and name in self._types.scales:
                found[index] = name, None
            elif name in self._floats and not self._is_in_int8(name):
                return f"there is no scale of {name}"
        return found

    def _is_in_int8(self, tensor: str) -> bool:
        """Tell whether a tensor stays inside a fused layer of INT8: a node of INT8 makes it, and it has no scale."""
        maker = self._tensors.producer(tensor)
        return maker is not None and self._typed.get(effective_name(maker)) is Precision.INT8

    def _axis(self, node: onnx.NodeProto, weights: str) -> int:
        """Return the axis of the output channels of weights; that of a scale for all is beyond them."""
        axis, rank = _WEIGHTS[node.op_type][1], len(self._tensors.shapes[weights])
        if node.op_type == "Gemm" and attribute(node, "transB", 0):
            axis = 0
        one = rank < _MATRIX or (node.op_type == "MatMul" and rank > _MATRIX)
        one |= node.op_type == "ConvTranspose" and attribute(node, "group", 1) != 1
        return rank if one else axis % rank

    def _dequantised(self, tensor: str, axis: int | None) -> str:
        """Return the name of a tensor behind Q/DQ, in the float around; `axis` is that of stored weights."""
        if (tensor, axis) not in self._quantised:
            make = self._activation(tensor) if axis is None else self._weights(tensor, axis)
            self._quantised[tensor, axis] = make
        return self._quantised[tensor, axis]

    def _activation(self, tensor: str) -> str:
        # Q reads the tensor in the type that it comes in, DQ gives the one that is wanted.
        native = self._native.get(tensor, self._floats[tensor])
        read = native if self._versions.get("", 0) >= _NARROW_SCALES else _FP32
        scale = _narrowed(np.float32(self._types.scales[tensor]), self._around)
        zero = self._constant(f"{tensor}/zero", np.zeros((), np.int8), TensorProto.INT8)
        source, quantised = self._version(tensor, read), self._free(f"{tensor}/quantized")
        inputs = [source, self._scale(tensor, scale, read), zero]
        self._nodes.append(helper.make_node("QuantizeLinear", inputs, [quantised], name=f"{quantised}/Q"))
        return self._reader(tensor, quantised, scale, zero)

    def _weights(self, tensor: str, axis: int) -> str:
        values = np.asarray(self._tensors.value(tensor), np.float32)
        others = tuple(each for each in range(values.ndim) if each != axis)
        largest = np.abs(values).max(axis=others if axis < values.ndim else None)
        scale = _narrowed(np.where(largest > 0, largest, 1) / _MOST, self._around)
        spread = (
            scale.reshape([-1 if each == axis else 1 for each in range(values.ndim)]) if scale.ndim else scale
        )
        stored = np.clip(np.rint(values / spread), -_MOST, _MOST).astype(np.int8)
        name = self._constant(f"{tensor}/int8", stored, TensorProto.INT8)
        zero = self._constant(f"{tensor}/zero", np.zeros(scale.shape, np.int8), TensorProto.INT8)
        return self._reader(tensor, name, scale, zero, *([axis] if scale.ndim else []))

    def _reader(
        self, tensor: str, quantised: str, scale: npt.NDArray[np.float32], zero: str, *along: int
    ) -> str:
        made = self._free(f"{tensor}/dequantized")
        inputs = [quantised, self._scale(tensor, scale, self._around), zero]
        node = helper.make_node("DequantizeLinear", inputs, [made], name=f"{made}/DQ")
        node.attribute.extend(helper.make_attribute("axis", axis) for axis in along)
        self._nodes.append(node)
        return made

    def _scale(self, tensor: str, scale: npt.NDArray[np.float32], kind: int) -> str:
        return self._constant(f"{tensor}/scale_{_NUMBERS[kind]}", _as_type(scale, kind), kind)

    def _constant(self, wish: str, values: npt.NDArray[np.generic], kind: int) -> str:
        key = wish, -kind
        if key not in self._made:
            name = self._made[key] = self._free(wish)
            stored = numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name)
            self.model.graph.initializer.append(stored)
        return self._made[key]

    def _free(self, wish: str) -> str:
        """Return a name that no tensor has."""
        name = next(each for each in _numbered(wish) if each not in self._taken)
        self._taken.add(name)
        return name


def _numbered(wish: str) -> Iterator[str]:
    yield wish
    number = 0
    while True:
        number += 1
        yield f"{wish}_{number}"


def _as_type(values: npt.NDArray[np.generic], kind: int) -> npt.NDArray[np.generic]:
    """Return values in a float type, within its range."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if kind == TensorProto.FLOAT16:
        largest = float(np.finfo(np.float16).max)
        values = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    return np.asarray(values.astype(dtype))


def _narrowed(scale: npt.ArrayLike, kind: int) -> npt.NDArray[np.float32]:
    """Return scales as a float type holds them, and none of them 0."""
    found = np.asarray(_as_type(np.asarray(scale, np.float32), kind), np.float32)
    return np.where(found > 0, found, np.float32(np.finfo(np.float16).smallest_subnormal)).astype(np.float32)

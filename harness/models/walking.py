"""Walks a model node by node, as an importer does: constants are computed, branches taken, shapes inferred strictly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.inliner import inline_local_functions
from onnx.reference import ReferenceEvaluator

from harness.case.graph_reader import STANDARD, attribute, is_stored, opsets, reads, sorted_nodes, subgraphs
from harness.case.model import effective_name
from harness.models.graphs import RANDOM, with_shapes
from harness.run.numbers.operators import REPLACED
from harness.run.numbers.wire import Array

#: Elements of a tensor that is computed: shapes, axes and sizes are small.
_MOST_ELEMENTS = 1 << 14


@dataclass(frozen=True)
class Stop:
    """The node that a walk cannot get past, by its effective name, and why."""

    node: str
    operator: str
    why: str


@dataclass
class Walk:
    """A model as far as it could be walked.

    `types` are those of its tensors, `values` those that constants and sizes decide, and `nodes` the ones that are left
    to run. `stop` says why it ended early.
    """

    outputs: tuple[str, ...] = ()
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    stop: Stop | None = None

    def shape(self, tensor: str) -> tuple[int, ...] | None:
        """Return a tensor's shape, if all of it is known."""
        found = self.types.get(tensor, onnx.TypeProto()).tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in found.shape.dim]
        return tuple(dims) if found.HasField("shape") and min(dims, default=0) >= 0 else None


def settled(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    """Return a copy of a model with its functions in place and these shapes of its inputs, its nodes in order."""
    made = with_shapes(inline_local_functions(model) if model.functions else model, shapes)
    nodes = sorted_nodes(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def walk(model: onnx.ModelProto) -> Walk:
    """Return a model walked; `settled` makes one fit for it."""
    found = Walk(tuple(value.name for value in model.graph.output))
    _Walker(model, found).go(model.graph)
    return found


class _Walker:
    """One walk: what it finds goes into `found`."""

    def __init__(self, model: onnx.ModelProto, found: Walk) -> None:
        self._found, self._imports, self._ir = found, list(model.opset_import), model.ir_version
        self._opsets = opsets(model)
        opset = self._opsets.get("", 0)
        self._replaced = [operator for operator, right in REPLACED.items() if opset < right]
        for value in model.graph.input:
            found.types[value.name] = value.type

    def go(self, graph: onnx.GraphProto) -> None:
        """Walk the nodes of a graph, until one stops it."""
        for tensor in graph.initializer:
            self._store(tensor)
        for node in graph.node:
            if self._found.stop is None:
                self._step(node)

    def _step(self, node: onnx.NodeProto) -> None:
        found = self._found
        condition = found.values.get(node.input[0]) if node.op_type == "If" else None
        if condition is not None and condition.size == 1:
            self._take(node, attribute(node, "then_branch" if condition.all() else "else_branch"))
            return
        known = all(name in found.types for name in reads(node))
        if known and not self._infer(node):
            return
        if not (known and self._compute(node)):
            found.nodes.append(node)

    def _take(self, node: onnx.NodeProto, branch: onnx.GraphProto) -> None:
        """Walk the branch that is taken in place of an If."""
        self.go(branch)
        for value, output in zip(branch.output, node.output, strict=False):
            if value.name in self._found.types:
                self._found.types[output] = self._found.types[value.name]
            if value.name in self._found.values:
                self._found.values[output] = self._found.values[value.name]
            else:
                self._found.nodes.append(helper.make_node("Identity", [value.name], [output]))

    def _infer(self, node: onnx.NodeProto) -> bool:
        """Learn the types of a node's outputs; return False if it contradicts its inputs."""
        found, domain = self._found, "" if node.domain in STANDARD else node.domain
        version = self._opsets.get(domain, 0)
        if not (version and onnx.defs.has(node.op_type, version, domain)):
            return True
        types = {name: found.types[name] for name in reads(node)}
        constants = {
            name: numpy_helper.from_array(found.values[name], name) for name in types if name in found.values
        }
        try:
            made = onnx.shape_inference.infer_node_outputs(
                onnx.defs.get_schema(node.op_type, version, domain),
                node,
                types,
                constants,
                opset_imports=self._imports,
                ir_version=self._ir,
            )
        except onnx.shape_inference.InferenceError as error:
            found.stop = _stopped(node, _plain(error))
            return False
        except Exception:  # noqa: BLE001  (another project's code, on any node)
            return True
        found.types |= {name: each for name, each in made.items() if name and each.WhichOneof("value")}
        return True

    def _compute(self, node: onnx.NodeProto) -> bool:
        """Compute a node's outputs if constants and sizes decide them; tell whether they are known."""
        found, outputs, fed = self._found, [*filter(None, node.output)], self._fed(node)
        large = any(math.prod(found.shape(name) or ()) > _MOST_ELEMENTS for name in outputs)
        if fed is None or large:
            return False
        for name, value in zip(outputs, self._evaluated(node, fed, outputs) or (), strict=False):
            found.values[name] = np.asarray(value)
            if name not in found.types:
                kind = helper.np_dtype_to_tensor_dtype(found.values[name].dtype)
                found.types[name] = helper.make_tensor_type_proto(kind, found.values[name].shape)
        return all(name in found.values for name in outputs)

    def _fed(self, node: onnx.NodeProto) -> dict[str, Array] | None:
        """Return the values of a node's inputs, if they are known and it can be computed."""
        if node.domain not in STANDARD or node.op_type in RANDOM or any(subgraphs(node)):
            return None
        fed: dict[str, Array] = {}
        for name in filter(None, node.input):
            shape = self._found.shape(name)
            if name in self._found.values:
                fed[name] = self._found.values[name]
            elif node.op_type in ("Shape", "Size") and shape is not None:
                # A view of one element: the values do not count.
                fed[name] = np.broadcast_to(np.float32(0), shape)
            else:
                return None
        return fed

    def _evaluated(
        self, node: onnx.NodeProto, fed: Mapping[str, Array], outputs: Sequence[str]
    ) -> list[Array] | None:
        values = [onnx.ValueInfoProto(name=name) for name in fed]
        ends = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph([node], "node", values, ends)
        try:
            with np.errstate(all="ignore"):
                one = helper.make_model(graph, opset_imports=self._imports)
                found = list(ReferenceEvaluator(one, new_ops=self._replaced).run(None, dict(fed)))
        except Exception:  # noqa: BLE001  (another project's operators raise anything)
            return None
        plain = all(isinstance(each, np.ndarray | np.generic) for each in found)
        return found if plain and all(np.asarray(each).size <= _MOST_ELEMENTS for each in found) else None

    def _store(self, tensor: onnx.TensorProto) -> None:
        self._found.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tuple(tensor.dims))
        if is_stored(tensor) and math.prod(tensor.dims) <= _MOST_ELEMENTS:
            self._found.values[tensor.name] = np.asarray(numpy_helper.to_array(tensor))


def _stopped(node: onnx.NodeProto, why: str) -> Stop:
    return Stop(effective_name(node), node.op_type, why)


def _plain(error: Exception) -> str:
    """Return what shape inference says without its tags."""
    text = str(error).strip().splitlines()[-1]
    for tag in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.rpartition(tag)[2] if tag in text else text
    return text.strip(" :.") or "its shapes contradict each other"


def same(one: Walk, other: Walk) -> bool:
    """Tell whether two walks of one model leave the same nodes to run, and compute the same outputs."""
    if any(_held(one, name) != _held(other, name) for name in one.outputs):
        return False
    theirs = {each.output[0]: each for each in other.nodes if each.output}
    twins = ((node, theirs.get(node.output[0])) for node in one.nodes if node.output)
    return all(twin is not None and _same(node, twin, one, other) for node, twin in twins)


def _held(found: Walk, name: str) -> tuple[onnx.TypeProto | None, object]:
    return found.types.get(name), found.values[name].tolist() if name in found.values else None


def _same(node: onnx.NodeProto, twin: onnx.NodeProto, one: Walk, other: Walk) -> bool:
    alike = [*map(one.types.get, node.output)] == [*map(other.types.get, twin.output)]
    if not alike or _constants(node, one) != _constants(twin, other):
        return False
    words = [each.SerializeToString(deterministic=True) for each in (node, twin)]
    return words[0] == words[1] or _reduces_alike(node, twin, one)


def _constants(node: onnx.NodeProto, found: Walk) -> list[tuple[int, bytes]]:
    # Beyond the data alone: a Reduce that lost its axes has no second input.
    read = node.input[:1] if node.op_type.startswith("Reduce") else node.input
    return [(at, found.values[name].tobytes()) for at, name in enumerate(read) if name in found.values]


def _reduces_alike(node: onnx.NodeProto, twin: onnx.NodeProto, found: Walk) -> bool:
    """Tell whether a Reduce and one without axes reduce the same elements, for all other axes are one long."""
    shape = found.shape(node.input[0])
    if not node.op_type.startswith("Reduce") or node.op_type != twin.op_type or shape is None:
        return False
    axes = found.values.get(node.input[1]) if len(node.input) > 1 else None
    if axes is None or len(twin.input) > 1:
        return False
    named = {int(each) % len(shape) for each in axes.ravel()}
    return all(extent == 1 for at, extent in enumerate(shape) if at not in named)

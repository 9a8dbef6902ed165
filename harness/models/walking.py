"""Walks a model node by node, as an importer does: constants are computed, branches taken, shapes inferred strictly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def settled(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    """Return a copy of a model with its functions in place and these shapes of its inputs, its nodes in order."""
    made = with_shapes(inline_local_functions(model) if model.functions else model, shapes)
    nodes = sorted_nodes(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def walk(model: onnx.ModelProto) -> Stop | None:
    """Return the node that a model cannot be walked past, if any; `settled` makes one fit for it."""
    found = _Walk(model)
    found.go(model.graph)
    return found.stop


class _Walk:
    """One walk: `types` are those of tensors, `values` those that constants and sizes decide; `stop` ends it early."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.types: dict[str, onnx.TypeProto] = {value.name: value.type for value in model.graph.input}
        self.values: dict[str, Array] = {}
        self.stop: Stop | None = None
        self._imports, self._ir, self._opsets = list(model.opset_import), model.ir_version, opsets(model)
        opset = self._opsets.get("", 0)
        self._replaced = [operator for operator, right in REPLACED.items() if opset < right]

    def shape(self, tensor: str) -> tuple[int, ...] | None:
        """Return a tensor's shape, if all of it is known."""
        found = self.types.get(tensor, onnx.TypeProto()).tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in found.shape.dim]
        return tuple(dims) if found.HasField("shape") and min(dims, default=0) >= 0 else None

    def go(self, graph: onnx.GraphProto) -> None:
        """Walk the nodes of a graph, until one stops it."""
        for tensor in graph.initializer:
            self._store(tensor)
        for node in graph.node:
            if self.stop is None:
                self._step(node)

    def _step(self, node: onnx.NodeProto) -> None:
        condition = self.values.get(node.input[0]) if node.op_type == "If" else None
        if condition is not None and condition.size == 1:
            self._take(node, attribute(node, "then_branch" if condition.all() else "else_branch"))
        elif all(name in self.types for name in reads(node)) and self._infer(node):
            self._compute(node)

    def _take(self, node: onnx.NodeProto, branch: onnx.GraphProto) -> None:
        """Walk the branch that is taken in place of an If."""
        self.go(branch)
        for value, output in zip(branch.output, node.output, strict=False):
            if value.name in self.types:
                self.types[output] = self.types[value.name]
            if value.name in self.values:
                self.values[output] = self.values[value.name]

    def _infer(self, node: onnx.NodeProto) -> bool:
        """Learn the types of a node's outputs; return False if it contradicts its inputs."""
        domain = "" if node.domain in STANDARD else node.domain
        version = self._opsets.get(domain, 0)
        if not (version and onnx.defs.has(node.op_type, version, domain)):
            return True
        types = {name: self.types[name] for name in reads(node)}
        known = {
            name: numpy_helper.from_array(self.values[name], name) for name in types if name in self.values
        }
        try:
            made = onnx.shape_inference.infer_node_outputs(
                onnx.defs.get_schema(node.op_type, version, domain),
                node,
                types,
                known,
                opset_imports=self._imports,
                ir_version=self._ir,
            )
        except onnx.shape_inference.InferenceError as error:
            self.stop = Stop(effective_name(node), node.op_type, _plain(error))
            return False
        except Exception:  # noqa: BLE001  (another project's code, on any node)
            return True
        self.types |= {name: each for name, each in made.items() if name and each.WhichOneof("value")}
        return True

    def _compute(self, node: onnx.NodeProto) -> None:
        """Compute a node's outputs if constants and sizes decide them."""
        outputs, fed = [*filter(None, node.output)], self._fed(node)
        large = any(math.prod(self.shape(name) or ()) > _MOST_ELEMENTS for name in outputs)
        if fed is None or large:
            return
        for name, value in zip(outputs, self._evaluated(node, fed, outputs) or (), strict=False):
            self.values[name] = array = np.asarray(value)
            if name not in self.types:
                kind = helper.np_dtype_to_tensor_dtype(array.dtype)
                self.types[name] = helper.make_tensor_type_proto(kind, array.shape)

    def _fed(self, node: onnx.NodeProto) -> dict[str, Array] | None:
        """Return the values of a node's inputs, if they are known and it can be computed."""
        if node.domain not in STANDARD or node.op_type in RANDOM or any(subgraphs(node)):
            return None
        fed: dict[str, Array] = {}
        for name in filter(None, node.input):
            shape = self.shape(name)
            if name in self.values:
                fed[name] = self.values[name]
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
        self.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tuple(tensor.dims))
        if is_stored(tensor) and math.prod(tensor.dims) <= _MOST_ELEMENTS:
            self.values[tensor.name] = np.asarray(numpy_helper.to_array(tensor))


def _plain(error: Exception) -> str:
    """Return what shape inference says without its tags."""
    text = str(error).strip().splitlines()[-1]
    for tag in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.rpartition(tag)[2] if tag in text else text
    return text.strip(" :.") or "its shapes contradict each other"

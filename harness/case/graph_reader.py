"""Reads the tensors of an ONNX graph: who makes each, who reads it, its type, shape and value.

onnx-ir (1.1) answers the same questions; it writes every model back in other bytes, so that no hash would stay, and
brings SymPy along.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

#: The extents of a tensor: a number, or the name or None of an axis that is not fixed.
Extents = tuple[int | str | None, ...]
#: ONNX's own domain.
STANDARD = ("", "ai.onnx")


class GraphReader:
    """The tensors that the nodes of a graph can read, those of the graph `around` it among them.

    `inputs` are the network's, without those that an initialiser gives; `constants` the tensors that no input
    decides; `stored` those whose values a model holds; `types` ONNX's element types, and `shapes` the extents, as far
    as they are declared.
    """

    def __init__(self, graph: onnx.GraphProto, around: GraphReader | None = None) -> None:
        self.nodes: list[onnx.NodeProto] = list(graph.node)
        self.outputs = {value.name for value in graph.output}
        self.stored: dict[str, onnx.TensorProto] = dict(around.stored) if around else {}
        self.types: dict[str, int] = dict(around.types) if around else {}
        self.shapes: dict[str, Extents] = dict(around.shapes) if around else {}
        self.constants: set[str] = {each.values.name for each in graph.sparse_initializer}
        self._makers: dict[str, onnx.NodeProto] = {}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for value in (*graph.value_info, *graph.output, *graph.input):
            tensor = value.type.tensor_type
            if tensor.elem_type:
                self.types[value.name] = tensor.elem_type
            if tensor.HasField("shape"):
                self.shapes[value.name] = extents(value)
        for each in graph.initializer:
            self._store(each.name, each)
        self.inputs: set[str] = {value.name for value in graph.input} - self.constants
        if around is not None:
            self.inputs = around.inputs
            self.constants |= around.constants
        for node in self.nodes:
            self._learn(node, self._index(node))

    def producer(self, tensor: str) -> onnx.NodeProto | None:
        """Return the node that makes a tensor."""
        return self._makers.get(tensor)

    def readers(self, tensor: str) -> list[onnx.NodeProto]:
        """Return the nodes that read a tensor, in graphs inside them too."""
        return list(self._readers.get(tensor, ()))

    def value(self, tensor: str) -> npt.NDArray[Any] | None:
        """Return the values of a tensor, if they are stored in the model."""
        maker = self._makers.get(tensor)
        seen = {tensor}
        while maker is not None and maker.op_type == "Identity" and name_at(maker.input, 0) not in seen:
            tensor = name_at(maker.input, 0)
            seen.add(tensor)
            maker = self._makers.get(tensor)
        stored = self.stored.get(tensor)
        return np.asarray(numpy_helper.to_array(stored)) if stored is not None and is_stored(stored) else None

    def _store(self, name: str, tensor: onnx.TensorProto) -> None:
        self.stored[name] = tensor
        self.types[name] = tensor.data_type
        self.shapes[name] = tuple(tensor.dims)
        self.constants.add(name)

    def _learn(self, node: onnx.NodeProto, read: Collection[str]) -> None:
        """Take in which outputs of a node are constants, or have a type that the node itself names."""
        outputs = list(filter(None, node.output))
        if node.op_type == "Constant":
            for name, held in zip(outputs, _held(node), strict=False):
                self._store(name, held)
        if node.op_type == "Constant" or (read and self.constants.issuperset(read)):
            self.constants.update(outputs)
        if node.op_type == "Cast" and (kind := attribute(node, "to")) is not None:
            self.types.update(dict.fromkeys(outputs, kind))

    def _index(self, node: onnx.NodeProto) -> Collection[str]:
        """Take in which tensors a node makes and reads; return the latter."""
        self._makers.update((name, node) for name in node.output if name)
        read = dict.fromkeys(reads(node))
        for name in read:
            self._readers.setdefault(name, []).append(node)
        return read


def _held(node: onnx.NodeProto) -> list[onnx.TensorProto]:
    """Return the tensor of a Constant; [] for one that holds no tensor of numbers."""
    held, numbers = attribute(node, "value"), attribute(node, "value_ints")
    if held is None and numbers is not None:
        return [numpy_helper.from_array(np.array(numbers, np.int64))]
    return [held] if isinstance(held, onnx.TensorProto) else []


def inferred(model: onnx.ModelProto, *, data_prop: bool = False) -> onnx.GraphProto:
    """Return the graph with the types of its inner tensors, as far as they can be inferred.

    `data_prop` takes in the values of shapes that the graph computes too.
    """
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=data_prop).graph
    except Exception:  # noqa: BLE001  (of a large, invalid or unknown model it raises anything)
        return model.graph


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that a node takes, those that its subgraphs take from around them among them."""
    yield from filter(None, node.input)
    for graph in subgraphs(node):
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own.update(*(inner.output for inner in graph.node))
        for inner in graph.node:
            yield from (name for name in reads(inner) if name not in own)
        yield from (value.name for value in graph.output if value.name not in own)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node runs: branches, and bodies of loops."""
    for item in node.attribute:
        yield from (*([item.g] if item.HasField("g") else []), *item.graphs)


def sorted_nodes(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return nodes so that each comes after those it reads, else in the order given."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    found: dict[int, onnx.NodeProto] = {}
    entered: set[int] = set()
    waiting = list(reversed(range(len(nodes))))
    while waiting:
        index = waiting.pop()
        before = [
            makers[name] for name in reads(nodes[index]) if name in makers and makers[name] not in found
        ]
        if before and index not in entered:
            entered.add(index)
            waiting += [index, *before]
        else:
            found.setdefault(index, nodes[index])
    return list(found.values())


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:  # noqa: ANN401  (of any of ONNX's types)
    """Return the value of a node's attribute, or `default` if it is left out or has no type; text as str."""
    for item in node.attribute:
        if item.name == name and item.type:
            value = helper.get_attribute_value(item)
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return default


def opsets(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each domain of operators, ONNX's own under ""."""
    return {"" if each.domain in STANDARD else each.domain: int(each.version) for each in model.opset_import}


def name_at(names: Sequence[str], index: int) -> str:
    """Return a tensor's name among a node's inputs or outputs; "" if it is left out."""
    return names[index] if index < len(names) else ""


def is_stored(tensor: onnx.TensorProto) -> bool:
    """Tell whether a tensor's values are in the model."""
    return tensor.data_location != onnx.TensorProto.EXTERNAL


def extents(value: onnx.ValueInfoProto) -> Extents:
    """Return the size of each axis of a tensor: a number, or the name or None of a dynamic one."""
    return tuple(
        int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None
        for dim in value.type.tensor_type.shape.dim
    )


def static(shape: Iterable[int | str | None] | None) -> tuple[int, ...] | None:
    """Return a shape if all of its extents are numbers."""
    found = None if shape is None else tuple(shape)
    known = tuple(each for each in found or () if isinstance(each, int))
    return None if found is None or len(known) < len(found) else known

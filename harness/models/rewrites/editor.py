"""Holds a copy of a model under change: tensors are read elsewhere, constants and nodes added, dead nodes dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from harness.case import effective_name
from harness.layers.operators import dequantises, quantises
from harness.models.graphs import assembled, constants_of, copied, is_stored, reads
from harness.run.numbers.wire import Array


class Editor:
    """A model's graph while it is rewritten; `done` returns the model, and the one given is never changed."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = copied(model)
        graph = self._model.graph
        self.nodes: list[onnx.NodeProto] = list(graph.node)
        self.outputs = {value.name for value in graph.output}
        self.fixed = constants_of(graph)
        self.changed = False
        self._constants = {each.name: each for each in graph.initializer}
        self._makers: dict[str, onnx.NodeProto] = {}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        self._index(self.nodes)

    @property
    def opset(self) -> int:
        """Return the version of ONNX's own operators."""
        return next(
            (int(each.version) for each in self._model.opset_import if each.domain in ("", "ai.onnx")), 0
        )

    def maker(self, tensor: str) -> onnx.NodeProto | None:
        """Return the node that makes a tensor."""
        return self._makers.get(tensor)

    def readers(self, tensor: str) -> list[onnx.NodeProto]:
        """Return the nodes that read a tensor."""
        return list(self._readers.get(tensor, ()))

    def named(self, names: Collection[str]) -> Iterator[onnx.NodeProto]:
        """Yield the nodes of these effective names."""
        return (node for node in list(self.nodes) if effective_name(node) in names)

    def of(self, *operators: str) -> Iterator[onnx.NodeProto]:
        """Yield the nodes of these operators."""
        return (node for node in list(self.nodes) if node.op_type in operators)

    def dequantiser(self, tensor: str) -> onnx.NodeProto | None:
        """Return the DequantizeLinear that makes a tensor; None where something else does."""
        maker = self.maker(tensor)
        return maker if maker is not None and dequantises(maker.op_type) and len(maker.input) > 1 else None

    def quantiser(self, reader: onnx.NodeProto) -> onnx.NodeProto | None:
        """Return the QuantizeLinear in front of a DequantizeLinear; None where something else is."""
        maker = self.maker(reader.input[0])
        return maker if maker is not None and quantises(maker.op_type) and len(maker.input) > 1 else None

    def value(self, tensor: str) -> Array | None:
        """Return the values of a tensor that is stored in the model; None for one that is not."""
        stored = self._constants.get(tensor)
        if stored is not None:
            return numpy_helper.to_array(stored) if is_stored(stored) else None
        maker = self.maker(tensor)
        if maker is not None and maker.op_type == "Identity":
            return self.value(maker.input[0])
        if maker is not None and maker.op_type == "Constant":
            held = next((item.t for item in maker.attribute if item.name == "value"), None)
            return None if held is None else numpy_helper.to_array(held)
        return None

    def constant(self, wish: str, array: Array) -> str:
        """Add a constant and return its name, which is the wish unless something else has that."""
        name = self.free(wish)
        stored = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        self._model.graph.initializer.append(stored)
        self._constants[name] = stored
        self.fixed.add(name)
        return name

    def add(self, operator: str, inputs: Sequence[str], wish: str, **attributes: Any) -> str:  # noqa: ANN401
        """Add a node called after its output; returns that tensor's name."""
        name = self.free(wish)
        self._append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def alias(self, source: str, name: str, operator: str = "Identity", **attributes: Any) -> None:  # noqa: ANN401
        """Let a tensor of the graph be made of another one, as it stands or by an operator."""
        self._append(helper.make_node(operator, [source], [name], name=f"{name}/rewritten", **attributes))

    def moved(self, tensor: str, wish: str) -> str:
        """Let the node that makes a tensor give it another name; returns that."""
        maker, name = self._makers.pop(tensor), self.free(wish)
        maker.output[list(maker.output).index(tensor)] = name
        self._makers[name] = maker
        return name

    def read(self, node: onnx.NodeProto, index: int, tensor: str) -> None:
        """Let one input of a node read another tensor."""
        old = node.input[index]
        node.input[index] = tensor
        self._readers[old] = [each for each in self.readers(old) if each is not node or old in reads(node)]
        if not any(each is node for each in self.readers(tensor)):
            self._readers.setdefault(tensor, []).append(node)
        self.changed = True

    def instead(self, old: str, new: str, readers: Iterable[onnx.NodeProto] | None = None) -> None:
        """Let nodes read another tensor; all, and the network's output of that name too, unless `readers` are given."""
        for node in self.readers(old) if readers is None else readers:
            for index, name in enumerate(node.input):
                if name == old:
                    self.read(node, index, new)
        if readers is None and old in self.outputs:
            if old in self._makers:
                self.moved(old, f"{old}/before")
            self.alias(new, old)

    def output(self, value: onnx.ValueInfoProto) -> None:
        """Make a tensor an output of the network too."""
        self._model.graph.output.append(value)
        self.outputs.add(value.name)
        self.changed = True

    def free(self, wish: str) -> str:
        """Return a name that no tensor has."""
        taken = self._makers.keys() | self._constants.keys() | {each.name for each in self._model.graph.input}
        number, name = 0, wish
        while name in taken:
            number, name = number + 1, f"{wish}_{number + 1}"
        return name

    def done(self) -> onnx.ModelProto | None:
        """Return the rewritten model without dead nodes; None where nothing was changed."""
        if not self.changed:
            return None
        graph = self._model.graph
        return assembled(self._model, list(_sorted(self.nodes)), graph.input, graph.output)

    def _append(self, node: onnx.NodeProto) -> None:
        self.nodes.append(node)
        self._index((node,))
        self.changed = True

    def _index(self, nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            self._makers.update((name, node) for name in node.output if name)
            for name in dict.fromkeys(reads(node)):
                self._readers.setdefault(name, []).append(node)


def attribute(node: onnx.NodeProto, name: str, other: int) -> int:
    """Return a whole number that is an attribute of a node, `other` where it is left out."""
    return next((int(item.i) for item in node.attribute if item.name == name), other)


def drop_attributes(node: onnx.NodeProto, *names: str) -> None:
    """Take attributes off a node."""
    kept = [item for item in node.attribute if item.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def _sorted(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes so that each comes after those it reads, else in the order given."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    seen: set[int] = set()
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            index = stack[-1]
            before = [
                makers[name] for name in reads(nodes[index]) if name in makers and makers[name] not in seen
            ]
            if index not in seen and before:
                stack += before
                continue
            stack.pop()
            if index not in seen:
                seen.add(index)
                yield nodes[index]

"""Holds a copy of a model under change: tensors are read elsewhere, constants and nodes added, dead nodes dropped."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from harness.case import effective_name
from harness.case.graph_reader import GraphReader, opsets, reads, sorted_nodes
from harness.layers.operators import dequantises, quantises
from harness.models.graphs import assembled, copied
from harness.run.numbers.wire import Array


class Editor(GraphReader):
    """A model's graph while it is rewritten; `done` returns the model, and the one given is never changed."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = copied(model)
        super().__init__(self._model.graph)
        self.opset = opsets(model).get("", 0)
        self.changed = False

    def named(self, names: Collection[str]) -> Iterator[onnx.NodeProto]:
        """Yield the nodes of these effective names."""
        return (node for node in list(self.nodes) if effective_name(node) in names)

    def of(self, *operators: str) -> Iterator[onnx.NodeProto]:
        """Yield the nodes of these operators."""
        return self.sorted_by(operators.__contains__)

    def sorted_by(self, sort: Callable[[str], object]) -> Iterator[onnx.NodeProto]:
        """Yield the nodes whose operator is of a sort."""
        return (node for node in list(self.nodes) if sort(node.op_type))

    def values(self, names: Sequence[str]) -> list[Array] | None:
        """Return the values of tensors, if all are stored in the model."""
        known = [each for each in map(self.value, names) if each is not None]
        return known if len(known) == len(names) else None

    def scalars(self, names: Sequence[str]) -> list[Array] | None:
        """Return the values of tensors as scalars, if all are stored and have one element each."""
        known = self.values(names) or []
        return [each.reshape(()) for each in known] if {each.size for each in known} == {1} else None

    def dequantiser(self, tensor: str) -> onnx.NodeProto | None:
        """Return the DequantizeLinear that makes a tensor, if one does."""
        maker = self.producer(tensor)
        return maker if maker is not None and dequantises(maker.op_type) and len(maker.input) > 1 else None

    def quantiser(self, reader: onnx.NodeProto) -> onnx.NodeProto | None:
        """Return the QuantizeLinear in front of a DequantizeLinear, if there is one."""
        maker = self.producer(reader.input[0])
        return maker if maker is not None and quantises(maker.op_type) and len(maker.input) > 1 else None

    def constant(self, wish: str, array: Array) -> str:
        """Add a constant and return its name, which is the wish unless something else has that."""
        name = self.free(wish)
        stored = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        self._model.graph.initializer.append(stored)
        self._store(name, stored)
        return name

    def add(self, operator: str, inputs: Sequence[str], wish: str, **attributes: Any) -> str:  # noqa: ANN401
        """Add a node called after its output; returns that tensor's name."""
        name = self.free(wish)
        self._append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def alias(
        self,
        source: str,
        name: str,
        operator: str = "Identity",
        others: Sequence[str] = (),
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        """Let a tensor of the graph be made of another one, as it stands or by an operator with `others`."""
        made = helper.make_node(operator, [source, *others], [name], name=f"{name}/rewritten", **attributes)
        self._append(made)

    def moved(self, tensor: str, wish: str) -> str:
        """Let the node that makes a tensor give it another name; returns that."""
        maker, name = self._makers.pop(tensor), self.free(wish)
        maker.output[list(maker.output).index(tensor)] = name
        self._makers[name] = maker
        if tensor in self.stored:
            self.stored[name] = self.stored.pop(tensor)
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

    def free(self, wish: str) -> str:
        """Return a name that no tensor has."""
        taken = self._makers.keys() | self.stored.keys() | {each.name for each in self._model.graph.input}
        number, name = 0, wish
        while name in taken:
            number, name = number + 1, f"{wish}_{number + 1}"
        return name

    def done(self) -> onnx.ModelProto | None:
        """Return the rewritten model without dead nodes, if it was changed."""
        if not self.changed:
            return None
        graph = self._model.graph
        return assembled(self._model, sorted_nodes(self.nodes), graph.input, graph.output)

    def _append(self, node: onnx.NodeProto) -> None:
        self.nodes.append(node)
        self._index(node)
        self.changed = True


_F = TypeVar("_F", bound=Callable[..., onnx.ModelProto | None])
#: A model and the nodes that are blamed -> another model, None if there is no change.
Function = Callable[[onnx.ModelProto, Collection[str]], onnx.ModelProto | None]
#: The rewrites of rewrites.tsv by their names there.
FUNCTIONS: dict[str, Function] = {}


def rewrite(function: _F) -> _F:
    """Register a function as the rewrite of its name, with - in place of _."""
    FUNCTIONS[function.__name__.replace("_", "-")] = function
    return function


def edits(change: Callable[[Editor, Collection[str]], None]) -> Function:
    """Make a rewrite, registered by its name, of a function that edits a model, given the nodes that are blamed."""

    @rewrite
    @functools.wraps(change)
    def rewritten(model: onnx.ModelProto, blamed: Collection[str]) -> onnx.ModelProto | None:
        editor = Editor(model)
        change(editor, blamed)
        return editor.done()

    return rewritten


def drop_attributes(node: onnx.NodeProto, *names: str) -> None:
    """Take attributes off a node."""
    kept = [item for item in node.attribute if item.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)

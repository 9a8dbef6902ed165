"""A model without some of its nodes: what read them is fed from outside, and what fed them stays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from harness.case import Profile, effective_name
from harness.layers.operators import dequantises, quantises
from harness.models.tensors import constants_of, inferred, reads, values_of

_Shape = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """What is left of a model; `profiles` are the shapes of its dynamic inputs.

    `behind` are nodes that had to go as well, for nobody knows the shape of what the cut ones gave them.
    """

    model: onnx.ModelProto
    profiles: tuple[Profile, ...] = ()
    behind: tuple[str, ...] = ()


class Tensors:
    """The types and shapes of a model's tensors, at the least, usual and largest shapes of its inputs."""

    def __init__(self, model: onnx.ModelProto, profiles: Sequence[Profile] = ()) -> None:
        self._profiles = {each.input: each for each in profiles}
        self._declared = values_of(inferred(model).graph)
        kept = [
            {name: getattr(each, which) for name, each in self._profiles.items()}
            for which in ("minimum", "optimum", "maximum")
        ]
        ends = [kept[0]] if kept[0] == kept[1] == kept[2] else kept
        self._sized = (
            [values_of(inferred(_sized(model, shapes)).graph) for shapes in ends] if profiles else []
        )

    def value(self, name: str) -> onnx.ValueInfoProto | None:
        """Return what can stand as a network input or output for a tensor; None where type or shape is unknown."""
        value = self._declared.get(name)
        if value is None or not value.type.tensor_type.elem_type:
            return None
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and (self.profile(name) or None not in _extents(value)):
            return value
        return None

    def profile(self, name: str) -> Profile | None:
        """Return the shapes that a dynamic tensor takes; None for one that is not dynamic, or of unknown shape."""
        if name in self._profiles:
            return self._profiles[name]
        value = self._declared.get(name)
        if value is None or None not in _extents(value):
            return None
        known: list[_Shape] = []
        for values in self._sized:
            extents = _extents(values[name]) if name in values else (None,)
            known.append(tuple(each for each in extents if each is not None))
            if len(known[-1]) != len(extents):
                return None
        return Profile(name, known[0], known[len(known) // 2], known[-1]) if known else None


def cut(model: onnx.ModelProto, names: Collection[str], tensors: Tensors) -> Part | None:
    """Return a model without the nodes of these effective names; None where nothing is left that can be built.

    The outputs of a node that is cut become inputs of the type and shape that they had, or constants where they were,
    and what it read becomes an output, before any Q/DQ on the way, so that what led there stays. What nothing reads any
    more is dropped.
    """
    graph = model.graph
    gone = {index for index, node in enumerate(graph.node) if effective_name(node) in names}
    behind = _spread(graph, gone, tensors)
    kept = [node for index, node in enumerate(graph.node) if index not in gone]
    cut_out = [node for index, node in enumerate(graph.node) if index in gone]
    made = {name for node in cut_out for name in node.output if name}
    fed = sorted(made & {name for node in kept for name in reads(node)})
    outputs = [value for value in graph.output if value.name not in made]
    outputs += _led_to(graph, cut_out, {value.name for value in outputs} | made, tensors)
    fixed = constants_of(graph)
    inputs = [value for name in fed if name not in fixed and (value := tensors.value(name))]
    stored = [ones for name in fed if name in fixed and (ones := _ones(name, tensors))]
    part = assembled(model, kept, [*graph.input, *inputs], outputs, stored)
    if part is None or (valid(model) and not valid(part)):
        return None
    profiles = tuple(found for value in part.graph.input if (found := tensors.profile(value.name)))
    return Part(part, profiles, tuple(effective_name(graph.node[index]) for index in behind))


def assembled(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    stored: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto | None:
    """Return a model of those nodes, inputs and initialisers that its outputs need; None where no node is needed.

    `stored` are initialisers beside the model's own.
    """
    wanted = {value.name for value in outputs}
    live: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            live.append(node)
            wanted.update(reads(node))
    if not live:
        return None
    graph = onnx.GraphProto(name=model.graph.name, doc_string=model.graph.doc_string)
    graph.node.extend(reversed(live))
    graph.initializer.extend(each for each in (*model.graph.initializer, *stored) if each.name in wanted)
    graph.sparse_initializer.extend(
        each for each in model.graph.sparse_initializer if each.values.name in wanted
    )
    graph.input.extend(each for each in inputs if each.name in wanted)
    graph.output.extend(outputs)
    inner = wanted - {value.name for value in (*graph.input, *graph.output)}
    graph.value_info.extend(each for each in model.graph.value_info if each.name in inner)
    made = onnx.ModelProto(
        ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions
    )
    made.graph.CopyFrom(graph)
    return made


def valid(model: onnx.ModelProto) -> bool:
    """Tell whether onnx.checker takes a model."""
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError):
        return False
    return True


def _spread(graph: onnx.GraphProto, gone: set[int], tensors: Tensors) -> list[int]:
    """Add to what is to go what reads a tensor that no input can stand for; return that."""
    unknown = {name for index in gone for name in graph.node[index].output if not tensors.value(name)}
    behind = []
    for index, node in enumerate(graph.node):
        if index not in gone and unknown.intersection(reads(node)):
            gone.add(index)
            behind.append(index)
        if index in gone:
            unknown.update(name for name in node.output if not tensors.value(name))
    return behind


def _led_to(
    graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto], there: set[str], tensors: Tensors
) -> Iterator[onnx.ValueInfoProto]:
    """Yield as outputs what some nodes read, unless it is a constant, a network input or `there` already."""
    producers = {name: node for node in graph.node for name in node.output}
    there = there | constants_of(graph) | {value.name for value in graph.input}
    for node in nodes:
        for name in reads(node):
            before = name
            while (maker := producers.get(before)) and (
                quantises(maker.op_type) or dequantises(maker.op_type)
            ):
                before = maker.input[0]
            value = tensors.value(before)
            if before not in there and value is not None:
                there.add(before)
                yield value


def _ones(name: str, tensors: Tensors) -> onnx.TensorProto | None:
    """Return ones of a tensor's type and shape; what reads a constant may take nothing else."""
    value = tensors.value(name)
    if value is None:
        return None
    shape = [extent or 0 for extent in _extents(value)]
    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    return numpy_helper.from_array(np.ones(shape, dtype), name)


def _sized(model: onnx.ModelProto, shapes: Mapping[str, _Shape]) -> onnx.ModelProto:
    """Return a model whose inputs have these shapes, and whose inner tensors tell nothing."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.value_info[:]
    for value in (*made.graph.input, *made.graph.output):
        tensor = value.type.tensor_type
        if value.name in shapes:
            tensor.ClearField("shape")
            for extent in shapes[value.name]:
                tensor.shape.dim.add().dim_value = extent
        elif value.type.HasField("tensor_type") and None in _extents(value):
            for dim in tensor.shape.dim:
                dim.ClearField("dim_param")
    return made


def _extents(value: onnx.ValueInfoProto) -> tuple[int | None, ...]:
    tensor = value.type.tensor_type
    return tuple(int(dim.dim_value) if dim.HasField("dim_value") else None for dim in tensor.shape.dim)

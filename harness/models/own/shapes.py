"""Takes the shapes of network inputs as trtexec does, `images:1x3x640x640,mask:1x640`, and makes up missing ones.

Values are made up too: whole numbers that name places of a tensor stay within it.
"""

from __future__ import annotations

import itertools
import operator
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import onnx
from onnx import helper

from harness.case import Profile
from harness.case.graph_reader import (
    Extents,
    GraphReader,
    attribute,
    extents,
    inferred,
    is_stored,
    name_at,
    static,
)
from harness.case.model import fed_inputs
from harness.errors import HandledError
from harness.models.graphs import with_shapes
from harness.run.numbers.inputs import NotFeedable, make_inputs
from harness.run.numbers.reference import Reference, reference
from harness.run.numbers.wire import Array
from harness.text import did_you_mean

Shape = tuple[int, ...]
#: Digits of a size that a user may give.
_DIGITS = 9
#: Sizes of a height or a width, in the order that they are tried: networks halve them five times.
_SPATIAL = (64, 32, *range(96, 641, 32))
#: Bytes above which a weight is not worth a copy: it decides no shape.
_LARGE = 4096
#: Channels of an image that come last, at most.
_COLOURS = 4
#: Kinds of axes, each by its size; if axes of several kinds share a name, the largest decides.
_BATCH, _CHANNELS, _SEQUENCE, _IMAGE = 1, 3, 16, _SPATIAL[0]
_NAMED = (
    (re.compile(r"batch|^[nb]$|^bs$", re.IGNORECASE), _BATCH),
    (re.compile(r"seq|time|len|token|frame|past|^[tl]$", re.IGNORECASE), _SEQUENCE),
    (re.compile(r"height|width|^[hwd]$|^(img|image)_?[hw]$", re.IGNORECASE), _IMAGE),
)
#: Nodes whose weights, the second input, fix a size of their data: the axis of each.
_FIXING = {"Conv": (1, 1), "Gemm": (-1, -2), "MatMul": (-1, -2)} | dict.fromkeys(
    ("GRU", "LSTM", "RNN"), (-1, -1)
)
#: Operators that hand the values of their first input on.
_CARRYING = frozenset(
    "Cast Concat Expand Flatten Gather Identity Reshape Slice Split Squeeze Tile Transpose Unsqueeze".split()  # noqa: SIM905
)
_ALONG_AXIS = frozenset({"Gather", "GatherElements", "Scatter", "ScatterElements"})


@dataclass(frozen=True)
class Shapes:
    """The least, the usual and the largest shape of inputs by name; one given alone stands for all three."""

    minimum: Mapping[str, Shape] = field(default_factory=dict)
    optimum: Mapping[str, Shape] = field(default_factory=dict)
    maximum: Mapping[str, Shape] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Shape, Shape, Shape] | None:
        """Return the three shapes of an input, if any is given."""
        least, usual, most = (each.get(name) for each in (self.minimum, self.optimum, self.maximum))
        usual = usual or most or least
        return (least or usual, usual, most or usual) if usual else None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the inputs that are named."""
        return tuple(dict.fromkeys((*self.optimum, *self.minimum, *self.maximum)))

    def taken_from(self, model: onnx.ModelProto, arrays: Mapping[str, Shape]) -> Shapes:
        """Return the shapes with those of arrays that are given for other dynamic inputs."""
        more = {
            value.name: arrays[value.name]
            for value in fed_inputs(model)
            if value.name in arrays and value.name not in self.names and _is_dynamic(value)
        }
        return replace(self, optimum={**self.optimum, **more}) if more else self

    def fitted(self, model: onnx.ModelProto) -> Shapes:
        """Return the shapes as a part of their model can have them: of its inputs, with the sizes that these fix."""
        declared = {value.name: _declared(value) for value in fed_inputs(model)}

        def fitted(given: Mapping[str, Shape]) -> dict[str, Shape]:
            found = {}
            for name, shape in given.items():
                own = declared.get(name, ())
                fixed = (None,) * len(shape) if own is None else own
                if name in declared and len(fixed) == len(shape):
                    found[name] = tuple(map(_size, fixed, shape))
            return found

        return Shapes(*map(fitted, (self.minimum, self.optimum, self.maximum)))


def parse_shapes(text: str, option: str) -> dict[str, Shape]:
    """Return shapes by input from trtexec's words; raises HandledError that names the option."""
    found: dict[str, Shape] = {}
    if not isinstance(text, str):
        raise HandledError(f"{option} is {text!r:.60}: write a text, as in images:1x3x640x640,mask:1x640")
    for word in filter(None, (each.strip() for each in text.split(","))):
        name, _, extents = word.rpartition(":")
        parts = extents.split("x")
        if not name or not all(part.isdecimal() and len(part) <= _DIGITS for part in parts):
            raise HandledError(
                f"{option} {word!r}: write NAME:SIZExSIZE, as in {option} images:1x3x640x640,mask:1x640"
            )
        found[name.strip("'\"")] = tuple(int(part) for part in parts)
    return found


def profiles(
    label: str, model: onnx.ModelProto, shapes: Shapes
) -> tuple[tuple[Profile, ...], tuple[str, ...]]:
    """Return a profile for each dynamic input, and a sentence on made-up sizes, with the option that gives others.

    Raises HandledError if a given shape is of no input or cannot be the input's.
    """
    fed = {value.name: value for value in fed_inputs(model)}
    for name in shapes.names:
        if name not in fed:
            raise HandledError(f"{label}: has no input {name!r}; {did_you_mean(name, fed)}")
    for value in fed.values():
        _check(label, value, shapes.of(value.name))
    usual = {name: given[1] for name in fed if (given := shapes.of(name))}
    invented = made_up_shapes(model, usual)
    dynamic = [name for name, value in fed.items() if _is_dynamic(value)]
    made = tuple(Profile(name, *(shapes.of(name) or (invented[name],) * 3)) for name in dynamic)
    taken = in_words(each for each in made if each.input in invented)
    return made, (f"dynamic inputs are taken as --shapes {shlex.quote(taken)}",) if taken else ()


def is_batch_alone(model: onnx.ModelProto, shapes: Shapes) -> bool:
    """Tell whether all that is made up is a batch of 1, a size that nearly every model can have."""
    made = (_declared(value) for value in fed_inputs(model) if shapes.of(value.name) is None)
    dynamic = [extents for extents in made if extents is None or None in extents]
    return all(extents and len(extents) > 1 and None not in extents[1:] for extents in dynamic)


def in_words(made: Iterable[Profile]) -> str:
    """Return the usual shapes of profiles as --shapes takes them."""
    return ",".join(f"{each.input}:{'x'.join(map(str, each.optimum))}" for each in made)


def free_extents(model: onnx.ModelProto) -> None:
    """Leave out the extents of inputs and outputs that are 0 or negative: exporters write a dynamic axis so."""
    graph = model.graph
    for dim in _dims(*graph.input, *graph.output, *graph.value_info):
        if dim.HasField("dim_value") and dim.dim_value < 1:
            dim.ClearField("dim_value")


def _dims(*values: onnx.ValueInfoProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    for value in values:
        yield from value.type.tensor_type.shape.dim


def _declared(value: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    """Return the extents of an input, if its rank is known, None for each that is dynamic."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return () if value.type.WhichOneof("value") != "tensor_type" else None
    return tuple(each if isinstance(each, int) else None for each in extents(value))


def _is_dynamic(value: onnx.ValueInfoProto) -> bool:
    declared = _declared(value)
    return declared is None or None in declared


def _size(extent: int | None, size: int) -> int:
    return size if extent is None else extent


def _check(label: str, value: onnx.ValueInfoProto, given: tuple[Shape, Shape, Shape] | None) -> None:
    """Raise HandledError for shapes that an input cannot have, and for none where it has no rank."""
    declared = _declared(value)
    if given is None:
        if declared is None:
            raise HandledError(
                f"{label}: gives input {value.name!r} no rank; name its shape: --shapes {value.name}:1x3x224x224"
            )
        return
    what = f"{label}: input {value.name!r}"
    for shape in given:
        if declared is not None and (
            len(shape) != len(declared) or tuple(map(_size, declared, shape)) != shape
        ):
            known = "x".join("?" if extent is None else str(extent) for extent in declared)
            raise HandledError(f"{what} is {known or 'a scalar'} and cannot be {'x'.join(map(str, shape))}")
    for less, more in itertools.pairwise(given):
        if len(less) != len(more) or any(map(operator.gt, less, more)):
            least, usual, most = ("x".join(map(str, shape)) for shape in given)
            raise HandledError(
                f"{what} has the least shape {least}, the usual {usual} and the largest {most}; "
                f"give --minShapes, --optShapes and --maxShapes that do not get smaller"
            )


def made_up_shapes(model: onnx.ModelProto, given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return a shape for each input with dynamic axes that is not `given`; axes of one name have one size.

    An axis has the size that weights fix. A height and a width have the first size in which shape inference finds
    no fault, else 64.
    """
    light = _without_weights(model)
    declared = {value.name: extents(value) for value in fed_inputs(light)}
    kinds: dict[int | str | None, int] = {}
    for own in declared.values():
        for index, axis in enumerate(own):
            kinds[axis] = axis if isinstance(axis, int) else max(kinds.get(axis, 0), _kind(own, index))
    known = _fixed_by_weights(GraphReader(inferred(light)), declared)
    for name, shape in given.items():
        known |= zip(declared[name], shape, strict=False)
    wanted = {name: own for name, own in declared.items() if name not in given and static(own) is None}

    def shapes(spatial: int) -> dict[str, Shape]:
        taken = {
            axis: axis if isinstance(axis, int) else known.get(axis) or (spatial if kind == _IMAGE else kind)
            for axis, kind in kinds.items()
        }
        return {name: tuple(map(taken.__getitem__, own)) for name, own in wanted.items()}

    first = shapes(_SPATIAL[0])
    if first == shapes(_SPATIAL[1]) or not _fits(light, given):
        return first
    found = (each for each in map(shapes, _SPATIAL) if _fits(light, {**each, **given}))
    return next(found, first)


def runs_at(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> bool:
    """Tell whether the reference evaluator gets outputs of some size from inputs of these shapes."""
    (found,) = evaluated([with_shapes(model, shapes)])
    return found.outputs is not None and all(value.size for value in found.outputs.values())


def _kind(own: Extents, index: int) -> int:
    """Return the kind of an axis by its name, else by its place."""
    name = str(own[index])
    for pattern, kind in _NAMED:
        # A shape has one batch, the first: the N of [batch_size, N] is a number of samples.
        others = any(pattern.search(str(each)) for each in own[:index] if each != name)
        if pattern.search(name) and not (others and kind == _BATCH):
            return kind
    return _kind_by_place(own, index)


def _kind_by_place(own: Extents, index: int) -> int:
    match own:
        case [_, _, *_] if index == 0:
            return _BATCH
        case [_, _, _, last] | [_, _, _, _, last]:
            channels = len(own) - 1 if isinstance(last, int) and last <= _COLOURS else 1
            return _CHANNELS if index == channels else _IMAGE
        case [int(layers), _, int()] if layers > 1 and index == 1:
            # The batch of a recurrent state stands behind its layers or directions, and before its width.
            return _BATCH
        case _:
            return _SEQUENCE


def _fixed_by_weights(tensors: GraphReader, declared: Mapping[str, Extents]) -> dict[int | str | None, int]:
    """Return by name the sizes that weights fix, but for names that stand for several axes of one input."""
    several = {axis for own in declared.values() for axis in own if own.count(axis) > 1}
    named = [(axis, size) for axis, size in _joined(tensors) if isinstance(axis, str) and axis not in several]
    return {axis: size for axis, size in reversed(named) if isinstance(size, int)}


def _joined(tensors: GraphReader) -> Iterator[Extents]:
    """Yield for each node that joins data with weights the extent of either along which it does."""
    for node in tensors.nodes:
        at, to = _FIXING.get(node.op_type, (0, 0))
        shapes = [tensors.shapes.get(name) or () for name in node.input[:2]]
        if at and len(shapes) > 1 < min(map(len, shapes)):
            size = shapes[1][-1 if attribute(node, "transB") else to]
            if isinstance(size, int) and node.op_type == "Conv":
                size *= attribute(node, "group", 1)
            yield shapes[0][0 if attribute(node, "transA") else at], size


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose large weights are inputs: enough to infer shapes, at the cost of its nodes.

    Each axis of an input has a name.
    """
    graph, light, heavy = model.graph, [], []
    for each in graph.initializer:
        if each.ByteSize() <= _LARGE and is_stored(each):
            light.append(each)
        else:
            heavy.append(helper.make_tensor_value_info(each.name, each.data_type, each.dims))
    small = helper.make_graph(graph.node, graph.name, [*fed_inputs(model), *heavy], graph.output, light)
    for number, dim in enumerate(_dims(*small.input)):
        if not dim.HasField("dim_value") and not dim.dim_param:
            dim.dim_param = f"?{number}"
    return helper.make_model(
        small, ir_version=model.ir_version, opset_imports=model.opset_import, functions=model.functions
    )


def _fits(light: onnx.ModelProto, shapes: Mapping[str, Shape]) -> bool:
    """Tell whether shape inference finds no fault in a model whose inputs have these shapes."""
    model = with_shapes(light, shapes)
    try:
        graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    except Exception:  # noqa: BLE001  (of a large, invalid or unknown model it raises anything)
        return False
    tensors = GraphReader(graph)
    computed = (own for name, own in tensors.shapes.items() if name not in tensors.constants)
    if any(isinstance(each, int) and each < 1 for own in computed for each in own):
        return False
    # ONNX's inference does not look at the matrices of a Gemm.
    return all(static(pair) is None or pair[0] == pair[1] for pair in _joined(tensors))


def made_up(model: onnx.ModelProto, profiles: Sequence[Profile]) -> dict[str, Array]:
    """Return made-up inputs; those that name rows or places of a tensor, as token types do, name some that it has.

    Raises as `make_inputs` does.
    """
    inputs = make_inputs(model, profiles, beside=True)
    if not any(array.dtype.kind in "iu" for array in inputs.values()):
        return inputs
    most = _most(with_shapes(model, {name: array.shape for name, array in inputs.items()}), inputs)
    return {name: _below(most.get(name, 0), array) for name, array in inputs.items()}


def evaluated(
    models: Iterable[onnx.ModelProto],
    profiles: Sequence[Profile] = (),
    given: Mapping[str, Array] = MappingProxyType({}),
    also: Sequence[str] = (),
) -> Iterator[Reference]:
    """Yield the reference evaluator's outputs of models from the same inputs: those given, else the first one's own.

    `also` are tensors that are outputs too.
    """
    fed = dict(given)
    for model in models:
        try:
            fed = fed or made_up(model, profiles)
        except (NotFeedable, ValueError) as refusal:
            yield Reference(None, str(refusal))
        else:
            yield reference(model, fed, also=also)


def _most(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Return by input the number of places that its values may name."""
    reader = GraphReader(inferred(model, data_prop=True))
    came_from = {name: {name} for name, array in inputs.items() if array.dtype.kind in "iu"}
    most: dict[str, int] = {}
    for node in reader.nodes:
        many = _places(node, reader.shapes)
        for name in came_from.get(name_at(node.input, 1), ()) if many else ():
            most[name] = min(many, most.get(name, many))
        if node.op_type in _CARRYING:
            read = node.input if node.op_type == "Concat" else node.input[:1]
            held = set().union(*(came_from.get(name, ()) for name in read))
            came_from |= dict.fromkeys(node.output, held)
    return most


def _places(node: onnx.NodeProto, shapes: Mapping[str, Extents]) -> int:
    """Return how many places of its first input the second one of a node may name; 0 if it names none."""
    data = shapes.get(name_at(node.input, 0)) or ()
    axes: Extents = ()
    if node.op_type in _ALONG_AXIS:
        # The data may lack the axis: that fault is the engine's to tell.
        axes = data[attribute(node, "axis", 0) :][:1]
    elif node.op_type in ("GatherND", "ScatterND"):
        many = (shapes.get(name_at(node.input, 1)) or (0,))[-1]
        axes = data[attribute(node, "batch_dims", 0) :][:many] if isinstance(many, int) else ()
    return min((each for each in axes if isinstance(each, int) and each > 0), default=0)


def _below(most: int, array: Array) -> Array:
    """Return whole numbers made less than `most`, if their type has that many."""
    fits = most and array.dtype.kind in "iu" and most <= np.iinfo(array.dtype).max
    return array % np.asarray(most, array.dtype) if fits else array

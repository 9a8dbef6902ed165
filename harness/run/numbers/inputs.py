"""The inputs of a model: one array each, whose sizes are checked before any of them is made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from harness.agent.tensors import ELEMENTS, size
from harness.case import Profile
from harness.case.graph_reader import subgraphs
from harness.case.model import fed_inputs, input_seed
from harness.record.outcome import UNFED
from harness.run.numbers.wire import WORDS, Array, dtype_of

#: Bytes that all inputs of a model may have together: they travel in one frame, whose length has 32 bits.
MOST_BYTES = 2 << 30
#: Elements drawn at a time: the random doubles are up to 32 times as wide as the values made of them.
_CHUNK = 1 << 20
_KINDS = {
    "sequence_type": "a sequence",
    "map_type": "a map",
    "optional_type": "an optional",
    "sparse_tensor_type": "a sparse tensor",
}
#: How many integers from 0 up a type of fewer than 8 has.
_INTEGERS = {"int2": 2, "uint2": 4}


class NotFeedable(Exception):
    """A network input is of a kind that the harness makes no values for: the variant applies to no target."""


def make_inputs(
    model: onnx.ModelProto, profiles: Sequence[Profile] = (), *, seed: int = 0, beside: bool = False
) -> dict[str, Array]:
    """Return one array for each network input, the same on every machine for the same name, shape and seed.

    Floating inputs are uniform in [-1, 1] (in [0, 1] if the type has no sign), integers in [0, 7] or as far as the
    type goes, booleans even odds. Raises as `check_sizes` does, before any array is made.
    """
    return {
        name: _random(name, shape, word, seed)
        for name, (word, shape) in check_sizes(model, profiles, beside=beside).items()
    }


def check_sizes(
    model: onnx.ModelProto, profiles: Sequence[Profile] = (), *, beside: bool = False
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the element type, as the wire's word, and the shape of each network input; allocate no array.

    A dynamic dimension takes the profile's optimum. Raises NotFeedable for an input that is not a tensor of numbers,
    ValueError if no profile gives a dynamic dimension, if inputs are too large, and if an initialiser has
    less data than it declares, or has it in another file, unless its weights may lie `beside` it.
    """
    for label, tensor in _constants(model.graph):
        if not (beside and tensor.data_location == TensorProto.EXTERNAL):
            _check_data(label, tensor)
    optimum = {profile.input: profile.optimum for profile in profiles}
    found = {
        value.name: (_word(value), _shape(value, optimum.get(value.name))) for value in fed_inputs(model)
    }
    for name, (word, shape) in found.items():
        _check_room(f"input {name!r} has {math.prod(shape)} elements, ", size(word, shape))
    _check_room("the inputs have together ", sum(size(*each) for each in found.values()))
    return found


def _check_room(what: str, wanted: int) -> None:
    if wanted > MOST_BYTES:
        raise ValueError(f"{what}{_readable(wanted)}; the most is {_readable(MOST_BYTES)}")


def _readable(count: int) -> str:
    power = min(max(count.bit_length() - 1, 0) // 10, 8)
    return f"{count / 1024**power:.3g} {('B', *(f'{letter}iB' for letter in 'KMGTPEZY'))[power]}"


def _word(value: onnx.ValueInfoProto) -> str:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise NotFeedable(
            f"{UNFED}{value.name!r} is {_KINDS.get(kind, 'of no type')}; the harness feeds tensors alone"
        )
    number = value.type.tensor_type.elem_type
    if number not in WORDS:
        known = number in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(number).lower() if known else f"element type {number}"
        raise NotFeedable(f"{UNFED}{value.name!r} is a tensor of {name}; the harness feeds numbers alone")
    return WORDS[number]


def _shape(value: onnx.ValueInfoProto, optimum: tuple[int, ...] | None) -> tuple[int, ...]:
    tensor = value.type.tensor_type
    dims = tensor.shape.dim
    if optimum is not None:
        if tensor.HasField("shape") and len(optimum) != len(dims):
            raise ValueError(
                f"input {value.name}: its profile has {len(optimum)} dimensions, the model {len(dims)}"
            )
        return _not_negative(f"input {value.name}", optimum)
    if not tensor.HasField("shape"):
        raise ValueError(f"input {value.name}: the model gives it no shape; give it a profile")
    for dim in dims:
        if not dim.HasField("dim_value"):
            raise ValueError(
                f"input {value.name}: dimension {dim.dim_param or '?'!r} is dynamic; give it a profile"
            )
    return _not_negative(f"input {value.name}", tuple(int(dim.dim_value) for dim in dims))


def _not_negative(label: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(extent < 0 for extent in shape):
        raise ValueError(f"{label}: a dimension of {list(shape)} is negative")
    return shape


def _constants(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield every tensor that is stored in a graph or in one inside it, with a name for it."""
    for tensor in graph.initializer:
        yield f"initialiser {tensor.name!r}", tensor
    for node in graph.node:
        for attribute in node.attribute:
            for tensor in (attribute.t, *attribute.tensors):
                yield f"attribute {attribute.name!r} of node {node.name!r}", tensor
        for inner in subgraphs(node):
            yield from _constants(inner)


def _check_data(label: str, tensor: onnx.TensorProto) -> None:
    word = WORDS.get(tensor.data_type)
    if word is None:
        return
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError(f"{label} has its data in another file; load it into the model")
    wanted = size(word, _not_negative(label, tuple(tensor.dims)))
    if tensor.HasField("raw_data"):
        held = len(tensor.raw_data)
    else:
        # Elements of less than a byte are packed in these fields too.
        held = len(getattr(tensor, helper.tensor_dtype_to_field(tensor.data_type)))
        held *= max(1, ELEMENTS[word].bits // 8)
    if held < wanted:
        raise ValueError(
            f"{label} declares {math.prod(tensor.dims)} elements of {word}, {_readable(wanted)}, "
            f"and holds {_readable(held)}"
        )


def _random(name: str, shape: tuple[int, ...], word: str, seed: int) -> Array:
    # PCG64's raw doubles are the part of numpy's generators that its compatibility policy keeps from drifting
    # least; anything finer is built on them here.
    generator = np.random.Generator(np.random.PCG64(input_seed(name, seed)))
    values = np.empty(math.prod(shape), dtype_of(word))
    for start in range(0, values.size, _CHUNK):
        part = values[start : start + _CHUNK]
        part[:] = _from_unit(generator.random(part.size), word)
    return values.reshape(shape)


def _from_unit(unit: Array, word: str) -> Array:
    """Return doubles in [0, 1) as an element type."""
    if word == "bool":
        return np.asarray(unit < 0.5)  # noqa: PLR2004
    if word == "float8_e8m0fnu":
        return unit
    if "float" in word:
        return np.asarray(unit * 2 - 1)
    return np.asarray(np.floor(unit * _INTEGERS.get(word, 8)))

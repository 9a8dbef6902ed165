"""Shapes of network inputs as trtexec takes them: `images:1x3x640x640,mask:1x640`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.case import Profile
from harness.case.inputs import fed_inputs
from harness.errors import HandledError
from harness.models.own.sizes import extents, made_up_shapes
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import onnx

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Shapes:
    """The least, the usual and the largest shape of inputs by name; what is in one alone stands for all three."""

    minimum: Mapping[str, Shape] = field(default_factory=dict)
    optimum: Mapping[str, Shape] = field(default_factory=dict)
    maximum: Mapping[str, Shape] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Shape, Shape, Shape] | None:
        """Return the three shapes of an input, None where none is given."""
        least, usual, most = (each.get(name) for each in (self.minimum, self.optimum, self.maximum))
        usual = usual or most or least
        return (least or usual, usual, most or usual) if usual else None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the inputs that are named."""
        return tuple(dict.fromkeys((*self.optimum, *self.minimum, *self.maximum)))

    def fitted(self, model: onnx.ModelProto) -> Shapes:
        """Return the shapes as a part of their model can have them: of its inputs, with the sizes that these fix."""
        declared = {value.name: _declared(value) for value in fed_inputs(model)}

        def fitted(given: Mapping[str, Shape]) -> dict[str, Shape]:
            pairs = {name: (declared[name], shape) for name, shape in given.items() if name in declared}
            return {
                name: tuple(size if own is None else own for own, size in zip(fixed, shape, strict=True))
                if fixed is not None
                else shape
                for name, (fixed, shape) in pairs.items()
                if fixed is None or len(fixed) == len(shape)
            }

        return Shapes(*map(fitted, (self.minimum, self.optimum, self.maximum)))


def parse_shapes(text: str, option: str) -> dict[str, Shape]:
    """Return shapes by input from trtexec's words; raises HandledError that names the option."""
    found: dict[str, Shape] = {}
    for word in filter(None, (each.strip() for each in text.split(","))):
        name, _, extents = word.rpartition(":")
        parts = extents.split("x")
        if not name or not all(part.isdecimal() for part in parts):
            raise HandledError(
                f"{option} {word!r}: write NAME:SIZExSIZE, as in {option} images:1x3x640x640,mask:1x640"
            )
        found[name.strip("'\"")] = tuple(int(part) for part in parts)
    return found


def profiles(
    label: str, model: onnx.ModelProto, shapes: Shapes
) -> tuple[tuple[Profile, ...], tuple[str, ...]]:
    """Return a profile for each dynamic input, and a sentence for each that has made-up sizes.

    Raises HandledError where a given shape is of no input or cannot be the input's.
    """
    fed = {value.name: value for value in fed_inputs(model)}
    for name in shapes.names:
        if name not in fed:
            raise HandledError(f"{label}: has no input {name!r}; {did_you_mean(name, fed)}")
    for name, value in fed.items():
        given, declared = shapes.of(name), _declared(value)
        if given is not None:
            _check(label, name, declared, given)
            _check_order(label, name, given)
        if declared is None and given is None:
            raise HandledError(
                f"{label}: gives input {name!r} no rank; name its shape: --shapes {name}:1x3x224x224"
            )
    usual = {name: given[1] for name in fed if (given := shapes.of(name))}
    invented = made_up_shapes(model, usual)
    made, assumed = [], []
    for name, value in fed.items():
        declared = _declared(value)
        if declared is not None and None not in declared:
            continue
        made.append(Profile(name, *(shapes.of(name) or (invented[name],) * 3)))
        if name in invented:
            size = "x".join(map(str, invented[name]))
            assumed.append(f"input {name!r} is dynamic and taken as {size}; --shapes says otherwise")
    return tuple(made), tuple(assumed)


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
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if dim.HasField("dim_value") and dim.dim_value < 1:
                dim.ClearField("dim_value")


def _declared(value: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    """Return the extents of an input, None for each that is dynamic; None where not even the rank is known."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return () if value.type.WhichOneof("value") != "tensor_type" else None
    return tuple(each if isinstance(each, int) else None for each in extents(value))


def _check(label: str, name: str, declared: tuple[int | None, ...] | None, given: Iterable[Shape]) -> None:
    for shape in given:
        if declared is None:
            continue
        fits = len(shape) == len(declared) and all(
            wanted in (None, extent) for wanted, extent in zip(declared, shape, strict=True)
        )
        if not fits:
            own = "x".join("?" if extent is None else str(extent) for extent in declared)
            raise HandledError(
                f"{label}: input {name!r} is {own or 'a scalar'} and cannot be {'x'.join(map(str, shape))}"
            )


def _check_order(label: str, name: str, given: tuple[Shape, Shape, Shape]) -> None:
    for less, more in itertools.pairwise(given):
        if len(less) != len(more) or any(low > high for low, high in zip(less, more, strict=True)):
            least, usual, most = ("x".join(map(str, shape)) for shape in given)
            raise HandledError(
                f"{label}: input {name!r} has the least shape {least}, the usual {usual} and the largest {most}; "
                f"give --minShapes, --optShapes and --maxShapes that do not get smaller"
            )

"""Shapes of network inputs as trtexec takes them: `images:1x3x640x640,mask:1x640`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.case import Profile
from harness.errors import HandledError
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
    label: str, inputs: Iterable[onnx.ValueInfoProto], shapes: Shapes
) -> tuple[tuple[Profile, ...], tuple[str, ...]]:
    """Return a profile for each dynamic input, and a sentence for each that nobody gave a shape.

    A dynamic dimension that nobody gives is 1, as trtexec has it. Raises HandledError where a given shape is of no
    input or cannot be the input's.
    """
    fed = {value.name: value for value in inputs}
    for name in shapes.names:
        if name not in fed:
            raise HandledError(f"{label}: has no input {name!r}; {did_you_mean(name, fed)}")
    made, assumed = [], []
    for name, value in fed.items():
        given, declared = shapes.of(name), _declared(value)
        if given is not None:
            _check(label, name, declared, given)
            _check_order(label, name, given)
        if declared is None and given is None:
            raise HandledError(
                f"{label}: gives input {name!r} no rank; name its shape: --shapes {name}:1x3x224x224"
            )
        if declared is not None and None not in declared:
            continue
        if given is None:
            usual = tuple(extent if extent is not None else 1 for extent in declared or ())
            given = usual, usual, usual
            assumed.append(
                f"input {name!r} is dynamic and taken as {'x'.join(map(str, usual))}; --shapes says otherwise"
            )
        made.append(Profile(name, *given))
    return tuple(made), tuple(assumed)


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
    return tuple(int(dim.dim_value) if dim.HasField("dim_value") else None for dim in tensor.shape.dim)


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

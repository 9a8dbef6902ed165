"""A model's network inputs, and the seed of the values that the harness feeds each."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

    from harness.case.model import Profile


class NetworkInput(NamedTuple):
    """One network input; `shape` has the profile's optimum where a profile gives one, -1 where nothing gives it."""

    name: str
    elem_type: int
    shape: tuple[int, ...]


def network_inputs(model: onnx.ModelProto, profiles: Sequence[Profile] = ()) -> tuple[NetworkInput, ...]:
    """Return the inputs that are fed: those that no initialiser gives."""
    optimum = {profile.input: profile.optimum for profile in profiles}
    return tuple(
        NetworkInput(
            value.name,
            value.type.tensor_type.elem_type,
            optimum.get(value.name)
            or tuple(
                int(dim.dim_value) if dim.HasField("dim_value") else -1
                for dim in value.type.tensor_type.shape.dim
            ),
        )
        for value in fed_inputs(model)
    )


def fed_inputs(model: onnx.ModelProto) -> tuple[onnx.ValueInfoProto, ...]:
    """Return the graph's own entries of the inputs that are fed."""
    constants = {initializer.name for initializer in model.graph.initializer}
    constants |= {initializer.values.name for initializer in model.graph.sparse_initializer}
    return tuple(value for value in model.graph.input if value.name not in constants)


def input_seed(name: str, seed: int = 0) -> int:
    """Return the seed of an input's values: keyed by name, so that adding an input leaves the others' values alone."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "little")

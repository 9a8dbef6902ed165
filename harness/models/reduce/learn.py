"""Learns the shapes that no inference tells, by computing the model once on made-up inputs.

What comes of a ReduceSum over axes that are data has no rank that is known beforehand, and nothing behind it could be
cut: a network's inputs and outputs have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx
from onnx import helper

from harness.models.reduce.cut import has_rank
from harness.models.tensors import inferred
from harness.run.child import ChildFailed, stream
from harness.run.numbers import NotFeedable, make_inputs, reference

if TYPE_CHECKING:
    from harness.case import Profile

_SECONDS = 60.0
_MEMORY_MIB = 4096


def learned(model: onnx.ModelProto, profiles: tuple[Profile, ...] = ()) -> dict[str, onnx.ValueInfoProto]:
    """Return type and shape of each tensor of unknown rank; of none where the model cannot be computed."""
    found = inferred(model).graph
    known = {value.name for value in (*found.value_info, *found.input, *found.output) if has_rank(value)}
    unknown = [name for node in model.graph.node for name in node.output if name and name not in known]
    if not unknown:
        return {}
    try:
        (shapes,) = stream(_shapes, model, profiles, unknown, seconds=_SECONDS, memory_mib=_MEMORY_MIB)
    except ChildFailed:
        return {}
    return {name: helper.make_tensor_value_info(name, *shape) for name, shape in shapes.items()}


def _shapes(
    model: onnx.ModelProto, profiles: tuple[Profile, ...], names: list[str]
) -> Iterator[dict[str, tuple[int, tuple[int, ...]]]]:
    try:
        inputs = make_inputs(model, profiles)
    except (NotFeedable, ValueError):
        yield {}
        return
    outputs = reference(model, inputs, also=names).outputs or {}
    yield {
        name: (int(helper.np_dtype_to_tensor_dtype(outputs[name].dtype)), tuple(outputs[name].shape))
        for name in names
        if name in outputs
    }

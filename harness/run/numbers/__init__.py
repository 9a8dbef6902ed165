"""Inputs, the reference on them, and how far an engine's outputs are from it."""

from harness.run.numbers.inputs import NotFeedable, check_sizes, make_inputs
from harness.run.numbers.operators import DequantizeLinear
from harness.run.numbers.reference import Reference, compare, reference
from harness.run.numbers.wire import Array, from_wire, to_wire

__all__ = [
    "Array",
    "DequantizeLinear",
    "NotFeedable",
    "Reference",
    "check_sizes",
    "compare",
    "from_wire",
    "make_inputs",
    "reference",
    "to_wire",
]

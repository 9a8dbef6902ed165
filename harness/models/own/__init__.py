"""A user's own models: as variants that no case file describes, with the data and the shapes that the user gives."""

from harness.models.own.data import Given, OwnPrepared, built_with, fitted, read_libraries
from harness.models.own.model import OwnModel, Wanted, load_own, own_case
from harness.models.own.shapes import Shapes, parse_shapes
from harness.run.numbers.given import read_npz

__all__ = [
    "Given",
    "OwnModel",
    "OwnPrepared",
    "Shapes",
    "Wanted",
    "built_with",
    "fitted",
    "load_own",
    "own_case",
    "parse_shapes",
    "read_libraries",
    "read_npz",
]

"""The imports of a case module: frozen data, the ONNX graph builder and shared `links`; with loader and checks."""

from harness.case.claims import Expectation, Kind, Link, Scope
from harness.case.graph import Graph, Quantiser
from harness.case.model import (
    Calibrator,
    Case,
    Data,
    Plugin,
    Profile,
    Recipe,
    Variant,
    check_variant,
    effective_name,
    model_sha256,
)
from harness.case.registry import load_cases
from harness.words import Basis, Class, Engine, Level, Precision, Role, Typing

__all__ = [
    "Basis",
    "Calibrator",
    "Case",
    "Class",
    "Data",
    "Engine",
    "Expectation",
    "Graph",
    "Kind",
    "Level",
    "Link",
    "Plugin",
    "Precision",
    "Profile",
    "Quantiser",
    "Recipe",
    "Role",
    "Scope",
    "Typing",
    "Variant",
    "check_variant",
    "effective_name",
    "load_cases",
    "model_sha256",
]

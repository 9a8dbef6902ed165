"""What a case module imports: frozen data (`model`), the ONNX graph builder (`graph`) and the loader (`registry`)."""

from harness.case.graph import Graph
from harness.case.model import (
    Calibrator,
    Case,
    Expectation,
    Link,
    Plugin,
    Profile,
    Recipe,
    Variant,
    effective_name,
    model_sha256,
)
from harness.case.registry import load_cases
from harness.words import Certainty, Class, Engine, Precision, Role, Typing

__all__ = [
    "Calibrator",
    "Case",
    "Certainty",
    "Class",
    "Engine",
    "Expectation",
    "Graph",
    "Link",
    "Plugin",
    "Precision",
    "Profile",
    "Recipe",
    "Role",
    "Typing",
    "Variant",
    "effective_name",
    "load_cases",
    "model_sha256",
]

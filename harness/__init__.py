"""A version-matrix regression test harness for TensorRT.

What is public in Python is here; docs/python.md has examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.api import (
        Checked,
        HandledError,
        InfraError,
        Target,
        check,
        explain,
        load_matrix,
        load_results,
        measure,
    )

__version__ = "0.1.0"
__all__ = [
    "Checked",
    "HandledError",
    "InfraError",
    "Target",
    "check",
    "explain",
    "load_matrix",
    "load_results",
    "measure",
]


def __getattr__(name: str) -> object:
    """Import what is public when it is asked for: onnx and the engines' machinery take a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from harness import api  # noqa: PLC0415

    return getattr(api, name)


def __dir__() -> list[str]:
    """Return what is public too before it is imported, for what completes names."""
    return sorted({*globals(), *__all__})

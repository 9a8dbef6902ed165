"""A version-matrix regression test harness for TensorRT.

The public interface in Python; docs/python.md has examples.
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
    """Import a public name on first use: onnx and the engines' machinery take a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from harness import api  # noqa: PLC0415

    return getattr(api, name)


def __dir__() -> list[str]:
    """Return the public names too before they are imported, for completion."""
    return sorted({*globals(), *__all__})

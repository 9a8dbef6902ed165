"""The flags of TensorRT's builder and ONNX parser, of every version: what a recipe may name.

Which version has which is asked at the version; here a name is only told from a slip of the pen. tests/contract holds
the lists to the bindings of every version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

BUILDER_FLAGS = frozenset(
    {
        *("BF16", "DEBUG", "DIRECT_IO", "DISABLE_COMPILATION_CACHE", "DISABLE_TIMING_CACHE"),
        *("DISTRIBUTIVE_INDEPENDENCE", "EDITABLE_TIMING_CACHE", "ENABLE_TACTIC_HEURISTIC"),
        *("ERROR_ON_TIMING_CACHE_MISS", "EXCLUDE_LEAN_RUNTIME", "FP16", "FP4", "FP8", "GPU_FALLBACK", "INT4"),
        *("INT8", "MONITOR_MEMORY", "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS", "REFIT"),
        *("REFIT_IDENTICAL", "REFIT_INDIVIDUAL", "REJECT_EMPTY_ALGORITHMS", "REQUIRE_USER_ALLOCATION"),
        *("SAFETY_SCOPE", "SPARSE_WEIGHTS", "STRICT_NANS", "STRICT_TYPES", "STRIP_PLAN", "TF32"),
        *("VERSION_COMPATIBLE", "WEIGHTLESS", "WEIGHT_STREAMING"),
    }
)
PARSER_FLAGS = frozenset(
    {
        *("ADJUST_FOR_DLA", "ENABLE_PLUGIN_OVERRIDE", "ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"),
        *("NATIVE_INSTANCENORM", "REPORT_CAPABILITY_DLA"),
    }
)


def check_flags(builder: Iterable[str], parser: Iterable[str]) -> None:
    """Raise ValueError, with the nearest name, for a flag that no version of TensorRT has."""
    for kind, names, known in (("builder", builder, BUILDER_FLAGS), ("parser", parser, PARSER_FLAGS)):
        for name in names:
            if name not in known:
                raise ValueError(
                    f"no version of TensorRT has a {kind} flag {name!r}; {did_you_mean(name, sorted(known))}"
                )

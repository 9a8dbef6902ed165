"""The flags of TensorRT's builder and ONNX parser, of every version: what a recipe may name.

Which version has which flag is asked of the version itself; these lists only catch a mistyped name. tests/contract
holds them to the bindings of every version.
"""

from __future__ import annotations

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

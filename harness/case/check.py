"""Holds the names in a variant to the graph that it builds, and its flags to TensorRT's.

A version is asked itself for its flags; the lists here, of every version, only catch a mistyped name. tests/contract
holds them to the bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx

from harness.case.model import Variant, effective_name, fed_inputs, source
from harness.errors import HandledError
from harness.suggest import did_you_mean

_NO_FLAG = "which no version of TensorRT has"


def check_flags(where: str, flags: Iterable[str]) -> None:
    """Raise HandledError, naming where it stands, for a builder flag that no version of TensorRT has."""
    _check(f"{where} names the builder flag", flags, sorted(BUILDER_FLAGS), _NO_FLAG)


def check_variant(variant: Variant, model: onnx.ModelProto) -> None:
    """Raise HandledError where a variant names a flag that no version has, or a name that is not in its graph."""
    graph = model.graph
    nodes = [effective_name(node) for node in graph.node]
    tensors = [name for node in graph.node for name in node.output if name]
    inputs = [value.name for value in fed_inputs(model)]
    recipe, code = variant.recipe, source(variant.build)
    where = f"{code.co_filename if code else repr(variant.build)}: variant {variant.name!r}:"
    check_flags(f"{where} flags", recipe.flags)
    parser_flags = (name for name, _ in recipe.parser_flags)
    _check(f"{where} parser_flags names the parser flag", parser_flags, sorted(PARSER_FLAGS), _NO_FLAG)
    _check(f"{where} precision names the node", (node for node, _ in variant.precision or ()), nodes)
    _check(f"{where} mark_outputs names the tensor", recipe.mark_outputs, tensors)
    _check(f"{where} a profile is for the input", (profile.input for profile in recipe.profiles), inputs)


def _check(
    what: str, names: Iterable[str], known: Sequence[str], wrong: str = "which is not in its graph"
) -> None:
    for name in names:
        if name not in known:
            raise HandledError(f"{what} {name!r}, {wrong}; {did_you_mean(name, known)}")


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

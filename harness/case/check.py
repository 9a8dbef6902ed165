"""Holds what a variant names to the graph that it builds, and flags to those that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case.flags import BUILDER_FLAGS, PARSER_FLAGS
from harness.case.inputs import fed_inputs
from harness.case.model import effective_name, source
from harness.errors import HandledError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import onnx

    from harness.case.model import Variant


_NO_FLAG = "which no version of TensorRT has"


def check_flags(where: str, flags: Iterable[str]) -> None:
    """Raise HandledError, naming where it stands, for a builder flag that no version of TensorRT has."""
    _check(f"{where} names the builder flag", flags, sorted(BUILDER_FLAGS), _NO_FLAG)


def check_variant(variant: Variant, model: onnx.ModelProto) -> None:
    """Raise HandledError where a variant names a flag that no version has, or what is not in its graph."""
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

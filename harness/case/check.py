"""Holds what a variant names to the graph that it builds, and flags to those that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case.flags import BUILDER_FLAGS, PARSER_FLAGS
from harness.case.model import effective_name, source
from harness.errors import HandledError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx

    from harness.case.model import Variant


_NO_FLAG = "no version of TensorRT has"


def check_variant(variant: Variant, model: onnx.ModelProto) -> None:
    """Raise HandledError where a variant names a flag that no version has, or what is not in its graph."""
    graph = model.graph
    nodes = [effective_name(node) for node in graph.node]
    tensors = [name for node in graph.node for name in node.output if name]
    constants = {item.name for item in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    recipe = variant.recipe
    _check(variant, "flags names the builder flag", recipe.flags, BUILDER_FLAGS, _NO_FLAG)
    parser_flags = (name for name, _ in recipe.parser_flags)
    _check(variant, "parser_flags names the parser flag", parser_flags, PARSER_FLAGS, _NO_FLAG)
    _check(variant, "precision names the node", (node for node, _ in variant.precision or ()), nodes)
    _check(variant, "mark_outputs names the tensor", recipe.mark_outputs, tensors)
    _check(variant, "a profile is for the input", (profile.input for profile in recipe.profiles), inputs)


def _check(
    variant: Variant,
    what: str,
    names: Iterable[str],
    known: Iterable[str],
    wrong: str = "is not in its graph",
) -> None:
    there, code = list(known), source(variant.build)
    file = code.co_filename if code else repr(variant.build)
    for name in names:
        if name not in there:
            raise HandledError(
                f"{file}: variant {variant.name!r}: {what} {name!r}, which {wrong}; "
                f"{did_you_mean(name, there)}"
            )

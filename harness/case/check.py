"""Holds what a variant names to the graph that it builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case.model import effective_name, source
from harness.errors import HandledError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx

    from harness.case.model import Variant


def check_variant(variant: Variant, model: onnx.ModelProto) -> None:
    """Raise HandledError where a variant names a node, tensor or input that its graph does not have."""
    graph = model.graph
    nodes = [effective_name(node) for node in graph.node]
    tensors = [name for node in graph.node for name in node.output if name]
    constants = {item.name for item in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    recipe = variant.recipe
    _check(variant, "precision names the node", (node for node, _ in variant.precision or ()), nodes)
    _check(variant, "mark_outputs names the tensor", recipe.mark_outputs, tensors)
    _check(variant, "a profile is for the input", (profile.input for profile in recipe.profiles), inputs)


def _check(variant: Variant, what: str, names: Iterable[str], known: Iterable[str]) -> None:
    there, code = list(known), source(variant.build)
    file = code.co_filename if code else repr(variant.build)
    for name in names:
        if name not in there:
            raise HandledError(
                f"{file}: variant {variant.name!r}: {what} {name!r}, which is not in its graph; "
                f"{did_you_mean(name, there)}"
            )

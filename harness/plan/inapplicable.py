"""Which cells mean nothing on their target, so that they are not run."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from harness.case import Recipe, Typing
from harness.errors import HandledError

if TYPE_CHECKING:
    from harness.case import Case, Variant
    from harness.plan.cells import Cell


def inapplicable_because(cell: Cell) -> str | None:
    """Return why a cell means nothing on its target, or None where it is to be run.

    What an engine has removed is not decided here: it is run, and the agent reports which name is missing.
    """
    recipe, traits = cell.variant.recipe, cell.target.traits
    if recipe.libraries and not traits.takes_plugins:
        names = ", ".join(library.name for library in recipe.libraries)
        return f"{traits.product} takes no plugins of TensorRT's, and this recipe asks for those of {names}"
    if not traits.graph_alone:
        return None
    lacking = _outside_the_graph(cell.variant.recipe)
    if not lacking:
        return None
    asks = " and ".join(filter(None, [", ".join(lacking[:-1]), lacking[-1]]))
    reason = (
        f"{cell.target.traits.product} takes precision from the graph alone, and this recipe asks for {asks}"
    )
    twin = _same_graph(cell.case, cell.variant)
    return f"{reason}; {cell.case.name}.{twin.name} is the same graph without that" if twin else reason


def _outside_the_graph(recipe: Recipe) -> list[str]:
    """Name what a recipe asks of the builder and not of the graph."""
    lacking = []
    if recipe.typing is Typing.WEAK:
        lacking.append(f"weak typing ({', '.join(recipe.flags)})" if recipe.flags else "weak typing")
    if recipe.typing is Typing.STRONG:
        lacking.append("a strongly typed network")
    if recipe.calibrator:
        lacking.append(f"{recipe.calibrator.kind} calibration")
    if recipe.parser_flags:
        lacking.append(f"parser flags ({', '.join(name for name, _ in recipe.parser_flags)})")
    if recipe.mark_outputs:
        lacking.append("inner tensors marked as outputs")
    if recipe.plugin:
        lacking.append(f"the plugin {recipe.plugin.op}")
    return lacking


def _same_graph(case: Case, variant: Variant) -> Variant | None:
    """Find the variant that builds the same bytes and asks for nothing beside the graph."""
    return next(
        (
            other
            for other in case
            if not _outside_the_graph(other.recipe)
            and (mine := _model_hash(variant))
            and _model_hash(other) == mine
        ),
        None,
    )


@functools.cache
def _model_hash(variant: Variant) -> str:
    """Return the hash of a model, "" where it cannot be built."""
    try:
        return variant.model_sha256()
    except HandledError:
        return ""

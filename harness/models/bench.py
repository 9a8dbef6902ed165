"""Tries models that were made of another one, each on one target and asked as the first was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.layers import asked
from harness.layers.datatype import NARROW, same_precision
from harness.models.blockers import accused
from harness.models.check import engine_made, ran
from harness.models.own.model import flags_for
from harness.words import Precision, Typing

if TYPE_CHECKING:
    import onnx

    from harness.case import Profile, Recipe
    from harness.judge.cell import Judged
    from harness.matrix import Target
    from harness.models.tries import Tries
    from harness.record.outcome import Node


@dataclass(frozen=True)
class Bench:
    """What becomes of a model on one target; `flags` are the builder flags that the user gave.

    `wishes` are nodes that are to keep a precision; those count of which a model still asks it. None is all of that.
    `calibrated` are the network inputs that there are batches of.
    """

    tries: Tries
    target: Target
    recipe: Recipe
    flags: tuple[str, ...] = ()
    wishes: tuple[tuple[str, Precision], ...] | None = None
    calibrated: tuple[str, ...] = ()

    def __call__(self, model: onnx.ModelProto, profiles: tuple[Profile, ...] | None = None) -> Judged:
        """Return what became of a model; its flags are those that its own types need."""
        nodes = asked(model)
        flags: tuple[str, ...] = ()
        if self.recipe.typing is not Typing.STRONG:
            flags = tuple(dict.fromkeys((*flags_for(nodes), *self.flags)))
        shapes = self.recipe.profiles if profiles is None else profiles
        calibrator = self.recipe.calibrator
        if calibrator and not {each.name for each in model.graph.input} <= set(self.calibrated):
            # Of what was cut out nobody has batches.
            calibrator = None
        recipe = replace(self.recipe, flags=flags, profiles=shapes, calibrator=calibrator)
        return self.tries.judged(model, self.target, recipe, self._still(nodes))

    def _still(self, nodes: tuple[Node, ...]) -> tuple[tuple[str, Precision], ...] | None:
        if self.wishes is None:
            return None
        asks = {node.name: node.precision for node in nodes}
        return tuple((node, precision) for node, precision in self.wishes if asks.get(node) == precision)


def kept(judged: Judged) -> int:
    """Return how many nodes run in the narrow type that their graph asks of them."""
    return sum(
        precision in NARROW and same_precision(precision, judged.precision.get(node))
        for node, precision in judged.wished.items()
    )


def works(judged: Judged) -> bool:
    """Tell whether an engine is built in which each node keeps what its graph asks of it."""
    return ran(judged) and engine_made(judged) and not judged.classification.lost


def untold(judged: Judged) -> tuple[str, ...]:
    """Return the nodes that ask for a type and of which no layer tells what they ran in."""
    if not (judged.outcome.layers and judged.demanded):
        return ()
    unknown = (None, Precision.UNKNOWN)
    return tuple(node for node in judged.wished if judged.precision.get(node) in unknown)


def blamed(judged: Judged) -> tuple[str, ...]:
    """Return the nodes that lost their precision, or those that are refused, as far as they are known."""
    lost = [each.node for each in judged.classification.lost]
    return tuple(dict.fromkeys(lost or [node for each in accused(judged) for node in each.nodes]))

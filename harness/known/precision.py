"""The precision of a cell in short, and that of the nodes which are wanted in none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.layers.datatype import FLOATS, NARROW, WEIGHTS, same_precision
from harness.words import Precision, said

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from harness.record.outcome import Layer

#: Precisions that multiply in a float; so do those of weights that are only stored in something narrower.
_FLOATING = FLOATS | frozenset(WEIGHTS.values())
_UNINTERESTING = frozenset({Precision.UNKNOWN, Precision.INT32, Precision.INT64, Precision.BOOL})


def chip(
    wanted: Mapping[str, Precision],
    actual: Mapping[str, Precision],
    untold: Collection[str],
    layers: Sequence[Layer],
) -> str:
    """Return a cell's precision in short: wanted nodes that kept it ("INT8 1/2"), else what layers ran in.

    `untold` are wanted nodes of which the engine does not tell; they add a question mark ("INT8 1/2?"). Other nodes
    without a precision vanished rightly and do not count. Empty where the layers are not known.
    """
    if not layers:
        return ""
    counted = [node for node in wanted if node in actual or node in untold]
    if not counted:
        ran_in = {layer.precision for layer in layers if layer.precision not in _UNINTERESTING}
        return "+".join(sorted(said(kind).upper() for kind in ran_in))
    kinds = {wanted[node] for node in counted}
    word = said(kinds.pop()).upper() if len(kinds) == 1 else "kept"
    kept = sum(same_precision(wanted[node], actual.get(node)) for node in counted)
    if all(node in untold for node in counted):
        return f"{word} ?"
    return f"{word} {kept}/{len(counted)}{'?' if any(node in untold for node in counted) else ''}"


def unwanted(
    precision: Mapping[str, Precision], wanted: Collection[str], layers: Sequence[Layer]
) -> dict[str, Precision]:
    """Return the precision of the nodes that are wanted in none: a narrow type or a float.

    A node that is fused into one layer with a wanted one follows that, and is left out.
    """
    follow = {
        (node, precision.get(leader))
        for layer in layers
        for leader in set(wanted) & set(layer.onnx_nodes)
        for node in layer.onnx_nodes
    }
    return {
        node: kind
        for node, kind in precision.items()
        if node not in wanted and kind in NARROW | _FLOATING and (node, kind) not in follow
    }

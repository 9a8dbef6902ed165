"""A layer's name -> the ONNX nodes it came from, for engines that print no metadata.

TensorRT builds a fused layer's name from its parts: `a + PWN(PWN(b), c)`; the weight first under explicit
quantisation, `w + w_quant + conv + PWN(..)` (github.com/NVIDIA/TensorRT/issues/3385); `a || b` for layers
merged side by side; `{ForeignNode[a...b]}` for a compiled region. Node names may hold any of these signs
themselves, so known names are looked for at the joints, longest first; the text is not split.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.record.outcome import Node

_REFORMAT = re.compile(r"Reformatting CopyNode |Reformatted (?:Input|Output) Tensor ")
_REGION, _REGION_END = "{ForeignNode[", "]}"
#: Places at which a region's name is tried as its first and its last node: a node's own name may hold dots.
_MOST_PLACES = 16
#: Where a part may begin and end.
_BEFORE = re.compile(r"\(| \+ | \|\| |, ")
_AFTER = re.compile(r"$|\)| \+ | \|\| |, |_myl\d+_\d+$|_clone_\d+")


def map_names(layer_name: str, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the names of the nodes in a layer's name, in the model's order; `nodes` is in the model's order.

    A region gives every node from its first to its last, which can be too many where branches run side by
    side. A reformat layer gives none.
    """
    if _REFORMAT.match(layer_name):
        return ()
    order = [node.name for node in nodes]
    found: set[str] = set()
    begin, end = layer_name.find(_REGION), layer_name.rfind(_REGION_END)
    if 0 <= begin <= end - len(_REGION):
        found.update(_range(layer_name[begin + len(_REGION) : end], order))
    found.update(_parts(layer_name, order))
    return tuple(name for name in order if name in found)


def _parts(text: str, names: Sequence[str]) -> set[str]:
    known = sorted({name for name in names if name}, key=len, reverse=True)
    found: set[str] = set()
    taken = 0
    for start in (0, *(joint.end() for joint in _BEFORE.finditer(text))):
        if start < taken:
            continue
        for name in known:
            if text.startswith(name, start) and _AFTER.match(text, start + len(name)):
                found.add(name)
                taken = start + len(name)
                break
    return found


def _range(body: str, order: Sequence[str]) -> set[str]:
    """Return the nodes of `first...last`; of one end alone where the other is a weight or an unnamed layer.

    Each end may be a fused name itself.
    """
    for dots in islice(re.finditer(r"\.\.\.", body), _MOST_PLACES):
        first, last = _parts(body[: dots.start()], order), _parts(body[dots.end() :], order)
        if first and last:
            places = [order.index(name) for name in first | last]
            return set(order[min(places) : max(places) + 1])
        if first or last:
            return first | last
    return _parts(body, order)

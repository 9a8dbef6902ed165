"""The names that an engine gives to layers of several nodes: taken apart, and told from those of compiled regions."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The name of a compiled region begins and ends so.
BEGIN, END = "{ForeignNode[", "]}"
_IN_TEXT = re.compile(r"\{ForeignNode\[.*\]\}")
#: A kernel that the graph compiler made has such a name, inside of a region or by itself.
_COMPILED = re.compile(r"\{ForeignNode\[|_myl\d*_|^__myl")
REGION = re.compile(r"\A\{ForeignNode\[(?P<ends>[\s\S]*)\]\}\Z", re.ASCII)
POINTWISE = re.compile(r"\APWN\((?P<inside>[\s\S]*)\)\Z", re.ASCII)
#: The builder's label of a fusion, before the names of its layers.
LABEL = re.compile(r"\A(?!\w*(?:Error|Exception|Warning): )[A-Za-z0-9][\w -]{0,40}: (?=\S)", re.ASCII)
COPY = re.compile(r"\AReformatting CopyNode for (?:Input|Output) Tensor \d+ to ", re.ASCII)
#: The meaning of a name's form.
FORMS = (
    (re.compile(r"\Anode_of_", re.ASCII), "a node without a name, called by its first output"),
    (re.compile(r"\A__my|_myl\d", re.ASCII), "a name that the graph compiler made; no node has it"),
    (re.compile(r"\A\(Unnamed Layer", re.ASCII), "a layer of the parser's own; no node has this name"),
    (re.compile(r"QuantizeLinear|_quantize|_quantized\Z", re.ASCII), "quantises, or is quantised"),
)
MOST_PARTS, LONGEST_NAME, DEEPEST = 40, 3000, 20


@dataclass(frozen=True)
class FusedNode:
    """A node in the name of a fused layer, and how it comes to be there."""

    name: str
    how: str = ""


def is_region(name: str) -> bool:
    """Tell whether a layer is a compiled region, whose inside no log shows."""
    return name.startswith(BEGIN)


def region_in(text: str) -> str:
    """Return the name of the compiled region that stands in a text, "" if there is none."""
    found = _IN_TEXT.search(text)
    return found.group() if found else ""


def is_compiled(name: str) -> bool:
    """Tell whether a layer is a compiled region, or a kernel that the graph compiler made."""
    return bool(_COMPILED.search(name))


def taken_apart(name: str) -> tuple[FusedNode, ...]:
    """Return the nodes in the name of a fused layer; () for the name of a node."""
    parts = _parts(name[:LONGEST_NAME], "", 0) if name else ()
    return parts if len(parts) > 1 or any(part.how for part in parts) else ()


def _parts(name: str, how: str, depth: int) -> tuple[FusedNode, ...]:
    text = LABEL.sub("", COPY.sub("", name.strip()))
    inside = _inside(text, how) if depth < DEEPEST else None
    if inside is not None:
        return tuple(part for one, why in inside for part in _parts(one, why, depth + 1))[:MOST_PARTS]
    form = next((said for pattern, said in FORMS if pattern.search(text)), "")
    return (FusedNode(text, "; ".join(filter(None, (how, form)))),)


def _inside(text: str, how: str) -> list[tuple[str, str]] | None:
    """Return the names that a name is made of, each with how it comes to be there; None for the name of one node."""
    region, pointwise = REGION.search(text), POINTWISE.search(text)
    ends = split(region["ends"].replace("...", " ... ", 1), (" ... ",)) if region else []
    if ends[1:]:
        return [
            (ends[0], "the region begins here"),
            ("".join(ends[1:]), "and ends here; all between is in it"),
        ]
    if ends:
        return [(ends[0], "the region")]
    merged = split(text, (" + ", " || ", " -> "))
    if merged[1:]:
        return [(one, how) for one in merged]
    return [(one, "pointwise, merged") for one in split(pointwise["inside"], (", ",))] if pointwise else None


def split(text: str, signs: tuple[str, ...]) -> list[str]:
    """Split a name at a sign outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        sign = next((one for one in signs if depth == 0 and text.startswith(one, at)), "")
        if sign and at >= start:
            parts.append(text[start:at])
            start = at + len(sign)
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]

"""The names that an engine gives to layers of several nodes: taken apart, and told from those of compiled regions."""

from __future__ import annotations

import re

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
MOST_PARTS, LONGEST_NAME, DEEPEST = 40, 3000, 20


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


def taken_apart(name: str) -> tuple[str, ...]:
    """Return the nodes in the name of a fused layer; () for the name of a node."""
    parts = _parts(name[:LONGEST_NAME], 0)
    return parts if len(parts) > 1 or is_region(name) or name.startswith("PWN(") else ()


def _parts(name: str, depth: int) -> tuple[str, ...]:
    text = LABEL.sub("", COPY.sub("", name.strip()))
    inside = _inside(text) if depth < DEEPEST else [text]
    if inside == [text]:
        return (text,)
    return tuple(part for one in inside for part in _parts(one, depth + 1))[:MOST_PARTS]


def _inside(text: str) -> list[str]:
    """Return the names that a name is made of."""
    region, pointwise = REGION.search(text), POINTWISE.search(text)
    if region:
        first, _, last = region["ends"].partition("...")
        return [each for each in (first, last) if each]
    merged = split(text, (" + ", " || ", " -> "))
    return split(pointwise["inside"], (", ",)) if pointwise and not merged[1:] else merged


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

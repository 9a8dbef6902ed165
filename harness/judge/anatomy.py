# ruff: noqa: E501  (patterns stand on one line)
"""Takes a line apart: who speaks, code, source file and function, interface and method, condition, plugin or not.

From the parts alone follows an answer that is true though general, by tables/engine.yaml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.document import read_document

_CODE = re.compile(r"Error Code:? (\d{1,2})\b|\AError\[(\d{1,2})\]|\A(\d{1,2}): ")
_PLACE = re.compile(
    r"\[(?P<file>\w+\.(?:cpp|cu|h|cc))::(?P<function>[\w:~<>]{1,200}?)(?:::\d+)?\]|at: [\w./]{0,200}?(?P<old>\w+\.(?:cpp|cu|h))::(?P<method>\w{1,80})::\d+|(?<![\w/.])(?P<plain>\w+\.(?:cpp|cu|h)):\d+"
)
_INTERFACE = re.compile(
    r"\b(?P<interface>I[A-Z]\w{2,60})::(?P<method>[a-z]\w{1,60})\b|\A(?P<free>createInfer\w{1,20})(?=:)"
)
_CONDITION = re.compile(
    r"condition: ([^\n]{1,300}?)(?:\s*\)?\s*(?: In \w+ at [^\n]*)?\Z|\n)|Assertion ([^\n]{1,300}?) failed|CHECK\(([^\n]{1,300}?)\) failed|: 0 \(([^\n]{1,200})\)\s*\Z"
)
#: The signs of a plugin in a layer's name, a runner or a message.
_PLUGIN = re.compile(r"PluginV\d|PLUGIN_V\d|\bplugin|Plugin\w*::|\w_TRT\b")
#: Characters of a line that are looked at.
_LOOKED_AT = 2000


@dataclass(frozen=True)
class Anatomy:
    """The parts of a line, each "" where it has none."""

    speaker: str = ""
    code: int = 0
    file: str = ""
    function: str = ""
    interface: str = ""
    method: str = ""
    condition: str = ""
    plugin: bool = False


@dataclass(frozen=True)
class General:
    """What follows from the parts of a line alone."""

    title: str
    cause: str
    advice: str


@lru_cache
def tables() -> dict[str, Any]:
    """Return engine.yaml, which is shipped tested, with its patterns compiled and its rows by name."""
    data: dict[str, Any] = dict(
        read_document(Path(__file__).with_name("tables") / "engine.yaml", start="").data
    )
    data["methods"] = {name: row for row in reversed(data["methods"]) for name in row["methods"]}
    data["sources"] = {name: row for row in data["sources"] for name in row["files"]}
    data["conditions"] = [(re.compile(row["match"]), row) for row in data["conditions"]]
    nothing = r"(?!)"
    data["speakers"] = [
        (each["name"], re.compile(each.get("head", nothing)), re.compile(each["text"]))
        for each in data["speakers"]
    ]
    return data


def speaker(text: str, head: str = "") -> str:
    """Return who says a text that stands behind a head, "" if neither tells."""
    return next(
        (
            name
            for name, at, said in tables()["speakers"]
            if at.search(head) or said.search(text[:_LOOKED_AT])
        ),
        "",
    )


def take_apart(text: str, head: str = "") -> Anatomy:
    """Return the parts of a line."""
    text = text[:_LOOKED_AT]
    code, condition = (
        next(filter(None, found.groups()), "") if (found := each.search(text)) else ""
        for each in (_CODE, _CONDITION)
    )
    place, interface = (
        found.groupdict("") if (found := each.search(text)) else {} for each in (_PLACE, _INTERFACE)
    )
    return Anatomy(
        speaker(text, head),
        int(code or 0),
        place.get("file") or place.get("old") or place.get("plain") or "",
        (place.get("function") or place.get("method") or "").rpartition("::")[2],
        interface.get("interface") or "",
        interface.get("method") or interface.get("free") or "",
        condition.strip(),
        bool(_PLUGIN.search(text)),
    )


def general(apart: Anatomy) -> General | None:
    """Return what the parts of a line of the engine's mean, None where they say too little."""
    methods, phases, codes = (tables()[name] for name in ("methods", "phases", "codes"))
    names = (f"{apart.interface}.{apart.method}", apart.method, apart.function)
    method: dict[str, str] = next((methods[name] for name in names if name in methods), {})
    condition: dict[str, str] = next(
        (row for match, row in tables()["conditions"] if apart.condition and match.search(apart.condition)),
        {},
    )
    source: dict[str, str] = tables()["sources"].get(apart.file, {})
    if apart.speaker not in ("engine", "parser", "") or not (method or source or condition):
        return None
    phase = "plugin" if source.get("phase") == "plugin" else (method or source).get("phase", "")
    where = f"{apart.interface}::{apart.method}".strip(":") or (apart.function if method else "")
    said = (
        f"It stopped in {source['part']}." if source and not apart.interface else "",
        (condition or method).get("means", ""),
        f"The condition that failed: {apart.condition}." if apart.condition else "",
        f"Its code {apart.code} stands for {codes[apart.code]}."
        if 0 < apart.code < len(codes) and not (condition or method)
        else "",
    )
    stopped = f"TensorRT stopped in {where}" if where and phase != "plugin" else "TensorRT stopped"
    own = {} if phase == "plugin" or (apart.plugin and not method) else condition or method
    advice = own.get("do") or phases["plugin" if apart.plugin else phase or "run"]["do"]
    return General(
        ", ".join(filter(None, (stopped, phases[phase]["when"] if phase else ""))),
        " ".join(filter(None, said)),
        advice,
    )

# ruff: noqa: E501  (patterns stand on one line)
"""Takes a line apart: who speaks, code, source file and function, interface and method, condition, plugin or not.

From the parts alone follows an answer that is true though general, by tables/engine.yaml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.document import read_document
from harness.judge.messages import FOLDER, Meaning

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


@lru_cache
def tables() -> dict[str, Any]:
    """Return engine.yaml, which is shipped tested, with its patterns compiled and its rows by name."""
    data: dict[str, Any] = dict(read_document(FOLDER / "engine.yaml", start="").data)
    data["methods"] = {name: row for row in reversed(data["methods"]) for name in row["methods"]}
    data["sources"] = {name: row for row in data["sources"] for name in row["files"]}
    data["conditions"] = [(re.compile(row["match"]), row) for row in data["conditions"]]
    for each in data["speakers"]:
        each |= {"head": re.compile(each.get("head", "(?!)")), "text": re.compile(each["text"])}
    return data


def speaker(text: str, head: str = "") -> str:
    """Return who says a text that stands behind a head, "" if neither tells."""
    text = text[:_LOOKED_AT]
    who = (each for each in tables()["speakers"] if each["head"].search(head) or each["text"].search(text))
    return next((each["name"] for each in who), "")


def take_apart(text: str, head: str = "") -> Anatomy:
    """Return the parts of a line."""
    text = text[:_LOOKED_AT]
    code, condition, place, interface = (
        each.search(text) for each in (_CODE, _CONDITION, _PLACE, _INTERFACE)
    )
    at = place.groupdict("") if place else {}
    of = interface.groupdict("") if interface else {}
    return Anatomy(
        speaker(text, head),
        int(code[code.lastindex or 0]) if code else 0,
        next(filter(None, (at.get(name) for name in ("file", "old", "plain"))), ""),
        (at.get("function") or at.get("method") or "").rpartition("::")[2],
        of.get("interface") or "",
        of.get("method") or of.get("free") or "",
        condition[condition.lastindex or 0].strip() if condition else "",
        bool(_PLUGIN.search(text)),
    )


def general(apart: Anatomy) -> Meaning | None:
    """Return what the parts of a line of the engine's mean, None where they say too little."""
    methods, phases, codes = (tables()[name] for name in ("methods", "phases", "codes"))
    names = (f"{apart.interface}.{apart.method}", apart.method, apart.function)
    method: dict[str, str] = next((methods[name] for name in names if name in methods), {})
    failed = (row for match, row in tables()["conditions"] if match.search(apart.condition))
    source: dict[str, str] = tables()["sources"].get(apart.file, {})
    own: dict[str, str] = next(failed, {}) or method
    if apart.speaker not in ("engine", "parser", "") or not (own or source):
        return None
    phase = "plugin" if source.get("phase") == "plugin" else (method or source).get("phase", "")
    where = f"{apart.interface}::{apart.method}".strip(":") or (apart.function if method else "")
    stopped = "TensorRT stopped" + (f" in {where}" if where and phase != "plugin" else "")
    coded = 0 < apart.code < len(codes) and not own
    said = (
        f"It stopped in {source['part']}." if source and not apart.interface else "",
        own.get("means", ""),
        f"The condition that failed: {apart.condition}." if apart.condition else "",
        f"Its code {apart.code} stands for {codes[apart.code]}." if coded else "",
    )
    if phase == "plugin" or (apart.plugin and not method):
        own = {}
    return Meaning(
        "parser-stopped" if apart.speaker == "parser" else "engine-stopped",
        phase=phase,
        title=", ".join(filter(None, (stopped, phases[phase]["when"] if phase else ""))),
        cause=" ".join(filter(None, said)),
        advice=own.get("do") or phases["plugin" if apart.plugin else phase or "run"]["do"],
    )

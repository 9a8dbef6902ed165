"""docs/reuse.md: what was measured on TensorRT for RTX, and what NVIDIA documents of what could not be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.reuse.header import GENERATIONS, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

MEASURED = Path(__file__).resolve().parents[2] / "docs/reuse.json"
TEMPLATE = Path(__file__).with_name("template.md")
#: What is no whole engine, in the words of the page.
_SPOILT = {
    "nothing": "an empty file",
    "a text": "thirteen characters of text",
    "zeros": "4096 zeros",
    "half": "the first half of an engine of 1.7",
}


def reuse_page() -> str:
    """Return the page."""
    found = json.loads(MEASURED.read_text(encoding="utf-8"))
    return TEMPLATE.read_text(encoding="utf-8").format(
        when=found["when"],
        machine=", ".join(found["gpus"]) or "a machine without a GPU",
        versions=", ".join(builder["version"] for builder in found["builders"]),
        headers="\n".join(_headers(found["builders"])),
        pairs="\n".join(_pairs(found["readers"])),
        asked="\n".join(_once(found["readers"], "said")),
        refused="\n".join(_once(found["readers"], "refused")),
        spoilt="\n".join(_spoilt(found["readers"])),
        flags="\n".join(_flags(found["builders"])),
        caches="\n".join(_caches(found["readers"])),
    )


def _headers(builders: list[dict[str, Any]]) -> Iterator[str]:
    yield "| built by | bytes 25 to 28 | without a word on GPUs it is for | for one generation each |"
    yield "| --- | --- | --- | --- |"
    for builder in builders:
        headers = {each["what"]: parse(bytes.fromhex(each["header"])) for each in builder["built"]}
        bits = {what: f"{header.bits:#x}" for what, header in headers.items() if header}
        version = {header.version for header in headers.values() if header}
        singly = ", ".join(f"{name} {bits[name]}" for name in GENERATIONS if name in bits)
        (told,) = version
        yield f"| {builder['version']} | {told} | {bits['default']} | {singly} |"


def _pairs(readers: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a row an engine, or what all of them say where it is the same."""
    said = [answer(each) for reader in readers for each in _engines(reader)]
    if len(set(said)) == 1:
        yield f"All {len(said)} pairs, those of one version among them: {said[0]}."
        return
    yield "| engine | " + " | ".join(f"on {reader['version']}" for reader in readers) + " |"
    yield "| --- " * (len(readers) + 1) + "|"
    for each in _engines(readers[0]):
        answers = (next(one for one in reader["read"] if one["file"] == each["file"]) for reader in readers)
        yield f"| {each['file'].replace('-', ', ')} | {' | '.join(map(answer, answers))} |"


def answer(read: dict[str, Any]) -> str:
    """Return what a version said of an engine in a few words."""
    if read["loads"]:
        return f"{read['validity']}, loads"
    return f"{read['validity']}, does not load ({', '.join(read['diagnostics']) or 'no reason'})"


def _engines(reader: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in reader["read"] if "validity" in each and each["file"] not in _SPOILT]


def _once(readers: list[dict[str, Any]], field: str) -> Iterator[str]:
    """Yield what is said of engines, each text once."""
    yield "```"
    yield from dict.fromkeys(each[field] for reader in readers for each in _engines(reader) if each[field])
    yield "```"


def _spoilt(readers: list[dict[str, Any]]) -> Iterator[str]:
    yield "| the file | the check | what 1.7 says when it loads |"
    yield "| --- | --- | --- |"
    read = {each["file"]: each for each in readers[-1]["read"]}
    for name, words in _SPOILT.items():
        why = ", ".join(read[name]["diagnostics"]) or "no reason"
        yield f"| {words} | {read[name]['validity']} ({why}) | `{read[name]['refused']}` |"


def _flags(builders: list[dict[str, Any]]) -> Iterator[str]:
    yield "| asked for | engine | what 1.7 says |"
    yield "| --- | --- | --- |"
    for each in builders[-1]["built"]:
        if each["what"] != "default" and each["what"] not in GENERATIONS:
            same = each["header"] == builders[-1]["built"][0]["header"]
            made = "none" if not each["header"] else "the header is that of a plain one" if same else "yes"
            said = f"`{each['said']}`" if each["said"] else ""
            yield f"| {each['what']} | {made} | {said} |"


def _caches(readers: list[dict[str, Any]]) -> Iterator[str]:
    yield "| timing cache | " + " | ".join(f"on {reader['version']}" for reader in readers) + " |"
    yield "| --- " * (len(readers) + 1) + "|"
    for each in readers[0]["read"]:
        if "accepted" in each:
            taken = (next(one for one in reader["read"] if one["file"] == each["file"]) for reader in readers)
            words = ("taken" if one["accepted"] else "refused" for one in taken)
            yield f"| {each['file'].removesuffix('-timing')} | {' | '.join(words)} |"

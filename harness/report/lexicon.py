"""The lexicon: what the words of a question mean, made of lexicon.yaml and of results.json's own data.

report/asking.py answers with it in the terminal, and static/ask.js on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.document import read_document
from harness.judge import names
from harness.known.claim import GENERATIONS
from harness.matrix.operators import operator_tables
from harness.text import listed

_FILE = Path(__file__).with_name("lexicon.yaml")
#: The words of a question: numbers, words, and signs one by one.
TOKEN = re.compile(r"\d+(?:\.\d+)*(?:\.x)?|[^\W\d_]+|\S")
#: Signs inside a word.
_INSIDE = re.compile(r"(?<=[^\W_])[-_/](?=[^\W\d_])|(?<=[^\W\d_])[-_/](?=\d)")
_SERIES = {"tensorrt": "tensorrt", "tensorrt_rtx": "rtx", "onnxruntime": "ort"}
_KINDS_OF_WORDS = ("between", "stop", "newest", "jetson")


def plain(text: str) -> str:
    """Return a text as terms are looked up in it: arrows in one form, no signs inside of words."""
    return _INSIDE.sub(" ", re.sub(r"[-=]>", "→", " ".join(text.split())))


def lexicon(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table for the data of a results.json."""
    said = _said()
    columns = [_column(target, data) for target in data["targets"]]
    cards = {name: capability for capability, name in _cards()}
    return {
        "terms": dict(sorted(dict(_terms(columns)).items())),
        "roles": said["roles"],
        "columns": columns,
        "cards": cards,
        "capabilities": {each: _capability(each, data) for each in sorted(set(cards.values()))},
        "precisions": {
            name: {"lowest": "", "lacks": [], "says": "", "like": [name.lower()], **each}
            for name, each in said["precisions"].items()
        },
        "operators": {name: names.read_since(name)["first"] for name in names.operators()},
        "releases": {version: _release(version, each) for version, each in said["releases"].items()},
        "l4t": said["l4t"],
        "opsets": [[table.opset, table.release] for table in operator_tables()],
        "alike": [words for _, words in said["alike"]],
        "told": _told(data, columns),
        "says": said["says"],
    }


@cache
def _said() -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_document(_FILE, start="").data
    return found


def _cards() -> Iterator[tuple[str, str]]:
    for capability, lists in _said()["cards"].items():
        for each in lists:
            yield from ((capability, name) for name in (each if isinstance(each, list) else [each]))


def _terms(columns: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield each term with what it is: "t4", "card:T4"; a later one of a name wins."""
    said = _said()
    for kind in _KINDS_OF_WORDS:
        every = said[kind].split() if isinstance(said[kind], str) else said[kind]
        yield from ((plain(str(each)), f"{kind}:") for each in every)
    for kind in ("asks", "scales"):
        for name, words in said[kind].items():
            yield from ((form, f"{kind}:{name}") for word in words for form in _forms(word))
    for at, (words, _) in enumerate(said["alike"]):
        yield from ((form, f"alike:{at}") for word in words for form in _forms(word))
    for name in names.operators():
        exact = name in said["plain"]
        apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
        yield from ((form, f"op:{name}") for form in ([name] if exact else {name.lower(), apart}))
    for name, each in said["precisions"].items():
        yield from ((form, f"precision:{name}") for word in each["words"] for form in _forms(word))
    yield from ((form, f"card:{name}") for _, name in _cards() for form in _card_forms(name.lower()))
    for column in columns:
        yield from ((form, f"column:{column['id']}") for form in _forms(column["id"]))


def _forms(term: str) -> set[str]:
    """Return a term with and without blanks between its words and numbers; one letter stays with its number."""
    words = TOKEN.findall(plain(term.lower()))
    gaps = [("",) if len(left) == 1 and right.isdigit() else (" ", "") for left, right in _pairs(words)]
    joined = ("".join(a + b for a, b in zip(words, (*each, ""), strict=True)) for each in product(*gaps))
    return {plain(term.lower()), *joined}


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from ((words[at], words[at + 1]) for at in range(len(words) - 1))


def _card_forms(name: str) -> set[str]:
    """Return the forms of a card: "RTX 4090 Ti" is "4090 Ti" too."""
    bare = re.fullmatch(r"[rg]tx (\d{2}[5-9]0\D*)", name)
    return _forms(name) | (_forms(bare[1]) if bare else set())


def _column(target: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a target as questions name it, with the sentence on it."""
    found = [cell for cell in data["cells"] if cell["target"] == target["id"] and cell["basis"] == "measured"]
    measured = f"{len(found)} cells measured" if found else "nothing measured"
    facts = (
        target["jetpack"] and f"JetPack {target['jetpack']}",
        target["released"] and f"released {target['released']}",
        target["image"] if "nvidia/" in target["image"] else "",
        target["cuda"] and f"CUDA {target['cuda']}",
        target["driver"] and f"driver {target['driver'].replace('>=', '≥ ')} on x86-64",
        measured,
    )
    return {
        "id": target["id"],
        "scale": _SERIES.get(target["engine"], ""),
        "series": target["series"],
        "name": f"{target['product']} {target['short']}",
        "product": target["product"],
        "version": target["version"],
        "short": target["short"],
        "jetpacks": re.findall(r"\d+(?:\.\d+)+", target["jetpack"]),
        "image": target["image"],
        "cuda": target["cuda"],
        "driver": target["driver"].removeprefix(">="),
        "measured": bool(found),
        "says": f"{', '.join(filter(None, facts))}. {_first_sentence(target['notes'])}".strip(),
    }


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[a-z])\.\s", text, maxsplit=1)[0].rstrip(".") + "." if text else ""


def _release(version: str, each: Mapping[str, str]) -> str:
    facts = (each["day"], each.get("cuda") and f"with CUDA {each['cuda']}")
    brought = f"; it brought {each['brought']}" if "brought" in each else ""
    return f"TensorRT {version} was released {', '.join(filter(None, facts))}{brought}."


def _capability(capability: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that take cards of a compute capability, and the sentences on that."""
    found = [target for target in data["targets"] if _takes(target, capability)]
    generation = next((each for each in GENERATIONS if each.capability == capability), None)
    on = {
        (cell["gpu"][1], f"{target['product']} {target['short']}")
        for target in found
        for cell in data["cells"]
        if cell["target"] == target["id"] and cell.get("gpu") and cell["gpu"][0] == capability
    }
    gpus = listed(sorted({gpu for gpu, _ in on}))
    measured = (
        f"Measured here on {gpus}: {listed(sorted({name for _, name in on}))}."
        if on
        else "Nothing here was measured on one."
    )
    return {
        "architecture": generation.architecture if generation else "",
        "jetson": bool(generation and generation.jetson),
        "columns": [target["id"] for target in found],
        "says": [*_range(capability, found, data), *_others(found), measured],
    }


def _takes(target: Mapping[str, Any], capability: str) -> bool:
    jetson = next((each.jetson for each in GENERATIONS if each.capability == capability), False)
    specifier = target["compute_capability"]
    return bool(specifier) and bool(target["jetpack"]) is jetson and capability in SpecifierSet(specifier)


def _range(capability: str, found: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the first and the last TensorRT of a compute capability, as far as it is known."""
    ends = _said()["known_ends"].get(capability, {})
    every = [each for each in data["targets"] if each["series"] == "TensorRT"]
    own = [target for target in found if target["series"] == "TensorRT"]
    jetsons = sorted((each for each in found if each["jetpack"]), key=lambda each: Version(each["version"]))
    boards = [f"{each['short']} (JetPack {each['jetpack']})" for each in jetsons]
    if boards:
        yield f"TensorRT {listed(boards)}. A newer TensorRT comes with a newer JetPack."
    elif own:
        first = ends.get("first", own[0]["short"])
        oldest = " or before it" if own[0] is every[0] and "first" not in ends else ""
        last = own[-1]["short"]
        newest = own[-1] is every[-1]
        end = (
            f"{last}, the newest"
            if newest
            else f"{ends.get('last', last)}; {_after(own[-1], every)} does not take it"
        )
        both = "" if first == last else "from "
        yield f"TensorRT {both}{first}{oldest}{f' to {end}' if both else end.removeprefix(last)}."
        cuda = [ends.get("cuda", ""), *(each["cuda"] for each in own)]
        versions = sorted(filter(None, cuda), key=Version)
        if versions:
            cudas = " to ".join(dict.fromkeys((versions[0], versions[-1])))
            yield f"CUDA {cudas}, driver {own[0]['driver'].replace('>=', '≥ ')}."
    elif "last" in ends:
        yield f"Its last TensorRT is {ends['last']}, which is older than every column here."
    elif not found:
        yield "No column here takes it."


def _after(target: Mapping[str, Any], every: Sequence[Mapping[str, Any]]) -> str:
    return str(every[every.index(target) + 1]["short"])


def _others(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    shorts = [target["short"] for target in found if target["engine"] == "tensorrt_rtx"]
    if shorts:
        yield f"TensorRT for RTX {shorts[0]} to {shorts[-1]} takes it too."


def _told(data: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the sentences on what is asked of the whole."""
    main = [each for each in columns if each["series"] == "TensorRT"]
    series: dict[str, list[str]] = {}
    for each in columns:
        series.setdefault(each["product"], []).append(each["short"])
    every = "; ".join(f"{name} {', '.join(dict.fromkeys(shorts))}" for name, shorts in series.items())
    newest = f"{main[-1]['name']}: {main[-1]['says']}" if main else ""
    measured = [cell for cell in data["cells"] if cell["basis"] == "measured"]
    real = [cell for cell in measured if cell.get("gpu")]
    gpus = listed(sorted({cell["gpu"][1] for cell in real}))
    others = [cell for cell in measured if not cell.get("gpu")]
    drivers = listed(sorted({each["driver"] for cell in real for each in cell["by_gpu"] if each["driver"]}))
    last = max((run["when"] for run in data["runs"]), default="")[:10]
    between = listed(list(_said()["releases"]))
    return {
        "exists": f"Columns here: {every}. Newest: {newest} Between them there were {between} of TensorRT.",
        "measured": f"{len(real)} cells on {gpus or 'no GPU'}, driver {drivers}: {_spread(real, columns)}. "
        f"{len(others)} engines or runs without a GPU: {_spread(others, columns)}. The last run was on {last}.",
        "data": "Ten minutes and one file: trt-compat run, then trt-compat submit; docs/submissions.md has the steps.",
        "report": "Click on a cell: “Report this cell as wrong” has a filled text.",
        "run": "Click on a cell: “Run it” has its docker line and its model.",
        **{f"operators {each['id']}": _unread(each["version"]) for each in main},
    }


def _spread(cells: Iterable[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]]) -> str:
    found = {cell["target"] for cell in cells}
    return listed(list(dict.fromkeys(each["name"] for each in columns if each["id"] in found))) or "none"


def _unread(version: str) -> str:
    """Return the operators of ONNX that a TensorRT does not read."""
    first = {name: re.search(r"\d+\.\d+", names.read_since(name)["first"]) for name in names.operators()}
    unread = [name for name, found in first.items() if not found or Version(found[0]) > Version(version)]
    return ", ".join(unread)

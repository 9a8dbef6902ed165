"""The lexicon: what the words of a question mean and the facts on them, from lexicon.yaml and results.json's data.

static/ask.js answers with it, on the page and in the terminal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.document import read_document
from harness.judge import names
from harness.known.claim import GENERATIONS
from harness.matrix.operators import operator_tables, restrictions
from harness.text import listed

Json = Mapping[str, Any]
#: A fact: the words that ask for it, its sentence, and the place on the page that it leads to.
Fact = tuple[str, str, str]
_FILE = Path(__file__).with_name("lexicon.yaml")
#: The tokens of a text: a letter with its number (A100, but not v10), numbers, words, and signs one by one.
TOKEN = re.compile(
    r"(?<![^\W_])[^\W\d_vV]\d[^\W_]*(?![^\W_]|\.\d)|\d+(?:\.\d+)*(?:\.x)?|[^\W\d_]+|\S",
)
#: Signs inside a word.
_INSIDE = re.compile(r"(?<=[^\W_])[-_/](?=[^\W\d_])|(?<=[^\W\d_])[-_/](?=\d)")
_PRODUCTS = {"tensorrt": "tensorrt", "tensorrt_rtx": "rtx", "onnxruntime": "ort"}
_STACKS = {"cuda": "CUDA", "driver": "Driver from", "jetpack": "JetPack", "l4t": "L4T", "ngc": "NGC"}
#: Columns of one version of a stack that are each told of.
_MOST_TOLD = 3
_UNKNOWN = Version("999")


def plain(text: str) -> str:
    """Return a text with arrows in one form, and without signs inside of words."""
    return _INSIDE.sub(" ", re.sub(r"[-=]>", "→", text))


def lexicon(data: Json) -> dict[str, Any]:
    """Return the table for the data of a results.json."""
    said, facts = _said(), _Facts(data)
    likes = {("operators", name): [name.lower()] for name in names.operators()}
    likes |= {
        ("precisions", name): each.get("like", [name.lower()]) for name, each in said["precisions"].items()
    }
    likes |= {("words", str(at)): like for at, (_, like) in enumerate(said["alike"])}
    return {
        "terms": dict(sorted(dict(_terms(facts.columns)).items())),
        **{name: said[name] for name in ("roles", "across", "says")},
        "stacks": [*_STACKS, "opset"],
        "columns": facts.columns,
        "cards": _cards(),
        "jetsons": [
            *("jetson", "jetpack", "l4t"),
            *(name for name, capability in _cards().items() if _on_board(capability)),
            *(name for name, each in facts.columns.items() if each["jetson"]),
        ],
        "likes": {":".join(key): like for key, like in likes.items() if key[1] != "FP32"},
        "operators": {name: {"first": _first(name), "runs": _runs(name)} for name in names.operators()},
        "facts": {key: [text, href] for key, text, href in facts.all()},
    }


@cache
def _said() -> Json:
    found: Json = read_document(_FILE, start="").data
    return found


@cache
def _cards() -> dict[str, str]:
    """Return the compute capability of each card."""
    every = ((capability, each) for capability, lists in _said()["cards"].items() for each in lists)
    return {
        name: capability
        for capability, each in every
        for name in (each if isinstance(each, list) else [each])
    }


def _on_board(capability: str) -> bool:
    return any(each.jetson for each in GENERATIONS if each.capability == capability)


def _terms(columns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each term with the kind and the name of its meaning: "t 4", "cards:T4"; a later one of a term wins."""
    said = _said()
    words: list[tuple[str, str, Iterable[str]]] = [
        ("between", "", [*said["between"], *said["stop"].split()]),
        *(("asks", name, found) for name, found in said["asks"].items()),
        *(("scales", name, found) for name, found in said["scales"].items()),
        *(("words", str(at), found) for at, (found, _) in enumerate(said["alike"])),
        *(("foreign", name, [name]) for name in said["foreign"]),
        *(("operators", name, _forms_of_operator(name)) for name in names.operators()),
        *(("precisions", name, each["words"]) for name, each in said["precisions"].items()),
        *(("cards", name, _forms_of_card(name.lower())) for name in _cards()),
        *(("columns", name, [name]) for name in columns),
    ]
    for kind, name, every in words:
        yield from ((" ".join(TOKEN.findall(plain(str(each)))), f"{kind}:{name}") for each in every)


def _forms_of_operator(name: str) -> list[str]:
    """Return the forms of an operator; one that is a plain word too is written as ONNX does."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return [name] if name in _said()["plain"] else [name.lower(), apart]


def _forms_of_card(name: str) -> list[str]:
    """Return the forms of a card: "RTX 4090 Ti" is "4090 Ti" too."""
    bare = re.fullmatch(r"[rg]tx (\d{2}[5-9]0\D*)", name)
    return [name, *([bare[1]] if bare else [])]


def _first(operator: str) -> str:
    return names.read_since(operator)["first"]


def _reads(operator: str, version: str) -> bool:
    return Version(names.since(operator) or str(_UNKNOWN)) <= Version(version)


def _runs(operator: str) -> list[list[str]]:
    """Return from which version on TensorRT reads an operator in which words."""
    runs: list[list[str]] = []
    releases = {names.since(operator), *(each.release for each in operator_tables())}
    for release in sorted(filter(None, releases), key=Version):
        said = f"reads {operator}{_restricted(operator, release)}"
        if _reads(operator, release) and said not in (each[1] for each in runs[-1:]):
            runs.append([release, said])
    return runs


def _restricted(operator: str, release: str) -> str:
    tables = [each for each in operator_tables() if Version(each.release) <= Version(release)]
    for table in reversed(tables):
        if importer := table.importers.get(operator):
            told = [restrictions()[name] for name in importer.restrictions]
            told += [
                fact.words for fact in importer.facts if fact.holds(Version(release), Version(table.release))
            ]
            return f"; restricted: {'; '.join(told)}" if told else ""
    return ""


def _column(target: Json, *, measured: bool) -> dict[str, Any]:
    """Return a target as questions name it; `is` are its versions by scale."""
    jetpacks = re.findall(r"\d+(?:\.\d+)+", target["jetpack"])
    scale = _PRODUCTS.get(target["engine"], "")
    versions = {
        scale: [target["version"]],
        "cuda": [target["cuda"]],
        "driver": [target["driver"].removeprefix(">=")],
        "ngc": re.findall(r":(\d\d\.\d\d)-", target["image"]),
        "jetpack": jetpacks,
        "l4t": [
            l4t
            for l4t, jetpack in _said()["l4t"].items()
            if any(each.startswith(jetpack) for each in jetpacks)
        ],
    }
    return {
        **{name: target[name] for name in ("series", "short", "version")},
        "scale": scale,
        "name": f"{target['product']} {target['short']}",
        "jetson": bool(jetpacks),
        "measured": measured,
        "is": [f"{kind} {number}" for kind, numbers in versions.items() for number in filter(None, numbers)],
    }


class _Facts:
    """The facts of the columns, cards, operators and precisions, and of the whole."""

    def __init__(self, data: Json) -> None:
        self._data: Json = data
        self._targets: list[Json] = data["targets"]
        self._measured = [cell for cell in data["cells"] if cell["basis"] == "measured"]
        self._on_gpus = [cell for cell in self._measured if cell.get("gpu")]
        self._cells = Counter(cell["target"] for cell in self._measured)
        self.columns = {
            each["id"]: _column(each, measured=each["id"] in self._cells) for each in self._targets
        }
        self._main = [each for each in self._targets if each["series"] == "TensorRT"]

    def all(self) -> Iterator[Fact]:
        for version, each in _said()["releases"].items():
            yield f"tensorrt {version}", _release(version, each), ""
        for name, each in _said()["precisions"].items():
            if "says" in each:
                yield name, each["says"], ""
        yield from self._of_operators()
        yield from self._of_opsets()
        for capability in sorted({*_cards().values()}):
            yield from self._of_capability(capability)
        yield from self._of_stacks()
        yield from self._of_all()

    def _named(self, ids: Iterable[str]) -> str:
        found = {*ids}
        return (
            listed(list(dict.fromkeys(each["name"] for name, each in self.columns.items() if name in found)))
            or "none"
        )

    def _of_operators(self) -> Iterator[Fact]:
        rows = (row for case in self._data["cases"] for row in case["variants"])
        present = {node["op"] for row in rows for node in row["graph"]["nodes"]}
        for name in names.operators():
            absent = f" No row here has {name}: nothing was measured or reported of it."
            told = f"{name}: TensorRT reads it {_first(name)}.{'' if name in present else absent}"
            yield name, told, "operators"

    def _of_opsets(self) -> Iterator[Fact]:
        newest = operator_tables()[-1].opset
        for key, opset in [*((f"opset {each}", each) for each in range(1, newest + 1)), ("opset", newest)]:
            first = next(table.release for table in operator_tables() if table.opset >= opset)
            yield key, f"Opset {opset}: TensorRT {first} and later, by NVIDIA's operator tables.", "operators"

    def _of_stacks(self) -> Iterator[Fact]:
        """Yield the facts on columns: each alone, and by a CUDA, a driver, a JetPack, a month of NGC."""
        told = {
            each["id"]: f"{self.columns[each['id']]['name']}: {self._told(each)}" for each in self._targets
        }
        for name, text in told.items():
            yield name, text, f"target-{name}"
        for scale, shown in _STACKS.items():
            whole = self._by_number(scale)
            for number in dict.fromkeys(chain.from_iterable(map(_prefixes, whole))):
                every = [name for each, found in whole.items() for name in found if number in _prefixes(each)]
                few = "; ".join(map(told.__getitem__, every))
                text = few if len(every) <= _MOST_TOLD else f"{self._named(every)}."
                href = f"target-{every[0]}" if len(every) == 1 else "targets"
                yield f"{scale} {number}", f"{shown} {number}: {text}", href
            each = "; ".join(f"{number}: {self._named(every)}" for number, every in whole.items())
            yield scale, f"{shown}, by column: {each}.", "targets"

    def _by_number(self, scale: str) -> dict[str, list[str]]:
        """Return the columns of each version of a scale."""
        found: dict[str, list[str]] = {}
        for name, column in self.columns.items():
            for kind, number in map(str.split, column["is"]):
                if kind == scale:
                    found.setdefault(number, []).append(name)
        return found

    def _told(self, target: Json) -> str:
        many = self._cells[target["id"]]
        facts = (
            target["jetpack"] and f"JetPack {target['jetpack']}",
            target["released"] and f"released {target['released']}",
            target["image"] if "nvidia/" in target["image"] else "",
            target["cuda"] and f"CUDA {target['cuda']}",
            target["driver"] and f"driver {target['driver'].replace('>=', '≥ ')} on x86-64",
            f"{many} cells measured" if many else "nothing measured",
        )
        first = re.split(r"(?<=[a-z])\.\s", target["notes"], maxsplit=1)[0].rstrip(".")
        return f"{', '.join(filter(None, facts))}.{first and f' {first}.'}"

    def _of_capability(self, capability: str) -> Iterator[Fact]:
        """Yield the facts on cards of a compute capability, alone, with a column and with a precision."""
        found = [each for each in self._targets if _takes(each, capability)]
        taking = {target["id"] for target in found}
        for name, column in self.columns.items():
            does = "takes" if name in taking else "does not take"
            if column["scale"] in ("tensorrt", "rtx"):
                told = f"TensorRT {column['short']} {does} {{card}} (SM {capability})."
                yield f"{capability} {name}", told, f"target-{name}"
        for name, has in _precisions_of(capability):
            yield f"{capability} {name}", f"{{card}} (SM {capability}) {has}.", ""
        kinds = [each.architecture for each in GENERATIONS if each.capability == capability][:1]
        rtx = [target["short"] for target in found if target["engine"] == "tensorrt_rtx"]
        others = [f"TensorRT for RTX {rtx[0]} to {rtx[-1]} takes it too."] if rtx else []
        said = " ".join([*self._range(capability, found), *others, self._measured_on(capability)])
        yield capability, f"{{card}} ({', '.join([*kinds, f'SM {capability}'])}): {said}", "targets"

    def _measured_on(self, capability: str) -> str:
        on = [cell for cell in self._on_gpus if cell["gpu"][0] == capability]
        gpus = _gpus(on)
        return (
            f"Measured here on {gpus}: {self._named(cell['target'] for cell in on)}."
            if on
            else "Nothing here was measured on one."
        )

    def _range(self, capability: str, found: Sequence[Json]) -> Iterator[str]:
        """Yield the first and the last TensorRT of a compute capability, as far as it is known."""
        ends = _said()["known_ends"].get(capability, {})
        own = [target for target in found if target["series"] == "TensorRT"]
        found = sorted(found, key=lambda each: Version(each["version"]))
        boards = [each for each in found if each["jetpack"]]
        if boards:
            told = listed([f"{each['short']} (JetPack {each['jetpack']})" for each in boards])
            yield f"TensorRT {told}. A newer TensorRT comes with a newer JetPack."
        elif own:
            yield self._from_to(own, ends)
            cudas = sorted(filter(None, [ends.get("cuda"), *(each["cuda"] for each in own)]), key=Version)
            driver, both = own[0]["driver"].replace(">=", "≥ "), dict.fromkeys((*cudas[:1], *cudas[-1:]))
            yield f"CUDA {' to '.join(both)}, driver {driver}."
        elif "last" in ends:
            yield f"Its last TensorRT is {ends['last']}, which is older than every column here."
        elif not found:
            yield "No column here takes it."

    def _from_to(self, own: Sequence[Json], ends: Json) -> str:
        every, last = self._main, own[-1]["short"]
        first = ends.get("first") or own[0]["short"] + (" or before it" if own[0] is every[0] else "")
        if own[-1] is every[-1]:
            end = f"{last}, the newest"
        else:
            end = f"{ends.get('last', last)}; {every[every.index(own[-1]) + 1]['short']} does not take it"
        return (
            f"TensorRT {first}{end.removeprefix(last)}."
            if len(own) == 1
            else f"TensorRT from {first} to {end}."
        )

    def _of_all(self) -> Iterator[Fact]:
        """Yield the facts that are asked of the whole."""
        products: dict[str, dict[str, None]] = {}
        for target in self._targets:
            products.setdefault(target["product"], {})[target["short"]] = None
        every = "; ".join(f"{name} {', '.join(shorts)}" for name, shorts in products.items())
        between = listed(list(_said()["releases"]))
        yield "exists", f"Columns here: {every}. Between them there were {between} of TensorRT.", "targets"
        yield "measured", self._all_measured(), "targets"
        for name, (text, href) in _said()["told"].items():
            yield name, text, href
        for target in self._main:
            unread = [operator for operator in names.operators() if not _reads(operator, target["version"])]
            told = f"Of ONNX's operators TensorRT {target['short']} does not read: {', '.join(unread)}."
            yield f"operators {target['id']}", told, "operators"

    def _all_measured(self) -> str:
        real = self._on_gpus
        others = [cell["target"] for cell in self._measured if not cell.get("gpu")]
        gpus = _gpus(real) or "no GPU"
        drivers = listed(sorted({each["driver"] for cell in real for each in cell["by_gpu"]} - {""}))
        last = max((run["when"] for run in self._data["runs"]), default="")[:10]
        return (
            f"{len(real)} cells on {gpus}, driver {drivers}: {self._named(cell['target'] for cell in real)}. "
            f"{len(others)} engines or runs without a GPU: {self._named(others)}. The last run was on {last}."
        )


def _gpus(cells: Iterable[Json]) -> str:
    return listed(sorted({cell["gpu"][1] for cell in cells}))


def _prefixes(number: str) -> list[str]:
    return list(accumulate(number.split("."), "{}.{}".format))


def _precisions_of(capability: str) -> Iterator[tuple[str, str]]:
    """Yield each precision that hardware decides, and whether a compute capability has it, in words."""
    for name, each in _said()["precisions"].items():
        if lowest := each.get("lowest"):
            lacks = capability in each.get("lacks", ()) or Version(capability) < Version(lowest)
            yield name, f"has no {name}: it takes SM {lowest} or later" if lacks else f"has {name}"


def _release(version: str, each: Json) -> str:
    cuda = f", with CUDA {each['cuda']}" if "cuda" in each else ""
    brought = f"; it brought {each['brought']}" if "brought" in each else ""
    return f"TensorRT {version} was released {each['day']}{cuda}{brought}."


def _takes(target: Json, capability: str) -> bool:
    specifier = target["compute_capability"]
    return (
        bool(specifier)
        and bool(target["jetpack"]) is _on_board(capability)
        and capability in SpecifierSet(specifier)
    )

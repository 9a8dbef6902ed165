"""Names that a version lacks: of TensorRT's interface by names.yaml, of ONNX's operators by NVIDIA's tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import onnx
from packaging.version import Version

from harness.document import read_document
from harness.matrix.interface import interfaces, numbers
from harness.matrix.operators import imported_since, operator_tables

NAMES = Path(__file__).with_name("names.yaml")
#: Whose members the table is about: another program's class may have a member of the same name.
OWNER = re.compile(
    r"\A(?:tensorrt\w*|trt|nvinfer1|I[A-Z]\w+|(?:Onnx|Caffe|Uff)Parser\w*|Builder\w*|Runtime|Refitter|Logger|DataType|TacticSource|MemoryPoolType"
    r"|NetworkDefinitionCreationFlag|QuantizationFlag|CalibrationAlgoType|HardwareCompatibilityLevel|PreviewFeature)\Z",
    re.ASCII,
)
#: Names that are ambiguous without their owner.
GENERIC = frozenset({"destroy", "enqueue", "execute"})
_GUIDE = "https://docs.nvidia.com/deeplearning/tensorrt"
_GUIDES = {
    "": "",
    "python-8x-to-10x": f"{_GUIDE}/11.0.0/api/migration/tensorrt-8x-to-10x-python-api.html",
    "python-10x-to-11x": f"{_GUIDE}/11.4.0/api/migration/tensorrt-10x-to-11x-python-api-reference.html",
    "cpp-10x-to-11x": f"{_GUIDE}/11.4.0/api/migration/tensorrt-10x-to-11x-c-api-reference.html",
    "trtexec-10x-to-11x": f"{_GUIDE}/11.4.0/api/migration/tensorrt-10x-to-11x-trtexec.html",
}


@dataclass(frozen=True)
class NameRow:
    """Names that went, or came, with one version; `url` is NVIDIA's page on them, "" if unknown."""

    names: tuple[str, ...]
    signature: str
    since: str
    now: str
    url: str


@lru_cache
def load_names() -> tuple[NameRow, ...]:
    """Return the rows in the file's order, which is not checked: the one that is shipped was tested."""
    return tuple(
        NameRow(
            tuple(each["names"]),
            each["signature"],
            each["since"],
            each["now"],
            _GUIDES[each.get("guide", "")],
        )
        for each in read_document(NAMES, start="").data
    )


@lru_cache
def by_name() -> Mapping[str, NameRow]:
    """Return the row of each name."""
    return {name: row for row in load_names() for name in row.names}


def named(name: str) -> NameRow | None:
    """Return the row of a name, which may have its owner before it; None for an unknown name or another program's."""
    owner, _, bare = name.rpartition(".")
    found = by_name().get(name) if name not in GENERIC else None
    if found is None and (OWNER.search(owner) if owner else bare not in GENERIC):
        found = by_name().get(bare)
    return found


@dataclass(frozen=True)
class Removed:
    """A name of the Python interface that went, by its full name; `now` is the remedy, "" if none is known.

    It is there from `first`, "" for the oldest bindings, until `gone`, the first without it.
    """

    name: str
    first: str
    gone: str
    signature: str
    now: str


@lru_cache
def ended() -> tuple[Removed, ...]:
    """Return the Python names that went with some TensorRT; of a class that went, the class alone."""
    some = {full: each for full, each in interfaces()["python"].names.items() if each.spans[-1][1]}
    found = []
    for full, each in some.items():
        row, (first, gone) = named(full) or named(each.bare), each.spans[-1]
        if each.owner not in some or some[each.owner].spans[-1][1] != gone:
            remedy = (row.signature, row.now) if row else ("name-gone", each.said)
            found.append(Removed(full, first, gone, *remedy))
    return tuple(found)


def removed(before: str, after: str) -> tuple[Removed, ...]:
    """Return the Python names that go from one TensorRT to a later one."""
    old, new = numbers(before), numbers(after)
    return tuple(each for each in ended() if numbers(each.first or before) <= old < numbers(each.gone) <= new)


_LOWEST_OPSET = 9


@lru_cache
def operators() -> Mapping[str, int]:
    """Return the operators that ONNX itself has or had, each with the first opset that has it."""
    found: dict[str, int] = {}
    for each in onnx.defs.get_all_schemas_with_history():
        if not each.domain:
            found[each.name] = min(each.since_version, found.get(each.name, each.since_version))
    return dict(sorted(found.items()))


def read_since(operator: str) -> dict[str, str]:
    """Return in words since when TensorRT reads an operator of ONNX, and the opset that does without; {} for others."""
    opset = operators().get(operator)
    if opset is None:
        return {}
    return {
        "first": _first(operator),
        "lower": f" Or export at opset {opset - 1} or lower, which has no {operator}."
        if opset > _LOWEST_OPSET
        else "",
    }


def _first(operator: str) -> str:
    """Return "from 8.6 on" by NVIDIA's changelog, else by the first of its tables that has an operator."""
    if noted := imported_since(operator):
        return f"from {noted} on"
    tables = operator_tables()
    at = next((at for at, table in enumerate(tables) if operator in table.importers), None)
    if at is None:
        return "in no version that is known here"
    release, before = tables[at].release, tables[at - 1].release
    if at == 0:
        return f"from {release} or before it"
    (major, minor), (old, last) = Version(release).release, Version(before).release
    follows = (major, minor - 1) == (old, last) or (major - 1, minor) == (old, 0)
    return f"from {release} on" if follows else f"from {release} or before it, after {before}"


@lru_cache
def since(operator: str) -> str:
    """Return the first release that reads an operator, by its notes or else by NVIDIA's tables; "" if none is known."""
    tables = operator_tables()
    noted = imported_since(operator)
    return noted or next((each.release for each in tables if operator in each.importers), "")

"""TensorRT's own interface by version: names of Python, C++, trtexec and plugins with their lives, from interface.tsv.

tools/interface writes the table from the bindings and the sources of every release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness.text import grouped

_FILE = Path(__file__).with_name("interface.tsv")
#: Of a version that a user names by its minor alone the last patch is meant.
_LAST_PATCH = 999
Numbers = tuple[int, int, int]


def numbers(version: str) -> Numbers:
    """Return a version's three numbers, "10.13" as its last patch."""
    parts = [int(part) for part in version.split(".")[:3]]
    major, minor, patch = [*parts, _LAST_PATCH, _LAST_PATCH][:3]
    return major, minor, patch


@dataclass(frozen=True)
class Name:
    """A name, "ILayer.precision", with the spans in which it is there: FIRST to GONE, "" for the table's ends.

    `gives` is the class that a call or attribute gives; `said` what NVIDIA says of its end, `where` the file.
    """

    kind: str
    full: str
    spans: tuple[tuple[str, str], ...]
    gives: str = ""
    said: str = ""
    where: str = ""

    @property
    def bare(self) -> str:
        """Return the name without its owner."""
        return self.full.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """Return its owner, "" if it has none."""
        return self.full.rpartition(".")[0]

    def lacking(self, version: Numbers) -> str:
        """Return "gone" or "new" of a version that lacks the name, "" of one that has it."""
        for first, gone in self.spans:
            if first and version < numbers(first):
                return "new" if (first, gone) == self.spans[0] else "gone"
            if not gone or version < numbers(gone):
                return ""
        return "gone"

    def changed(self, lacking: str, version: Numbers) -> str:
        """Return the version that took the name from a later one, or that brings it."""
        if lacking == "new":
            return self.spans[0][0]
        return next(gone for _, gone in reversed(self.spans) if gone and numbers(gone) <= version)


@dataclass(frozen=True)
class Interface:
    """The names of one kind: "python", "c++", "c++ parser", "trtexec" or "plugin".

    versions: those that were read, from the oldest.
    arguments: by full name of a call those that came or went.
    """

    versions: tuple[str, ...]
    names: Mapping[str, Name] = field(repr=False)
    bases: Mapping[str, tuple[str, ...]] = field(repr=False)
    arguments: Mapping[str, tuple[Name, ...]] = field(repr=False)
    by_bare: Mapping[str, tuple[Name, ...]] = field(repr=False)

    def member(self, owner: str, bare: str) -> Name | None:
        """Return a member of a class, or the one that it inherits."""
        seen = {owner}
        queue = [owner]
        while queue:
            each = queue.pop(0)
            if found := self.names.get(f"{each}.{bare}"):
                return found
            queue += [base for base in self.bases.get(each, ()) if base not in seen]
            seen.update(queue)
        return None

    def before(self, version: str) -> str:
        """Return the version that was read before one of these."""
        at = self.versions.index(version) if version in self.versions else 0
        return self.versions[at - 1] if at else ""


@cache
def interfaces() -> Mapping[str, Interface]:
    """Return the interface by kind."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    kinds = grouped((kind, (word, cells)) for word, kind, *cells in rows)
    return {kind: _interface(kind, defaultdict(list, grouped(some))) for kind, some in kinds.items()}


def _interface(kind: str, cells: Mapping[str, list[list[str]]]) -> Interface:
    notes = {name: (text, place) for text, place, names in cells["note"] for name in names.split(" ")}
    names: dict[str, Name] = {}
    for owner, spans, members in _spanned(cells["lives"]):
        for member in members:
            bare, _, gives = member.partition(">")
            full = f"{owner}.{bare}" if owner else bare
            names[full] = Name(kind, full, spans, gives, *notes.get(full, ("", "")))
    arguments = (
        (call, Name(kind, f"{call}({each}=)", spans))
        for call, spans, some in _spanned(cells["argument"])
        for each in some
    )
    by_bare = ((name.bare, name) for name in names.values())
    bases = {name: tuple(some.split(" ")) for name, some in cells["bases"]}
    versions = tuple(cells["versions"][0][0].split(" "))
    return Interface(versions, names, bases, _tuples(arguments), _tuples(by_bare))


def _tuples(pairs: Iterable[tuple[str, Name]]) -> dict[str, tuple[Name, ...]]:
    return {key: tuple(names) for key, names in grouped(pairs).items()}


def _spanned(rows: list[list[str]]) -> Iterator[tuple[str, tuple[tuple[str, str], ...], list[str]]]:
    for owner, spans, names in rows:
        parts = (span.partition("..") for span in spans.split(","))
        yield owner, tuple((first, gone) for first, _, gone in parts), names.split(" ")

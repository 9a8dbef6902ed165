"""Which ONNX operators the parser of each TensorRT release imports, as NVIDIA's tables have it: operators.tsv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from packaging.version import Version

_FILE = Path(__file__).with_name("operators.tsv")
_TESTS = _FILE.with_name("node_tests.tsv")
_CHANGES = _FILE.with_name("changelog.tsv")
_NONE, _SAME = "-", "="


@dataclass(frozen=True)
class Fact:
    """How importers of some releases treat an attribute.

    state: what comes of a broken condition.
    link: the line of the source.
    ended: the release that is known to have ended it; without one what comes after `last` is not known.
    """

    first: Version
    last: Version
    state: str
    condition: str
    words: str
    link: str
    ended: Version | None = None

    def holds(self, release: Version, table: Version) -> bool:
        """Tell whether it is of a release, or else, unless that ended it, of the release of a table beside it."""
        over = self.ended is not None and release >= self.ended
        return not over and any(self.first <= each <= self.last for each in (release, table))


@dataclass(frozen=True)
class Importer:
    """A parser's support of an operator: element types ("FP32", "INT8"), restrictions by name, facts of any release."""

    types: frozenset[str]
    restrictions: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class OperatorTable:
    """NVIDIA's table of one release, "10.1": the importer of each operator that has one.

    `opset` is the highest that the table names, `link` its address.
    """

    release: str
    opset: int
    link: str
    importers: Mapping[str, Importer] = field(repr=False)


@cache
def operator_tables() -> tuple[OperatorTable, ...]:
    """Return NVIDIA's tables, the oldest release first."""
    lines = [line.split("\t") for line in _lines()]
    heads, facts = [cells for kind, *cells in lines if kind == "@release"], _facts()
    imported: list[dict[str, Importer]] = [{} for _ in heads]
    for operator, *cells in (cells for cells in lines if not cells[0].startswith("@")):
        held, found = tuple(facts.get(operator, ())), _NONE
        for importers, cell in zip(imported, cells, strict=True):
            found = found if cell == _SAME else cell
            if found != _NONE:
                types, *restrictions = found.replace("!", "").split(" ")
                importers[operator] = Importer(frozenset(types.split(",")), tuple(restrictions), held)
    return tuple(
        OperatorTable(release, int(opset), link, importers)
        for (release, opset, link), importers in zip(heads, imported, strict=True)
    )


def _facts() -> dict[str, list[Fact]]:
    """Return by operator the facts of the importers' sources."""
    ends = {line.operator: Version(line.release) for line in changelog() if line.what != "imports"}
    found: dict[str, list[Fact]] = {}
    for line in _lines():
        if line.startswith("@attribute\t"):
            operators, first, last, state, condition, words, link = line.split("\t")[1:]
            for operator in operators.split(","):
                end = ends.get(operator)
                fact = Fact(Version(first), Version(last), state, condition, words, link, end)
                found.setdefault(operator, []).append(fact)
    return found


@cache
def restrictions() -> Mapping[str, str]:
    """Return each restriction in words by its name."""
    return dict(line.split("\t")[1:] for line in _lines() if line.startswith("@restriction\t"))


@cache
def tables_around(version: str) -> tuple[OperatorTable | None, OperatorTable | None]:
    """Return the tables of the last release up to a TensorRT version's minor and of the first from it on.

    Both are the same table for a listed minor; a side without a release is None.
    """
    minor = Version(version).release[:2]
    before = [each for each in operator_tables() if Version(each.release).release <= minor]
    after = [each for each in operator_tables() if Version(each.release).release >= minor]
    return (before[-1] if before else None), (after[0] if after else None)


@dataclass(frozen=True)
class ChangelogLine:
    """A line of a changelog: what a release does with an operator from then on; "imports": it has an importer."""

    operator: str
    release: str
    what: str
    link: str


@cache
def changelog() -> tuple[ChangelogLine, ...]:
    """Return the lines of NVIDIA's changelogs that date what the tables do not."""
    cells = (line.split("\t") for line in _lines(_CHANGES))
    return tuple(
        ChangelogLine(operator, release, what, link)
        for operators, release, what, link in cells
        for operator in operators.split(",")
    )


def imported_since(operator: str) -> str:
    """Return the first release whose parser has an importer of an operator, by a changelog; "" if none names it."""
    lines = (line for line in changelog() if (line.operator, line.what) == (operator, "imports"))
    return next((line.release for line in lines), "")


@dataclass(frozen=True)
class NodeTest:
    """One of ONNX's node tests: what it ended in on TensorRT 8.6.1 and 10.6.0; "-" without a run."""

    operator: str
    name: str
    ends: tuple[str, str]


@cache
def node_tests() -> tuple[NodeTest, ...]:
    """Return what ONNX's node tests were measured to end in: ok, wrong, parse_failed, build_failed, crashed."""
    cells = (line.split("\t") for line in _lines(_TESTS))
    return tuple(NodeTest(operator, name, (first, second)) for operator, name, first, second in cells)


def _lines(path: Path = _FILE) -> list[str]:
    return [
        line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]

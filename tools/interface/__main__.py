"""Write harness/matrix/interface.tsv: the interface of every TensorRT, from its bindings and its sources.

    git clone --bare https://github.com/NVIDIA/TensorRT
    python -m tools.interface TensorRT.git

It needs gcc, git and the package index, and takes five minutes. For a new version, add its package to
tools/interface/python.py and fetch the clone. What changed in the table is printed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.contract.bindings import compile_stub
from tools.interface import python, sources
from tools.interface.table import Life, Listing, Row, rows

TABLE = Path(__file__).resolve().parents[2] / "harness" / "matrix" / "interface.tsv"
_HEAD = """\
# TensorRT's interface by version, written by `python -m tools.interface`: from the bindings on the package index
# (python), and from NVIDIA/TensorRT's branches: headers (c++, c++ parser), sampleOptions.cpp (trtexec), plugin/.
#   versions  kind, the versions that were read
#   bases     kind, class, its bases
#   lives     kind, owner, spans, members; a member>Class gives that class
#   argument  kind, owner.call, spans, names; a span is FIRST..GONE, without an end if the table has none
#   note      kind, NVIDIA's words of what is gone, where they stand, names
"""
_DEPRECATED = re.compile(r"^Deprecated in TensorRT [\d.]+\d\.?\s*")
_WORTHLESS = re.compile(r"^\W*$|^\W*NOTE|^(?:and )?will be removed", re.IGNORECASE)


def gather(clone: sources.Clone, withheld: frozenset[str]) -> dict[str, dict[str, Listing]]:
    """Return by kind and version what each version offers."""
    releases = [each for each in clone.releases() if each.version not in withheld]
    with tempfile.TemporaryDirectory() as folder:
        stub = compile_stub("gcc", Path(folder))
        packages = {python.version_of(each): each for each in python.PACKAGES}
        found = {
            "python": {v: python.bindings(each, stub) for v, each in packages.items() if v not in withheld}
        }
    read = {
        "c++": sources.headers,
        "trtexec": sources.trtexec,
        "plugin": sources.plugins,
        "c++ parser": sources.parser,
    }
    for release in releases:
        for kind, reader in read.items():
            # The parser's header is another repository's in older releases.
            if listing := reader(clone, release):
                found.setdefault(kind, {})[release.version] = listing
    return found


def written(found: Mapping[str, Mapping[str, Listing]]) -> str:
    """Return the table as text."""
    lines: list[str] = []
    notes = _Notes()
    for kind, listings in found.items():
        lines.append("\t".join(("versions", kind, " ".join(listings))))
        known = rows(listings)
        notes.add(kind, known)
        lines += _of_kind(kind, known)
    return _HEAD + "\n".join([*lines, *notes.lines()]) + "\n"


def _of_kind(kind: str, known: Mapping[str, Row]) -> Iterator[str]:
    members: dict[tuple[str, str], list[str]] = {}
    arguments: dict[tuple[str, str], list[str]] = {}
    for name, row in sorted(known.items()):
        owner, _, bare = name.rpartition(".")
        gives = f">{row.fact.returns}" if row.fact.returns in known and row.fact.returns != owner else ""
        members.setdefault((owner, _spans(row.lives)), []).append(bare + gives)
        if row.fact.bases:
            yield "\t".join(("bases", kind, name, " ".join(row.fact.bases)))
        for argument, spans in row.arguments.items():
            arguments.setdefault((name, _spans(spans)), []).append(argument)
    for word, table in (("lives", members), ("argument", arguments)):
        for (owner, span), names in sorted(table.items()):
            yield "\t".join((word, kind, owner, span, " ".join(names)))


def _spans(lives: list[Life]) -> str:
    return ",".join(f"{each.first}..{each.gone}" for each in lives)


class _Notes:
    """NVIDIA's words on names that went; what a Python name lacks is taken from the C++ name that it stands for."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, str]] = {}
        self._gone: dict[str, list[str]] = {}

    def add(self, kind: str, known: Mapping[str, Row]) -> None:
        self._said[kind] = {name: row.fact.note for name, row in known.items() if row.fact.note}
        self._gone[kind] = [name for name, row in sorted(known.items()) if row.lives[-1].gone]

    def lines(self) -> Iterator[str]:
        by_text: dict[tuple[str, str, str], list[str]] = {}
        for kind, names in self._gone.items():
            for name in names:
                text, _, place = self._of(kind, name).rpartition(" (")
                text = re.split(r"(?<=[a-z)]\.) (?=[A-Z])", _DEPRECATED.sub("", text))[0]
                if not _WORTHLESS.match(text):
                    by_text.setdefault((kind, text[:1].upper() + text[1:], place.rstrip(")")), []).append(
                        name
                    )
        for (kind, text, place), names in sorted(by_text.items()):
            yield "\t".join(("note", kind, text, place, " ".join(names)))

    def _of(self, kind: str, name: str) -> str:
        others = [name, *_in_cpp(name)] if kind == "python" else [name]
        places = [self._said[kind], self._said["c++"]] if kind == "python" else [self._said[kind]]
        return next((place[each] for place in places for each in others if each in place), "")


def _in_cpp(name: str) -> list[str]:
    """Return the names that a Python name may have in C++."""
    owner, _, bare = name.rpartition(".")
    if owner and bare.isupper():
        return [f"{owner}.k{bare}"]
    camel = "".join(part[:1].upper() + part[1:] for part in bare.split("_"))
    classes = [owner, f"I{owner}"]
    return [
        f"{each}.{word}"
        for each in classes
        for word in (camel[:1].lower() + camel[1:], f"set{camel}", f"get{camel}")
    ]


def main() -> None:
    """Write the table, and say which of its lines are new or gone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clone", type=Path, help="a clone of NVIDIA/TensorRT with its release branches")
    parser.add_argument(
        "--without", action="append", default=[], metavar="VERSION", help="as if there were no such version"
    )
    parser.add_argument("-o", "--output", type=Path, default=TABLE, help="default: the product's table")
    options = parser.parse_args()
    text = written(gather(sources.Clone(options.clone), frozenset(options.without)))
    before = options.output.read_text(encoding="utf-8").splitlines() if options.output.is_file() else []
    options.output.write_text(text, encoding="utf-8")
    after = text.splitlines()
    for sign, one, other in (("-", before, after), ("+", after, before)):
        for line in sorted({*one} - {*other}):
            print(f"{sign} {line}")


if __name__ == "__main__":
    main()

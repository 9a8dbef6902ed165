"""Reads a YAML file into plain data that remembers on which line each field stands."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from harness.bounded import read_bytes
from harness.errors import HandledError

#: A place in the document: the keys and indices that lead to it.
Place = tuple[str | int, ...]

#: How deep a text may be nested for libyaml, which recurses on the C stack and crashed at 30,000 levels.
_DEEPEST = 10_000
#: How many bytes a file may have: the largest of this project is a tenth of it, and reading takes seconds a megabyte.
_LARGEST = 2 << 20
#: How many entries a list may have: whether one is there twice is looked up in the square of it.
_LONGEST = 5_000
#: How many characters a number may have: no float holds a longer one, and Python reads only some thousands.
_LONGEST_NUMBER = 100
#: What no text of a file may hold, for it reaches terminals and pages: controls but tab and line ends, and surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
#: How many values aliases may repeat: a few lines of aliases of aliases stand for more than memory holds.
_MOST_REPEATED = 10_000


@dataclass(frozen=True)
class Date:
    """A date that YAML made of unquoted text; no type of JSON Schema accepts it."""

    value: dt.date


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong, at a line; `place` is the field it is about."""

    line: int
    place: Place = field(compare=False)
    sentence: str = field(compare=False)


@dataclass(frozen=True)
class Document:
    """Plain data; the line of each key and of each value, and each scalar as it is written."""

    path: Path
    data: Any
    key_lines: Mapping[Place, int]
    value_lines: Mapping[Place, int]
    raw: Mapping[Place, str]
    problems: tuple[Problem, ...]

    def line(self, place: Place) -> int:
        """Return the line of a field's value, or of the nearest thing around it."""
        while place and place not in self.value_lines:
            place = place[:-1]
        return self.value_lines.get(place, 1)

    def key_line(self, place: Place) -> int:
        """Return the line of a field's name, or of the name of the nearest thing around it."""
        while place and place not in self.key_lines:
            place = place[:-1]
        return self.key_lines.get(place, 1)


def read_document(path: Path, *, start: str, instead_of_merge: str | None = None) -> Document:
    """Read one YAML document; raises HandledError for a file that is missing, unreadable, empty or not YAML.

    `start` is the first line of an empty file, and `instead_of_merge` the replacement of a merge key.
    """
    text = _text(path)
    reader = _Reader(instead_of_merge or "write its fields out")
    try:
        node = _composed(text)
        if node is None:
            raise HandledError(f"{path}: is empty; it needs {start}")
        data = reader.plain(node, ())
    except yaml.MarkedYAMLError as error:
        raise HandledError(_syntax(path, text, error)) from error
    except RecursionError as error:
        raise HandledError(f"{path}: is nested too deeply to be read; write it flatter") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise HandledError(
            f"{path}:{line}: holds the control character 0x{error.character:02x}; delete it"
        ) from error
    except _TooManyError as error:
        raise HandledError(
            f"{path}:{error.line}: aliases repeat more than {_MOST_REPEATED} values; write out what is meant"
        ) from error
    return Document(path, data, reader.key_lines, reader.value_lines, reader.raw, tuple(reader.problems))


def _composed(text: str) -> Node | None:
    """Return the node tree, by libyaml where it can: it is ten times as fast, and words faults less well."""
    longest = max(map(len, text.splitlines()), default=0)
    if yaml.__with_libyaml__ and longest + text.count("[") + text.count("{") < _DEEPEST:
        with contextlib.suppress(yaml.YAMLError):
            return yaml.compose(text, Loader=yaml.CSafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _text(path: Path) -> str:
    try:
        data = read_bytes(path, _LARGEST)
    except FileNotFoundError as error:
        raise HandledError(
            f"{path}: no such file; run from the project's top folder or give its path"
        ) from error
    except OSError as error:
        raise HandledError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise HandledError(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error


def _syntax(path: Path, text: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    lines = text.splitlines()
    if line <= len(lines) and "\t" in lines[line - 1]:
        return f"{path}:{line}: holds a tab, which YAML does not take as indentation; use spaces"
    return f"{path}:{line}: is not YAML: {error.problem}{' ' + error.context if error.context else ''}"


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _written(text: str) -> str:
    """Return the first control character of a text, as Unicode calls it."""
    found = _CONTROL.search(text)
    return f"the control character U+{ord(found.group()) if found else 0:04X}"


class _TooManyError(Exception):
    """Aliases repeat more values than may be read; `line` is where that was seen."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Reader:
    """Walks a node tree once; a node that cannot be read becomes a problem and the value None."""

    def __init__(self, instead_of_merge: str) -> None:
        self.key_lines: dict[Place, int] = {}
        self.value_lines: dict[Place, int] = {}
        self.raw: dict[Place, str] = {}
        self.problems: list[Problem] = []
        self._instead_of_merge = instead_of_merge
        self._constructor = SafeConstructor()
        self._open: list[Node] = []
        self._read: set[Node] = set()
        self._repeated = 0

    def plain(self, node: Node, place: Place) -> Any:  # noqa: ANN401  (whatever the file holds)
        self.value_lines[place] = _line(node)
        if node in self._open:
            self._problem(node, place, "is an alias of something that contains it; write it out")
            return None
        self._repeated += node in self._read
        self._read.add(node)
        if self._repeated > _MOST_REPEATED:
            raise _TooManyError(_line(node))
        if isinstance(node, SequenceNode) and len(node.value) > _LONGEST:
            self._problem(node, place, f"has {len(node.value)} entries; it may have {_LONGEST}")
            return None
        self._open.append(node)
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, place)
            if isinstance(node, SequenceNode):
                return [self.plain(item, (*place, index)) for index, item in enumerate(node.value)]
            return self._scalar(node, place)
        finally:
            self._open.pop()

    def _mapping(self, node: MappingNode, place: Place) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(key_node, place, "has a field name that is not text")
                continue
            key = str(key_node.value)
            if _CONTROL.search(key):
                self._problem(
                    key_node, place, f"has a field name with {_written(key)}; delete that character"
                )
                continue
            inner = (*place, key)
            if key == "<<":
                self._problem(key_node, inner, f"is a merge key; {self._instead_of_merge}")
            elif key in plain:
                self._problem(
                    key_node,
                    inner,
                    f"is given twice, first on line {self.key_lines[inner]}; delete or rename one",
                )
            else:
                self.key_lines[inner] = _line(key_node)
                plain[key] = self.plain(value_node, inner)
        return plain

    def _scalar(self, node: Node, place: Place) -> Any:  # noqa: ANN401  (whatever the file holds)
        self.raw[place] = str(node.value)
        if _CONTROL.search(node.value):
            self._problem(node, place, f"holds {_written(node.value)}; delete that character")
            return None
        if len(node.value) > _LONGEST_NUMBER and not node.tag.endswith(":str"):
            self._problem(node, place, f"is a number of {len(node.value)} characters; put text in quotes")
            return None
        try:
            value = self._constructor.construct_object(node)
        # What a tag asks of a value that is none of its kind raises whatever comes of it.
        except (ConstructorError, LookupError, AttributeError, ArithmeticError):
            self._problem(node, place, f"has the tag {node.tag}, which means nothing here; delete the tag")
        except ValueError:
            sentence = f'reads as a date that does not exist; put it in quotes: "{node.value}"'
            self._problem(node, place, sentence)
        else:
            if isinstance(value, float) and not math.isfinite(value):
                self._problem(node, place, f"is {node.value}; give a finite number")
            return Date(value) if isinstance(value, dt.date) else value
        return None

    def _problem(self, node: Node, place: Place, sentence: str) -> None:
        self.problems.append(Problem(_line(node), place, sentence))

"""A YAML file held against its JSON Schema: a fault is one sentence with file, line, field and cure."""

from __future__ import annotations

import contextlib
import difflib
import functools
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from harness.bounded import read_bytes
from harness.errors import HandledError
from harness.text import did_you_mean

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

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
#: Characters that texts may not bring to terminals and pages: controls but tab and line ends, and surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


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
        return _nearest(self.value_lines, place)

    def key_line(self, place: Place) -> int:
        """Return the line of a field's name, or of the name of the nearest thing around it."""
        return _nearest(self.key_lines, place)


def _nearest(lines: Mapping[Place, int], place: Place) -> int:
    around = (place[:end] for end in range(len(place), -1, -1))
    return next((lines[each] for each in around if each in lines), 1)


def read_document(path: Path, *, start: str) -> Document:
    """Read one YAML document; raises HandledError for a file that is missing, unreadable, empty or not YAML.

    `start` is the first line of an empty file.
    """
    text, reader = _text(path), _Reader()
    try:
        node = _composed(text)
        if node is None:
            raise HandledError(f"{path}: is empty; it needs {start}")
        data = reader.plain(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(filter(None, (error.problem, error.context)))
        raise HandledError(f"{path}:{mark.line + 1 if mark else 1}: is not YAML: {said}") from error
    except RecursionError as error:
        raise HandledError(f"{path}: is nested too deeply to be read; write it flatter") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise HandledError(
            f"{path}:{line}: holds the control character 0x{error.character:02x}; delete it"
        ) from error
    return Document(path, data, reader.key_lines, reader.value_lines, reader.raw, tuple(reader.problems))


def _composed(text: str) -> Node | None:
    """Return the node tree, by libyaml if it can: it is ten times as fast, but words faults less well."""
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


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


class _Reader:
    """Walks a node tree once; a node that cannot be read becomes a problem and the value None.

    An alias is refused: a few lines of aliases of aliases stand for more than memory holds.
    """

    def __init__(self) -> None:
        self.key_lines: dict[Place, int] = {}
        self.value_lines: dict[Place, int] = {}
        self.raw: dict[Place, str] = {}
        self.problems: list[Problem] = []
        self._constructor = SafeConstructor()
        self._read: set[Node] = set()

    def plain(self, node: Node, place: Place) -> Any:  # noqa: ANN401  (whatever the file holds)
        self.value_lines[place] = _line(node)
        if node in self._read:
            self._problem(node, place, "is an alias; write out the value")
            return None
        self._read.add(node)
        if isinstance(node, MappingNode):
            return self._mapping(node, place)
        if not isinstance(node, SequenceNode):
            return self._scalar(node, place)
        if len(node.value) > _LONGEST:
            self._problem(node, place, f"has {len(node.value)} entries; it may have {_LONGEST}")
            return None
        return [self.plain(item, (*place, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: MappingNode, place: Place) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(key_node, place, "has a field name that is not text")
                continue
            key = str(key_node.value)
            if _CONTROL.search(key):
                self._problem(key_node, place, "has a field name with a control character; delete it")
                continue
            inner = (*place, key)
            if key in plain:
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
            self._problem(node, place, "holds a control character; delete it")
            return None
        # A date is text, as in JSON.
        if node.tag.endswith(":timestamp"):
            return node.value
        if len(node.value) > _LONGEST_NUMBER and not node.tag.endswith(":str"):
            self._problem(node, place, f"is a number of {len(node.value)} characters; put text in quotes")
            return None
        try:
            value = self._constructor.construct_object(node)
        # A tag on a value of another kind raises any of these.
        except (ConstructorError, LookupError, AttributeError, ArithmeticError, ValueError):
            self._problem(node, place, f"has the tag {node.tag}, which means nothing here; delete the tag")
        else:
            if isinstance(value, float) and not math.isfinite(value):
                self._problem(node, place, f"is {node.value}; give a finite number")
            return value
        return None

    def _problem(self, node: Node, place: Place, sentence: str) -> None:
        self.problems.append(Problem(_line(node), place, sentence))


_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


#: Faults of a file that are counted: to word each of a million takes an hour.
_MOST_COUNTED = 500
#: Characters of a sentence: a value that it quotes may be any text.
_WIDEST = 500


@dataclass(frozen=True)
class Form:
    """The form of a file: a JSON Schema, with `x-` fields that word its faults.

    `x-fix` is the cure for a value in the wrong form. At the top, `x-start` is the first line of an empty file,
    `x-examples` values for missing fields, and `x-mend` ends each
    sentence.
    """

    path: Path

    @functools.cached_property
    def schema(self) -> dict[str, Any]:
        """Return the schema."""
        data: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return data


def checked(path: Path, form: Form, *further: Callable[[Document], Iterable[Problem]]) -> Document:
    """Read a file that fits its schema and in which no `further` check finds a problem.

    Raises HandledError with the first fault in file order, "file:line: field: fault; cure", and the
    number of further faults; each check sees only data that all before it found good.
    """
    schema = form.schema
    try:
        document = read_document(path, start=schema["x-start"])
        _stop_at(document, [*document.problems, *_problems(document, schema)])
        for problems in further:
            _stop_at(document, problems(document))
    except HandledError as error:
        raise HandledError(f"{error}{schema.get('x-mend', '')}") from error
    return document


def checked_data(path: Path, form: Form) -> Any:  # noqa: ANN401  (whatever the file holds)
    """Return the data of a file that `checked` finds good, kept beside it as Python keeps compiled modules.

    A file of some thousand entries takes a quarter of a second to read and to check.
    """
    kept = path.parent / "__pycache__" / f"{path.name}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        readers = form.path.read_bytes() + Path(__file__).read_bytes()
        of = hashlib.sha256(read_bytes(path, _LARGEST) + readers).hexdigest()
        found, data = json.loads(read_bytes(kept, 2 * _LARGEST))
        if found == of:
            return data
    data = checked(path, form).data
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):
            kept.parent.mkdir(exist_ok=True)
            written = kept.with_suffix(f".{os.getpid()}")
            written.write_text(json.dumps([of, data]), encoding="utf-8")
            written.replace(kept)
    return data


def _stop_at(document: Document, problems: Iterable[Problem]) -> None:
    # A value that could not be read is null in the data, and the schema objects to that too: say it once.
    first: dict[Place, Problem] = {}
    for problem in islice(problems, _MOST_COUNTED):
        first.setdefault(problem.place, problem)
    if not first:
        return
    worst = min(first.values())
    dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in worst.place)
    field = f"{_short(dotted.lstrip('.'))}: " if dotted else ""
    more = f" (and {len(first) - 1} more)" if len(first) > 1 else ""
    raise HandledError(f"{document.path}:{worst.line}: {field}{_short(worst.sentence)}{more}")


def _short(text: str) -> str:
    """Return a text, without its middle if it is longer than anyone reads."""
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST // 2]} ... {text[-_WIDEST // 2 :]}"


def _problems(document: Document, schema: dict[str, Any]) -> Iterator[Problem]:
    """Yield every way in which a document departs from the schema."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (takes its time, and a file that is kept needs none)

    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    for error in validator.iter_errors(document.data):
        place, rule, inner = tuple(error.absolute_path), str(error.validator), dict(error.schema)
        if "propertyNames" in error.absolute_schema_path:
            name = (*place, str(error.instance))
            yield Problem(document.key_line(name), name, f"cannot be a name; {inner['x-fix']}")
        elif rule == "additionalProperties":
            for each in sorted(error.instance.keys() - inner["properties"], key=str):
                sentence = f"is not a field that exists here; {did_you_mean(each, inner['properties'])}"
                yield Problem(document.key_line((*place, each)), (*place, each), sentence)
        elif rule == "required":
            for each in _lacking(inner["required"], error.instance):
                sentence = f"is missing; add `{each}: {schema.get('x-examples', {}).get(each, '...')}`"
                yield Problem(document.key_line(place), (*place, each), sentence)
        elif rule == "type" and not place:
            sentence = f"is not {_KINDS[inner['type']]}; write {schema['x-start']} at its top level"
            yield Problem(document.line(()), (), sentence)
        else:
            sentence = _sentence(error, document.raw.get(place), inner.get("x-fix", ""))
            yield Problem(document.line(place), place, sentence)


def _lacking(required: Iterable[str], value: Mapping[str, Any]) -> list[str]:
    """Return the fields that are missing; one that is there but mistyped has its own complaint, which says more."""
    return [each for each in required if each not in value and not difflib.get_close_matches(each, value)]


#: The sentence on a fault by the rule of the schema; `_type` and `_enum` word theirs.
_SENTENCES = {
    "type": "",
    "enum": "",
    "pattern": "{value!r} is not in the right form; {fix}",
    "format": "{value!r} is no day of the calendar; {fix}",
    "const": "is {raw!r}, which this version of the harness cannot read; write `schema: {wanted}`",
    "minimum": "is {value}; it must be at least {wanted}",
    "maximum": "is {value}; it must be at most {wanted}",
    "exclusiveMinimum": "is {value}; it must be more than {wanted}",
    "minItems": "has fewer than {wanted} entries; fill it in or delete it",
    "maxItems": "has more than {wanted} entries; it may have so many at most",
    "minProperties": "is empty; fill it in or delete it",
    "minLength": "is empty; fill it in or delete it",
    "maxProperties": "has more than {wanted} entries; it may have so many at most",
    "uniqueItems": "lists the same entry twice; delete one",
}


def _sentence(error: ValidationError, raw: str | None, fix: str) -> str:
    wanted: Any = error.validator_value
    value = error.instance
    if error.validator == "type":
        return _type([wanted] if isinstance(wanted, str) else list(wanted), value, raw)
    if error.validator == "enum":
        return _enum(list(map(str, wanted)), _kind_of(value) if raw is None else raw)
    return _SENTENCES[str(error.validator)].format(value=value, raw=raw, wanted=wanted, fix=fix)


def _type(kinds: Sequence[str], value: object, raw: str | None) -> str:
    expected, found = " or ".join(_KINDS[kind] for kind in kinds), _kind_of(value)
    if "string" in kinds and raw is not None and value is not None:
        return f'is {found}, not text; put it in quotes: "{raw}"'
    return f"is {found}; it must be {expected}"


def _kind_of(value: object) -> str:
    # bool before int: it is one.
    table: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "a mapping"),
    )
    said = f"the text {value!r}" if isinstance(value, str) else "empty"
    return next((name for kind, name in table if isinstance(value, kind)), said)


def _enum(options: Sequence[str], word: str) -> str:
    hint = did_you_mean(word, options)
    near = f"; {hint}" if hint.startswith("did") else ""
    return f"{word!r} is not one of {', '.join(options)}{near}"

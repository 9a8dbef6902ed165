"""Holds a document against its JSON Schema and says each fault as one sentence."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from harness.document.reader import Date, Document, Place, Problem, read_document
from harness.errors import HandledError
from harness.suggest import did_you_mean

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
class _Fault:
    """An objection of the validator: the rule, its argument, and the value that it was given."""

    place: Place
    rule: str
    wanted: Any
    value: Any
    schema: dict[str, Any]
    raw: str | None


@dataclass(frozen=True)
class Form:
    """The form of a file: a JSON Schema, with `x-` fields that word its faults.

    `x-fix` is the cure for a value in the wrong form. At the top, `x-start` is the first line of an empty file,
    `x-merge` the replacement of a merge key, `x-examples` values for missing fields, and `x-mend` ends each
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
        document = read_document(path, start=schema["x-start"], instead_of_merge=schema.get("x-merge"))
        _stop_at(document, [*document.problems, *_problems(document, schema)])
        for problems in further:
            _stop_at(document, problems(document))
    except HandledError as error:
        raise HandledError(f"{error}{schema.get('x-mend', '')}") from error
    return document


def _stop_at(document: Document, problems: Iterable[Problem]) -> None:
    # A value that could not be read is null in the data, and the schema objects to that too: say it once.
    first: dict[Place, Problem] = {}
    for problem in islice(problems, _MOST_COUNTED):
        first.setdefault(problem.place, problem)
    if not first:
        return
    worst = min(first.values())
    field = f"{_short(_dotted(worst.place))}: " if worst.place else ""
    more = f" (and {len(first) - 1} more)" if len(first) > 1 else ""
    raise HandledError(f"{document.path}:{worst.line}: {field}{_short(worst.sentence)}{more}")


def _short(text: str) -> str:
    """Return a text with its middle left out where it quotes more than anybody reads."""
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST // 2]} ... {text[-_WIDEST // 2 :]}"


def _dotted(place: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.lstrip(".")


def _problems(document: Document, schema: dict[str, Any]) -> Iterator[Problem]:
    """Yield every way in which a document departs from the schema."""
    for error in Draft202012Validator(schema).iter_errors(document.data):
        fault = _fault(document, error)
        if "propertyNames" in error.absolute_schema_path:
            inner = (*fault.place, str(fault.value))
            yield Problem(document.key_line(inner), inner, f"cannot be a name; {fault.schema['x-fix']}")
        elif fault.rule == "additionalProperties":
            yield from _unknown(document, fault)
        elif fault.rule == "required":
            yield from _missing(document, fault, schema.get("x-examples", {}))
        elif fault.rule == "type" and not fault.place:
            sentence = f"is not {_KINDS[fault.wanted]}; write {schema['x-start']} at its top level"
            yield Problem(document.line(()), (), sentence)
        else:
            yield Problem(document.line(fault.place), fault.place, _SENTENCES[fault.rule](fault))


def _fault(document: Document, error: ValidationError) -> _Fault:
    place: Place = tuple(error.absolute_path)
    inner: Any = error.schema
    return _Fault(
        place, str(error.validator), error.validator_value, error.instance, inner, document.raw.get(place)
    )


def _unknown(document: Document, fault: _Fault) -> Iterator[Problem]:
    known = fault.schema["properties"]
    for name in fault.value:
        if name not in known:
            inner = (*fault.place, name)
            hint = did_you_mean(name, known)
            yield Problem(document.key_line(inner), inner, f"is not a field that exists here; {hint}")


def _missing(document: Document, fault: _Fault, examples: Mapping[str, str]) -> Iterator[Problem]:
    for name in fault.wanted:
        # A field that is there but mistyped has its own complaint, which says more.
        if name not in fault.value and not difflib.get_close_matches(name, fault.value):
            sentence = f"is missing; add `{name}: {examples.get(name, '...')}`"
            yield Problem(document.key_line(fault.place), (*fault.place, name), sentence)


def _type(fault: _Fault) -> str:
    kinds = [fault.wanted] if isinstance(fault.wanted, str) else list(fault.wanted)
    expected = " or ".join(_KINDS[kind] for kind in kinds)
    found = _kind_of(fault.value)
    if fault.value is None:
        return f"has no value; it must be {expected}"
    if "string" in kinds and fault.raw is not None:
        return f'is {found}, not text; put it in quotes: "{fault.raw}"'
    if isinstance(fault.value, str):
        return f"is the text {fault.value!r}; it must be {expected}"
    return f"is {found}; it must be {expected}"


def _kind_of(value: object) -> str:
    # bool before int: it is one.
    table: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "a mapping"),
        (Date, "a date"),
    )
    return next((name for kind, name in table if isinstance(value, kind)), "of no usable type")


def _enum(fault: _Fault) -> str:
    options = [str(option) for option in fault.wanted]
    word = fault.raw if fault.raw is not None else _kind_of(fault.value)
    hint = did_you_mean(word, options)
    near = f"; {hint}" if hint.startswith("did") else ""
    return f"{word!r} is not one of {', '.join(options)}{near}"


def _pattern(fault: _Fault) -> str:
    return f"{fault.value!r} is not in the right form; {fault.schema['x-fix']}"


def _const(fault: _Fault) -> str:
    return f"is {fault.raw!r}, which this version of the harness cannot read; write `schema: {fault.wanted}`"


def _bound(fault: _Fault) -> str:
    words = {"exclusiveMinimum": "more than", "minimum": "at least", "maximum": "at most"}
    return f"is {fault.value}; it must be {words[fault.rule]} {fault.wanted}"


def _empty(_fault: _Fault) -> str:
    return "is empty; fill it in or delete it"


def _full(fault: _Fault) -> str:
    return f"has {len(fault.value)} entries; it must have at most {fault.wanted}"


def _twice(_fault: _Fault) -> str:
    return "lists the same entry twice; delete one"


#: Every other rule that a schema may use.
_SENTENCES: dict[str, Callable[[_Fault], str]] = {
    "type": _type,
    "enum": _enum,
    "pattern": _pattern,
    "const": _const,
    "minimum": _bound,
    "maximum": _bound,
    "exclusiveMinimum": _bound,
    "minItems": _empty,
    "minProperties": _empty,
    "minLength": _empty,
    "maxProperties": _full,
    "uniqueItems": _twice,
}

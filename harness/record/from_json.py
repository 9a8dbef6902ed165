"""Frozen dataclasses from plain JSON data, checked against their type hints; the inverse of `dataclasses.asdict`."""

from __future__ import annotations

import dataclasses
import functools
import threading
from typing import Any, TypeVar

import msgspec

_Kind = TypeVar("_Kind")
#: msgspec stores its knowledge of a class on the class while still gathering it: a second thread that reads it too
#: early ends the process with SIGSEGV.
_LEARNING = threading.Lock()


class OutdatedError(ValueError):
    """Data of a form that an older version of the harness wrote."""


def check_schema(data: Any, wanted: int) -> None:  # noqa: ANN401  (JSON)
    """Raise OutdatedError for data of an older schema, ValueError for any other that is not `wanted`."""
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, int) and 0 < schema < wanted:
        raise OutdatedError(f"schema {schema}, written by an older version")
    if schema != wanted:
        raise ValueError(f"schema {schema!r:.60}, this harness reads {wanted}")


def decode(kind: type[_Kind], data: object) -> _Kind:
    """Return an instance of a dataclass; raises TypeError, with its place, for a field that is missing or wrong.

    A property that the dataclass does not have is passed over, and one with a default may be missing.
    """
    known: Any = kind
    _known(known)
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        sentence, _, place = str(error).partition(" - at `$.")
        raise TypeError(f"{place.rstrip('`')}: {sentence}" if place else sentence) from error


@functools.cache
def _known(kind: Any) -> Any:  # noqa: ANN401  (a class is no Hashable to mypy)
    with _LEARNING:
        return msgspec.json.Decoder(kind)


def plain(data: object) -> Any:  # noqa: ANN401  (JSON)
    """Return data with a dictionary of its fields in place of each dataclass, as `json` takes it."""
    return msgspec.to_builtins(data)


def fields_of(instance: object) -> dict[str, Any]:
    """Return the fields of a dataclass by name, not copied; `vars` lacks the defaults of one that `decode` made."""
    kind: Any = type(instance)
    return {name: getattr(instance, name) for name in _names(kind)}


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:  # noqa: ANN401  (a class is no Hashable to mypy)
    return tuple(field.name for field in dataclasses.fields(kind))

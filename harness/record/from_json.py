"""Frozen dataclasses from plain JSON data, checked against their type hints; the inverse of `dataclasses.asdict`."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeVar

import msgspec

_Kind = TypeVar("_Kind")


def decode(kind: type[_Kind], data: object) -> _Kind:
    """Return an instance of a dataclass; raises TypeError, with the field's place, for what is missing or wrong.

    A property that the dataclass does not have is passed over, and one with a default may be missing.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        sentence, _, place = str(error).partition(" - at `$.")
        raise TypeError(f"{place.rstrip('`')}: {sentence}" if place else sentence) from error


def fields_of(instance: object) -> dict[str, Any]:
    """Return the fields of a dataclass by name, not copied; `vars` lacks the defaults of one that `decode` made."""
    kind: Any = type(instance)
    return {name: getattr(instance, name) for name in _names(kind)}


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:  # noqa: ANN401  (a class is no Hashable to mypy)
    return tuple(field.name for field in dataclasses.fields(kind))

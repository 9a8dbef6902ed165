"""Frozen dataclasses from plain JSON data, checked against their type hints; the inverse of `dataclasses.asdict`."""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
import typing
from enum import Enum
from typing import Any, Literal


def decode(kind: Any, data: Any) -> Any:  # noqa: ANN401  (a dataclass, JSON; the caller names the type)
    """Return an instance of a dataclass; raises TypeError for a missing or wrong field, ValueError for a bad word.

    A property that the dataclass does not have is passed over, and one with a default may be missing.
    """
    if not isinstance(data, dict):
        raise TypeError(f"{data!r:.60} is no {kind.__name__}")
    hints, needed = _fields(kind)
    missing = needed - data.keys()
    if missing:
        raise TypeError(f"a {kind.__name__} lacks {', '.join(sorted(missing))}")
    return kind(**{name: _value(name, hints[name], value) for name, value in data.items() if name in hints})


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], set[str]]:  # noqa: ANN401  (a class is no Hashable to mypy)
    """Return the hints of a dataclass by field, and the fields without a default."""
    # Resolving the hints of a class costs more than building it, and a store holds tens of thousands of objects.
    hints = typing.get_type_hints(kind)
    none = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    needed = {field.name for field in fields if field.default is none and field.default_factory is none}
    return {field.name: hints[field.name] for field in fields}, needed


def _value(name: str, hint: Any, value: Any) -> Any:  # noqa: ANN401  (walks type hints)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or (origin is Literal and value in arguments):
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _value(name, next(option for option in arguments if option is not type(None)), value)
    if origin is tuple and isinstance(value, list | tuple):
        return _entries(name, arguments, value)
    if origin is dict and isinstance(value, dict):
        return {key: _value(name, arguments[1], entry) for key, entry in value.items()}
    if isinstance(hint, type) and origin is None:
        return _plain(name, hint, value)
    raise _misfit(name, value)


def _entries(name: str, hints: tuple[Any, ...], values: list[Any] | tuple[Any, ...]) -> tuple[Any, ...]:
    each = hints[:1] * len(values) if hints[-1] is Ellipsis else hints
    if len(each) != len(values):
        raise _misfit(name, values)
    return tuple(_value(name, hint, value) for hint, value in zip(each, values, strict=True))


def _plain(name: str, hint: type, value: Any) -> Any:  # noqa: ANN401
    if dataclasses.is_dataclass(hint):
        return decode(hint, value)
    if issubclass(hint, Enum) and isinstance(value, str):
        return hint(value)
    # JSON writes the float 2.0 as it likes, and Python holds True for an integer.
    fits = isinstance(value, int | float if hint is float else hint)
    if fits and (hint is bool or not isinstance(value, bool)) and not _too_large(hint, value):
        return value
    raise _misfit(name, value)


def _too_large(hint: type, value: object) -> bool:
    """Tell whether an integer where a float belongs would overflow in the first calculation with it."""
    return hint is float and isinstance(value, int) and value.bit_length() >= sys.float_info.max_exp


def _misfit(name: str, value: object) -> TypeError:
    return TypeError(f"{name}: {value!r:.60} is not what belongs there")

"""Frozen dataclasses from plain JSON data, checked against their type hints; the inverse of `dataclasses.asdict`."""

from __future__ import annotations

import dataclasses
import functools
import sys
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

#: Takes a field's name and its JSON, and returns the value; TypeError where it is not what belongs there.
_Reader = Callable[[str, Any], Any]


def decode(kind: Any, data: Any) -> Any:  # noqa: ANN401  (a dataclass, JSON; the caller names the type)
    """Return an instance of a dataclass; raises TypeError for a missing or wrong field, ValueError for a bad word.

    A property that the dataclass does not have is passed over, and one with a default may be missing.
    """
    if not isinstance(data, dict):
        raise TypeError(f"{data!r:.60} is no {kind.__name__}")
    readers, needed = _fields(kind)
    missing = needed - data.keys()
    if missing:
        raise TypeError(f"a {kind.__name__} lacks {', '.join(sorted(missing))}")
    return kind(**{name: readers[name](name, value) for name, value in data.items() if name in readers})


# Resolving hints costs more than building what they describe, and a store holds tens of thousands of objects.
@functools.cache
def _fields(kind: Any) -> tuple[dict[str, _Reader], set[str]]:  # noqa: ANN401  (a class is no Hashable to mypy)
    """Return the readers of a dataclass by field, and the fields without a default."""
    hints = typing.get_type_hints(kind)
    none = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    needed = {field.name for field in fields if field.default is none and field.default_factory is none}
    return {field.name: _reader(hints[field.name]) for field in fields}, needed


def _reader(hint: Any) -> _Reader:  # noqa: ANN401  (walks type hints)
    origin = typing.get_origin(hint)
    if origin is not None:
        return _generic(origin, typing.get_args(hint))
    if hint is Any:
        return lambda _, value: value
    if dataclasses.is_dataclass(hint):
        return lambda _, value: decode(hint, value)
    if issubclass(hint, Enum):
        return functools.partial(_word, hint)
    return functools.partial(_plain, _FITS.get(hint) or functools.partial(_is, hint))


def _generic(origin: Any, arguments: tuple[Any, ...]) -> _Reader:  # noqa: ANN401
    if origin is Literal:
        return functools.partial(_plain, arguments.__contains__)
    if origin is dict:
        return functools.partial(_mapping, _reader(arguments[1]))
    if origin is tuple and arguments[-1] is Ellipsis:
        return functools.partial(_entries, _reader(arguments[0]))
    if origin is tuple:
        return functools.partial(_each, tuple(map(_reader, arguments)))
    inner = _reader(next(option for option in arguments if option is not type(None)))
    return lambda name, value: None if value is None else inner(name, value)


def _is(hint: type, value: object) -> bool:
    # Python holds True for an integer.
    return isinstance(value, hint) and not isinstance(value, bool)


def _is_float(value: object) -> bool:
    """Tell whether a value is a number; JSON writes 2.0 as it likes, and a larger integer overflows when used."""
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < sys.float_info.max_exp
    return isinstance(value, float)


_FITS: dict[Any, Callable[[Any], bool]] = {float: _is_float, bool: lambda value: isinstance(value, bool)}


def _entries(inner: _Reader, name: str, values: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if not isinstance(values, list | tuple):
        raise _misfit(name, values)
    return tuple([inner(name, value) for value in values])


def _each(readers: tuple[_Reader, ...], name: str, values: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if not isinstance(values, list | tuple) or len(values) != len(readers):
        raise _misfit(name, values)
    return tuple([read(name, value) for read, value in zip(readers, values, strict=True)])


def _mapping(inner: _Reader, name: str, value: Any) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise _misfit(name, value)
    return {key: inner(name, entry) for key, entry in value.items()}


def _word(hint: type[Enum], name: str, value: Any) -> Enum:  # noqa: ANN401
    if not isinstance(value, str):
        raise _misfit(name, value)
    return hint(value)


def _plain(fits: Callable[[Any], bool], name: str, value: Any) -> Any:  # noqa: ANN401
    if not fits(value):
        raise _misfit(name, value)
    return value


def _misfit(name: str, value: object) -> TypeError:
    return TypeError(f"{name}: {value!r:.60} is not what belongs there")

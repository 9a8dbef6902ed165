"""Holds the fields of a case's dataclasses to their type hints: a mistake is one sentence at load, not a strange cell.

The commonest is a lone string: `flags=("INT8")` is no tuple, and would be read letter by letter.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal


def check_types(instance: Any) -> None:  # noqa: ANN401  (any dataclass)
    """Raise TypeError, with the field and what belongs there, where a field does not hold what its hint says."""
    kind: Any = type(instance)
    for field, hint in _hints(kind).items():
        value = getattr(instance, field)
        if not _fits(hint, value):
            raise TypeError(
                f"{kind.__name__}: {field} is {value!r:.80}; it must be {_said(hint)}{_advice(hint, value)}"
            )


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:  # noqa: ANN401  (a class is no Hashable to mypy)
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:  # noqa: ANN401
    return typing.get_origin(hint), typing.get_args(hint)


def _fits(hint: Any, value: object) -> bool:  # noqa: ANN401  (walks type hints)
    origin, arguments = _parts(hint)
    if origin is tuple:
        return isinstance(value, tuple) and _each_fits(arguments, value)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(one, value) for one in arguments)
    if origin is Literal:
        return value in arguments
    if origin is Callable:
        return callable(value)
    # Python holds True for an integer, and an enumeration's members here are strings.
    odd = (hint is int and isinstance(value, bool)) or (hint is str and isinstance(value, Enum))
    return isinstance(value, hint) and not odd


def _each_fits(hints: tuple[Any, ...], values: tuple[object, ...]) -> bool:
    if hints[-1] is Ellipsis:
        return all(_fits(hints[0], value) for value in values)
    return len(hints) == len(values) and all(map(_fits, hints, values))


def _said(hint: Any) -> str:  # noqa: ANN401
    """Return a hint in words: "a tuple of pairs of str and Precision"."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"a tuple of {_said(arguments[0])}"
    if origin is tuple:
        return f"({', '.join(map(_said, arguments))})"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_said, arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin is Callable:
        return "a function"
    return "None" if hint is type(None) else str(hint.__name__)


def _advice(hint: Any, value: object) -> str:  # noqa: ANN401
    """Say how a lone string is made a tuple of strings."""
    lone = isinstance(value, str) and typing.get_args(hint) == (str, Ellipsis)
    return f": write ({value!r},)" if lone else ""

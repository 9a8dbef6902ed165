"""What the page recognises pasted text by: the signatures' patterns and what they rest on, as JavaScript has them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx

from harness.judge import engine_errors, place
from harness.judge.diagnosis import load_signatures
from harness.judge.portable import javascript
from harness.report.page.packing import pack, table

if TYPE_CHECKING:
    from harness.judge.diagnosis import Signature

#: What finds place and noise, by the name that the script knows it by.
_FINDERS = {
    "parsing": place.PARSING,
    "importer": place.IMPORTER,
    "importing": place.IMPORTING,
    "numbered": place.NUMBERED,
    "recipe": place.RECIPE,
    "stamp": place.STAMP,
    "noise": engine_errors.NOISE,
}


class _Signature(NamedTuple):
    id: str
    patterns: tuple[tuple[str, str], ...]
    generic: bool
    note: bool
    innocent: bool
    standard_op: bool
    phases: tuple[str, ...]
    operator: str


def recognisable() -> dict[str, Any]:
    """Return the signatures in the order they are tried, the finders of places, and ONNX's operators."""
    return {
        "signatures": table(_Signature, map(_row, load_signatures())),
        "finders": {name: javascript(regex.pattern) for name, regex in _FINDERS.items()},
        "operators": standard_operators(),
    }


@cache
def standard_operators() -> tuple[str, ...]:
    """Return the names of all operators that ONNX itself has or had."""
    return tuple(sorted({each.name for each in onnx.defs.get_all_schemas_with_history() if not each.domain}))


@cache
def packed() -> str:
    """Return all of it packed: the page unpacks it when somebody pastes."""
    return pack([recognisable()])


def _row(signature: Signature) -> _Signature:
    return _Signature(
        signature.id,
        tuple(
            (pattern.where, javascript(pattern.regex.pattern))
            for pattern in signature.patterns
            # What is pasted comes without its model.
            if pattern.where != "graph"
        ),
        signature.generic,
        signature.note,
        signature.innocent,
        signature.standard_op,
        signature.phases,
        signature.operator,
    )

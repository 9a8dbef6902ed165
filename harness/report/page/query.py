"""The words of the page's query language, and which of them are true of a cell; the script only looks them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.engines import ENGINES
from harness.report import past
from harness.report.labels import BUCKETS, CLAIMED, MARKS, UNEXPECTED, bucket
from harness.words import GOOD, Class, Precision

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.report.compare.sides import Side
    from harness.report.model import CellView

#: States that are no class and no verdict, or more than one.
_STATES: dict[str, Callable[[CellView, Side], bool]] = {
    "fail": lambda _, one: one.cls is not None and one.cls not in GOOD,
    "ok": lambda _, one: one.cls in GOOD,
    "lost": lambda _, one: one.cls is Class.PRECISION_LOST,
    "known": lambda _, one: one.cls is not None,
    "unknown": lambda _, one: one.cls is None,
    "measured": lambda cell, _: cell.measured,
    "unexpected": lambda cell, _: bucket(cell) in UNEXPECTED,
    "claimed": lambda cell, one: bucket(cell) in CLAIMED.values() and one.cls is not None,
}


def states(cell: CellView, one: Side, where: str) -> tuple[str, ...]:
    """Return the words of `state:` that are true of a cell: its own class, what is known of it, the bucket shown."""
    plain = dict.fromkeys(filter(None, (str(one.cls or ""), str(cell.cls), where)))
    return (
        *(word for word, fits in _STATES.items() if fits(cell, one)),
        *(word for word in plain if word not in _STATES),
    )


def vocabulary() -> dict[str, Any]:
    """Return what the filters take, in the order in which it is told."""
    return {
        "states": list(dict.fromkeys((*_STATES, *map(str, MARKS), *BUCKETS))),
        "pasts": [*past.NEWS, "steady", "first"],
        "precisions": [
            str(kind) for kind in Precision if kind is not Precision.UNKNOWN and "_weights" not in kind.value
        ],
        "engines": {traits.asked: str(engine) for engine, traits in ENGINES.items() if traits.asked},
    }

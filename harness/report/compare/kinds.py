"""What a step does to a variant, judged from what is known of both sides."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from harness.judge.timing import RUN_TO_RUN
from harness.layers.datatype import NARROW, same_precision
from harness.words import GOOD, Class, Precision, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.compare.pairs import Pair
    from harness.report.compare.sides import Side, SideTiming

#: What a class that works stands at.
_STANDS = 2


class Kind(Word):
    """What a step from one column to another does to a variant; the order is that of the page."""

    BROKEN = "broken"
    PRECISION_LOST = "precision_lost"
    BUILDS_WITHOUT = "builds_without"
    WIDER = "wider"
    SLOWER = "slower"
    OTHERWISE = "otherwise"
    FIXED = "fixed"
    PRECISION_GAINED = "precision_gained"
    NARROWER = "narrower"
    FASTER = "faster"
    NEWLY_UNKNOWN = "newly_unknown"


class NotComparable(Enum):
    """Why two timings are not compared."""

    STACK = auto()
    NOISE = auto()
    MODEL = auto()


class Pace(NamedTuple):
    """Two timings that are compared; `least` and `most` enclose the ratio of their medians, new over old, with 99 %."""

    old: SideTiming
    new: SideTiming
    least: float
    most: float


def kinds_of(pair: Pair) -> list[Kind]:
    """Return what became of a variant: nothing, one thing, or one and a change of its latency."""
    return [kind for kind in (_kind(pair) or _width(pair), _speed(pair)) if kind]


def why_not_comparable(pair: Pair, old: SideTiming, new: SideTiming) -> NotComparable | None:
    """Return why the timings of a variant that was timed on both sides are not compared; None where they are."""
    if pair.altered:
        return NotComparable.MODEL
    if old.stack != new.stack:
        return NotComparable.STACK
    return None if pace(pair) else NotComparable.NOISE


def pace(pair: Pair) -> Pace | None:
    """Return both timings of a variant and how they compare; None where they are not compared."""
    old, new = pair.old.timing, pair.new.timing
    if pair.altered or not (old and new and old.stack == new.stack and old.interval and new.interval):
        return None
    return Pace(old, new, new.interval[0] / old.interval[1], new.interval[1] / old.interval[0])


def fails(cls: Class | None) -> bool:
    """Tell whether a class is known and does not work as wanted; what a GPU was missing for tells nothing."""
    return cls not in (None, Class.NEEDS_GPU_TO_BUILD) and standing(cls) < _STANDS


def standing(cls: Class | None) -> int:
    """Return 2 for a class that works, 1 for one that works without its precision, 0 for one that fails or is none."""
    return _STANDS if cls in GOOD else 1 if cls is Class.PRECISION_LOST else 0


def _kind(pair: Pair) -> Kind | None:
    old, new = pair.old, pair.new
    if old.cls is None or new.cls is None:
        lost_sight = old.cls is not None and new.why != "does not apply"
        return Kind.NEWLY_UNKNOWN if lost_sight else None
    if pair.open:
        return None
    was, now = standing(old.cls), standing(new.cls)
    if now == 0:
        other = old.cls is not new.cls or (old.signature and new.signature and old.signature != new.signature)
        return Kind.BROKEN if was else Kind.OTHERWISE if other else None
    if not was:
        # An engine that was refused and is now built without its precision has not been fixed: it fails silently.
        return Kind.BUILDS_WITHOUT if now == 1 else Kind.FIXED
    if not new.demanded:
        return None
    wanted = pair.variant.wanted
    gained = 0 if old.nodes == new.nodes else _kept(wanted, new, old) - _kept(wanted, old, new)
    if not gained and not _all_told(pair):
        gained = now - was
    return Kind.PRECISION_LOST if gained < 0 else Kind.PRECISION_GAINED if gained else None


def _width(pair: Pair) -> Kind | None:
    """Tell a wider type from a narrower one, of nodes that nobody wished for; that fails no step."""
    found = pair.crossed
    if any(Precision(before) in NARROW for _, before, _ in found):
        return Kind.WIDER
    return Kind.NARROWER if found else None


def _all_told(pair: Pair) -> bool:
    """Tell whether both sides say what each wanted node ran in.

    Then the nodes outweigh the classes: ONNX Runtime is not judged by precision, and works without it.
    """
    nodes = pair.old.nodes, pair.new.nodes
    return all(nodes) and all(map(all, nodes))


def _kept(wanted: Sequence[tuple[str, Precision]], one: Side, other: Side) -> int:
    """Count the wanted nodes that kept their precision, among those whose precision is known on both sides."""
    told = zip(wanted, one.nodes, other.nodes, strict=False)
    return sum(
        bool(got and elsewhere) and same_precision(want, Precision(got)) for (_, want), got, elsewhere in told
    )


def _speed(pair: Pair) -> Kind | None:
    """Tell slower from faster, of engines that work: the time of one that fails or errs is no speed."""
    found = pace(pair)
    if not (found and standing(pair.old.cls) and standing(pair.new.cls)):
        return None
    margin = 1 + RUN_TO_RUN[found.old.stack[0]]
    if found.least > margin:
        return Kind.SLOWER
    return Kind.FASTER if found.most < 1 / margin else None

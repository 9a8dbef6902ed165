"""Finds between which two of a row of targets something changed; pure functions over what becomes of the model on each.

The row goes from the good end to the bad one, whichever is the newer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.errors import HandledError
from harness.plan import series
from harness.words import Word

if TYPE_CHECKING:
    from harness.matrix import Target


class Answer(Word):
    """What a target says: SKIP where it can be neither."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class Edge:
    """Where good becomes bad: the last good of the row and the first bad; `skipped` are all that said neither.

    `between` are those of them that lie between the two.
    """

    good: str
    bad: str
    skipped: tuple[str, ...] = ()
    between: tuple[str, ...] = ()


def bisect(row: Sequence[str], ask: Callable[[str], Answer]) -> Edge:
    """Return the edge in a row whose first is good and whose last is bad; `ask` is asked of what lies between.

    One that says neither is passed over for its nearest neighbour.
    """
    good, bad = 0, len(row) - 1
    skipped: list[int] = []
    while rest := [index for index in range(good + 1, bad) if index not in skipped]:
        middle = (good + bad) / 2
        index = min(rest, key=lambda each: (abs(each - middle), each))
        answer = ask(row[index])
        if answer is Answer.SKIP:
            skipped.append(index)
        elif answer is Answer.GOOD:
            good = index
        else:
            bad = index
    between = tuple(row[index] for index in range(good + 1, bad))
    return Edge(row[good], row[bad], tuple(row[index] for index in sorted(skipped)), between)


def row_of(targets: Iterable[Target], good: Target, bad: Target) -> tuple[Target, ...]:
    """Return the targets from the good one to the bad one, by version; raises HandledError where no row leads there."""
    if good.name == bad.name:
        raise HandledError(f"--good and --bad are both {good.name}; name two targets")
    if series(good) != series(bad):
        differs = next(
            name for name, one, other in zip(_SERIES, series(good), series(bad), strict=True) if one != other
        )
        raise HandledError(
            f"{good.name} and {bad.name} are of another {differs}, so that no row of versions leads from one to the "
            "other; name two of one series"
        )
    rest = [each for each in targets if series(each) == series(good)]
    rest.sort(key=lambda each: Version(each.version))
    first, last = sorted((rest.index(good), rest.index(bad)))
    found = rest[first : last + 1]
    return tuple(found if found[0] == good else found[::-1])


def is_upward(row: Sequence[Target]) -> bool:
    """Tell whether a row goes from an older version to a newer one."""
    return Version(row[0].version) <= Version(row[-1].version)


_SERIES = ("engine", "platform", "compute capability", "provider")

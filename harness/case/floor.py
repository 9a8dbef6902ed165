"""What a model asked for and kept when it was accepted, and what of it is missing today; pure.

Nodes are the same by name, precision and operator. An exporter may rename them: nodes whose names the other side does
not know are paired by precision and operator, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.text import some
from harness.words import Precision, said


class Asked(NamedTuple):
    """A node, by name and operator, and the precision that is asked of it."""

    node: str
    op: str
    precision: Precision


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the nodes that are asked for, and by name those that lost it or that nobody tells of.

    names: all nodes of the graph, as far as they are known.
    """

    asked: tuple[Asked, ...] = ()
    lost: frozenset[str] = frozenset()
    untold: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    @property
    def kept(self) -> list[Asked]:
        """Return the nodes that ran as asked, or of which no other is known."""
        return [each for each in self.asked if each.node not in self.lost]


class Missing(NamedTuple):
    """The nodes that are asked for no longer, and those that lost their precision since."""

    unasked: tuple[Asked, ...]
    lost: tuple[Asked, ...]

    def __str__(self) -> str:
        """Return it in words, "" for nothing."""
        parts = [f"no longer asks for {named(self.unasked)}"] if self.unasked else []
        parts += [f"loses more than before: {named(self.lost)}"] if self.lost else []
        return "; ".join(parts)


def missing(before: Side, now: Side) -> Missing:
    """Return what the one side had and the other lacks; a node that was not told before has lost nothing."""
    unasked = _without(before.asked, now.asked, before.names, now.names)
    lost_before = [each for each in before.asked if each.node in before.lost]
    lost_now = [each for each in now.asked if each.node in now.lost and each.node not in before.untold]
    lost_now = [each for each in lost_now if each.node not in before.lost]
    return Missing(tuple(unasked), tuple(_without(lost_now, lost_before, now.names, before.names)))


def gained(before: Side, now: Side) -> tuple[Asked, ...]:
    """Return the nodes that are told to run as asked now, and were not before."""
    told = [each for each in now.kept if each.node not in now.untold]
    return tuple(_without(told, before.kept, now.names, before.names))


def named(nodes: Iterable[Asked]) -> str:
    """Return nodes in words: "int8 of /a (Conv), /b (Conv)"."""
    by: dict[Precision, list[str]] = {}
    for each in nodes:
        by.setdefault(each.precision, []).append(f"{each.node} ({each.op})" if each.op else each.node)
    return "; ".join(f"{said(precision)} of {some(names)}" for precision, names in by.items())


def _without(
    mine: Sequence[Asked], theirs: Sequence[Asked], my_names: Collection[str], their_names: Collection[str]
) -> list[Asked]:
    """Return those of mine that have no counterpart among theirs."""
    same = {*theirs} & {*mine}
    renamed = (each for each in theirs if each not in same and each.node not in my_names)
    spare = Counter((each.op, each.precision) for each in renamed)
    left = []
    for each in mine:
        kind = each.op, each.precision
        if each in same:
            continue
        if each.node not in their_names and spare[kind]:
            spare[kind] -= 1
            continue
        left.append(each)
    return left

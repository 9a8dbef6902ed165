"""Judges a step: pairs both sides of every variant and says what became of it; sentences.py and upgrade.py word it.

A side is a column of a report, so that two targets of one night and one target of two nights are judged alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from harness.judge.timing import RUN_TO_RUN
from harness.layers.datatype import NARROW, same_precision
from harness.report.compare.ranges import crosses
from harness.report.compare.sides import Side, side
from harness.words import GOOD, Class, Grade, Precision, Word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.report.compare.sides import SideTiming
    from harness.report.model import CellView, Results, TargetView, VariantView

    Key = tuple[str, str]


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


@dataclass(frozen=True)
class Column:
    """One target of a report, by its id; `name` is what to call it where two reports have a target of this id."""

    results: Results
    target: str
    name: str = ""

    @property
    def called(self) -> str:
        """Return what to call it."""
        return self.name or self.target

    @property
    def view(self) -> TargetView:
        """Return the target; KeyError where the report has none of this id."""
        for target in self.results.targets:
            if target.id == self.target:
                return target
        raise KeyError(self.target)


@dataclass(frozen=True)
class Known:
    """A column with what is known of its variants, made once for all the steps that it is part of.

    `guesses` says that what is only guessed stands among it.
    """

    column: Column
    view: TargetView
    variants: Mapping[Key, VariantView]
    cells: Mapping[Key, CellView]
    sides: Mapping[Key, Side]
    guesses: bool = False

    @property
    def called(self) -> str:
        """Return what to call the column."""
        return self.column.called

    def side(self, key: Key, variant: VariantView) -> Side:
        """Return a side in the terms of one variant: what it wants now is asked of both sides."""
        if key not in self.cells:
            return _NOT_THERE
        own = self.variants[key]
        if own is variant or own.wanted == variant.wanted:
            return self.sides[key]
        return side(self.cells[key], replace(own, wanted=variant.wanted), guesses=self.guesses)


#: What a class that works stands at.
_STANDS = 2
#: Of a variant that a report does not have.
_NOT_THERE = Side(None, why="not in that report")


@dataclass(frozen=True)
class Pair:
    """A variant and what is known of it on both sides; `altered` says that model or recipe are not the same.

    Where GPUs took part both sides are of the same one; where they have none in common `apart` is true.
    """

    variant: VariantView
    old: Side
    new: Side
    altered: bool
    apart: bool = False

    @cached_property
    def known(self) -> bool:
        """Tell whether both sides are known, and each for itself: one claim about both tells nothing of a step."""
        return self.old.cls is not None and self.new.cls is not None and not self.open

    @cached_property
    def open(self) -> bool:
        """Tell whether what is said of both sides does not tell them apart.

        That is one and the same claim, where nobody ran either; or one side builds or runs, as somebody says who says
        nothing of the precision, and of the other only the precision is known to be lost; or one side could not be
        built without a GPU, and the other had one.
        """
        old, new = self.old, self.new
        if old.cls is None or new.cls is None:
            return False
        if Class.NEEDS_GPU_TO_BUILD in (old.cls, new.cls) and (old.had_gpu or new.had_gpu):
            return True
        one = old.claim is not None and old.grade is not Grade.MEASURED and old.claim == new.claim
        silent = not (old.on_precision and new.on_precision)
        return one or (silent and {standing(old.cls), standing(new.cls)} == {1, 2})

    @cached_property
    def unheralded(self) -> bool:
        """Tell whether the new side fails or loses precision, and nothing is known of the old one."""
        return self.old.cls is None and fails(self.new.cls)

    @cached_property
    def grade(self) -> Grade:
        """Return how sure a known pair is: as sure as the less sure side."""
        sure = list(Grade)
        return sure[max(sure.index(one.grade) for one in (self.old, self.new) if one.grade)]

    @property
    def gpu(self) -> str:
        """Return the GPU that both sides are of, where another took part too."""
        chosen = self.new.gpu and not self.apart and (self.old.beside or self.new.beside)
        return self.new.gpu[1] if self.new.gpu and chosen else ""

    @cached_property
    def int8(self) -> list[tuple[int, str]]:
        """Return of the nodes that are wanted in INT8 the place among the wanted ones, and the operator."""
        ops = self.variant.ops
        wanted = enumerate(self.variant.wanted)
        return [(at, ops.get(node, "?")) for at, (node, want) in wanted if want is Precision.INT8]

    @cached_property
    def kinds(self) -> list[Kind]:
        """Return what became of the variant: nothing, one thing, or one and a change of its latency."""
        return [kind for kind in (_kind(self) or _width(self), _speed(self)) if kind]

    @cached_property
    def words(self) -> dict[Kind, tuple[str, str, str]]:
        """Return a place for what is said of each kind: many steps say it again."""
        return {}

    @cached_property
    def crossed(self) -> list[tuple[str, str, str]]:
        """Return the nodes that nobody wished for and that left or took a narrow type: each with before and after."""
        if not (self.old.rest and self.new.demanded and standing(self.old.cls) and standing(self.new.cls)):
            return []
        before = dict(self.old.rest)
        both = [(node, before[node], after) for node, after in self.new.rest if node in before]
        return [each for each in both if crosses(Precision(each[1]), Precision(each[2]))]


class Pace(NamedTuple):
    """Two timings that are compared; `least` and `most` enclose the ratio of their medians, new over old, with 99 %."""

    old: SideTiming
    new: SideTiming
    least: float
    most: float


class Step(NamedTuple):
    """Two columns, and both sides of every variant in them."""

    before: Known
    after: Known
    pairs: tuple[Pair, ...]

    @property
    def sides(self) -> tuple[tuple[Known, tuple[Side, ...]], ...]:
        """Return each column with its side of every variant."""
        olds, news = tuple(pair.old for pair in self.pairs), tuple(pair.new for pair in self.pairs)
        return (self.before, olds), (self.after, news)


def known(results: Results, names: Mapping[str, str], *, guesses: bool = False) -> list[Known]:
    """Return what is known on each of the targets, which are called by these names; KeyError for an unknown one.

    What is only guessed is not known, unless `guesses` asks for it.
    """
    variants = {(variant.case, variant.name): variant for case in results.cases for variant in case.variants}
    cells: dict[str, dict[Key, CellView]] = {target: {} for target in names}
    for cell in results.cells:
        if cell.target in cells:
            cells[cell.target][cell.case, cell.variant] = cell
    made = []
    for target, name in names.items():
        column = Column(results, target, name)
        sides = {key: side(cell, variants[key], guesses=guesses) for key, cell in cells[target].items()}
        made.append(Known(column, column.view, variants, cells[target], sides, guesses))
    return made


def pairs(
    before: Known, after: Known, made: dict[tuple[Key, int, int], Pair] | None = None
) -> tuple[Pair, ...]:
    """Return every variant with both its sides: in the order of `after`, then those that only `before` has.

    `made` keeps the pairs for other steps of the same report; its columns have to keep their sides.
    """
    made = {} if made is None else made
    found = []
    for key in dict.fromkeys((*after.variants, *before.variants)):
        old, new = before.variants.get(key), after.variants.get(key)
        variant = new or before.variants[key]
        sides = before.side(key, variant), after.side(key, variant)
        place = (key, id(sides[0]), id(sides[1]))
        if place not in made:
            altered = bool(old and new and _subject(old) != _subject(new))
            made[place] = _like_with_like(Pair(variant, *sides, altered))
        found.append(made[place])
    return tuple(found)


def _like_with_like(pair: Pair) -> Pair:
    """Return the pair on the GPU that both sides have, of several the one on which most is lost."""
    old, new = pair.old, pair.new
    if not (old.beside or new.beside) and (old.gpu == new.gpu or not (old.gpu and new.gpu)):
        return pair
    olds, news = ([each for each in (one, *one.beside) if each.gpu] for one in (old, new))
    alike = [
        replace(pair, old=replace(one, beside=old.beside), new=replace(other, beside=new.beside))
        for one in olds
        for other in news
        if one.gpu == other.gpu
    ]
    return min(alike, key=_loss) if alike else replace(pair, apart=bool(olds and news))


def _loss(pair: Pair) -> int:
    """Return the place of what became of a variant among the kinds, worst first."""
    return min((list(Kind).index(kind) for kind in pair.kinds), default=len(Kind))


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


def _subject(variant: VariantView) -> tuple[str, str]:
    return variant.model_sha256, variant.recipe_sha256


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
    gained = _kept(wanted, new, old) - _kept(wanted, old, new)
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

"""Pairs both sides of every variant of a step; kinds.py says what became of it, rows.py and sentences.py word it.

A side is a column of a report, so that two targets of one night and one target of two nights are judged alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from harness.report.compare.kinds import Kind, fails, kinds_of, standing
from harness.report.compare.ranges import crosses
from harness.report.compare.sides import Side, side
from harness.words import Class, Grade, Precision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report.compare.rows import Row
    from harness.report.model import CellView, Results, TargetView, VariantView

    Key = tuple[str, str]


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
    """A column with what is known of its variants, made once for all the steps that it is part of."""

    column: Column
    view: TargetView
    variants: Mapping[Key, VariantView]
    cells: Mapping[Key, CellView]
    sides: Mapping[Key, Side]

    @property
    def called(self) -> str:
        """Return what to call the column."""
        return self.column.called

    @cached_property
    def ordered(self) -> list[Side]:
        """Return the side of every variant of its report, in the order of that."""
        return [self.sides.get(key, _NOT_THERE) for key in self.variants]

    def side(self, key: Key, variant: VariantView) -> Side:
        """Return a side in the terms of one variant: what it wants now is asked of both sides."""
        if key not in self.cells:
            return _NOT_THERE
        own = self.variants[key]
        if own is variant or own.wanted == variant.wanted:
            return self.sides[key]
        return side(self.cells[key], replace(own, wanted=variant.wanted))


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
    def kinds(self) -> list[Kind]:
        """Return what became of the variant: nothing, one thing, or one and a change of its latency."""
        return kinds_of(self)

    @cached_property
    def rows(self) -> dict[tuple[str, ...], Row]:
        """Return a place for the rows of it: many steps have the same ones."""
        return {}

    @cached_property
    def crossed(self) -> list[tuple[str, str, str]]:
        """Return the nodes that nobody wished for and that left or took a narrow type: each with before and after."""
        if not (self.old.rest and self.new.demanded and standing(self.old.cls) and standing(self.new.cls)):
            return []
        before = dict(self.old.rest)
        both = [(node, before[node], after) for node, after in self.new.rest if node in before]
        return [each for each in both if crosses(Precision(each[1]), Precision(each[2]))]


@dataclass(frozen=True)
class Step:
    """Two columns, and both sides of every variant in them; rows call the two by `names`, where there are any."""

    before: Known
    after: Known
    pairs: tuple[Pair, ...]
    names: tuple[str, str] | None = None

    @property
    def called(self) -> tuple[str, str]:
        """Return what rows call the two columns."""
        return self.names or (self.before.called, self.after.called)

    @cached_property
    def known(self) -> list[Pair]:
        """Return the variants that are known on both sides."""
        return [pair for pair in self.pairs if pair.known]

    @cached_property
    def sides(self) -> tuple[tuple[Known, tuple[Side, ...]], ...]:
        """Return each column with its side of every variant."""
        olds, news = tuple(pair.old for pair in self.pairs), tuple(pair.new for pair in self.pairs)
        return (self.before, olds), (self.after, news)


def known(results: Results, names: Mapping[str, str]) -> list[Known]:
    """Return what is known on each of the targets, which are called by these names; KeyError for an unknown one."""
    variants = {(variant.case, variant.name): variant for case in results.cases for variant in case.variants}
    cells: dict[str, dict[Key, CellView]] = {target: {} for target in names}
    for cell in results.cells:
        if cell.target in cells:
            cells[cell.target][cell.case, cell.variant] = cell
    made = []
    for target, name in names.items():
        column = Column(results, target, name)
        sides = {key: side(cell, variants[key]) for key, cell in cells[target].items()}
        made.append(Known(column, column.view, variants, cells[target], sides))
    return made


def pairs(
    before: Known, after: Known, made: dict[tuple[int, int, int], Pair] | None = None
) -> tuple[Pair, ...]:
    """Return every variant with both its sides: in the order of `after`, then those that only `before` has.

    `made` keeps the pairs for other steps of the same report; its columns have to keep their sides.
    """
    if before.variants is after.variants:
        return _of_one_report(before, after, {} if made is None else made)
    found = []
    for key in dict.fromkeys((*after.variants, *before.variants)):
        old, new = before.variants.get(key), after.variants.get(key)
        variant = new or before.variants[key]
        altered = bool(old and new and _subject(old) != _subject(new))
        sides = before.side(key, variant), after.side(key, variant)
        found.append(_like_with_like(Pair(variant, *sides, altered)))
    return tuple(found)


def _of_one_report(before: Known, after: Known, made: dict[tuple[int, int, int], Pair]) -> tuple[Pair, ...]:
    """Pair what two columns of a report know, in which each variant is the same on both sides."""
    found = []
    every = enumerate(zip(after.variants.values(), before.ordered, after.ordered, strict=True))
    for at, (variant, old, new) in every:
        place = at, id(old), id(new)
        pair = made.get(place)
        if pair is None:
            pair = made[place] = _like_with_like(Pair(variant, old, new, altered=False))
        found.append(pair)
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


def _subject(variant: VariantView) -> tuple[str, str]:
    return variant.model_sha256, variant.recipe_sha256

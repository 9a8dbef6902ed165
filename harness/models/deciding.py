"""What decides whether a known failure is told of a graph: a failing variant beside all that works on that target.

A pattern is the graph of a variant that fails on a target. Where it also lies in the graph of one that works there, or
in a control of its own case that is not known to fail, it is narrowed by the first trait in which the two differ, until
no such graph holds it. Where nothing parts them, the pattern is too wide, and is told of no graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import onnx

from harness.case import Case, Expectation, Recipe, Variant
from harness.errors import HandledError
from harness.matrix import Target
from harness.models.matches import TRAITS, Conditions, Shape, places
from harness.plan import Cell, claims_about
from harness.words import GOOD, SHOWS_NO_FAILURE, WHEN_RUN, Basis, Class, Role, Typing

#: Parts of a recipe that may decide, by their names.
_OF_RECIPE: Mapping[str, Callable[[Recipe], object]] = {
    "flags": lambda recipe: frozenset(recipe.flags),
    "typing": lambda recipe: recipe.typing is Typing.STRONG,
    "calibrator": lambda recipe: recipe.calibrator is not None,
    "parser flags": lambda recipe: recipe.parser_flags,
    "outputs": lambda recipe: recipe.mark_outputs,
    "plugin": lambda recipe: recipe.plugin,
}
#: Failures to tell of a graph that was not run; a call that a version lacks is told of every graph.
_TOLD = frozenset(Class) - SHOWS_NO_FAILURE | {Class.API_REMOVED}
#: The traits that are tried before parts of the recipe.
_FIRST = 5


@dataclass(frozen=True)
class Deciding:
    """What a graph and its recipe must share with a pattern, beside operators and joints."""

    nodes: Conditions = frozenset()
    recipe: frozenset[str] = frozenset()


class TooWide(Exception):
    """A pattern lies in a graph that works, and nothing tells the two apart."""

    def __init__(self, pattern: str, works: str) -> None:
        super().__init__(f"{pattern} is like {works} in every trait")


@dataclass(frozen=True)
class VariantGraph:
    """A variant with its graph."""

    case: Case
    variant: Variant

    @property
    def id(self) -> str:
        """Return `case.variant`."""
        return f"{self.case.name}.{self.variant.name}"

    @cached_property
    def shape(self) -> Shape:
        """Return its graph; of a model that cannot be made, an empty one, which no model holds."""
        try:
            return Shape(onnx.load_model_from_string(self.variant.model_bytes()))
        except HandledError:
            return Shape(onnx.ModelProto())

    def claims(self, target: Target) -> list[Expectation]:
        """Return the claims about it on a target, measurements first."""
        claims = claims_about(Cell("", self.case, self.variant, target))
        return sorted(claims, key=lambda claim: claim.basis is not Basis.MEASURED)

    def failure(self, target: Target, *, built: bool = False) -> Expectation | None:
        """Return the claim of a failure to tell of, if any; of an engine that is built, of one that a run shows.

        A measured good ending speaks against a failure, reported or of another GPU, but does not speak of a run.
        """
        bad = WHEN_RUN if built else _TOLD
        claims = self.claims(target)
        refuted = any(each.outcome in GOOD and each.basis is Basis.MEASURED for each in claims)
        surest = claims if built else () if refuted else claims[:1]
        return next((each for each in surest if each.outcome in bad), None)

    def works(self, target: Target) -> bool:
        """Tell whether nothing but good is known of it."""
        claims = self.claims(target)
        return bool(claims) and all(each.outcome in GOOD for each in claims)

    def blamed(self, claim: Expectation) -> tuple[int, ...]:
        """Return the nodes to blame: those that a measurement names, else those with a wish, else the first."""
        wished = (node for node, _ in self.variant.precision or ())
        named = claim.nodes or (tuple(wished) if claim.outcome is Class.PRECISION_LOST else ())
        return tuple(
            dict.fromkeys(at for name in named if (at := self.shape.place_of.get(name)) is not None)
        ) or (0,)


@dataclass(frozen=True)
class Match:
    """A pattern that a model holds, the failure that is claimed of it, and the nodes to blame at all places."""

    pattern: VariantGraph
    claim: Expectation
    nodes: tuple[str, ...]


class Patterns:
    """The graphs of all cases; `matches` says which of those that fail on a target a model holds."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self.every = [VariantGraph(case, variant) for case in cases for variant in case]
        self._known: dict[tuple[str, str], Deciding | TooWide] = {}

    def without(self, pattern: VariantGraph) -> Patterns:
        """Return all patterns but one, which then is no control of another either."""
        found = Patterns(())
        found.every = [each for each in self.every if each is not pattern]
        return found

    def matches(self, held: Shape, recipe: Recipe, target: Target, *, built: bool = False) -> Iterator[Match]:
        """Yield the patterns that a model holds, in the cases' order, with all places that do not overlap."""
        lacking: set[str | None] = set()
        for pattern in self.every:
            claim, its = pattern.failure(target, built=built), pattern.variant.recipe
            if claim is None or not _asked(its, recipe):
                continue
            if claim.outcome is Class.API_REMOVED:
                if claim.signature not in lacking and _calls(its) & _calls(recipe):
                    lacking.add(claim.signature)
                    yield Match(pattern, claim, ("",))
                continue
            if next(places(pattern.shape, held), None) is None:
                continue
            deciding = self.deciding(pattern, target)
            if isinstance(deciding, TooWide) or _unlike(its, recipe) & deciding.recipe:
                continue
            blamed = pattern.blamed(claim)
            found = places(pattern.shape, held, deciding.nodes)
            nodes = tuple(held.nodes[place[at]].name for place in found for at in blamed)
            if nodes:
                yield Match(pattern, claim, nodes)

    def deciding(self, pattern: VariantGraph, target: Target) -> Deciding | TooWide:
        """Return what decides of a pattern on a target."""
        key = pattern.id, target.name
        if key not in self._known:
            try:
                self._known[key] = self._decide(pattern, target)
            except TooWide as error:
                self._known[key] = error
        return self._known[key]

    def _decide(self, pattern: VariantGraph, target: Target) -> Deciding:
        found = Deciding()
        others = sorted(self.every, key=lambda each: each.case is not pattern.case)
        for other in others:
            if other is not pattern and other.works(target):
                found = _parted(pattern, other, found)
        for other in others:
            control = other.case is pattern.case and other.variant.role is not Role.REPRODUCER
            # Of a control that nobody tried, the pattern is kept apart as far as it can be.
            if control and other is not pattern and not other.claims(target):
                with suppress(TooWide):
                    found = _parted(pattern, other, found)
        return found


def _parted(pattern: VariantGraph, other: VariantGraph, found: Deciding) -> Deciding:
    """Return what decides so that the other graph does not hold the pattern; raises TooWide."""
    while (narrower := _narrower(pattern, other, found)) is not found:
        found = narrower
    return found


def _narrower(pattern: VariantGraph, other: VariantGraph, found: Deciding) -> Deciding:
    """Return what decides, with one trait more if the other graph still holds the pattern; raises TooWide."""
    mine, its = pattern.variant.recipe, other.variant.recipe
    unlike = _unlike(mine, its)
    if not _asked(mine, its) or unlike & found.recipe:
        return found
    place = next(places(pattern.shape, other.shape, found.nodes), None)
    if place is None:
        return found
    for number, trait in enumerate(TRAITS):
        if number == _FIRST and unlike:
            break
        parts = frozenset(
            (at, trait, part)
            for at, met in enumerate(place)
            for part in pattern.shape.nodes[at].traits.unlike(other.shape.nodes[met].traits, trait)
        )
        if parts:
            return Deciding(found.nodes | parts, found.recipe)
    if unlike:
        return Deciding(found.nodes, found.recipe | {next(each for each in _OF_RECIPE if each in unlike)})
    raise TooWide(pattern.id, other.id)


def _asked(pattern: Recipe, recipe: Recipe) -> bool:
    """Tell whether a recipe asks at least for what a pattern's does."""
    alike = ("typing", "calibrator")
    return {*pattern.flags} <= {*recipe.flags} and not _unlike(pattern, recipe).intersection(alike)


def _calls(recipe: Recipe) -> frozenset[str]:
    """Return the calls of a recipe that a version may lack: a strongly typed network, flags of a weakly typed one."""
    flags = recipe.flags if recipe.typing is Typing.WEAK else ()
    more = {"strong": recipe.typing is Typing.STRONG, "calibrator": recipe.calibrator is not None}
    return frozenset((*flags, *(name for name, asked in more.items() if asked)))


def _unlike(one: Recipe, other: Recipe) -> frozenset[str]:
    return frozenset(name for name, of in _OF_RECIPE.items() if of(one) != of(other))

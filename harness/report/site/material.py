"""What every page of the site is made from: the results, known with and without guesses, by row and by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from harness.report.compare.steps import Steps
from harness.report.site.facts import Fact, fact
from harness.report.site.routes import Route, routes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.report.compare.upgrade import Upgrade
    from harness.report.model import Results, TargetView, VariantView

    Key = tuple[str, str]


@dataclass(frozen=True)
class Page:
    """One page: its place, title and description, the template and what that is filled with.

    `heading` is its first line; `trail` are name and place of the pages above it.
    """

    path: str
    title: str
    description: str
    heading: str
    template: str
    data: Mapping[str, object] = field(default_factory=dict)
    trail: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Beside:
    """What a site has beside the results: titles of suites' pages by their place beside the report."""

    suites: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Material:
    """The results, and by what the pages look things up.

    `suites` are titles of their pages by place; `base` is the site's address, which ends in "/", or "" where it is
    not known; `models` are the places of models that lie beside the pages.
    """

    results: Results
    base: str = ""
    models: frozenset[str] = frozenset()
    suites: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def targets(self) -> dict[str, TargetView]:
        """Return the targets by id."""
        return {target.id: target for target in self.results.targets}

    @cached_property
    def variants(self) -> dict[Key, VariantView]:
        """Return the variants by case and name."""
        return {(each.case, each.name): each for case in self.results.cases for each in case.variants}

    @cached_property
    def facts(self) -> dict[Key, list[Fact]]:
        """Return what is known of each variant on all targets, guesses too."""
        found: dict[Key, list[Fact]] = {key: [] for key in self.variants}
        for cell in self.results.cells:
            key = (cell.case, cell.variant)
            found[key].append(fact(self.targets[cell.target], cell, self.variants[key]))
        return found

    @cached_property
    def by_target(self) -> dict[str, list[Fact]]:
        """Return what is known on each target of all variants, guesses too."""
        found: dict[str, list[Fact]] = {name: [] for name in self.targets}
        for every in self.facts.values():
            for each in every:
                found[each.target.id].append(each)
        return found

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """Return the steps that have a page."""
        return routes(self.results.targets)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {target.id: at for at, target in enumerate(self.results.targets)}

    @cached_property
    def _rows(self) -> dict[Key, int]:
        return {key: at for at, key in enumerate(self.variants)}

    @cached_property
    def _names(self) -> dict[str, str]:
        return {target.id: target.label for target in self.results.targets}

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self.results, self._names)

    @cached_property
    def _judged(self) -> dict[tuple[int, int], tuple[Upgrade, Upgrade]]:
        return {}

    def step(self, route: Route) -> tuple[Upgrade, Upgrade]:
        """Return what a step does, as far as it is measured or reported, and what with guesses."""
        at = self._columns[route.before], self._columns[route.after]
        if at not in self._judged:
            self._judged[at] = self._steps.step(*at)[1:]
        return self._judged[at]

    def instead(self, each: Fact) -> str:
        """Return what to use in place of a variant that does not work on a target; "" where it does."""
        row, column = self._rows[each.cell.case, each.cell.variant], self._columns[each.target.id]
        return self._steps.instead(row, column)


def newest(results: Results) -> str:
    """Return the UTC time of the latest run shown, "" where nothing was run."""
    return max((target.stamps.when for target in results.targets if target.stamps), default="")


def told(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are measured or reported."""
    return [each for each in facts if each.cls is not None and not each.guessed]


def guesses(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are guessed."""
    return [each for each in facts if each.guessed]

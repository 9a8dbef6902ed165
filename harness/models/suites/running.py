"""Runs the models of a suite as cells: one forked job each in the warm agent of each target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import onnx
from packaging.version import Version

from harness.case import Case, Recipe, Typing, Variant, model_sha256
from harness.case.model import Built
from harness.judge.classify import classify
from harness.layers import asked
from harness.plan import Cell
from harness.record.suites import About
from harness.run.numbers import Reference
from harness.run.prepare_in_child import PreparedVariants
from harness.run.prepared import Prepared
from harness.words import GOOD

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.models.suites.suite import Item, Suite
    from harness.record.outcome import Outcome
    from harness.record.suites import SuiteStore

#: How models are built, in words; other choices would fail other models.
RECIPE = "strongly typed networks (FP16 permitted where there are none), no optimisation profile, no other builder flag"


def about(suite: Suite, items: Iterable[Item]) -> About:
    """Return what records say of a suite."""
    return About(
        name=suite.name,
        title=suite.title,
        source=suite.source,
        recipe=RECIPE,
        link=suite.link,
        items={item.id: (item.operator, item.opset) for item in items},
    )


def recipe(target: Target) -> Recipe:
    """Return how models of a suite are built: strongly typed, with no profiles and no flags.

    A TensorRT that knows no strongly typed network may use FP16 besides; ONNX Runtime has nothing but the graph.
    """
    if target.traits.graph_alone:
        return Recipe()
    if Version(target.version) < Version(target.traits.strong_from):
        return Recipe(flags=("FP16",))
    return Recipe(typing=Typing.STRONG)


def suite_cells(suite: Suite, items: Sequence[Item], targets: Iterable[Target]) -> tuple[Cell, ...]:
    """Return a cell for each item on each target, called `suite.item-target`."""
    cases: dict[Recipe, Case] = {}
    found = []
    for target in targets:
        wanted = recipe(target)
        case = cases.setdefault(wanted, cases.get(wanted) or _case(suite, items, wanted))
        found += [Cell(f"{suite.name}.{each.name}-{target.name}", case, each, target) for each in case]
    return tuple(found)


def _case(suite: Suite, items: Sequence[Item], wanted: Recipe) -> Case:
    variants = tuple(
        Variant(name=item.id, title=item.id, build=Built(item.model), recipe=wanted, precision=())
        for item in items
    )
    word = "".join(letter if letter.isalnum() else "_" for letter in suite.name)
    return Case(f"suite_{word}", suite.title, suite.source, links=(), variants=variants)


class SuitePrepared(PreparedVariants):
    """PreparedVariants for a suite: the data came with the models, so that nothing is evaluated."""

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__()
        self._items = {item.id: item for item in items}

    def of(self, variant: Variant, needed: Callable[[], bool] = lambda: True) -> Prepared:  # noqa: ARG002
        """Return what an item is made of."""
        item = self._items[variant.name]
        return Prepared(
            model=item.model,
            sha256=model_sha256(item.model),
            nodes=asked(onnx.load_model_from_string(item.model)),
            inputs=dict(item.inputs),
            reference=Reference(item.expected or None, item.uncompared),
            unfed=item.unfed,
            timed=False,
        )


class Sink:
    """Takes the records of a run: only of a model that failed is the log kept.

    A target whose engine never came up says the same of every model: it is not recorded, and `refused` says why.
    """

    def __init__(self, store: SuiteStore) -> None:
        self._store = store
        self.refused: dict[str, Outcome] = {}

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:
        """Record an outcome, unless its target cannot run here."""
        if outcome.state != "done" and not outcome.stamps.engine_version:
            self.refused.setdefault(outcome.target, outcome)
            return outcome
        failed = classify(outcome, got={}).cls not in GOOD
        return self._store.append(outcome, log_text if failed else None)

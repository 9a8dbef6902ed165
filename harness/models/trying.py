"""Runs models that are no cases on targets: whole ones as cells, and ever new ones, each tried as the first was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

import onnx

from harness.case import Case, Data, Profile, Recipe, Variant, model_sha256
from harness.case.model import Built, serialise
from harness.judge.cell import Judged, is_news, judge_cell
from harness.layers.asked import asked
from harness.matrix import Target
from harness.models.own.data import Given, OwnPrepared
from harness.models.own.model import Wanted, flags_for, own_model
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.run.local import How, Runners, Sink, run_cells
from harness.run.numbers.reference import Reference
from harness.run.prepared import Prepared, PreparedVariants, Refused
from harness.run.provision.model import Via
from harness.run.provision.requirements import refuse_unconfined
from harness.run.target import TargetRunner
from harness.words import Precision, Typing


class Nowhere:
    """A sink that keeps no record."""

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:  # noqa: ARG002
        """Return the outcome as it is."""
        return outcome


def run_models(
    cells: Sequence[Cell],
    prepared: PreparedVariants,
    how: How,
    *,
    sink: Sink | None = None,
    tell: Callable[[Judged], None] = lambda _: None,
) -> list[Judged]:
    """Return the cells judged, in their order; `tell` is called with each as it comes.

    Raises HandledError if an untrusted one could not be confined.
    """
    refuse_unconfined([cell.target for cell in cells], how.via)
    done: dict[str, Judged] = {}

    def report(cell: Cell, outcome: Outcome, _: str) -> None:
        done[cell.id] = judge_cell(cell, outcome)
        tell(done[cell.id])

    runners = Runners(how, is_news, prepared=prepared)
    run_cells(cells, runners, store=sink or Nowhere(), report=report)
    return [done[cell.id] for cell in cells]


class BuiltOrRun(OwnPrepared):
    """PreparedVariants of models tried once, not kept: only built, or, with `runs`, fed and run.

    `given` is for all of them.
    """

    def __init__(self, given: Given | None = None, *, runs: bool = False, timed: bool = False) -> None:
        super().__init__()
        self.given = given or Given()
        self.runs = runs
        self._timed = timed

    def given_to(self, _: Variant) -> Given:
        """Return the data for all of them."""
        return self.given

    def of(self, variant: Variant, needed: Callable[[], bool] = lambda: True) -> Prepared:
        """Return a variant made ready; raises Refused as every other one does."""
        if self.runs:
            found = self.make(variant, needed)
            if isinstance(found, Refused):
                raise found
            return replace(found, timed=self._timed)
        model, why = variant.model_bytes(), "it was only built"
        nodes = asked(onnx.load_model_from_string(model))
        ready = Prepared(model, model_sha256(model), nodes, {}, Reference(None, why), unfed=why, timed=False)
        return self.given.put_into(ready)


class Tries(ExitStack):
    """A row of tries of models on targets; as a context it ends the environments that it started.

    `prepared` makes models ready, by default with inputs and a reference.
    `told` hears of each try its target's name and number.
    """

    def __init__(
        self,
        *,
        via: Via = "auto",
        prepared: PreparedVariants | None = None,
        told: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        super().__init__()
        self._told = told
        self._make = Runners(How(via), is_news, prepared=prepared or PreparedVariants())
        self._runners: dict[str, TargetRunner] = {}
        self.count = 0

    def judged(
        self,
        model: onnx.ModelProto | bytes,
        target: Target,
        recipe: Recipe,
        precision: tuple[tuple[str, Precision], ...] | None = None,
        *,
        allowed: Data | None = None,
    ) -> Judged:
        """Return the outcome of a model; whatever goes wrong is in the record, as for a cell of the matrix.

        `precision` are the types of nodes, as a variant has them, None for those that the graph asks. `allowed` is how
        far an output may be off, None for as far as its precision allows.
        """
        data = model if isinstance(model, bytes) else serialise(model)
        name = f"try-{self.count}"
        variant = Variant(name, "a try", Built(data), recipe, precision=precision, data=allowed)
        case = Case("tries", "Tries", "Models that are tried.", (), (variant,))
        cell = Cell(f"tries.{variant.name}-{target.name}", case, variant, target)
        self.count += 1
        self._told(target.name, self.count)
        if target.name not in self._runners:
            self._runners[target.name] = self.enter_context(closing(self._make.of(target)))
        outcome, _ = self._runners[target.name].run(cell)
        return judge_cell(cell, outcome)

    def own(self, model: onnx.ModelProto, target: Target, wanted: Wanted) -> Judged:
        """Return the outcome of a user's model, or of a part of it, with the shapes that it can have."""
        made = own_model(model, "the model", replace(wanted, shapes=wanted.shapes.fitted(model)), name="own")
        return self.judged(made.variant.model_bytes(), target, made.variant.recipe, allowed=wanted.data)


@dataclass(frozen=True)
class Bench:
    """Tries models on one target as the first was; `flags` are the builder flags that the user gave.

    `wishes` are nodes that are to keep a precision; those count of which a model still asks it, by default all.
    `calibrated` are the network inputs that there are batches of.
    """

    tries: Tries
    target: Target
    recipe: Recipe
    flags: tuple[str, ...] = ()
    wishes: tuple[tuple[str, Precision], ...] | None = None
    calibrated: tuple[str, ...] = ()

    def __call__(self, model: onnx.ModelProto, profiles: tuple[Profile, ...] | None = None) -> Judged:
        """Return the outcome of a model; its flags are those that its own types need."""
        nodes, wishes = asked(model), self.wishes
        asks = {node.name: node.precision for node in nodes}
        still = None if wishes is None else tuple(each for each in wishes if asks.get(each[0]) == each[1])
        flags: tuple[str, ...] = ()
        if self.recipe.typing is not Typing.STRONG:
            flags = tuple(dict.fromkeys((*flags_for(nodes), *self.flags)))
        shapes = self.recipe.profiles if profiles is None else profiles
        calibrator = self.recipe.calibrator
        if calibrator and not {each.name for each in model.graph.input} <= set(self.calibrated):
            # There are no batches for the inputs of a part.
            calibrator = None
        recipe = replace(self.recipe, flags=flags, profiles=shapes, calibrator=calibrator)
        return self.tries.judged(model, self.target, recipe, still)

"""Run the models of a suite as cells, `operator.model-target`, and keep their records in a folder of its own.

`reports/suites/NAME` is a reports folder like any other, with `suite.json` beside its records: operator and opset of
each model, which no record holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import onnx
from packaging.version import Version

from harness.bounded import parse_json, read_bytes
from harness.case import Case, Recipe, Typing, Variant, model_sha256
from harness.case.model import Built, Unbuildable
from harness.errors import HandledError
from harness.judge.classify import classify
from harness.layers.asked import asked
from harness.matrix import Target
from harness.plan import Cell
from harness.record.from_json import decode
from harness.record.outcome import Outcome
from harness.record.store import SUITES, Store, write_files
from harness.run.numbers.reference import Reference
from harness.run.prepared import Prepared, PreparedVariants
from harness.suites.items import Item, Suite
from harness.words import GOOD, Class

#: The file that describes a suite, in its folder.
FILE = "suite.json"
#: Characters kept of a log, its end: a builder that fails names every tactic that it tried before.
LONGEST_LOG = 16_000


@dataclass(frozen=True)
class About:
    """A suite without its models: the operator and opset of each by its name."""

    name: str
    title: str
    models: dict[str, tuple[str, str]]

    @staticmethod
    def of(suite: Suite, items: Iterable[Item]) -> About:
        """Return the description of a suite and its items."""
        return About(suite.name, suite.title, {item.id: (item.operator, item.opset) for item in items})

    @staticmethod
    def read(folder: Path) -> About:
        """Return the description that a folder holds; raises HandledError if it cannot be read."""
        path = folder / FILE
        try:
            return decode(About, parse_json(read_bytes(path)))
        except (OSError, ValueError, TypeError) as error:
            raise HandledError(f"{path}: cannot be read ({error}); run the suite again") from error

    def keep(self, folder: Path) -> None:
        """Write it into a folder; models that only an earlier run had stay."""
        there = About.read(folder).models if (folder / FILE).exists() else {}
        whole = replace(self, models=dict(sorted({**there, **self.models}.items())))
        write_files(folder, {FILE: (json.dumps(asdict(whole), indent=0) + "\n").encode()})

    def cells(self, targets: Iterable[Target], models: Mapping[str, bytes] | None = None) -> tuple[Cell, ...]:
        """Return a cell for each model on each target, in the order of a report; `models` by name, to be run."""
        columns = [(target, self._cases(recipe(target), models or {})) for target in targets]
        rows = zip(*([(case, one) for case in cases for one in case] for _, cases in columns), strict=True)
        return tuple(
            Cell(f"{case.name}.{variant.name}-{target.name}", case, variant, target)
            for row in rows
            for (target, _), (case, variant) in zip(columns, row, strict=True)
        )

    def _cases(self, wanted: Recipe, models: Mapping[str, bytes]) -> tuple[Case, ...]:
        """Return a case for each operator, whose variants are its models."""
        operators: dict[str, list[str]] = {}
        for model, (operator, _) in sorted(self.models.items(), key=_order):
            operators.setdefault(_word(operator), []).append(model)
        return tuple(
            Case(
                name=word,
                title=self.models[names[0]][0],
                summary=self.title,
                links=(),
                variants=tuple(self._variant(name, wanted, models.get(name)) for name in names),
            )
            for word, names in operators.items()
        )

    def _variant(self, name: str, wanted: Recipe, model: bytes | None) -> Variant:
        build = Built(model) if model is not None else Unbuildable("a report keeps no models of a suite")
        tag = f"opset {self.models[name][1]}"
        return Variant(name=name, title=name, build=build, recipe=wanted, precision=(), tags=(tag,))


def recipe(target: Target) -> Recipe:
    """Return how models of a suite are built: strongly typed, with no profiles and no flags.

    A TensorRT that knows no strongly typed network may use FP16 besides; ONNX Runtime has the graph alone.
    """
    if target.traits.graph_alone:
        return Recipe()
    if Version(target.version) < Version(target.traits.strong_from):
        return Recipe(flags=("FP16",))
    return Recipe(typing=Typing.STRONG)


class SuitePrepared(PreparedVariants):
    """PreparedVariants for a suite: the data came with the models, so that no model is evaluated."""

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__()
        self._items = {item.id: item for item in items}

    def of(self, variant: Variant, needed: Callable[[], bool] = lambda: True) -> Prepared:  # noqa: ARG002
        """Return an item ready to run: built alone if it has no inputs, and never timed."""
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


class SuiteStore(Store):
    """The store of a suite: of a model that works it keeps little, of one that fails the end of its log.

    A target whose engine never came up says the same of every model: it is not recorded, and `refused` says why.
    `unjudged` counts the models that the machinery failed.
    """

    def __init__(self, reports: Path, about: About, *, run: str) -> None:
        super().__init__(reports / SUITES / about.name, run=run)
        self._about: About | None = about
        self.refused: dict[str, Outcome] = {}
        self.unjudged = 0

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:
        """Record an outcome, unless its target cannot run here; with the first the suite is described."""
        if outcome.state != "done" and not outcome.stamps.engine_version:
            self.refused.setdefault(outcome.target, outcome)
            return outcome
        if self._about is not None:
            self._about.keep(self.path)
            self._about = None
        cls = classify(outcome).cls
        self.unjudged += cls is Class.INFRA_ERROR
        if cls not in GOOD:
            return super().append(outcome, (log_text or "")[-LONGEST_LOG:])
        # The numbers of a model that ran are judged by the types that its layers ran in.
        nodes, layers = (outcome.nodes, outcome.layers) if outcome.accuracy else ((), ())
        return super().append(replace(outcome, messages=(), native_output="", nodes=nodes, layers=layers))


def _order(entry: tuple[str, tuple[str, str]]) -> tuple[bool, str, str]:
    """Return the place of a model: ONNX's own domain first, then by operator and name."""
    name, (operator, opset) = entry
    return " " in opset, operator.lower(), name


def _word(operator: str) -> str:
    """Return an operator as the name of a case: a small letter, then small letters, digits and "_"."""
    word = re.sub(r"[^a-z0-9_]+", "_", operator.lower())
    return word if word[:1].isalpha() and word.isascii() else f"op_{word}"

"""What the page of a suite and its JSON are made from: how each model ended on each target; plain, frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.known.model import Advice
from harness.record.from_json import fields_of
from harness.report.suites.compare import Step, how
from harness.words import GOOD, Class

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Raised when the meaning of a field of the JSON changes.
SUITE_SCHEMA = 1


@dataclass(frozen=True)
class Ending:
    """A way to end: class, signature where a cause is known, and why in a sentence."""

    cls: Class
    reason: str
    signature: str | None = None

    @property
    def how(self) -> str:
        """Return it as comparisons have it."""
        return how(self.cls, self.signature)

    @property
    def good(self) -> bool:
        """Tell whether the engine did all that was asked of it here."""
        return self.cls in GOOD


@dataclass(frozen=True)
class SuiteTarget:
    """A column: `seconds` are from the first record of the latest run to its last, `peak_mib` is the most of a model.

    `counts` are models by class, `unparsed` layers that the harness could not read; `device` is the GPU, "" without.
    """

    id: str
    label: str
    short: str
    version: str
    via: str
    device: str
    run: str
    when: str
    seconds: float
    peak_mib: int
    unparsed: int
    counts: dict[str, int]


@dataclass(frozen=True)
class SuiteModel:
    """A model: `ended` are indices into the endings by target."""

    id: str
    operator: str
    opset: str
    ended: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """A step between two sides: two targets, or of one `target` the run before and the latest."""

    before: str
    after: str
    step: Step
    target: str = ""


@dataclass(frozen=True)
class SuiteResults:
    """A suite on all targets that ran it; `versions` are steps between targets, `runs` those since a run before."""

    name: str
    title: str
    source: str
    recipe: str
    link: str
    targets: tuple[SuiteTarget, ...]
    models: tuple[SuiteModel, ...]
    endings: tuple[Ending, ...]
    advice: dict[str, Advice]
    versions: tuple[Pair, ...] = ()
    runs: tuple[Pair, ...] = ()

    def ended_on(self, target: str) -> dict[str, str]:
        """Return how each model ended on a target, as comparisons have it."""
        return {
            model.id: self.endings[model.ended[target]].how for model in self.models if target in model.ended
        }

    def rows(self) -> Iterator[tuple[str, str, tuple[SuiteModel, ...]]]:
        """Yield operator, opset and models of each row of the table."""
        found: dict[tuple[str, str], list[SuiteModel]] = {}
        for model in self.models:
            found.setdefault((model.operator, model.opset), []).append(model)
        for (operator, opset), models in sorted(found.items(), key=lambda row: _order(*row[0])):
            yield operator, opset, tuple(models)

    def regressed(self) -> Iterator[tuple[str, str]]:
        """Yield target and model of each that worked in the run before and fails now."""
        for pair in self.runs:
            for turned in pair.step.broken:
                yield pair.target, turned.model

    def to_json(self) -> dict[str, Any]:
        """Return the contract of suites/<name>.json by key."""
        endings = tuple(
            {"class": each.cls, "reason": each.reason, "signature": each.signature} for each in self.endings
        )
        return {"schema": SUITE_SCHEMA, **fields_of(self), "endings": endings}


def _order(operator: str, opset: str) -> tuple[bool, str, str, int]:
    """Return the place of a row: ONNX's own domain first, then by name, then by opset."""
    domain, _, version = opset.rpartition(" ")
    return bool(domain), operator.lower(), domain, int(version) if version.isdecimal() else 0

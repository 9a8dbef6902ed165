"""What a cell is today, and whether a record is of that; pure.

A record of another model, recipe or engine version than today's is stale: it is kept and shown as such, and speaks for
nothing. The engine version counts because matrix.yaml moves: a target that goes from one patch to the next keeps its
name, and its cells keep their ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.case import model_sha256
from harness.errors import HandledError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.case import Variant
    from harness.matrix import Target
    from harness.plan import Cell
    from harness.record.outcome import Outcome


@dataclass(frozen=True)
class Today:
    """The hashes of a cell's model and recipe, and its target as matrix.yaml declares it.

    `unbuildable` says why there is no model today; its hash is then "".
    """

    model_sha256: str
    recipe_sha256: str
    target: Target
    unbuildable: str

    def of_another_subject(self, outcome: Outcome) -> bool:
        """Tell whether an outcome is of another model or recipe; one without these stamps is not."""
        stamps = outcome.stamps
        pairs = ((stamps.model_sha256, self.model_sha256), (stamps.recipe_sha256, self.recipe_sha256))
        return any(was and now and was != now for was, now in pairs)

    def stale_because(self, outcome: Outcome) -> str:
        """Return why an outcome is stale, or "" for one that is current.

        An outcome without an engine version is held against model and recipe alone: the version is stamped when the
        agent has imported the engine, so what ended before, whatever matrix.yaml declared then, is about the machine
        or the environment and about no version. It never displaces a current result that was run.
        """
        if self.unbuildable and outcome.state == "done":
            return f"its model cannot be made any more: {self.unbuildable}"
        if self.of_another_subject(outcome):
            return "the model or the recipe has changed since it ran"
        ran_on = outcome.stamps.engine_version
        if ran_on and not self.target.runs_version(ran_on):
            return f"it ran on version {ran_on}, and matrix.yaml declares {self.target.version} today"
        return ""


def todays(cells: Iterable[Cell], models: Mapping[tuple[str, str], bytes] | None = None) -> dict[str, Today]:
    """Return what each cell is today, by cell id.

    `models` are serialised, by case and variant; what is not given is built, once for all targets.
    """
    subjects: dict[tuple[str, str], tuple[str, str, str]] = {}
    found: dict[str, Today] = {}
    for cell in cells:
        key = (cell.case.name, cell.variant.name)
        if key not in subjects:
            subjects[key] = _subject(cell.variant, (models or {}).get(key))
        model, recipe, unbuildable = subjects[key]
        found[cell.id] = Today(model, recipe, cell.target, unbuildable)
    return found


def _subject(variant: Variant, model: bytes | None) -> tuple[str, str, str]:
    """Return the hashes of model and recipe, and why there is no model."""
    try:
        data = variant.model_bytes() if model is None else model
    except HandledError as error:
        return "", variant.recipe_sha256, str(error)
    return model_sha256(data), variant.recipe_sha256, ""


def is_stale(outcome: Outcome, today: Mapping[str, Today]) -> bool:
    """Tell whether an outcome is of something else than its cell is today; one of no cell of today is not."""
    now = today.get(outcome.cell)
    return now is not None and bool(now.stale_because(outcome))

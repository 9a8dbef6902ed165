"""Pick the outcomes that speak for a cell: current ones, one for each GPU, and one without if it adds a failure.

A record of another model, recipe or engine version than today's is stale: it is kept and shown as such, but does not
speak. The engine version counts because matrix.yaml moves: a target that goes from one patch to the next keeps its
name, and its cells keep their ids. GPUs are distinct by compute capability, product and driver branch: the same product
under two branches is two, as long as both are current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.case import Variant, model_sha256
from harness.errors import HandledError
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import ON_AN_ENGINE, UNFED, Outcome, Stamps


@dataclass(frozen=True, order=True)
class Gpu:
    """A GPU: compute capability ("8.9"), product ("NVIDIA L4"), driver branch ("580").

    An engine's choices go by the compute capability, its architecture; product and driver branch say how alike two
    machines of one architecture are.
    """

    compute_capability: str
    product: str
    driver: str = ""

    def __str__(self) -> str:
        driver = f", driver {self.driver}" if self.driver else ""
        return f"{self.product} (compute capability {self.compute_capability}{driver})"


def gpu_of(stamps: Stamps) -> Gpu | None:
    """Return the GPU that an agent saw, or None without one, as for a build on a CPU."""
    seen = stamps.environment
    capability, product = seen.get("compute_capability", ""), seen.get("gpu", "")
    if not capability or not product:
        return None
    return Gpu(capability, product, seen.get("driver", "").partition(".")[0])


@dataclass(frozen=True)
class Today:
    """The hashes of a cell's model and recipe, and its target as matrix.yaml declares it.

    `unbuildable` says why there is no model today; its hash is then "". Of one that `applies`, a record of a rule that
    said otherwise is stale.
    """

    model_sha256: str
    recipe_sha256: str
    target: Target
    unbuildable: str
    applies: bool = False

    def of_another_subject(self, outcome: Outcome) -> bool:
        """Tell whether an outcome is of another model or recipe; one without these stamps is not."""
        stamps = outcome.stamps
        pairs = ((stamps.model_sha256, self.model_sha256), (stamps.recipe_sha256, self.recipe_sha256))
        return any(was and now and was != now for was, now in pairs)

    def stale_because(self, outcome: Outcome) -> str:
        """Return why an outcome is stale, or "" for one that is current.

        An outcome without an engine version is held against model and recipe alone: the version is stamped when the
        agent has imported the engine, so an outcome that ended before, whatever matrix.yaml declared then, is about
        the machine or the environment and about no version. It never displaces a current result that was run.
        """
        if self.unbuildable and outcome.state == "done":
            return f"its model cannot be made any more: {self.unbuildable}"
        if self.of_another_subject(outcome):
            return "the model or the recipe has changed since it ran"
        if self.applies and outcome.state == "not_applicable" and not outcome.reason.startswith(UNFED):
            return "no rule says any more that it does not apply"
        ran_on = outcome.stamps.engine_version
        if ran_on and not self.target.runs_version(ran_on):
            return f"it ran on version {ran_on}, and matrix.yaml declares {self.target.version} today"
        return ""


def todays(cells: Iterable[Cell], models: Mapping[tuple[str, str], bytes] | None = None) -> dict[str, Today]:
    """Return each cell as it is today, by cell id.

    `models` are serialised, by case and variant; others are built, once for all targets.
    """
    subjects: dict[tuple[str, str], tuple[str, str, str]] = {}
    found: dict[str, Today] = {}
    for cell in cells:
        key = (cell.case.name, cell.variant.name)
        if key not in subjects:
            subjects[key] = _subject(cell.variant, (models or {}).get(key))
        model, recipe, unbuildable = subjects[key]
        found[cell.id] = Today(model, recipe, cell.target, unbuildable, cell.inapplicable is None)
    return found


def _subject(variant: Variant, model: bytes | None) -> tuple[str, str, str]:
    """Return the hashes of model and recipe, and why there is no model."""
    try:
        data = variant.model_bytes() if model is None else model
    except HandledError as error:
        return "", variant.recipe_sha256, str(error)
    return model_sha256(data), variant.recipe_sha256, ""


def is_stale(outcome: Outcome, today: Mapping[str, Today]) -> bool:
    """Tell whether an outcome is stale; one of no cell of today is not."""
    now = today.get(outcome.cell)
    return now is not None and bool(now.stale_because(outcome))


@dataclass(frozen=True)
class _Candidate:
    """An outcome that may speak for its cell on its GPU."""

    outcome: Outcome
    stale: bool

    @property
    def ran(self) -> bool:
        return self.outcome.state == "done"

    @property
    def only_built(self) -> bool:
        return self.outcome.failed_phase is None and not self.reached_gpu

    @property
    def reached_gpu(self) -> bool:
        phases = {*self.outcome.phases, self.outcome.failed_phase}
        return self.outcome.ran or not ON_AN_ENGINE.isdisjoint(phases)

    @property
    def engine(self) -> tuple[str, str]:
        return self.outcome.stamps.engine_version, self.outcome.stamps.image_digest


#: Which of two outcomes of a cell on one GPU, or without one, speaks: each rule says whether it prefers the one to the
#: other, and the first that prefers either decides. Otherwise the later speaks, by `stamps.when`, then by its place.
RULES: Mapping[str, Callable[[_Candidate, _Candidate], bool]] = {
    "a current outcome to a stale one": lambda one, _: not one.stale,
    "one that was run to one that was not": lambda one, _: one.ran,
    "the project's own to one that was sent in": lambda one, _: one.ran and not one.outcome.stamps.account,
    "one that reached a GPU to one that only built the same engine in the same image": lambda one, other: (
        one.ran and one.engine == other.engine and one.reached_gpu and other.only_built
    ),
}


def speaking(
    outcomes: Iterable[Outcome], stale: Callable[[Outcome], bool] = lambda _: False
) -> dict[str, tuple[Outcome, ...]]:
    """Return the outcomes that speak for each cell, by cell id, both sorted: the one without a GPU before the others.

    One speaks for each GPU, and one for no GPU, by `RULES`. Only current ones do; if there is none, one stale outcome.
    The one without a GPU stays silent beside others if it was not run, or only built and another got further.
    """
    chosen: dict[str, dict[Gpu | None, _Candidate]] = {}
    for outcome in sorted(outcomes, key=_age):
        of_cell, gpu = chosen.setdefault(outcome.cell, {}), took_part(outcome)
        later, before = _Candidate(outcome, stale(outcome)), of_cell.get(gpu)
        if before is None or _displaces(later, before):
            of_cell[gpu] = later
    return {cell: _side_by_side(of_cell) for cell, of_cell in sorted(chosen.items())}


def _displaces(later: _Candidate, before: _Candidate) -> bool:
    for prefers in RULES.values():
        if prefers(later, before) != prefers(before, later):
            return prefers(later, before)
    return True


def _side_by_side(of_cell: dict[Gpu | None, _Candidate]) -> tuple[Outcome, ...]:
    current = {gpu: each for gpu, each in of_cell.items() if not each.stale}
    if not current:
        return (max(of_cell.values(), key=lambda each: (each.ran, _age(each.outcome))).outcome,)
    others = [current[gpu] for gpu in sorted(filter(None, current))]
    bare = current.get(None)
    speaking = [bare, *others] if bare and _adds(bare, others) else others
    return tuple(each.outcome for each in speaking)


def _adds(bare: _Candidate, others: Sequence[_Candidate]) -> bool:
    """Tell whether an outcome without a GPU says more than those on GPUs."""
    further = any(each.ran and each.reached_gpu for each in others)
    return not others or (bare.ran and not (bare.only_built and further))


def took_part(outcome: Outcome) -> Gpu | None:
    """Return the GPU of an outcome; None if the cell was not tried on it, though the machine may have one."""
    return gpu_of(outcome.stamps) if outcome.state in ("done", "infra_error") else None


def _age(outcome: Outcome) -> str:
    return outcome.stamps.when

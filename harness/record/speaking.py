"""Pick the outcomes that speak for a cell: current ones, one for each GPU, and one without where it adds something.

A record of another model, recipe or engine version than today's is stale: it is kept and shown as such, and speaks for
nothing. The engine version counts because matrix.yaml moves: a target that goes from one patch to the next keeps its
name, and its cells keep their ids. GPUs are distinct by compute capability, product and driver branch: the same product
under two branches is two, as long as both are current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from harness.case import Variant, model_sha256
from harness.errors import HandledError
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import ON_AN_ENGINE, Outcome, Stamps


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
    """Return the GPU that an agent saw, or None where it saw none, as where an engine only built on a CPU."""
    seen = stamps.environment
    capability, product = seen.get("compute_capability", ""), seen.get("gpu", "")
    if not capability or not product:
        return None
    return Gpu(capability, product, seen.get("driver", "").partition(".")[0])


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
        agent has imported the engine, so an outcome that ended before, whatever matrix.yaml declared then, is about
        the machine or the environment and about no version. It never displaces a current result that was run.
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
    """Tell whether an outcome is stale; one of no cell of today is not."""
    now = today.get(outcome.cell)
    return now is not None and bool(now.stale_because(outcome))


def speaking(
    outcomes: Iterable[Outcome], stale: Callable[[Outcome], bool] = lambda _: False
) -> dict[str, tuple[Outcome, ...]]:
    """Return the outcomes that speak for each cell, by cell id, both sorted: the one without a GPU before the others.

    Of one GPU, and of none, that is the latest by `stamps.when` (ties: the later of them as given, for a store the
    later file name, then the later line), but a machine that can do less does not hide the finding of one that can
    do more: an outcome that was not run never displaces one that was; one that only built never displaces one of the
    same engine and image that got as far as a GPU. A record that somebody sent in never displaces one of the
    project's own, and gives way to it. Any outcome that is not `stale` displaces one that is, and none that is stale
    displaces one that is not.

    Among GPUs only current outcomes speak, and one stale outcome where none is current. Beside outcomes of GPUs the
    one without speaks where it was done and adds to theirs: not where it only built and one of them got further.
    """
    chosen: dict[str, dict[Gpu | None, Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda each: each.stamps.when):
        of_cell, gpu = chosen.setdefault(outcome.cell, {}), took_part(outcome)
        before = of_cell.get(gpu)
        if before is None or _displaces(outcome, before, stale):
            of_cell[gpu] = outcome
    return {cell: _side_by_side(of_cell, stale) for cell, of_cell in sorted(chosen.items())}


def took_part(outcome: Outcome) -> Gpu | None:
    """Return the GPU of an outcome; None where the cell was not tried on it, though the machine may have one."""
    return gpu_of(outcome.stamps) if outcome.state in ("done", "infra_error") else None


def _side_by_side(
    of_cell: dict[Gpu | None, Outcome], stale: Callable[[Outcome], bool]
) -> tuple[Outcome, ...]:
    current = {gpu: outcome for gpu, outcome in of_cell.items() if not stale(outcome)}
    if not current:
        return (max(of_cell.values(), key=lambda each: (each.state == "done", _age(each))),)
    bare = current.pop(None, None)
    on_gpus = tuple(current[gpu] for gpu in sorted(filter(None, current)))
    if bare is None or (on_gpus and not _adds(bare, on_gpus)):
        return on_gpus
    return (bare, *on_gpus)


def _adds(bare: Outcome, on_gpus: tuple[Outcome, ...]) -> bool:
    """Tell whether an outcome without a GPU adds to those on GPUs."""
    further = any(each.state == "done" and _reached_gpu(each) for each in on_gpus)
    return bare.state == "done" and not (_only_built(bare) and further)


def _displaces(later: Outcome, before: Outcome, stale: Callable[[Outcome], bool]) -> bool:
    outdated = stale(before)
    if stale(later) != outdated:
        return outdated
    if not later.state == before.state == "done":
        return before.state != "done"
    if bool(later.stamps.account) != bool(before.stamps.account):
        return not later.stamps.account
    same = (later.stamps.engine_version, later.stamps.image_digest) == (
        before.stamps.engine_version,
        before.stamps.image_digest,
    )
    return not (_only_built(later) and same and _reached_gpu(before))


def _only_built(outcome: Outcome) -> bool:
    return outcome.failed_phase is None and not _reached_gpu(outcome)


def _reached_gpu(outcome: Outcome) -> bool:
    return outcome.ran or not ON_AN_ENGINE.isdisjoint({*outcome.phases, outcome.failed_phase})


def _age(outcome: Outcome) -> str:
    return outcome.stamps.when

"""Which of a cell's outcomes speak for it: one for each GPU, and the one without where it adds something; pure.

A GPU is told from another by compute capability, product and driver branch: the same product under two branches is two,
as long as both are current.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.record.gpu import gpu_of
from harness.record.outcome import ON_AN_ENGINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.record.gpu import Gpu
    from harness.record.outcome import Outcome


def speaking(
    outcomes: Iterable[Outcome], stale: Callable[[Outcome], bool] = lambda _: False
) -> dict[str, tuple[Outcome, ...]]:
    """Return the outcomes that speak for each cell, by cell id, both sorted: the one without a GPU before the others.

    Of one GPU, and of none, that is the latest by `stamps.when` (ties: the later of them as given, for a store the
    later file name, then the later line), but a machine that can do less does not hide what one that can do more
    has found: an outcome that was not run never displaces one that was; one that only built never displaces one of the
    same engine and image that got as far as a GPU. What somebody sent in never displaces what the project itself
    measured, and gives way to it. Any outcome that is not `stale` displaces one that is, and none that
    is stale displaces one that is not.

    Among GPUs only what is current speaks, and one outcome where nothing is. Beside outcomes of GPUs the one without
    speaks where it was done and says what theirs do not: not where it only built and one of them got further.
    """
    chosen: dict[str, dict[Gpu | None, Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda each: each.stamps.when):
        of_cell, gpu = chosen.setdefault(outcome.cell, {}), took_part(outcome)
        before = of_cell.get(gpu)
        if before is None or _displaces(outcome, before, stale):
            of_cell[gpu] = outcome
    return {cell: _side_by_side(of_cell, stale) for cell, of_cell in sorted(chosen.items())}


def latest(
    outcomes: Iterable[Outcome], stale: Callable[[Outcome], bool] = lambda _: False
) -> dict[str, Outcome]:
    """Return the latest of the outcomes that speak for each cell, on whatever GPU, by cell id, sorted by it."""
    return {cell: max(found, key=_age) for cell, found in speaking(outcomes, stale).items()}


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
    """Tell whether an outcome without a GPU says what those on GPUs do not."""
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
